# A truncation that a soft mount has given up happens when the MDS is back; what was written after its EIO is there then.
. "$ROOT/test/cluster/lib.sh"
# Alone, and so with caches: else it is a question that fails, and the truncation is never sent.
mount_options=soft,soft_timeout=3
start_cluster 2
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
os.kill(mds, signal.SIGCONT)
os.pwrite(fd, b"new", 0)
try:
    os.close(fd)
except OSError:
    pass
PYTHON
at_exit+=("kill -CONT $mds")
for round in 1 2 3; do
  timeout 60 python3 "$WORK/program.py" "$mnt/file$round" "$mds" || fail "round $round"
  expect new cat "$mnt/file$round"
done
# And so it is for everybody.
minicluster up --mount "$WORK/other" >/dev/null
for round in 1 2 3; do expect new cat "$WORK/other/file$round"; done
