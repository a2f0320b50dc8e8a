# Lines of /etc/fstab, through mount -a: options of mount(8) and of systemd are accepted, suid and dev are on unless they
# are taken away, a directory of the file system, a wrong option and a missing server are told in time; -f, -r, -s.
# Alone: it puts the helper into /sbin, for a while.
. "$ROOT/test/cluster/lib.sh"
. "$ROOT/test/lib/mount.sh"
start_cluster 2
install_helper
export PATH=$build/src/fuse_client:$PATH
mkdir "$mnt/home" "$WORK/whole" "$WORK/home" "$WORK/bad"
at_exit+=("umount -q $WORK/whole" "umount -q $WORK/home")
cat >"$WORK/fstab" <<FSTAB
$(mds_address):/trainfs      $WORK/whole trainfs _netdev,nofail,x-systemd.automount,x-systemd.mount-timeout=30 0 0
$(mds_address):/trainfs/home $WORK/home  trainfs ro,nosuid,nodev,_netdev,nofail 0 0
FSTAB
timeout 60 mount -a -T "$WORK/fstab"
options() { awk -v at="$1" '$5 == at {print "," $6 ","}' /proc/self/mountinfo; }
[[ $(options "$WORK/whole") != *nosuid* && $(options "$WORK/whole") != *nodev* ]] || fail "$(options "$WORK/whole")"
[[ $(options "$WORK/home") == *,ro,nosuid,nodev,* ]] || fail "$(options "$WORK/home")"
echo hello >"$WORK/whole/home/file"
expect hello cat "$WORK/home/file"
timeout 60 mount -a -T "$WORK/fstab"  # mounts nothing twice
expect 1 grep -c " $WORK/whole " /proc/self/mountinfo
umount "$WORK/whole" "$WORK/home"

refused() { # refused WORDS ARGUMENT...
  local words=$1 said
  shift
  said=$(timeout 60 mount "$@" 2>&1) && fail "mounted: $*"
  [[ $said == *"$words"* ]] || fail "mount $*: $said"
}
refused "'nonsense'" -t trainfs -o nonsense "$(mds_address):/trainfs" "$WORK/bad"
refused "'nonsense'" -f -t trainfs -o nonsense "$(mds_address):/trainfs" "$WORK/bad"
refused "cannot reach an MDS" -t trainfs -o connect_timeout=2 127.0.0.1:1:/trainfs "$WORK/bad"
mount -f -t trainfs 127.0.0.1:1:/trainfs "$WORK/bad"  # fake: nothing is asked, nothing mounted
mountpoint -q "$WORK/bad" && fail "a fake mount is one"
mount -s -r -t trainfs -o nonsense "$(mds_address):/trainfs" "$WORK/bad"
[[ $(options "$WORK/bad") == *,ro,* ]] || fail "$(options "$WORK/bad")"
umount "$WORK/bad"
said=$(setpriv --reuid=65534 --regid=65534 --clear-groups "$build/tools/mount.trainfs" "$(mds_address):/trainfs" / 2>&1) &&
  fail "nobody can mount"
[[ $said == *"only root can mount"* || $said == *"Permission denied"* ]] || fail "$said"
