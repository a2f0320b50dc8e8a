# mount -t trainfs and umount, with the helper where mount(8) looks for it; unprivileged users can use the mount.
# Alone: it puts the helper into /sbin, for a while.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
if [ ! -e /sbin/mount.trainfs ]; then
  ln -sf "$build/tools/mount.trainfs" /sbin/mount.trainfs
  at_exit+=("rm -f /sbin/mount.trainfs")
fi
port=$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")
there=$WORK/there
mkdir "$there"
PATH=$build/src/fuse_client:$PATH mount -t trainfs "127.0.0.1:$port:/trainfs" "$there"
grep -q "^127.0.0.1:$port:/trainfs $there fuse.trainfs " /proc/mounts || fail "$(grep "$there" /proc/mounts)"
echo hello >"$there/file"
expect hello cat "$mnt/file"  # the other mount of the same file system sees it
umount "$there"
gone() { ! pgrep -f "trainfs-client.*$there" >/dev/null; }
until_true 30 gone

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
mkdir -m 1777 "$mnt/tmp"; mkdir -m 700 "$mnt/private"; chmod 755 "$mnt"; chmod 755 "$WORK"
as_nobody sh -c "echo mine > '$mnt/tmp/mine'" || fail "nobody cannot write into a directory with mode 1777"
expect "65534 65534" stat -c '%u %g' "$mnt/tmp/mine"
as_nobody ls "$mnt/private" 2>/dev/null && fail "nobody can list a directory with mode 700"
as_nobody sh -c "echo x > '$mnt/root-only'" 2>/dev/null && fail "nobody can create in a directory with mode 755"
echo root >"$mnt/tmp/root"; chmod 644 "$mnt/tmp/root"
as_nobody rm -f "$mnt/tmp/root" 2>/dev/null && fail "the sticky bit does not protect root's file"
as_nobody chown 0 "$mnt/tmp/mine" 2>/dev/null && fail "nobody can give files away"
exit 0
