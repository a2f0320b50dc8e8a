# A file that is unlinked while open stays readable and writable, also after every server was killed; its objects
# go when it is closed, or when its client is gone.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
objects() { find "$cluster"/ost*/objects -type f | wc -l; }
none() { [ "$(objects)" = 0 ]; }

exec 7<>"$mnt/file"
head -c 300000 /dev/urandom >&7
cp "$mnt/file" "$WORK/copy"
rm "$mnt/file"
[ ! -e "$mnt/file" ] || fail "the name is still there"
for name in $(servers); do minicluster kill "$name"; minicluster start "$name"; done
cmp "$WORK/copy" /proc/self/fd/7 || fail "the content changed"
echo more >&7
[ "$(stat -Lc '%s %h' /proc/self/fd/7)" = "300005 0" ] || fail "$(stat -Lc '%s %h' /proc/self/fd/7)"
exec 7>&-
until_true 60 none

# The client dies with an unlinked file open: the MDS gives it up when the session's time is over.
python3 -c "
import os, time
file = open('$mnt/second', 'wb', buffering=0); file.write(b'x' * 100000); os.unlink('$mnt/second')
print('ready', flush=True); time.sleep(600)" >"$WORK/ready" &
holder=$!
ready() { [ -s "$WORK/ready" ]; }
until_true 30 ready
[ "$(objects)" -ge 1 ] || fail "the orphan's object is gone while it is open"
minicluster kill client0
kill -9 $holder 2>/dev/null || true
minicluster start client0
until_true 120 none
