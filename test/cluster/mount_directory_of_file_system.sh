# HOST:/trainfs/DIRECTORY mounts that directory: what is below it, shared with other mounts; its root is its own
# parent; what is missing or no directory is refused in words, and in time.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
mds=127.0.0.1:$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")
helper=$build/tools/mount.trainfs
part=$WORK/part
mkdir -p "$mnt/one/two/three" "$part"
echo hello >"$mnt/one/two/file"
ln -s one "$mnt/link"
at_exit+=("umount -q $part")

timeout 30 "$helper" "$mds:/trainfs/one/two/" "$part"
expect hello cat "$part/file"
expect "$(stat -c %i "$mnt/one/two")" stat -c %i "$part"
expect "$(stat -c %i "$part")" stat -c %i "$part/three/.."
expect "$(stat -f -c '%b %S' "$mnt")" stat -f -c '%b %S' "$part"
# Both ways, in the root itself and below it.
echo new >"$part/new"; mkdir "$part/dir"; mv "$part/file" "$part/dir/moved"; chmod 750 "$part"
expect new cat "$mnt/one/two/new"
expect hello cat "$mnt/one/two/dir/moved"
expect 750 stat -c %a "$mnt/one/two"
rm "$mnt/one/two/new"
[ ! -e "$part/new" ] || fail "a name that another mount removed is still there"
umount "$part"

# Alone it caches, also its root, and gives that up when another comes.
minicluster stop client0
timeout 30 "$helper" "$mds:/trainfs/one/two" "$part"
ls "$part" >/dev/null
minicluster start client0
touch "$mnt/one/two/late"
expect "late" bash -c "ls '$part' | grep late"
umount "$part"

refused() { # refused SOURCE WORDS
  local said
  said=$(timeout 30 "$helper" "$mds:$1" "$part" 2>&1) && fail "$1 was mounted"
  [[ $said == *"$2"* ]] || fail "$1: $said"
}
refused /trainfs/one/missing/two "/one/missing: No such file or directory"
refused /trainfs/one/two/dir/moved "/one/two/dir/moved: Not a directory"
refused /trainfs/link/two "/link: Not a directory"
refused /trainfs/one/../one "goes by '..'"
