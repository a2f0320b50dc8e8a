# 200 processes are blocked in flock and fcntl locks on the mount: others read and write as if they were not there,
# killed ones go at once, and the last ones get the lock. With FUSE over io_uring and without.
. "$ROOT/test/cluster/lib.sh"

top=$WORK
cat >"$top/waiter.py" <<'PYTHON'
import fcntl, os, sys
kind, count, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
for _ in range(count):
    if os.fork() == 0:
        with open(path, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX) if kind == "flock" else fcntl.lockf(file, fcntl.LOCK_EX)
            number = int(file.read() or 0) + 1  # under the lock
            file.seek(0)
            file.write(b"%d" % number)
        os._exit(0)
for _ in range(count):
    os.wait()
PYTHON

work() { # what others do meanwhile, against the clock
  timeout 60 python3 - "$mnt" <<'PYTHON' || fail "others are stalled"
import os, sys, threading
def work(number):
    for round in range(40):
        path = f"{sys.argv[1]}/work{number}.{round}"
        data = os.urandom(100_000)
        with open(path, "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        assert open(path, "rb").read() == data
        os.unlink(path)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
PYTHON
}

body() {
  start_cluster 2
  local holders=() kind pid
  for kind in flock fcntl; do
    : >"$mnt/$kind"
    python3 -c "
import fcntl, sys, time
file = open('$mnt/$kind', 'r+b')
fcntl.flock(file, fcntl.LOCK_EX) if '$kind' == 'flock' else fcntl.lockf(file, fcntl.LOCK_EX)
open('$WORK/holds-$kind', 'w').close()
time.sleep(600)" & holders+=($!)
    until_true 20 test -e "$WORK/holds-$kind"
    python3 "$top/waiter.py" $kind 100 "$mnt/$kind" & holders+=($!)
  done
  until_true 60 lock_waits "$mnt" 200
  work

  # 50 of each kind are killed and gone, and the others wait on.
  for pid in "${holders[1]}" "${holders[3]}"; do pgrep -P "$pid" | head -50 | xargs kill -9; done
  until_true 3 lock_waits "$mnt" 100
  work

  # A holder that dies lets go: the others come one after another.
  kill -9 "${holders[0]}" "${holders[2]}"
  wait "${holders[@]}" 2>/dev/null || true
  expect 50 cat "$mnt/flock"
  expect 50 cat "$mnt/fcntl"
}
both_transports body
