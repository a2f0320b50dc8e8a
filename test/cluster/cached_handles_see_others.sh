# A file that was opened, and mapped, when its client was alone shows what another client writes, each time.
# (Such a handle filled the page cache again after the recall, and read from it for ever.)
# Alone: the kernel drops what such a handle has read a moment after the answer; beside other tests that can be seen.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a"
head -c 300000 /dev/zero | tr '\0' 0 >"$a/file"
minicluster remount "$a"
python3 - "$a/file" "$b/file" "$ROOT/tools/minicluster" "$cluster" "$b" <<'PYTHON'
import mmap, os, subprocess, sys
here, there, minicluster, cluster, b = sys.argv[1:]
fd = os.open(here, os.O_RDONLY)
assert os.pread(fd, 300_000, 0) == b"0" * 300_000
mapping = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
assert mapping[:3] == b"000"
subprocess.run([minicluster, "up", cluster, "--mount", b], check=True, stdout=subprocess.DEVNULL)
for round in range(1, 60):
    data = b"%d" % (round % 10) * 300_000
    with open(there, "r+b", buffering=0) as other:
        assert other.write(data) == len(data)
    got = os.pread(fd, 300_000, 0)
    assert got == data, (round, got[:1], got[-1:])
    assert mapping[100_000:100_001] == data[:1], (round, mapping[100_000:100_001])
PYTHON
