# 640 processes wait in a write for an OST that is away: names, attributes and files on another OST go on as if they
# were not there. Killed, they go at once, and leave nothing that the next 640 would stumble over. When the OST is back,
# what was answered is right. With FUSE over io_uring and without; an OST that was killed, and one that hangs.
. "$ROOT/test/cluster/lib.sh"

top=$WORK writers=640
cat >"$top/writer.py" <<'PYTHON'
import os, sys
directory, count, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    if os.fork() == 0:
        data = f"{number:08}".encode() * 1024
        fd = os.open(f"{directory}/file{number % 50}", os.O_WRONLY)
        for round in range(rounds):
            written = os.pwrite(fd, data, (number // 50) * len(data))
            assert written == len(data), written
        os._exit(0)
print("forked", flush=True)
for _ in range(count):
    pid, status = os.wait()
    if status != 0:
        sys.exit(f"a writer ended with {status:#x}")
PYTHON
cat >"$top/check.py" <<'PYTHON'
import sys
directory, count = sys.argv[1], int(sys.argv[2])
for number in range(count):
    data = f"{number:08}".encode() * 1024
    with open(f"{directory}/file{number % 50}", "rb") as file:
        file.seek((number // 50) * len(data))
        if file.read(len(data)) != data:
            sys.exit(f"what writer {number} was answered is wrong")
PYTHON

work() { # what others do meanwhile, each within a bound
  local begun=$SECONDS
  timeout 60 bash -c '
    set -e
    cd "$1"
    stat . away away/file* ready >/dev/null
    ls -l . ready >/dev/null
    for i in $(seq 40); do
      touch "ready/new$i"
      head -c 300000 /dev/urandom >"$2/data"
      cp "$2/data" "ready/data$i"
      sync "ready/data$i"
      cmp "$2/data" "ready/data$i"
      rm "ready/new$i" "ready/data$i"
    done
    mkdir "ready/dir" && rmdir "ready/dir"' work "$mnt" "$WORK" || fail "others are stalled"
  echo "others: $((SECONDS - begun)) s"
}

blocked() { # $1 writers wait for their answer
  [ "$(pgrep -P "$writer" | while read -r pid; do grep -l request_wait_answer "/proc/$pid/stack" 2>/dev/null; done | wc -l)" = "$1" ]
}
start_writers() { # start_writers ROUNDS
  python3 "$top/writer.py" "$mnt/away" $writers "$1" >"$WORK/said" 2>"$WORK/complaints" & writer=$!
  until_true 30 grep -q forked "$WORK/said"
}
kill_writers() {
  local children
  children=$(pgrep -P "$writer")
  kill -9 "$writer" $children
  wait "$writer" 2>/dev/null || true
  gone() { local pid; for pid in $children; do [ ! -e "/proc/$pid" ] || return 1; done; }
  until_true 20 gone
}

body() {
  start_cluster 2
  mkdir "$mnt/away" "$mnt/ready"
  "$tfs" setstripe -c 1 -o 0 "$mnt/away"
  "$tfs" setstripe -c 1 -o 1 "$mnt/ready"
  for ((i = 0; i < 50; ++i)); do truncate -s 200K "$mnt/away/file$i"; done  # writers beyond the end take turns
  local oss round
  oss=$(awk '{print $1}' "$cluster/run/ost0")
  for how in killed hung; do
    if [ $how = killed ]; then minicluster kill ost0; else kill -STOP "$oss"; at_exit+=("kill -CONT $oss"); fi
    for round in 1 2 3; do
      start_writers 1
      until_true 60 blocked $writers
      work
      kill_writers
    done
    start_writers 1
    until_true 60 blocked $writers
    work
    if [ $how = killed ]; then minicluster start ost0 >/dev/null; else kill -CONT "$oss"; fi
    wait "$writer" || fail "a writer failed: $(tail -n 3 "$WORK/complaints")"
    python3 "$top/check.py" "$mnt/away" $writers
    oss=$(awk '{print $1}' "$cluster/run/ost0")
  done
  minicluster remount "$mnt"
  python3 "$top/check.py" "$mnt/away" $writers
}
both_transports body
