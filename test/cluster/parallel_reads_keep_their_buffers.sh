# Many reads under way at once, none from a cache: each gets its own bytes. (A read's buffer once went back to the
# pool before the read was over, and the next request used it, too.)
. "$ROOT/test/cluster/lib.sh"
seeded
start_cluster 4
"$tfs" setstripe -c 4 -S 64K "$mnt"
cat > reads.py <<'P'
import mmap, os, random, sys
path, seed = sys.argv[1], int(sys.argv[2])
words, size = 8, 32 << 20
if not os.path.exists(path):
    with open(path, "wb") as file:
        for at in range(0, size, 1 << 20):
            file.write(b"".join(b"%07x\n" % word for word in range(at // words, (at + (1 << 20)) // words)))
random.seed(seed)
fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
room = mmap.mmap(-1, 1 << 20)
for _ in range(300):
    length = random.randrange(1, 65) * 4096
    at = random.randrange(0, (size - length) // 4096) * 4096
    assert os.preadv(fd, [memoryview(room)[:length]], at) == length
    wanted = b"".join(b"%07x\n" % word for word in range(at // words, (at + length) // words))
    assert room[:length] == wanted, f"{length} bytes at {at} are others'"
P
python3 reads.py "$mnt/file" "$seed"
readers=()
for reader in $(seq 12); do python3 reads.py "$mnt/file" $((seed + reader)) & readers+=($!); done
for reader in "${readers[@]}"; do wait "$reader" || fail "a reader got wrong bytes"; done
