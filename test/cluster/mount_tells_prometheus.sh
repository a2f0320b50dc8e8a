# A mount with metrics_listen answers Prometheus with what it has done; without, nothing listens. An address that cannot
# be had fails the mount.
. "$ROOT/test/cluster/lib.sh"
. "$ROOT/test/lib/mount.sh"
start_cluster 2
there=$WORK/there client=$build/src/fuse_client/trainfs-client
mkdir "$there"
"$client" -o "metrics_listen=localhost:0,log_file=$WORK/log" "$(mds_address):/trainfs" "$there"
at_exit+=("umount -q $there")
port=$(sed -n 's/.*metrics are at port //p' "$WORK/log")
[ -n "$port" ] || fail "$(cat "$WORK/log")"
grep -q "metrics" "$cluster/log/client0.log" && fail "the other mount has an endpoint, too"

metric() { # metric NAME [LABEL]: its value
  python3 - "$port" "$1{${2:+$2,}mount=\"$there\"" "$1{mount=\"$there\"${2:+,$2}" <<'PYTHON'
import sys, urllib.request
port, *starts = sys.argv[1:]
for line in urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=10).read().decode().splitlines():
    if line.startswith(tuple(starts)):
        print(line.rsplit(" ", 1)[1])
PYTHON
}
expect 0 metric trainfs_client_written_bytes_total
expect 0 metric trainfs_client_request_seconds_count 'request="create"'
dd if=/dev/zero of="$there/file" bs=64k count=3 status=none
mkdir -p "$there/full/one"
rmdir "$there/full" 2>/dev/null && fail "removed a directory that is not empty"
expect 196608 metric trainfs_client_written_bytes_total
expect 1 metric trainfs_client_request_seconds_count 'request="create"'
expect 3 metric trainfs_client_request_seconds_count 'request="write"'
expect 1 metric trainfs_client_mds_connections_total
echo held >"$mnt/held"
exec 4<"$mnt/held"
expect 0 metric trainfs_client_may_cache  # two clients are at work
expect 1 metric trainfs_client_request_errors_total 'request="rmdir"'
[ "$(metric trainfs_client_mds_call_seconds_count 'kind="change"')" -ge 1 ] || fail "the MDS was told nothing"
[ "$(metric trainfs_client_ost_requests_total)" -ge 1 ] || fail "no OST was asked"
exec 3<"$there/file"
expect 1 metric trainfs_client_open_files
exec 3<&- 4<&-
umount "$mnt"
alone() { [ "$(metric trainfs_client_may_cache)" = 1 ]; }
until_true 30 alone

mkdir "$WORK/second"
said=$("$client" -o "metrics_listen=localhost:$port" "$(mds_address):/trainfs" "$WORK/second" 2>&1) &&
  fail "two mounts listen on one port"
[[ $said == *"localhost:$port"* ]] || fail "$said"
mountpoint -q "$WORK/second" && fail "mounted all the same"
true
