# The servers as their systemd units run them, with all that these forbid: they start, serve, take a new log level, come
# back after a kill -9 and stop in order. systemd runs in name spaces of its own and has no other units.
. "$ROOT/test/cluster/lib.sh"
systemd=/lib/systemd/systemd
[ -x $systemd ] || skip "there is no systemd"
groups=$(findmnt -nt cgroup2 -o TARGET | head -n 1)
[ -n "$groups" ] || skip "there is no cgroup2"
mountpoint -q / || skip "the root is no mount point: there is no way into name spaces of mounts"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"

# /srv is $WORK/srv there: units have a /tmp and a /var/tmp of their own.
mkdir -p "$mnt" "$WORK/units" "$WORK"/srv/{etc,sbin,mdt0,ost0,ost1}
cp "$build/src/mds/trainfs-mds" "$build/src/oss/trainfs-oss" "$WORK/srv/sbin"
for unit in trainfs-mds@ trainfs-oss@; do
  sed -E 's|=/\S*/(trainfs-[a-z]*) |=/srv/sbin/\1 |; s|=/\S*/(%i.toml)|=/srv/etc/\1|' "$build/systemd/$unit.service" >"$WORK/units/$unit.service"
done
for target in sysinit basic shutdown; do printf '[Unit]\nDefaultDependencies=no\n' >"$WORK/units/$target.target"; done
cat >"$WORK/units/default.target" <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=trainfs-mds@mdt0.service trainfs-oss@oss0.service
UNIT
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
mkfs=("$build/tools/mkfs.trainfs" --fsname=trainfs)
"${mkfs[@]}" --mdt --mgs "$WORK/srv/mdt0" >/dev/null
for index in 0 1; do "${mkfs[@]}" --ost --index=$index --mgsnode=127.0.0.1:"$port" "$WORK/srv/ost$index" >/dev/null; done
cat >"$WORK/srv/etc/mdt0.toml" <<TOML
target = "/srv/mdt0"
listen = "127.0.0.1:$port"
log-file = "/srv/mds.log"
TOML
cat >"$WORK/srv/etc/oss0.toml" <<TOML
targets = ["/srv/ost0", "/srv/ost1"]
data-listen = "127.0.0.1:0"
log-file = "/srv/oss.log"
TOML

cat >"$WORK/boot" <<'SCRIPT'
set -e
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind "$WORK/srv" /srv
exec env -i PATH="$PATH" container=trainfs SYSTEMD_UNIT_PATH="$WORK/units" "$1" --system --log-target=console --show-status=no
SCRIPT
group=$groups/trainfs-units-$$
mkdir "$group" 2>/dev/null || skip "no cgroup can be made here"
(
  echo $BASHPID >"$group/cgroup.procs"
  exec unshare --pid --fork --mount --cgroup --propagation private --kill-child bash "$WORK/boot" $systemd
) >"$WORK/systemd.log" 2>&1 &
outside=$!
end() {
  local status=$?
  trap - EXIT
  if [ $status != 0 ]; then tail -n 30 "$WORK/systemd.log" "$WORK"/srv/*.log "$WORK/client.log" || true; fi
  mountpoint -q "$mnt" && umount -l "$mnt"
  kill -9 $outside 2>/dev/null && wait $outside 2>/dev/null || true
  until_true 30 sh -c "find '$group' -depth -type d -exec rmdir {} + 2>/dev/null; [ ! -e '$group' ]"
  exit $status
}
trap end EXIT

manager() { # the first process of those name spaces
  init=$(pgrep -P $outside) && [ "$(cat "/proc/$init/comm")" = systemd ]
}
until_true 20 manager
inside() { nsenter -t "$init" -m -p -C -r -w "$@"; }
units=(trainfs-mds@mdt0 trainfs-oss@oss0)
property() { inside systemctl show -P "$2" "$1" 2>/dev/null; }
active() { [ "$(property "$1" ActiveState)" = active ]; }
for unit in "${units[@]}"; do
  until_true 60 active "$unit"
  pid=$(property "$unit" MainPID)
  grep -q "^Seccomp:[[:space:]]*2" <(inside cat "/proc/$pid/status") || fail "$unit has no filter of system calls"
done

"$build/src/fuse_client/trainfs-client" --log-file "$WORK/client.log" 127.0.0.1:"$port":/trainfs "$mnt"
mkdir "$mnt/wide"
"$tfs" setstripe -c 2 "$mnt/wide"
head -c 16M /dev/urandom >"$WORK/data"
dd if="$WORK/data" of="$mnt/wide/data" bs=1M conv=fsync status=none
cmp "$WORK/data" "$mnt/wide/data"
truncate -s 3M "$mnt/wide/data"
expect "$(head -c 3M "$WORK/data" | sha256sum)" sh -c "sha256sum <'$mnt/wide/data'"
fallocate -p -o 1M -l 1M "$mnt/wide/data"

# A new log level.
sed -i '$a log-level = "debug"' "$WORK/srv/etc/mdt0.toml" "$WORK/srv/etc/oss0.toml"
for unit in "${units[@]}"; do inside systemctl reload "$unit"; done
for log in mds oss; do until_true 20 grep -q "log level debug" "$WORK/srv/$log.log"; done

# A server that dies is started again.
for unit in "${units[@]}"; do
  inside kill -9 "$(property "$unit" MainPID)"
  restarted() { [ "$(property "$unit" NRestarts)" = 1 ] && active "$unit"; }
  until_true 60 restarted
done
echo again >"$mnt/again"
sync "$mnt/again"
umount "$mnt"
"$build/src/fuse_client/trainfs-client" --log-file "$WORK/client.log" 127.0.0.1:"$port":/trainfs "$mnt"
expect again cat "$mnt/again"
expect 3145728 stat -c %s "$mnt/wide/data"
umount "$mnt"

for unit in "${units[@]}"; do
  inside systemctl stop "$unit"
  expect "success inactive" echo "$(property "$unit" Result) $(property "$unit" ActiveState)"
done
# A wrong configuration does not get better by trying: nobody does.
sed -i '$a nonsense = 1' "$WORK/srv/etc/oss0.toml"
inside systemctl start trainfs-oss@oss0 2>"$WORK/said" && fail "a server started with a wrong configuration"
expect "failed 2" echo "$(property trainfs-oss@oss0 ActiveState) $(property trainfs-oss@oss0 ExecMainStatus)"
