# Targets and names that do not fit together: each program says which, and what was right goes on.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
echo here >"$mnt/file"; sync "$mnt/file"
mkfs=$build/tools/mkfs.trainfs oss=$build/src/oss/trainfs-oss mds=$build/src/mds/trainfs-mds client=$build/src/fuse_client/trainfs-client
port=$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")

# refuses SECONDS STATUS TEXT COMMAND...: ends in that time with that status, and says TEXT.
refuses() {
  local seconds=$1 status=$2 text=$3 got=0
  shift 3
  timeout -k 5 "$seconds" "$@" >"$WORK/said" 2>&1 || got=$?
  [ $got = "$status" ] || fail "$*: ended with $got, not $status: $(cat "$WORK/said")"
  grep -q -- "$text" "$WORK/said" || fail "$*: does not say '$text': $(cat "$WORK/said")"
}
data=(--data-listen=127.0.0.1:0 --advertise=127.0.0.1)
new_ost() { mkdir -p "$2"; "$mkfs" --fsname="$1" --ost --index="$3" --mgsnode=127.0.0.1:"$port" "$2" >/dev/null; }

# ---- a wrong fsname ----
for name in "" ninechars a/b 'a b' ä; do
  mkdir -p "$WORK/none"
  refuses 20 2 "fsname" "$mkfs" --fsname "$name" --mdt --mgs "$WORK/none"
done
[ -z "$(ls -A "$WORK/none")" ] || fail "mkfs.trainfs left something"
new_ost other "$WORK/foreign" 7
refuses 60 1 'this server has the file system "trainfs", not "other"' "$oss" "${data[@]}" "$WORK/foreign"
mkdir "$WORK/mount"
refuses 60 1 "it serves the file system 'trainfs', not 'other'" "$client" 127.0.0.1:"$port":/other "$WORK/mount"

# ---- an OST of another file system, or formatted anew under an index that is taken ----
new_ost trainfs "$WORK/again" 1
refuses 60 1 "trainfs-OST0001 is another target already" "$oss" "${data[@]}" "$WORK/again"
refuses 60 1 "belong to different file systems" "$oss" "${data[@]}" "$WORK/again" "$WORK/foreign"
new_ost trainfs "$WORK/twice" 1
refuses 60 1 "have the same index" "$oss" "${data[@]}" "$WORK/again" "$WORK/twice"

# ---- two servers on one target; a server for the other kind ----
refuses 20 1 "in use by another process" "$oss" "${data[@]}" "$cluster/ost0"
refuses 20 1 "in use by another process" "$mds" --listen=127.0.0.1:0 "$cluster/mds0"
refuses 20 1 "in use by another process" "$mkfs" --reformat --fsname=trainfs --ost --index=0 --mgsnode=x "$cluster/ost0"
mkdir "$WORK/mdt"
"$mkfs" --fsname=trainfs --mdt --mgs "$WORK/mdt" >/dev/null
refuses 20 1 "is not an OST but trainfs-MDT0000" "$oss" "${data[@]}" "$WORK/mdt"
refuses 20 1 "trainfs-OST0000 is no metadata target" "$mds" --listen=127.0.0.1:0 "$cluster/ost0"
refuses 20 1 "No such file or directory" "$oss" "${data[@]}" "$WORK/none"

# ---- a copy of a target, while the target is served ----
cp -a "$cluster/ost1" "$WORK/copy"
"$oss" "${data[@]}" "$WORK/copy" >"$WORK/copy.log" 2>&1 & copy=$!
at_exit+=("kill $copy")
until_true 30 grep -q "trainfs-OST0001 may still be served at 127.0.0.1:.*two copies" "$WORK/copy.log"
expect here cat "$mnt/file"
# Nor does it serve in between when the real one dies and is started again.
minicluster kill ost1
minicluster start ost1
grep -q "serving trainfs-OST0001" "$WORK/copy.log" && fail "the copy serves"
kill $copy && wait $copy || true

# ---- a copy of a stopped target, after the real one was served again ----
minicluster stop ost1
cp -a "$cluster/ost1" "$WORK/older"
minicluster start ost1
mkdir "$mnt/new"
"$tfs" setstripe -c 1 -i 1 "$mnt/new"
echo newer >"$mnt/new/file"; sync "$mnt/new/file"
minicluster stop ost1
for attempt in 1 2; do
  refuses 60 1 "trainfs-OST0001 was served from a newer copy since: this is an older copy" "$oss" "${data[@]}" "$WORK/older"
done
# A start that no MDS has answered does not shut out the next ones.
minicluster kill mds0
"$oss" "${data[@]}" "$cluster/ost1" >"$WORK/alone.log" 2>&1 & alone=$!
at_exit+=("kill -9 $alone")
until_true 30 grep -q "no connection with the MDS" "$WORK/alone.log"
kill -9 $alone; wait $alone || true
minicluster start mds0
for attempt in 1 2; do
  minicluster start ost1
  expect newer cat "$mnt/new/file"
  minicluster stop ost1
done
refuses 60 1 "this is an older copy" "$oss" "${data[@]}" "$WORK/older"
# serve_once DIRECTORY: the operator says that this copy is wanted.
serve_once() {
  "$oss" "${data[@]}" --accept-older-copy "$1" >"$WORK/once.log" 2>&1 & once=$!
  at_exit+=("kill -9 $once")
  until_true 60 grep -q "serving trainfs-OST0001" "$WORK/once.log"
  kill $once; wait $once || fail "it did not stop in order: $(cat "$WORK/once.log")"
}
serve_once "$WORK/older"
refuses 60 1 "this is an older copy" "$oss" "${data[@]}" "$cluster/ost1"
serve_once "$cluster/ost1"
minicluster start ost1
expect newer cat "$mnt/new/file"

cp -a "$cluster/mds0" "$WORK/mds-copy"
sed -i 's/fsname = "trainfs"/fsname = "other"/' "$WORK/mds-copy/trainfs-target.toml"
refuses 20 1 "the metadata is that of another target" "$mds" --listen=127.0.0.1:0 "$WORK/mds-copy"

# ---- target files that are damaged ----
for text in "" "version = 2" "version = 1" 'version = "1"' "$(printf 'version = 1\nkind = "x"')" "$(head -c 200 /dev/urandom | base64)"; do
  printf '%s' "$text" >"$WORK/again/trainfs-target.toml"
  refuses 20 1 "$WORK/again/trainfs-target.toml" "$oss" "${data[@]}" "$WORK/again"
done

# ---- a server that is no MDS ----
python3 -c "
import socket
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    peer = listener.accept()[0]
    peer.sendall(b'HTTP/1.1 400 Bad Request\r\n\r\n' + b'x' * 5000)" >"$WORK/web" & web=$!
at_exit+=("kill $web")
until_true 20 test -s "$WORK/web"
refuses 60 1 "cannot reach an MDS" "$client" 127.0.0.1:"$(cat "$WORK/web")":/trainfs "$WORK/mount"

echo there >"$mnt/file2"
expect there cat "$mnt/file2"
