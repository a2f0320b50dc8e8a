# Names at and beyond their limits, in bytes, whatever the characters are.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
python3 - "$mnt" <<'PYTHON' || fail "see above"
import errno, os, sys
mnt = sys.argv[1]

def refused(wanted, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except OSError as error:
        assert error.errno == wanted, f"{call.__name__}: {error}, not {errno.errorcode[wanted]}"
    else:
        raise AssertionError(f"{call.__name__}{arguments[:1]}: it worked")

def touch(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))

fine = ["x" * 255, "ä" * 127 + "y", "漢" * 85, "𝄞" * 63 + "abc", "\udcff" * 255, "a\nb\t'\"\\ *", "-rf", "~", "…"]
for name in fine:
    touch(f"{mnt}/{name}")
assert sorted(os.listdir(mnt)) == sorted(fine), "the directory lists something else"
for name in fine:
    os.stat(f"{mnt}/{name}")
    os.rename(f"{mnt}/{name}", f"{mnt}/moved")
    os.rename(f"{mnt}/moved", f"{mnt}/{name}")

touch(f"{mnt}/file")
for name in ["x" * 256, "ä" * 128, "漢" * 85 + "y", "𝄞" * 64, "x" * 4000]:
    path = f"{mnt}/{name}"
    for call, arguments in ((os.stat, ()), (os.mkdir, ()), (touch, ()), (os.unlink, ()), (os.rmdir, ()), (os.mkfifo, ())):
        refused(errno.ENAMETOOLONG, call, path, *arguments)
    refused(errno.ENAMETOOLONG, os.symlink, "target", path)
    refused(errno.ENAMETOOLONG, os.rename, f"{mnt}/file", path)
    refused(errno.ENAMETOOLONG, os.rename, path, f"{mnt}/file")
    refused(errno.ENAMETOOLONG, os.link, f"{mnt}/file", path)
assert sorted(os.listdir(mnt)) == sorted([*fine, "file"]), "a refused name left something"

os.symlink("t" * 4095, f"{mnt}/link")
assert os.readlink(f"{mnt}/link") == "t" * 4095
refused(errno.ENAMETOOLONG, os.symlink, "t" * 4096, f"{mnt}/longer")
os.setxattr(f"{mnt}/file", "user." + "x" * 250, b"v" * 65536)
assert os.getxattr(f"{mnt}/file", "user." + "x" * 250) == b"v" * 65536
refused(errno.ERANGE, os.setxattr, f"{mnt}/file", "user." + "x" * 251, b"v")
refused(errno.E2BIG, os.setxattr, f"{mnt}/file", "user.big", b"v" * 65537)
refused(errno.EINVAL, os.setxattr, mnt, "trainfs.layout", b"\xff\0garbage")
PYTHON
# All of it is there for a client that starts cold.
minicluster remount "$mnt"
[ "$(ls "$mnt" | wc -l)" -ge 11 ] || fail "names are missing after a remount"
[ "$(getfattr -n "user.$(printf 'x%.0s' {1..250})" --only-values "$mnt/file" 2>/dev/null | wc -c)" = 65536 ] || fail "the attribute is gone"
