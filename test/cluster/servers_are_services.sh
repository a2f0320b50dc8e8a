# What a service manager and an operator expect of a server: sd_notify's READY, RELOADING and STOPPING, SIGHUP for log
# level and log file, a check of the configuration, figures for Prometheus, both kinds of addresses.
. "$ROOT/test/cluster/lib.sh"
mds=$build/src/mds/trainfs-mds oss=$build/src/oss/trainfs-oss
mkdir "$WORK/mdt" "$WORK/ost"
"$build/tools/mkfs.trainfs" --fsname=trainfs --mdt --mgs "$WORK/mdt" >/dev/null
"$build/tools/mkfs.trainfs" --fsname=trainfs --ost --index=0 --mgsnode=127.0.0.1:1 "$WORK/ost" >/dev/null
cat >"$WORK/mdt0.toml" <<TOML
target = "$WORK/mdt"
listen = "*:0"
log-file = "$WORK/mds.log"
metrics-listen = "localhost:0"
TOML
cat >"$WORK/ost0.toml" <<TOML
targets = ["$WORK/ost"]
data-listen = "*:0"
log-file = "$WORK/oss.log"
metrics-listen = "localhost:0"
TOML
expect "$WORK/mdt0.toml is right" "$mds" "--config=$WORK/mdt0.toml" --check-config
sed 's/^listen/lisen/' "$WORK/mdt0.toml" >"$WORK/wrong.toml"
expect "trainfs-mds: $WORK/wrong.toml:2: key 'lisen' is unknown; did you mean 'listen'?" \
  "$mds" "--config=$WORK/wrong.toml" --check-config

# A service manager: writes what it is told into a file, a message a line.
cat >"$WORK/manager.py" <<'PYTHON'
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
with open(sys.argv[2], "w") as told:
    while True:
        told.write(listener.recv(4096).decode().replace("\n", " ") + "\n")
        told.flush()
PYTHON
python3 "$WORK/manager.py" "$WORK/notify" "$WORK/told" &
manager=$!
trap 'kill $manager $server 2>/dev/null || true' EXIT
server=
until_true 10 test -S "$WORK/notify"

run() { # run PROGRAM NAME: the server of NAME.toml, until it says that it serves
  : >"$WORK/told"
  NOTIFY_SOCKET=$WORK/notify "$1" "--config=$WORK/$2.toml" 2>"$WORK/$2.stderr" &
  server=$!
  until_true 30 grep -q "^READY=1 STATUS=" "$WORK/told"
}
metric() { # metric LOG NAME: its value
  python3 - "$(sed -n 's/.*metrics are at port //p' "$1" | head -n 1)" "$2" <<'PYTHON'
import sys, urllib.request
port, name = sys.argv[1:]
for line in urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=10).read().decode().splitlines():
    if line.startswith(name):
        print(line.rsplit(" ", 1)[1])
PYTHON
}
both_kinds() { # both_kinds PORT: reached by IPv4 and, if the kernel has it, IPv6
  local host
  for host in 127.0.0.1 $([ -e /proc/net/if_inet6 ] && grep -q ^00000000000000000000000000000001 /proc/net/if_inet6 && echo ::1); do
    python3 -c "import socket; socket.create_connection(('$host', $1), 5)" || fail "port $1 is not reached by $host"
  done
}

for each in "mds mdt0" "oss ost0"; do
  set -- $each
  log=$WORK/$1.log
  run "${!1}" "$2"
  grep -q "STATUS=.*trainfs-" "$WORK/told" || fail "$(cat "$WORK/told")"
  expect "" cat "$WORK/$2.stderr"
  if [ "$1" = mds ]; then
    both_kinds "$(sed -n 's/.*serving .* on \*://p' "$log")"
    expect 0 metric "$log" trainfs_mds_sessions
    expect 0 metric "$log" 'trainfs_mds_change_seconds_count{change="create"}'
  else
    both_kinds "$(sed -n 's/.*data ports \([0-9]*\).*/\1/p' "$log")"
    expect 0 metric "$log" 'trainfs_ost_serving{ost="trainfs-OST0000"}'
    [ "$(metric "$log" 'trainfs_ost_capacity_bytes' | cut -d. -f1)" != 0 ] || fail "no capacity"
  fi
  # SIGHUP: the level, a new log file, and which keys wait; then a wrong file, which changes nothing.
  echo 'log-level = "debug"' >>"$WORK/$2.toml"
  echo 'max-connections = 77' >>"$WORK/$2.toml"
  mv "$log" "$log.1"
  kill -HUP $server
  until_true 10 grep -q "log level debug; changed, but only from the next start on: max-connections" "$log"
  until_true 10 grep -q "^RELOADING=1 MONOTONIC_USEC=[0-9]" "$WORK/told"
  expect 2 grep -c "^READY=1" "$WORK/told"
  echo 'nonsense = 1' >>"$WORK/$2.toml"
  kill -HUP $server
  until_true 10 grep -q "key 'nonsense' is unknown.*everything stays as it was" "$log"
  kill $server
  wait $server || fail "$1 ended with status $?"
  until_true 10 grep -q "^STOPPING=1" "$WORK/told"
done
server=
