# kill -9 of the client, the MDS, an OSS at random moments while programs run: what was answered is there, nothing hangs.
# The short form of test/long/kill_rounds.py: TRAINFS_KILL_ROUNDS (5) rounds.
. "$ROOT/test/cluster/lib.sh"
. "$ROOT/test/lib/programs.sh"
missing=$(programs_missing)
[ -z "$missing" ] || skip "there is no" $missing
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
seeded
modes=(on off)
[ -e /sys/module/fuse/parameters/enable_uring ] || modes=(off off)
at_exit+=("minicluster down")
trap 'for undo in "${at_exit[@]}"; do $undo >/dev/null 2>&1 || true; done' EXIT
TRAINFS_BUILD=$build python3 "$ROOT/test/long/kill_rounds.py" --rounds "${TRAINFS_KILL_ROUNDS:-5}" --seed "$seed" --programs 1 \
  -o "uring=${modes[seed % 2]}" "$WORK"
