# A mount that cannot reach its servers ends in bounded time and says why.
. "$ROOT/test/cluster/lib.sh"
mkdir "$mnt"
SECONDS=0
if timeout 60 "$build/src/fuse_client/trainfs-client" 127.0.0.1:1:/trainfs "$mnt" 2>"$WORK/error"; then fail "it mounted"; fi
[ $SECONDS -lt 30 ] || fail "took $SECONDS seconds"
grep -q "127.0.0.1:1" "$WORK/error" || fail "the error does not name the server: $(cat "$WORK/error")"
mountpoint -q "$mnt" && fail "something is mounted"

# The wrong file system name is refused by name.
start_cluster 1
port=$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")
mkdir "$WORK/other"
timeout 60 "$build/src/fuse_client/trainfs-client" "127.0.0.1:$port:/wrongfs" "$WORK/other" 2>"$WORK/error" && fail "it mounted"
grep -q wrongfs "$WORK/error" || fail "the error does not name the file system: $(cat "$WORK/error")"
