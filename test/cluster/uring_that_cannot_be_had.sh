# Where FUSE over io_uring cannot be had, -o uring=on fails the mount and says why; auto goes on without and tells so.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
port=$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")
switch=/sys/module/fuse/parameters/enable_uring
there=$WORK/there
mkdir "$there"
echo N >"$WORK/switched-off"
cat >"$WORK/try.sh" <<E2
set -e
if [ -e $switch ]; then  # a switch that says no and stays so
  mount --make-rprivate /sys
  mount --bind "$WORK/switched-off" $switch
  mount -o remount,bind,ro $switch
fi
if timeout 60 "$build/src/fuse_client/trainfs-client" -o uring=on "127.0.0.1:$port:/trainfs" "$there" 2>"$WORK/refusal"; then
  echo "uring=on mounted"
  exit 1
fi
timeout 60 "$build/src/fuse_client/trainfs-client" -o uring=auto,log_file="$WORK/auto.log" "127.0.0.1:$port:/trainfs" "$there"
echo data >"$there/file"
"$tfs" features "$there" >"$WORK/features"
umount "$there"
E2
propagation=private
findmnt --mountpoint / >"$WORK/root" || propagation=unchanged  # in a chroot "/" may be a directory of another mount
unshare -m --propagation $propagation bash "$WORK/try.sh" || fail "$(cat "$WORK/refusal")"
why="no FUSE over io_uring: .*enable_uring"
grep -q "$why" "$WORK/refusal" || fail "the refusal does not say why: $(cat "$WORK/refusal")"
grep -q "without io_uring: .*enable_uring" "$WORK/auto.log" || fail "not in the log: $(cat "$WORK/auto.log")"
grep -q "io_uring.*no.*enable_uring" "$WORK/features" || fail "tfs features: $(cat "$WORK/features")"
expect data cat "$mnt/file"
