# Garbage, other protocols, claims of enormous sizes, half frames and silence on every port; a client that takes no
# replies. Each is cut off in its time, memory stays bounded, a mount goes on reading and writing beside it, and
# Prometheus is answered.
. "$ROOT/test/cluster/lib.sh"
up_options=(--metrics)
start_cluster 2
seeded

cat >"$WORK/load.py" <<'PYTHON'
import os, sys, time
path, stop = sys.argv[1:]
slowest = 0
while not os.path.exists(stop):
    started = time.monotonic()
    data = os.urandom(300_000)
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    with open(path, "rb") as file:
        assert file.read() == data, "read something else than was written"
    os.unlink(path)
    slowest = max(slowest, time.monotonic() - started)
print(f"slowest round: {slowest:.1f} s")
assert slowest < 20, f"a round took {slowest:.1f} s"
PYTHON
python3 "$WORK/load.py" "$mnt/load" "$WORK/stop" & load=$!
# What a peer reads that takes no replies: one object of 4 MiB.
head -c 4M /dev/urandom >"$mnt/big"; sync "$mnt/big"
tfs_line=$("$tfs" getstripe "$mnt/big" | awk '$1 ~ /^[0-9]+$/ && NF >= 4 {print $1, $3; exit}')

PYTHONPATH=$ROOT/test/lib python3 - "$cluster" "$seed" "$(stat -c %i "$mnt/big")" $tfs_line <<'PYTHON' || fail "see above"
import random, re, struct, sys, time
from raw import *
cluster, random, inode = Cluster(sys.argv[1]), random.Random(int(sys.argv[2])), int(sys.argv[3])
chain = int(sys.argv[4])
ost = f"ost{chain}"
pids = {name: cluster.pid(name) for name in cluster.nodes}
memory = {name: cluster.resident(name) for name in cluster.nodes}

def is_mds(name): return name.startswith("mds")
def words(*halves): return struct.pack(f"<{len(halves)}I", *halves)

# The session of the mount, as its OSSes know it.
with open(f"{cluster.dir}/log/mds0.log") as log:
    session = int(re.findall(r"session (\d+) \(.*\) opened", log.read())[-1])
target = object_id(inode, int(sys.argv[5], 16) >> 32)
port = cluster.data_port(ost, target)

def greet(lane):
    for epoch in range(4):
        peer = Peer(port)
        peer.send(frame(HELLO, session=session, epoch=epoch, chain=chain, lane=lane))
        if peer.reply()[1] == 0:
            return peer, dict(session=session, epoch=epoch, chain=chain)
        peer.close()
    raise SystemExit("FAILED: no epoch of the mount's session is known to the OSS")

# ---- silence, of all kinds: opened first, looked at last ----
opened, silent = time.monotonic(), []
for name, number in cluster.ports():
    silent.append((f"{name}: nothing", Peer(number)))
    half = Peer(number)
    half.send(words(0, 4, 0) if is_mds(name) else frame(HELLO)[:40])
    silent.append((f"{name}: half a header", half))
for name, number in cluster.metrics_ports():
    silent += [(f"{name}: nothing", Peer(number)) for _ in range(8)]
    half = Peer(number)
    half.send(b"GET /metrics HTT")
    silent.append((f"{name}: half a request", half))
    scrape(number)
for lane, part in ((1001, lambda whole: whole[:30]), (1002, lambda whole: whole[:80]), (1003, lambda whole: whole[:-1])):
    peer, who = greet(lane)
    peer.send(part(write_frame(target, 0, bytes(4096), **who)))
    silent.append((f"{ost}: hello, then {len(part(write_frame(target, 0, bytes(4096), **who)))} bytes", peer))
deaf, who = greet(1004)
for request in range(60):
    if not deaf.send(frame(READ, [extent(target, 0, 1 << 20)], request=request, **who)):
        break
silent.append((f"{ost}: takes no replies", deaf))

# ---- garbage ----
tls = bytes.fromhex("16030102000100 01fc0303".replace(" ", "")) + bytes(600)
for name, number in [*cluster.ports(), *cluster.metrics_ports()]:
    for what, data in [("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b" " * 64), ("TLS", tls), ("ones", b"\xff" * 4096),
                       *((f"random bytes {i}", random.randbytes(random.randint(128, 9000))) for i in range(20))]:
        peer = Peer(number)
        peer.send(data)
        check(peer.is_cut(15), f"{name}: {what}: the connection is still open")
        peer.close()

# ---- claims ----
# Lengths have 32 bits in both framings, so that no header can say 2^60: these are the largest claims there are. Only an
# offset has more, below.
for name, number in cluster.ports():
    if is_mds(name):
        claims = [("2^20 segments", words((1 << 20) - 1, 1)), ("2^32 - 1 segments", words(0xfffffffe, 1)),
                  ("2^32 - 1 words", words(0, 0xffffffff)),
                  # One segment fewer than are too many for their number.
                  ("511 segments of 2^32 - 1 words", words(510, *[0xffffffff] * 511)),
                  ("a pointer out of the message", words(0, 1, 0xfffffffc, 0xffffffff))]
    else:
        claims = [("2^32 - 1 bytes of payload", frame(WRITE, [extent(target, 0, 4096)], [0], payload_bytes=0xffffffff)),
                  ("65535 extents", frame(READ, extent_count=65535)), ("65535 sums", frame(READ, sum_count=65535)),
                  ("operation 200", frame(200)), ("a reply", frame(READ, flags=1, extent_count=1)),
                  ("version 77", frame(HELLO, version=77)), ("a wrong sum", frame(HELLO, sum=1)),
                  ("an extent beyond 2^63", frame(READ, [extent(target, (1 << 63) - 1, 4096)])),
                  ("64 extents of 2^32 - 1", frame(READ, [extent(target, 0, 0xffffffff)] * 64)),
                  ("a request before the hello", frame(STAT, [extent(target)]))]
    for what, data in claims:
        peer = Peer(number)
        peer.send(data)
        check(peer.is_cut(15), f"{name}: {what}: the connection is still open")
        peer.close()
# Lawful, and nothing that a file can have: an errno, for this request alone.
peer, who = greet(1005)
peer.send(write_frame(target, 1 << 60, bytes(4096), **who))
status, error = peer.reply()[1:3]
check((status, error) == (1, 27), f"a write at 2^60 was answered with status {status}, error {error}, not EFBIG")
peer.send(frame(STAT, [extent(target)], **who))
check(peer.reply()[1] == 0, "the connection is of no use after an error")
peer.close()

# ---- what came of it ----
for what, peer in silent:
    check(peer.is_cut(max(1, opened + 90 - time.monotonic())), f"{what}: still open after 90 seconds")
for name, number in cluster.metrics_ports():
    scrape(number)
for name in cluster.nodes:
    check(cluster.pid(name) == pids[name], f"{name} was restarted")
    os.kill(pids[name], 0)
    grown = (cluster.resident(name) - memory[name]) >> 20
    print(f"{name}: {grown} MiB more than before")
    check(grown < 150, f"{name} has grown by {grown} MiB")
PYTHON
touch "$WORK/stop"
wait $load || fail "the mount did not go on"
grep -q "bad frame: not a bulk frame" "$cluster/log/ost0.log" || fail "the OSS says nothing about bad frames"
for wrong in "too many segments" "Message is too large"; do
  grep -q "$wrong" "$cluster/log/mds0.log" || fail "the MDS says nothing about bad messages: $wrong"
done
