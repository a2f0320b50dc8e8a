# The MDS is stopped or killed while locks are held and waited for: afterwards who had one has it, nobody got in between,
# and who waited gets it next. Waiters can be killed while it is away.
. "$ROOT/test/cluster/lib.sh"

cat >"$WORK/survive.py" <<'PYTHON'
import os, subprocess, sys
from lockers import Locker, expect
mounts, cluster, tool = sys.argv[1:3], sys.argv[3], f"{os.environ['ROOT']}/tools/minicluster"
a, b = (f"{mount}/file" for mount in mounts)
KINDS = "record ex 10 5", "ofd ex 20 5", "flock ex"

def minicluster(verb):
    subprocess.run([tool, verb, cluster, "mds0"], check=True, stdout=subprocess.DEVNULL)

def waits_of(mount):
    return os.getxattr(mount, "system.trainfs.stats").decode().split("lock.waits ")[1].split("\n")[0]

for ending in "stop", "kill":
    holders = {kind: Locker(a) for kind in KINDS}
    waiters = {kind: Locker(b) for kind in KINDS}
    for kind in KINDS:
        expect(holders[kind].now(kind), "ok", kind)
        waiters[kind].start(kind)
    assert waiters["flock ex"].waits()
    doomed = Locker(b)
    doomed.start("record ex 0 0")
    assert doomed.waits()

    minicluster(ending)
    doomed.kill()  # within its time, with no server there
    minicluster("start")

    thief = Locker(b)
    for kind in KINDS:
        expect(thief.now(kind + " nb"), "EAGAIN", f"{kind} after the MDS came back ({ending})")
        assert waiters[kind].waits(), kind
        expect(holders[kind].now(kind.replace("ex", "un")), "ok", "letting go")
        expect(waiters[kind].result(), "ok", f"{kind}: who waited ({ending})")
        expect(thief.now(kind + " nb"), "EAGAIN", f"{kind} of who waited")
    for locker in [thief, *holders.values(), *waiters.values()]:
        locker.end()
    # Everything is let go of, and what was killed has left nothing.
    last = Locker(a)
    expect(last.now("record ex 0 0 nb"), "ok", "all record locks")
    expect(last.now("flock ex"), "ok", "the flock")
    last.end()
    expect(waits_of(mounts[1]), "0", "waits")
PYTHON
survive=$WORK/survive.py

body() {
  local a=$WORK/a b=$WORK/b
  start_cluster 2 "$a" "$b"
  PYTHONPATH=$ROOT/test/lib timeout 200 python3 "$survive" "$a" "$b" "$cluster" || fail "survival"
}
both_transports body
