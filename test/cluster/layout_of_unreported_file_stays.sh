# A file that was written a moment ago has a layout that cannot be replaced, though the MDS has not been told yet that
# there is data.
. "$ROOT/test/cluster/lib.sh"
m=$WORK/mount
start_cluster 2 "$m"
cat >"$WORK/try.py" <<'PYTHON'
import errno, os, sys
path = sys.argv[1]
data = os.urandom(1000000)
fd = os.open(path, os.O_RDWR | os.O_CREAT)
assert os.write(fd, data) == len(data)
try:
    os.setxattr(path, "trainfs.layout", b"stripe_count=2")
    print("replaced")
except OSError as error:
    print(errno.errorcode[error.errno])
assert os.pread(fd, len(data), 0) == data
os.fsync(fd)
PYTHON
expect EEXIST timeout 60 python3 "$WORK/try.py" "$m/file"
