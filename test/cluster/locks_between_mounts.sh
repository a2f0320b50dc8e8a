# fcntl, OFD and flock locks keep processes of two mounts out as they do on one machine: who waits, who is woken, what
# signals, deaths and closes do; and what is written under a lock is seen by whoever gets it next.
. "$ROOT/test/cluster/lib.sh"

rounds=${ROUNDS:-5000} # of each process, under each kind of lock
cat >"$WORK/calls.py" <<'PYTHON'
import signal, sys
from lockers import Locker, expect, until
a, b = (f"{mount}/{sys.argv[3]}" for mount in sys.argv[1:3])

def fresh():
    return Locker(a), Locker(b)

def ends(*lockers):
    for locker in lockers:
        locker.end()

# Ranges: only what overlaps is in the way, in either direction.
x, y = fresh()
expect(x.now("record ex 0 10 nb"), "ok", "a lock")
expect(y.now("record ex 10 10 nb"), "ok", "beside it")
expect(y.now("record ex 9 1 nb"), "EAGAIN", "in it")
expect(y.now("record sh 0 1 nb"), "EAGAIN", "shared, in it")
expect(y.now("test ex 0 0"), "ex 0 10 0", "who is there, of the other mount")
expect(x.now("record sh 5 5 nb"), "ok", "half of it for others to share")
expect(y.now("record sh 7 1 nb"), "ok", "sharing")
expect(x.now("record ex 0 10 nb"), "EAGAIN", "what others share")
expect(x.now("record un 0 0"), "ok", "letting go")
expect(y.now("record ex 0 0 nb"), "ok", "all of it")
expect(y.now("test ex 0 0"), "free", "one's own lock is in nobody's way")
expect(x.now("flock ex nb"), "ok", "flock beside record locks")
expect(y.now("flock sh nb"), "EAGAIN", "flock of the other")
ends(x, y)

# A process of the same mount is named.
x, y = Locker(a), Locker(a)
expect(x.now("record ex 3 4"), "ok", "a lock")
expect(y.now("test sh 0 0"), f"ex 3 4 {x.pid}", "who is there, of the same mount")
ends(x, y)

# Waiting and waking, in the order of arrival.
for kind in "record ex 0 0", "ofd ex 0 0", "flock ex":
    release = kind.replace("ex", "un")
    x, y = fresh()
    z = Locker(b)
    expect(x.now(kind), "ok", kind)
    for waiter in y, z:
        waiter.start(kind)
        assert waiter.waits(), kind
    expect(x.now(release), "ok", release)
    expect(y.result(), "ok", "the first one in the queue")
    assert z.waits(), "two have it"
    y.kill()
    expect(z.result(), "ok", "who waited for one that was killed")
    ends(x, z)

# What a close does: to record locks at once, whichever descriptor it is; to the others with the last descriptor.
for flags in "rw", "ro":
    x, y = Locker(a, flags), Locker(b)
    expect(x.now("record sh 0 0"), "ok", "a lock")
    expect(y.now("record ex 0 0 nb"), "EAGAIN", "what is shared")
    expect(x.now("close"), "ok", "a close")
    expect(y.now("record ex 0 0 nb"), "ok", f"after the close ({flags})")
    expect(y.now("record un 0 0"), "ok", "letting go")
    for kind in "ofd sh 0 0", "flock sh":
        want = kind.replace("sh", "ex")
        expect(x.now(kind), "ok", kind)
        expect(x.now("close"), "ok", "a close of another descriptor")
        expect(y.now(want + " nb"), "EAGAIN", f"{want} after the close of another descriptor")
        x.start("leave")
        x.process.wait(30)
        expect(y.now(want + " nb"), "EAGAIN", f"{want} while a child has the descriptor")
        x.process.stdin.close()  # the child ends
        until(lambda: y.now(want + " nb") == "ok", f"{want} after the last descriptor")
        expect(y.now(want.replace("ex", "un")), "ok", "letting go")
        x = Locker(a, flags)
    ends(x, y)

# A child has none of its parent's record locks.
x, y = fresh()
expect(x.now("record ex 0 0"), "ok", "a lock")
x.start("leave")
until(lambda: y.now("record ex 0 0 nb") == "ok", "the parent's lock after its death")
x.process.stdin.close()
ends(y)

# Two who share a flock and both want it alone get it, one after the other.
x, y = fresh()
expect(x.now("flock sh"), "ok", "a share")
expect(y.now("flock sh"), "ok", "a share")
x.start("flock ex")
assert x.waits()
expect(y.now("flock ex"), "ok", "alone")
y.end()
expect(x.result(), "ok", "then the other")
x.end()

# Record locks that wait for each other for ever.
x, y = fresh()
expect(x.now("record ex 0 1"), "ok", "one byte")
expect(y.now("record ex 1 1"), "ok", "another")
x.start("record ex 1 1")
assert x.waits()
expect(y.now("record ex 0 1"), "EDEADLK", "a circle")
expect(y.now("record un 1 1"), "ok", "letting go")
expect(x.result(), "ok", "who was not refused")
ends(x, y)

# Signals: a handler ends the wait, or it goes on; a stop is a stop, and what is granted meanwhile is had.
for kind in "record ex 0 0", "flock ex":
    x, y = fresh()
    expect(x.now(kind), "ok", kind)
    expect(y.now("alarm 0.5 raise"), "ok", "alarm")
    expect(y.now(kind), "EINTR", f"{kind} with a handler")
    expect(y.now("alarm 0.5 restart"), "ok", "alarm")
    y.start(kind)
    assert y.result(2) is None, "a restartable wait ended"
    y.signal(signal.SIGSTOP)
    until(lambda: open(f"/proc/{y.pid}/stat").read().split(") ")[1][0] == "T", "a waiter stops")
    expect(x.now(kind.replace("ex", "un")), "ok", "letting go")
    y.signal(signal.SIGCONT)
    expect(y.result(), "ok", "after the stop")
    expect(x.now(kind + " nb"), "EAGAIN", "the other has it")
    # A holder that is killed lets go, and a waiter that is killed leaves no trace.
    x.start(kind)
    assert x.waits()
    x.kill()
    y.kill()
    x, y = fresh()
    until(lambda: x.now(kind + " nb") == "ok", f"{kind} of the dead")
    ends(x, y)
PYTHON

cat >"$WORK/counter.py" <<'PYTHON'
import fcntl, os, sys
path, kind, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
lock = {"fcntl": fcntl.lockf, "flock": fcntl.flock}[kind]
fd = os.open(path, os.O_RDWR)
for _ in range(rounds):
    lock(fd, fcntl.LOCK_EX)
    number = int(os.pread(fd, 100, 0) or b"0") + 1
    os.pwrite(fd, b"%d" % number, 0)
    lock(fd, fcntl.LOCK_UN)
PYTHON
calls=$WORK/calls.py counter=$WORK/counter.py

body() {
  local a=$WORK/a b=$WORK/b kind counters
  start_cluster 2 "$a" "$b"
  PYTHONPATH=$ROOT/test/lib timeout 200 python3 "$calls" "$a" "$b" file || fail "calls"
  for kind in fcntl flock; do
    : >"$a/$kind"
    counters=()
    timeout 200 python3 "$counter" "$a/$kind" $kind "$rounds" & counters+=($!)
    timeout 200 python3 "$counter" "$b/$kind" $kind "$rounds" & counters+=($!)
    for process in "${counters[@]}"; do wait "$process" || fail "a counter failed"; done
    expect $((2 * rounds)) cat "$b/$kind"
  done
}
both_transports body
