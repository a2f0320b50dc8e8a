# Locks of a client whose daemon is killed go when the MDS has missed it for a term and somebody waits; those of one that
# is unmounted go at once. A client that was silent too long and comes back learns that it has lost its own.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"

cat >"$WORK/dead.py" <<'PYTHON'
import os, signal, subprocess, sys, time
from lockers import Locker, expect, until
a, b = (f"{mount}/file" for mount in sys.argv[1:3])
cluster, tool = sys.argv[3], f"{os.environ['ROOT']}/tools/minicluster"
TERM = 10

def minicluster(*words):
    subprocess.run([tool, words[0], cluster, *words[1:]], check=True, stdout=subprocess.DEVNULL)

def daemon(name):
    return int(open(f"{cluster}/run/{name}").read().split()[0])

def clocked(waiter):
    begun = time.monotonic()
    expect(waiter.result(3 * TERM), "ok", "a lock of a client that is gone")
    return time.monotonic() - begun

# Unmounted, with the file open.
holder, waiter = Locker(b), Locker(a)
expect(holder.now("record ex 0 0"), "ok", "a lock")
expect(holder.now("flock ex"), "ok", "a flock")
waiter.start("record ex 0 0")
assert waiter.waits()
minicluster("stop", "client1")
assert clocked(waiter) < TERM / 2, "unmounting takes as long as dying"
expect(waiter.now("flock ex nb"), "ok", "the flock")
waiter.end()
holder.kill()

# Killed.
minicluster("start", "client1")
holder, waiter = Locker(b), Locker(a)
expect(holder.now("record ex 0 0"), "ok", "a lock")
waiter.start("record ex 0 0")
assert waiter.waits()
minicluster("kill", "client1")
assert clocked(waiter) > TERM / 2, "the client may still have come back"
waiter.end()
holder.kill()

# Silent for too long.
minicluster("start", "client1")
holder, waiter = Locker(b), Locker(a)
expect(holder.now("record ex 0 10"), "ok", "a lock")
os.kill(daemon("client1"), signal.SIGSTOP)
waiter.start("record ex 0 0")
clocked(waiter)
os.kill(daemon("client1"), signal.SIGCONT)
log = f"{cluster}/log/client1.log"
until(lambda: "locks of inode " in open(log).read(), "the client says what it lost")
expect(holder.now("record ex 20 5"), "EIO", "another lock of who has lost one")
expect(holder.now("record un 0 10"), "ok", "letting go of what is lost")
expect(holder.now("record ex 0 10 nb"), "EAGAIN", "what another has now")
waiter.end()
expect(holder.now("record ex 0 10 nb"), "ok", "and what is free again")
holder.end()
PYTHON
PYTHONPATH=$ROOT/test/lib timeout 200 python3 "$WORK/dead.py" "$a" "$b" "$cluster" || fail "dead clients"
