# With -o soft, what needs a server that is away fails with EIO within soft_timeout, and works again when it is back; a hard
# mount beside it waits and then goes on.
. "$ROOT/test/cluster/lib.sh"
soft=$WORK/soft
start_cluster 2
minicluster up --mount "$soft" -o soft,soft_timeout=3 >/dev/null
head -c 3000000 /dev/urandom >"$mnt/data"; sync -f "$mnt"
sum=$(md5sum <"$mnt/data")

gives_up() { # gives_up COMMAND...: fails with EIO, after the time-out and soon after it
  local said begun=$SECONDS
  said=$(timeout 60 "$@" 2>&1 >/dev/null) && fail "$* succeeded without a server"
  [[ $said == *"Input/output error"* ]] || fail "$*: $said"
  [ $((SECONDS - begun)) -ge 2 ] && [ $((SECONDS - begun)) -le 20 ] || fail "$* took $((SECONDS - begun)) s"
}
minicluster kill mds0
gives_up stat "$soft/data"
gives_up mkdir "$soft/dir"
timeout 60 cat "$mnt/data" >"$WORK/copy" &  # hard
hard=$!
minicluster start mds0
wait $hard
expect "$sum" bash -c "md5sum <'$WORK/copy'"
expect "$sum" bash -c "timeout 60 md5sum <'$soft/data'"
mkdir -p "$soft/dir"

minicluster kill ost0; minicluster kill ost1
gives_up cat "$soft/data"
gives_up dd if=/dev/zero "of=$soft/data" bs=1M count=1 conv=notrunc,fsync
minicluster start ost0; minicluster start ost1
head -c 100000 /dev/zero >"$soft/dir/file"
expect 100000 stat -c %s "$mnt/dir/file"
timeout 60 md5sum "$soft/data" >/dev/null || fail "not readable after the OSTs are back"
