# What a program asks of a file and a directory, on a real mount: data, size, blocks, times, names, links, attributes.
. "$ROOT/test/cluster/lib.sh"
start_cluster 3
"$tfs" setstripe -c 3 -S 64K "$mnt"
seeded
python3 - "$mnt" "$seed" <<'PYTHON'
import ctypes, errno, mmap, os, random, stat, sys, time
top, random = sys.argv[1], random.Random(int(sys.argv[2]))
os.chdir(top)
libc = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2


def renameat2(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), f"renameat2 {old} {new}")


def refused(code, call, *args, **named):
    try:
        call(*args, **named)
    except OSError as error:
        assert error.errno == code, f"{call.__name__}{args}: {error}, expected {errno.errorcode[code]}"
    else:
        raise AssertionError(f"{call.__name__}{args} went through, expected {errno.errorcode[code]}")


# -- data: random writes, truncations and reads against a copy in memory, through two descriptors and a mapping --
content = bytearray()
writer = os.open("data", os.O_RDWR | os.O_CREAT)
reader = os.open("data", os.O_RDONLY)
for step in range(600):
    at, length = random.randrange(600_000), random.choice([1, 100, 4096, 65536, 150_000])
    match random.randrange(8):
        case 0:
            os.ftruncate(writer, at)
            content = content[:at].ljust(at, b"\0")
        case 1 | 2 | 3:
            data = random.randbytes(length)
            assert os.pwrite(writer, data, at) == length
            content = content.ljust(at, b"\0") if len(content) < at else content
            content[at:at + length] = data
        case 4:
            os.fsync(writer)
        case _:
            for fd in (reader, writer):
                got = os.pread(fd, length, at)
                assert got == content[at:at + length], (step, at, length, len(got))
    assert os.fstat(reader).st_size == len(content), step
if content:
    with mmap.mmap(reader, 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == content
    with mmap.mmap(writer, 0) as mapped:
        mapped[0:5] = b"hello"
        mapped.flush()
        content[0:5] = b"hello"
    assert os.pread(reader, 5, 0) == b"hello"
os.close(writer), os.close(reader)
with open("data", "rb") as file:
    assert file.read() == content

# -- blocks: a file with data has some as soon as it has data; a file that is one hole has none --
with open("full", "wb", buffering=0) as file:
    file.write(b"x" * 100_000)
    assert os.fstat(file.fileno()).st_blocks * 512 >= 100_000
os.truncate("full", 50_000)
with open("hole", "wb") as file:
    file.truncate(1 << 40)
assert os.stat("hole").st_blocks == 0 and os.stat("hole").st_size == 1 << 40
with open("hole", "rb") as file:
    file.seek((1 << 40) - 4096)
    assert file.read() == bytes(4096)

# -- append, exclusive, truncating opens --
for part in (b"one ", b"two ", b"three"):
    with open("log", "ab") as file:
        file.write(part)
assert open("log", "rb").read() == b"one two three"
refused(errno.EEXIST, os.open, "log", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
os.close(os.open("log", os.O_WRONLY | os.O_TRUNC))
assert os.stat("log").st_size == 0

# -- names --
for name in ("a", "b"):
    os.mkdir(name)
    open(f"{name}/{name}", "w").write(name)
refused(errno.EEXIST, renameat2, "a/a", "b/b", NOREPLACE)
renameat2("a/a", "b/b", EXCHANGE)
assert open("a/a").read() == "b" and open("b/b").read() == "a"
os.rename("a/a", "b/b")
assert os.listdir("a") == [] and open("b/b").read() == "b"
refused(errno.ENOTEMPTY, os.rmdir, "b")
refused(errno.ENOTEMPTY, os.rename, "a", "b")
refused(errno.EINVAL, os.rename, "b", "b/below")
refused(errno.EISDIR, os.rename, "b/b", "a")
refused(errno.ENOTDIR, os.rename, "a", "b/b")
refused(errno.ENAMETOOLONG, os.mkdir, "n" * 256)
os.mkdir("n" * 255), os.rmdir("n" * 255)
refused(errno.ENOENT, os.unlink, "nothing")
refused(errno.ENOTDIR, os.stat, "b/b/c")
assert os.stat(".").st_nlink >= 2 + 2

# -- links --
os.link("b/b", "a/hard")
assert os.stat("a/hard").st_nlink == 2 and os.path.samefile("a/hard", "b/b")
os.unlink("b/b")
assert os.stat("a/hard").st_nlink == 1
os.symlink("a/hard", "soft")
assert os.readlink("soft") == "a/hard" and open("soft").read() == "b"
os.symlink("loop", "loop")
refused(errno.ELOOP, os.stat, "loop")
os.mkfifo("fifo")
assert stat.S_ISFIFO(os.stat("fifo").st_mode)
os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
assert os.stat("null").st_rdev == os.makedev(1, 3)

# -- attributes --
os.utime("data", ns=(1_000_000_001, -5_000_000_003))
assert (os.stat("data").st_atime_ns, os.stat("data").st_mtime_ns) == (1_000_000_001, -5_000_000_003)
os.chmod("data", 0o6755)
assert stat.S_IMODE(os.stat("data").st_mode) == 0o6755
os.chown("data", 12, 34)
assert (os.stat("data").st_uid, os.stat("data").st_gid, stat.S_IMODE(os.stat("data").st_mode)) == (12, 34, 0o755)
os.mkdir("group"), os.chown("group", 0, 77), os.chmod("group", 0o2775)
open("group/file", "w"), os.mkdir("group/dir")
assert os.stat("group/file").st_gid == 77 and os.stat("group/dir").st_mode & stat.S_ISGID
os.setxattr("data", "user.colour", b"blue", os.XATTR_CREATE)
refused(errno.EEXIST, os.setxattr, "data", "user.colour", b"red", os.XATTR_CREATE)
refused(errno.ENODATA, os.setxattr, "data", "user.taste", b"red", os.XATTR_REPLACE)
os.setxattr("data", "trusted.t", b"\0\1"), os.setxattr("data", "security.s", b"s")
assert {"user.colour", "trusted.t", "security.s"} <= set(os.listxattr("data"))
assert os.getxattr("data", "trusted.t") == b"\0\1" and os.getxattr("data", "user.colour") == b"blue"
os.removexattr("data", "user.colour")
refused(errno.ENODATA, os.getxattr, "data", "user.colour")
assert b"stripe_count=3" in os.getxattr("data", "trainfs.layout")
assert os.statvfs(".").f_blocks > 0 and os.statvfs(".").f_namemax == 255

# -- a directory that changes while it is read: what stays is seen exactly once --
os.mkdir("many")
for i in range(3000):
    open(f"many/stays{i}", "w").close(), open(f"many/goes{i}", "w").close()
seen = []
with os.scandir("many") as entries:
    for number, entry in enumerate(entries):
        seen.append(entry.name)
        if number < 3000:
            os.unlink(f"many/goes{number}")
            open(f"many/comes{number}", "w").close()
stays = sorted(name for name in seen if name.startswith("stays"))
assert stays == sorted(f"stays{i}" for i in range(3000)), (len(stays), len(set(stays)))

# -- holes punched --
fd = os.open("punched", os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"y" * 300_000, 0)
if libc.fallocate(fd, 3, ctypes.c_long(70_000), ctypes.c_long(150_000)) == 0:
    assert os.pread(fd, 300_000, 0) == b"y" * 70_000 + bytes(150_000) + b"y" * 80_000
PYTHON
