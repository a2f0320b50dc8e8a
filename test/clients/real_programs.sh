# Programs that lean on POSIX: git, SQLite, a C project, tar, rsync, and fio with verification; with FUSE over
# io_uring and without. REAL_PROGRAMS_SCALE (1) makes them work more.
. "$ROOT/test/cluster/lib.sh"
. "$ROOT/test/lib/programs.sh"
missing=$(programs_missing)
[ -z "$missing" ] || skip "there is no" $missing
scale=${REAL_PROGRAMS_SCALE:-1}

body() {
  start_cluster 4
  "$tfs" setstripe -c 4 -S 256K "$mnt"
  for program in "${programs[@]}"; do
    SECONDS=0
    mkdir "$mnt/$program"
    "run_$program" "$mnt/$program"
    echo "$program: $SECONDS s"
  done
}
both_transports body
