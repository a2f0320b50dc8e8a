# Two mounts of one file system: a completed change on one is seen on the other, and nothing is torn.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"

echo one >"$a/file"
expect one cat "$b/file"
echo longer text >"$b/file"
expect "longer text" cat "$a/file"
mv "$b/file" "$b/moved"
[ ! -e "$a/file" ] || fail "the old name is still there on the other mount"
mkdir "$a/dir"; touch "$a/dir/x"
expect x ls "$b/dir"
rm "$b/dir/x"
expect "" ls "$a/dir"
chmod 600 "$a/moved"
expect 600 stat -c %a "$b/moved"

# While one mount rewrites a block, the other reads old or new, never a mixture with damaged parts.
cat >"$WORK/torn.py" <<'PYTHON'
import os, sys, multiprocessing as mp
a, b = sys.argv[1:]
size, rounds = 65536, 300
def write(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    for i in range(rounds):
        assert os.pwrite(fd, bytes([i % 251 + 1]) * size, 0) == size
    os.close(fd)
with open(f"{a}/block", "wb") as file:
    file.write(bytes([1]) * size)
writer = mp.Process(target=write, args=(f"{a}/block",))
writer.start()
reads = 0
while writer.is_alive() or reads == 0:
    with open(f"{b}/block", "rb", buffering=0) as file:
        data = file.read(size)
    assert len(data) == size and len(set(data)) == 1, (len(data), sorted(set(data)))
    reads += 1
writer.join()
assert writer.exitcode == 0
with open(f"{b}/block", "rb") as file:
    assert set(file.read()) == {(rounds - 1) % 251 + 1}
print(reads, "reads")
PYTHON
python3 "$WORK/torn.py" "$a" "$b"

# One mount goes; the other is alone again and goes on.
umount "$b"
echo alone >"$a/alone"
expect alone cat "$a/alone"
