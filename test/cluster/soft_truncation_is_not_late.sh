# A truncation that a soft mount has given up happens when the MDS is back; what was written after its EIO is there then.
. "$ROOT/test/cluster/lib.sh"
soft=$WORK/soft
start_cluster 2
minicluster up --mount "$soft" -o soft,soft_timeout=3 >/dev/null
mds=$(awk '{print $1}' "$cluster/run/mds0")
cat >"$WORK/program.py" <<'PYTHON'
import errno, os, signal, sys
path, mds = sys.argv[1], int(sys.argv[2])
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"x" * 1_000_000, 0)
os.fsync(fd)
os.kill(mds, signal.SIGSTOP)
try:
    os.ftruncate(fd, 0)
    sys.exit("truncated without an MDS")
except OSError as error:
    assert error.errno == errno.EIO, error
os.pwrite(fd, b"new", 0)
os.kill(mds, signal.SIGCONT)
try:
    os.close(fd)
except OSError:
    pass
PYTHON
at_exit+=("kill -CONT $mds")
for round in 1 2 3; do
  timeout 60 python3 "$WORK/program.py" "$soft/file$round" "$mds" || fail "round $round"
  settled() { [ "$(stat -c %s "$mnt/file$round")" = 3 ]; }
  until_true 30 settled
  expect new cat "$mnt/file$round"
done
sleep 6 # longer than a report may take: it stays
for round in 1 2 3; do expect new cat "$mnt/file$round"; done
