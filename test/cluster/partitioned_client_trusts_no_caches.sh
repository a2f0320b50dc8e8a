# A client that does not reach the MDS for a term, while another one changes what it caches, answers nothing from its
# caches or its kernel's after that: neither names nor sizes nor pages of an open file. Back again, it sees what is new.
. "$ROOT/test/cluster/lib.sh"
. "$ROOT/test/lib/mount.sh"
a=$WORK/a b=$WORK/b client=$build/src/fuse_client/trainfs-client
start_cluster 2 "$b"

# The way of a to the MDS leads through a process that can be stopped: its connections stay, and bring nothing.
python3 - "$(mds_address)" >"$WORK/forwarder" <<'PYTHON' &
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
def pump(source, target):
    try:
        while data := source.recv(65536): target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError: pass
while True:
    client, _ = server.accept()
    mds = socket.create_connection(sys.argv[1].rsplit(":", 1))
    for pair in (client, mds), (mds, client): threading.Thread(target=pump, args=pair, daemon=True).start()
PYTHON
forwarder=$!
at_exit+=("kill -KILL $forwarder")
until_true 10 test -s "$WORK/forwarder"
umount "$b"
mkdir "$a"
"$client" "127.0.0.1:$(cat "$WORK/forwarder"):/trainfs" "$a" -o "log_file=$WORK/a.log"
at_exit=("umount -q $a" "${at_exit[@]}")
caches() { getfattr -h --only-values -n system.trainfs.features "$a" | grep -q "^caching.yes"; }
until_true 20 caches

echo old >"$a/shared"; mkdir "$a/dir"; echo x >"$a/dir/gone"; sync -f "$a"
exec 3<"$a/shared"
cat "$a/shared" "$a/dir/gone" >/dev/null; stat "$a/dir/made" 2>/dev/null && fail "made is there already"
[ "$(stat -c %s "$a/shared")" = 4 ] || fail "not written"

kill -STOP "$forwarder"
at_exit=("kill -CONT $forwarder" "${at_exit[@]}")
minicluster up --mount "$b" >/dev/null  # returns once a is evicted
echo newer >"$b/shared"; rm "$b/dir/gone"; echo made >"$b/dir/made"
old() { # COMMAND...: whether it is answered although nobody can know
  local status=0
  { timeout -s KILL 3 "$@" >"$WORK/answer" 2>&1; } 2>/dev/null || status=$?
  [ $status = 137 ] || { echo "$* ends with $status: $(cat "$WORK/answer")" >&2; return 0; }
  return 1
}
for file in shared dir/gone dir/made; do ! old stat "$a/$file" || fail "answered from a cache: $file"; done
! old python3 -c 'import os; print(os.pread(3, 100, 0))' || fail "answered from the page cache"

kill -CONT "$forwarder"
sees() { [ "$(stat -c %s "$a/shared")" = 6 ] && [ ! -e "$a/dir/gone" ] && [ -e "$a/dir/made" ]; }
until_true 30 sees
expect newer cat "$a/shared"
expect newer python3 -c 'import os; os.write(1, os.pread(3, 100, 0))'
exec 3<&-
