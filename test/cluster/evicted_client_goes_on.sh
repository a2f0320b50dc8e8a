# A client that may cache is stopped (SIGSTOP) past its term while another one mounts and changes things. Woken, it says
# EIO where its own changes were lost, shows what the other did, and goes on.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a"
echo old >"$a/shared"; mkdir "$a/dir"; echo x >"$a/dir/gone"; sync -f "$a"
cat "$a/shared" "$a/dir/gone" >/dev/null  # cached

# Writes, and is asked for an fsync after the eviction.
cat >"$WORK/writer.py" <<'PYTHON'
import errno, os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b"unreported" * 1000)
print("written", flush=True)
sys.stdin.readline()
for attempt in "first", "second":
    try:
        os.fsync(fd)
        print(attempt, "done", flush=True)
    except OSError as error:
        print(attempt, errno.errorcode[error.errno], flush=True)
PYTHON
mkfifo "$WORK/go"
python3 "$WORK/writer.py" "$a/mine" <"$WORK/go" >"$WORK/said" &
writer=$!
exec 3>"$WORK/go"
until_true 10 grep -q written "$WORK/said"
client=$(awk '{print $1}' "$cluster/run/client0")
kill -STOP "$client"
at_exit+=("kill -CONT $client")

minicluster up --mount "$b" >/dev/null  # returns once the stopped one is evicted
grep -q "is evicted" "$cluster/log/mds0.log" || fail "$(cat "$cluster/log/mds0.log")"
echo new >"$b/shared"; rm "$b/dir/gone"; echo made >"$b/dir/made"
# What had reached the OSTs is in the file.
expect 10000 stat -c %s "$b/mine"

kill -CONT "$client"
until_true 30 grep -q "was evicted by the MDS" "$cluster/log/client0.log"
expect new timeout 30 cat "$a/shared"
expect made timeout 30 ls "$a/dir"
echo >&3
wait $writer
expect "written first EIO second done" xargs -a "$WORK/said"
echo again >"$a/again"
expect again cat "$b/again"
echo more >>"$a/mine"
expect 10005 stat -c %s "$b/mine"
