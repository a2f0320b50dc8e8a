# mount -o remount: ro and rw, flags of all file systems, log level and read-ahead; another option is refused by name.
# Alone: it puts the helper into /sbin, for a while.
. "$ROOT/test/cluster/lib.sh"
. "$ROOT/test/lib/mount.sh"
start_cluster 2
install_helper
there=$WORK/there
mkdir "$there"
at_exit+=("umount -q $there")
PATH=$build/src/fuse_client:$PATH mount -t trainfs -o "noatime,log_file=$WORK/log" "$(mds_address):/trainfs" "$there"
options() { awk -v at="$there" '$5 == at {print $6}' /proc/self/mountinfo; }
has() { [[ ,$(options), == *",$1,"* ]] || fail "$1 is not among the options $(options)"; }
remount() { timeout 60 mount -o "remount,$1" "$there"; }

echo before >"$there/file"
remount ro
has ro; has noatime
expect before cat "$there/file"
touch "$there/file" 2>/dev/null && fail "written on a read-only mount"
remount log_level=debug  # a read-only mount stays one
has ro
remount rw,noexec,readahead_kb=256
has rw; has noexec; has noatime
echo after >"$there/file"
expect after cat "$mnt/file"
expect 256 cat "/sys/class/bdi/$(mountpoint -d "$there")/read_ahead_kb"
grep -q "log_level=debug" "$WORK/log" || fail "$(cat "$WORK/log")"

refused() { # refused OPTION WORDS
  local said before
  before=$(options)
  said=$(remount "$1" 2>&1) && fail "remount,$1 was accepted"
  [[ $said == *"$2"* ]] || fail "remount,$1: $said"
  expect "$before" options
}
refused threads=7,ro "option threads can be set when mounting only"
refused soft "option hard or soft"
refused nonsense "'nonsense'"
exec 3>>"$there/file"
refused ro "open for writing"
exec 3>&-
mv "$WORK/log" "$WORK/log.1"
kill -HUP "$(pgrep -f "trainfs-client.*$there")"
until_true 10 test -e "$WORK/log"
umount "$there"
said=$(timeout 60 "$build/tools/mount.trainfs" "$(mds_address):/trainfs" "$there" -o remount,ro 2>&1) && fail "nothing was remounted"
[[ $said == *"no trainfs is mounted at $there"* ]] || fail "$said"
