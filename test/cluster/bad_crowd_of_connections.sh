# More connections to each port than it takes: those beyond the limit are closed at once, a mount that is there goes on,
# the silent ones go after their time, and then a new client gets in. Ports for Prometheus have no such limit, but a
# scrape is answered beside a crowd.
. "$ROOT/test/cluster/lib.sh"
ulimit -n 20000 2>/dev/null || ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" -ge 8000 ] || skip "needs 8,000 descriptors, may have $(ulimit -n)"
up_options=(--metrics)
start_cluster 2
echo before >"$mnt/file"

PYTHONPATH=$ROOT/test/lib python3 - "$cluster" "$mnt" <<'PYTHON' || fail "see above"
import select, sys, time
from raw import *
LIMIT, CROWD = 1024, 1200  # --max-connections of both kinds of server, and what comes
cluster, mnt = Cluster(sys.argv[1]), sys.argv[2]
servers = [name for name in cluster.nodes if cluster.nodes[name]["kind"] != "client"]
descriptors = {name: cluster.descriptors(name) for name in servers}
pids = {name: cluster.pid(name) for name in servers}

def use_the_mount(what):
    started = time.monotonic()
    with open(f"{mnt}/file", "w") as file:
        file.write(what)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{mnt}/file", f"{mnt}/other")
    os.rename(f"{mnt}/other", f"{mnt}/file")
    with open(f"{mnt}/file") as file:
        check(file.read() == what, "the mount reads something else than was written")
    check(time.monotonic() - started < 20, f"the mount took {time.monotonic() - started:.0f} seconds")

def started_connection(port):
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex(("127.0.0.1", port))
    return connection

def closed(peers):
    poll = select.poll()
    for peer in peers:
        poll.register(peer.socket, select.POLLIN | select.POLLRDHUP)
    return len(poll.poll(0))

# ---- those of Prometheus, all at once ----
memory = {name: cluster.resident(name) for name in cluster.nodes}
crowd = [Peer(number) for _ in range(64) for name, number in cluster.metrics_ports()]
started = time.monotonic()
for name, number in cluster.metrics_ports():
    scrape(number)
    check(time.monotonic() - started < SCRAPE_SECONDS, f"{name}: a scrape beside 64 silent connections is late")
until(lambda: closed(crowd) == len(crowd), 20, "silent connections to the ports of Prometheus closed")
for peer in crowd:
    peer.close()
# More than the kernel keeps waiting.
crowd = [started_connection(number) for _ in range(CROWD) for name, number in cluster.metrics_ports()]
use_the_mount("beside the crowd for Prometheus")
for connection in crowd:
    connection.close()
for name, number in cluster.metrics_ports():
    scrape(number)
for name in cluster.nodes:
    grown = (cluster.resident(name) - memory[name]) >> 20
    check(grown < 50, f"{name} has grown by {grown} MiB")

# ---- the others, one after another ----
use_the_mount("a")
for name, number in cluster.ports():
    limit = LIMIT // cluster.nodes[name.split()[0]].get("workers", 1)
    crowd = [Peer(number) for _ in range(CROWD)]
    # The mount and the servers have some of them.
    until(lambda: closed(crowd) >= CROWD - limit, 20, f"{name}: {CROWD - limit} of {CROWD} connections closed")
    use_the_mount(f"beside the crowd at {name}")
    until(lambda: closed(crowd) == CROWD, 40, f"{name}: silent connections closed")
    for peer in crowd:
        peer.close()
    use_the_mount(f"after the crowd at {name}")
for name in servers:
    until(lambda: cluster.descriptors(name) <= descriptors[name] + 8, 20, f"{name}: its descriptors are free again")
    check(cluster.pid(name) == pids[name], f"{name} was restarted")
PYTHON

# A crowd that stays away from its limit hinders nobody: a new client mounts beside it.
port=$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")
mkdir "$WORK/second"
at_exit+=("umount -l $WORK/second")
PYTHONPATH=$ROOT/test/lib python3 -c "
from raw import *
import sys
crowd = [Peer($port) for _ in range(900)]
print('there', flush=True)
sys.stdin.read()" < <(until_true 60 test -e "$WORK/mounted") >"$WORK/crowd" & crowd=$!
until_true 30 test -s "$WORK/crowd"
timeout 60 "$build/src/fuse_client/trainfs-client" "127.0.0.1:$port:/trainfs" "$WORK/second" || fail "no second mount"
touch "$WORK/mounted"
wait $crowd
expect "after the crowd at ost1 port 0" cat "$WORK/second/file"
umount "$WORK/second"
lines=$(grep -c "refused" "$cluster"/log/mds0.log)
[ "$lines" -ge 1 ] && [ "$lines" -le 20 ] || fail "the MDS has $lines lines about refused connections"
