# A client is stopped (SIGSTOP) past its term with a file open, a write under way; another one unlinks the file. Woken, it
# says EIO for that file, and no object of it comes to life again.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a"
objects() { find "$cluster"/ost*/objects -type f | wc -l; }
none() { [ "$(objects)" = 0 ]; }

cat >"$WORK/writer.py" <<'PYTHON'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b"before")
print("before", flush=True)
for change in lambda: os.pwrite(fd, b"under way" * 100000, 0), lambda: os.pwrite(fd, b"later", 0), \
        lambda: os.pread(fd, 5, 0), lambda: os.fsync(fd):
    sys.stdin.readline()
    print("asks", flush=True)
    try:
        change()
        print("done", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
os.close(fd)
PYTHON
mkfifo "$WORK/go"
python3 "$WORK/writer.py" "$a/file" <"$WORK/go" >"$WORK/said" &
writer=$!
exec 3>"$WORK/go"
until_true 10 grep -q before "$WORK/said"
client=$(awk '{print $1}' "$cluster/run/client0")
oss=$(awk '{print $1}' "$cluster/run/ost0") other=$(awk '{print $1}' "$cluster/run/ost1")

# The write is under way when the client stops. It may be carried out before the session is over, or not.
at_exit+=("kill -CONT $client $oss $other")
kill -STOP "$oss" "$other"
echo >&3
until_true 10 grep -q asks "$WORK/said"
kill -STOP "$client"
kill -CONT "$oss" "$other"

minicluster up --mount "$b" >/dev/null  # returns once the stopped one is evicted
grep -q "is evicted" "$cluster/log/mds0.log" || fail "$(cat "$cluster/log/mds0.log")"
rm "$b/file"
until_true 30 none

kill -CONT "$client"
until_true 30 grep -q "open files were removed" "$cluster/log/client0.log"
echo >&3; echo >&3; echo >&3
wait $writer
said=$(xargs <"$WORK/said")
case $said in
  "before asks done asks EIO asks ESTALE asks EIO" | "before asks EIO asks EIO asks ESTALE asks EIO") ;;
  *) fail "the writer says: $said" ;;
esac
# Whatever was sent is answered when a later file is, over the same connections.
for i in 1 2 3 4; do echo other >"$a/other$i"; done
sync -f "$a"
rm "$b"/other*
until_true 30 none
