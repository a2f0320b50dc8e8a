# A file that was written a moment ago has a layout that cannot be replaced, though the MDS has not been told yet that
# there is data. And a hole of many terabytes is punched without a list of its chunks.
. "$ROOT/test/cluster/lib.sh"
m=$WORK/mount
start_cluster 2 "$m"
cat >"$WORK/try.py" <<'PYTHON'
import ctypes, errno, os, sys
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

wide = os.open(path + ".wide", os.O_RDWR | os.O_CREAT)
os.setxattr(path + ".wide", "trainfs.layout", b"stripe_count=2 stripe_size=64K")
os.pwrite(wide, b"x" * 300000, 0)
os.ftruncate(wide, 1 << 45)
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong]
if libc.fallocate(wide, 3, 100000, (1 << 45) - 100000) != 0:  # PUNCH_HOLE | KEEP_SIZE
    raise OSError(ctypes.get_errno(), "fallocate")
assert os.pread(wide, 400000, 0) == b"x" * 100000 + bytes(300000)
PYTHON
expect EEXIST timeout 60 python3 "$WORK/try.py" "$m/file"
