# A hole of many terabytes in a file over two OSTs is punched without a list of its chunks.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
timeout 60 python3 - "$mnt/file" <<'PYTHON'
import ctypes, os, sys
path = sys.argv[1]
wide = os.open(path, os.O_RDWR | os.O_CREAT)
os.setxattr(path, "trainfs.layout", b"stripe_count=2 stripe_size=64K")
os.pwrite(wide, b"x" * 300000, 0)
os.ftruncate(wide, 1 << 45)
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong]
if libc.fallocate(wide, 3, 100000, (1 << 45) - 100000) != 0:  # PUNCH_HOLE | KEEP_SIZE
    raise OSError(ctypes.get_errno(), "fallocate")
assert os.pread(wide, 400000, 0) == b"x" * 100000 + bytes(300000)
PYTHON
