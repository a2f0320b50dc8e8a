# tfs features and tfs stats: the mount's own word, also while the MDS is away.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
field() { python3 -c 'import json,sys
value = json.load(sys.stdin)
for key in sys.argv[1:]: value = value[int(key) if key.isdigit() else key]
print(value)' "$@"; }
stats() { "$tfs" stats --json "$mnt" | field "$@"; }
features() { "$tfs" features --json "$mnt" | field mounts 0 features "$@"; }

expect "$(uname -r)" features kernel
for name in io_uring epochs passthrough readdirplus_auto parallel_dirops caching; do
  [[ $(features $name in_use) =~ ^(True|False)$ ]] || fail "features do not tell of $name"
  [ "$(features $name in_use)" = True ] || [ -n "$(features $name detail)" ] || fail "no reason why $name is not in use"
done
expect 1048576 features request_bytes
"$tfs" features "$mnt" | grep >/dev/null 'libfuse *[0-9]' || fail "no version of libfuse"
expect True features libfuse_mended in_use
kernel_has_parallel_writes=$("$tfs" features --machine --json | field machine parallel_direct_writes in_use)
expect "$kernel_has_parallel_writes" features parallel_direct_writes in_use
"$tfs" features --machine | grep >/dev/null '^this machine' || fail "nothing about the machine"

head -c 1M /dev/urandom >"$mnt/file"
expect 1048576 stats bytes written
minicluster remount "$mnt"
cat "$mnt/file" >/dev/null
expect 1048576 stats bytes read
reads=$(stats request read count)
[ "$reads" -ge 1 ] || fail "no read was counted"
[ "$(stats request read longest_us)" -gt 0 ] || fail "a read took no time"
for i in $(seq 10); do mkdir "$mnt/d$i"; done
expect 10 stats request mkdir count
[ "$(stats mds changes count)" -ge 10 ] || fail "changes were not counted"
mkdir "$mnt/d1" 2>/dev/null && fail "made twice"
! rmdir "$mnt/absent" 2>/dev/null || fail "removed what is not there"
"$tfs" stats "$mnt" | grep >/dev/null 'request.mkdir' || fail "the table has no mkdir"

# Looks show differences.
"$tfs" stats --interval 0.5 --count 2 --json "$mnt" >"$WORK/looks"
[ "$(wc -l <"$WORK/looks")" = 2 ] || fail "not two looks"
expect 0 field request mkdir count < <(tail -n 1 "$WORK/looks")

# The servers are not needed.
minicluster kill mds0
timeout 5 "$tfs" stats "$mnt" >/dev/null || fail "no statistics without the MDS"
timeout 5 "$tfs" features "$mnt" >/dev/null || fail "no features without the MDS"
minicluster start mds0
touch "$mnt/after"
[ "$(stats mds connections)" -ge 2 ] || fail "the new connection was not counted"
expect 0 bash -c '"$1" stats /proc >/dev/null 2>&1 && echo yes || echo 0' - "$tfs"
