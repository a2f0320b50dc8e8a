# A mount ends within its bound though servers are away: with writers that wait, with pages of a mapping that cannot be
# written, without an MDS. The log says what was lost, and what was answered is there afterwards. With FUSE over io_uring
# and without.
. "$ROOT/test/cluster/lib.sh"

top=$WORK bound=45
cat >"$top/mapped.py" <<'PYTHON'
import mmap, os, signal, sys
with open(sys.argv[1], "r+b") as file:
    pages = mmap.mmap(file.fileno(), 0)
    pages[:4] = b"late"
    open(sys.argv[2], "w").close()
    signal.pause()
PYTHON
client_of() { # the number of the client's process
  awk '{print $1}' "$cluster/run/$1"
}
waits() { grep -Eq 'fuse|rwsem' "/proc/$1/stack"; }  # for an answer, or for one who does
gone() { [ ! -e "/proc/$1" ]; }
log() { cat "$cluster/log/client0.log"; }
ends() { # ends PID: as it should, once SIGTERM came
  local begun=$SECONDS
  kill -TERM "$1"
  until_true $bound gone "$1"
  echo "ended in $((SECONDS - begun)) s"
  ! mountpoint -q "$mnt" || fail "still mounted"
}
mount_again() { minicluster up --mount "$mnt" -o "$mount_options" >/dev/null; }

body() {
  start_cluster 2
  "$tfs" setstripe -c 1 -o 0 "$mnt/away"
  "$tfs" setstripe -c 1 -o 1 "$mnt/ready"
  "$tfs" setstripe -c 1 -o 0 "$mnt/mapped"
  truncate -s 8192 "$mnt/mapped"

  # An OST is away. Writers and an fsync wait for it; the size of what was answered is reported all the same.
  head -c 300000 /dev/urandom >"$WORK/data"
  exec 5>"$mnt/away" 6>"$mnt/ready"
  python3 "$top/mapped.py" "$mnt/mapped" "$WORK/is-mapped" & local mapped=$!
  until_true 20 test -e "$WORK/is-mapped"
  head -c 1000 "$WORK/data" >&5
  minicluster kill ost0
  local waiting=() pid i
  for i in 1 2 3; do dd if="$WORK/data" of="$mnt/away" bs=100K conv=notrunc 2>>"$WORK/said" & waiting+=($!); done
  sync "$mnt/away" 2>>"$WORK/said" & waiting+=($!)
  for pid in "${waiting[@]}"; do until_true 20 waits "$pid"; done
  cat "$WORK/data" >&6
  ends "$(client_of client0)"
  for pid in "${waiting[@]}"; do ! wait "$pid" || fail "a request that no server answered succeeded"; done
  grep -Eq "[1-9][0-9]* requests of $mnt were not answered by servers" <(log) || fail "the log does not tell of lost requests"
  exec 5>&- 6>&-
  kill -9 $mapped
  minicluster start ost0 >/dev/null
  mount_again
  cmp "$WORK/data" "$mnt/ready"
  cmp -n 1000 "$WORK/data" "$mnt/away"

  # No MDS: sizes are found out from the OSTs.
  exec 6>"$mnt/ready"
  cat "$WORK/data" >&6
  minicluster kill mds0
  ends "$(client_of client0)"
  grep -q "could not be reported, for no MDS took them\|could not be ended, for no MDS answers" <(log) ||
    fail "the log does not tell of the MDS"
  exec 6>&-
  minicluster start mds0 >/dev/null
  mount_again
  until_true 30 cmp "$WORK/data" "$mnt/ready"
}
both_transports body
