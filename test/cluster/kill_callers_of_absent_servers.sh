# Who is killed while the server it waits for is away goes at once, whatever it waits for; and what lives on goes on
# once the server is back. With FUSE over io_uring and without.
. "$ROOT/test/cluster/lib.sh"

waiters=()
waiter() { "$@" >/dev/null 2>&1 & waiters+=($!); }
# In a system call that has not come back: for an answer, a page, or the lock of a directory where another one waits.
waits() { grep -Eq 'fuse|folio|filemap|path_openat|filename_create|lookup|unlink|rename|iterate_dir' "/proc/$1/stack"; }
all_gone() {
  local pid
  for pid in "${waiters[@]}"; do [ ! -e "/proc/$pid" ] || return 1; done
}
kill_waiters() {
  local pid
  for pid in "${waiters[@]}"; do until_true 10 waits "$pid"; done
  kill "-$1" "${waiters[@]}"
  wait "${waiters[@]}" 2>/dev/null || true
  until_true 3 all_gone
  waiters=()
}

body() {
  start_cluster 2
  "$tfs" setstripe -c 2 -S 64K "$mnt"
  head -c 3000000 /dev/urandom >"$WORK/data"
  cp "$WORK/data" "$mnt/data"
  cp "$WORK/data" "$mnt/other"
  minicluster remount "$mnt"
  for signal in TERM KILL; do
    minicluster kill ost0
    minicluster kill ost1
    stat "$mnt"/* >/dev/null
    for part in 1 2 3; do
      waiter dd if="$mnt/data" bs=1M iflag=direct
      waiter dd if="$mnt/other" bs=64K skip=$part
      waiter dd if="$WORK/data" of="$mnt/new$part" bs=1M
      waiter dd if="$WORK/data" of="$mnt/small$part" bs=3000 oflag=append conv=notrunc
    done
    kill_waiters $signal
    minicluster start ost0
    minicluster start ost1
    cmp "$WORK/data" "$mnt/data" || fail "data changed"

    minicluster kill mds0
    waiter mkdir "$mnt/dir"
    waiter touch "$mnt/touched"
    waiter mv "$mnt/data" "$mnt/moved"
    waiter rm "$mnt/other"
    waiter stat "$mnt/nowhere"
    waiter ls -f "$mnt"
    kill_waiters $signal
    minicluster start mds0
    # What was under way when its caller was killed happened or not, but one of the two.
    until_true 20 stat "$mnt" >/dev/null
    [ -e "$mnt/data" ] || mv "$mnt/moved" "$mnt/data"
    cmp "$WORK/data" "$mnt/data" || fail "data changed"
    cp "$WORK/data" "$mnt/other"
    rm -rf "$mnt"/{dir,touched,moved}
  done
  cmp "$WORK/data" "$mnt/other" || fail "what was written after that is wrong"
}
both_transports body
