# O_TMPFILE: a file without a name takes data, gets its name by linkat, and goes with its last handle or its client; not
# with the servers. What is linked is there for good.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"
objects() { find "$cluster"/ost*/objects -type f | wc -l; }
none() { [ "$(objects)" = 0 ]; }

cat >"$WORK/unnamed.py" <<'PYTHON'
import ctypes, errno, os, stat, sys
libc = ctypes.CDLL(None, use_errno=True)


def make(directory, flags=0, mode=0o640):
    return os.open(directory, os.O_TMPFILE | os.O_RDWR | flags, mode)


def link(fd, name):  # as open(2) shows it
    if libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, name.encode(), 0x400):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def refused(code, call, *args):
    try:
        call(*args)
    except OSError as error:
        assert error.errno == code, f"{call.__name__}{args}: {error}, expected {errno.errorcode[code]}"
    else:
        raise AssertionError(f"{call.__name__}{args} went through, expected {errno.errorcode[code]}")
PYTHON
export PYTHONPATH=$WORK PYTHONDONTWRITEBYTECODE=1

# The same calls on trainfs and on a local file system.
cat >"$WORK/calls.py" <<'PYTHON'
import unnamed
from unnamed import *
os.chdir(sys.argv[1])
os.umask(0o022)
fd = make(".", mode=0o666)
status = os.fstat(fd)
assert (status.st_nlink, stat.S_IMODE(status.st_mode), status.st_size) == (0, 0o644, 0), status
assert os.listdir(".") == []
os.write(fd, b"content" * 100_000)
again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
assert os.pread(again, 7, 7 * 99_999) == b"content"
os.close(again)
link(fd, "name")
assert os.fstat(fd).st_nlink == 1 and os.path.samestat(os.fstat(fd), os.stat("name"))
refused(errno.EEXIST, link, fd, "name")
link(fd, "other")
assert os.stat("name").st_nlink == 2
os.write(fd, b"more")
os.fsync(fd)
os.close(fd)
assert os.stat("name").st_size == 700_004
os.unlink("other")
os.unlink("name")

never = make(".", os.O_EXCL)
refused(errno.ENOENT, link, never, "never")
os.close(never)
once = make(".")
link(once, "once")
os.unlink("once")
refused(errno.ENOENT, link, once, "once")
os.close(once)
refused(errno.EINVAL, os.open, ".", os.O_TMPFILE | os.O_RDONLY)
refused(errno.ENOENT, os.open, "nowhere", os.O_TMPFILE | os.O_RDWR)
os.mkdir("closed", 0o555)
os.mkdir("group"), os.chown("group", 0, 77), os.chmod("group", 0o2775)
fd = make("group")
assert os.fstat(fd).st_gid == 77
os.close(fd)
if os.fork() == 0:
    os.setgid(1000), os.setuid(1000)
    refused(errno.EACCES, make, "closed")
    os._exit(0)
assert os.wait()[1] == 0
os.rmdir("group"), os.rmdir("closed")
PYTHON
mkdir "$WORK/local"
mount -t tmpfs none "$WORK/local"
at_exit+=("umount $WORK/local")
for place in "$WORK/local" "$a"; do python3 "$WORK/calls.py" "$place" || fail "$place"; done
until_true 30 none

# Through the death of all servers: before the link the file stays with its handle, after it for good.
mkfifo "$WORK/go"
python3 -c "
from unnamed import *
fd, lost = make('$a'), make('$a')
os.write(fd, b'kept' * 50_000), os.write(lost, b'lost' * 50_000)
print('made', flush=True); sys.stdin.readline()
assert os.fstat(fd).st_nlink == 0 and os.pread(fd, 4, 0) == b'kept'
link(fd, '$a/kept')
os.fsync(fd)
print('linked', flush=True); sys.stdin.readline()" <"$WORK/go" >"$WORK/said" &
holder=$!
exec 3>"$WORK/go"
said() { grep -q "$1" "$WORK/said"; }
until_true 30 said made
[ -z "$(ls "$b")" ] || fail "$(ls "$b")"
for name in $(servers); do minicluster kill "$name"; minicluster start "$name"; done
echo >&3
until_true 60 said linked
expect "200000 1" stat -c "%s %h" "$b/kept"
for name in $(servers); do minicluster kill "$name"; done
for name in $(servers); do minicluster start "$name"; done
expect "200000 1" stat -c "%s %h" "$b/kept"
# The client dies: what was linked stays, what was not goes when its session is over.
minicluster kill client0
kill -9 $holder 2>/dev/null || true
minicluster start client0
expect kept head -c 4 "$a/kept"
rm "$b/kept"
until_true 120 none
