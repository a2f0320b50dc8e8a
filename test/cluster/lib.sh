# What every cluster test shares. tools/test runs each script with WORK, an empty directory of its own as the
# current directory, and ROOT, the checkout; by hand: WORK=$(mktemp -d) ROOT=$PWD bash test/cluster/NAME.sh
set -euo pipefail
: "${WORK:?}" "${ROOT:?}"
cluster=$WORK/cluster mnt=$WORK/mnt
build=${TRAINFS_BUILD:-$ROOT/build}
tfs=$build/tools/tfs/tfs

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
minicluster() { local verb=$1; shift; "$ROOT/tools/minicluster" "$verb" "$cluster" "$@"; }

# A seed for whatever is random in a test; printed, so that a failure can be replayed.
seed=${TRAINFS_SEED:-$((RANDOM * 32768 + RANDOM))}
seeded() { RANDOM=$seed; echo "replay with TRAINFS_SEED=$seed"; }

# Commands to run at the end, whatever the outcome: at_exit+=("rm -f FILE").
at_exit=()

# Options of the mounts that start_cluster makes.
mount_options=

# More options of minicluster up.
up_options=()

# start_cluster [OSTS [MOUNT...]]: up, with one mount at $mnt unless mounts are given.
start_cluster() {
  [ -e /dev/fuse ] || skip "there is no /dev/fuse"
  local osts=${1:-4} mounts=()
  shift || true
  for path in "${@:-$mnt}"; do mounts+=(--mount "$path"); done
  trap 'stop_cluster' EXIT
  minicluster up --osts "$osts" "${mounts[@]}" -o "$mount_options" "${up_options[@]}" >/dev/null
}

# both_transports FUNCTION: runs it with FUSE over io_uring, where the kernel has that, and with the classic device;
# each time in an empty directory of its own, for which it starts a cluster itself.
both_transports() {
  local mode top=$WORK
  for mode in on off; do
    if [ $mode = on ] && [ ! -e /sys/module/fuse/parameters/enable_uring ]; then
      echo "not run with io_uring: the kernel has no FUSE over it"
      continue
    fi
    (
      echo "-- uring=$mode"
      WORK=$top/uring-$mode cluster=$WORK/cluster mnt=$WORK/mnt mount_options=uring=$mode
      mkdir "$WORK"
      cd "$WORK"
      "$1"
    )
  done
}

stop_cluster() {
  local status=$?
  trap - EXIT
  for undo in "${at_exit[@]}"; do $undo || true; done
  if [ $status != 0 ] && [ $status != 77 ]; then
    for log in "$cluster"/log/*.log; do echo "--- ${log##*/}"; tail -n 15 "$log"; done
  fi
  minicluster down || status=1
  exit $status
}

# restart NAME...: stops each with SIGTERM and starts it again.
restart() { for name in "$@"; do minicluster stop "$name"; minicluster start "$name"; done; }
servers() { minicluster status | awk '$1 ~ /^(mds|ost)/ {print $1}'; }

# until_true SECONDS COMMAND...: polls; fails loudly when the time is over.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || fail "not within its time: $*"
    sleep 0.1
  done
}

expect() { # expect WANTED COMMAND...: the command prints exactly that
  local wanted=$1 got
  shift
  got=$("$@" 2>&1) || true
  [ "$got" = "$wanted" ] || fail "$*: expected '$wanted', got '$got'"
}

# lock_waits MOUNT N: exactly N requests of that mount wait for locks of files.
lock_waits() {
  [ "$(getfattr --only-values -n system.trainfs.stats "$1" 2>/dev/null | awk '$2 == "lock.waits" {print $3}')" = "$2" ]
}
