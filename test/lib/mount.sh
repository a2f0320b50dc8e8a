# For tests that use mount(8) itself.

# Puts the helper where mount(8) looks for it, unless one is installed.
install_helper() {
  for name in mount.trainfs mount.fuse.trainfs; do
    [ -e "/sbin/$name" ] && continue
    ln -s "$build/tools/mount.trainfs" "/sbin/$name"
    at_exit+=("rm -f /sbin/$name")
  done
}
mds_address() {
  python3 -c "import json; print('127.0.0.1:%d' % json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])"
}
