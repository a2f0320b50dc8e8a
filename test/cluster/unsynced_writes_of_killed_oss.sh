# kill -9 of an OSS with objects that were written and not synced: they are there, are summed anew and not reported as
# damaged; and the fsync after it succeeds, because the machine's memory still has them.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
seeded
python3 - "$mnt" "$WORK" "$seed" <<'PYTHON'
import os, random, sys
mnt, work, random = sys.argv[1], sys.argv[2], random.Random(int(sys.argv[3]))
for name in range(30):
    data = bytearray(random.randbytes(random.randrange(1, 400_000)))
    with open(f"{mnt}/{name}", "wb", buffering=0) as file:
        file.write(data)
        if name % 2:
            os.fsync(file.fileno())
            patch = random.randbytes(1000)
            at = random.randrange(len(data))
            data[at:at + 1000] = patch
            file.seek(at)
            file.write(patch)
    with open(f"{work}/{name}", "wb") as file:
        file.write(data)
PYTHON
exec 3<>"$mnt/held"
echo before >&3
minicluster kill ost0
minicluster start ost0
sync "$mnt/held" || fail "fsync after a kill of the OSS"
exec 3>&-
minicluster remount "$mnt"
expect before cat "$mnt/held"
for name in $(seq 0 29); do cmp "$WORK/$name" "$mnt/$name"; done
! grep "damaged" "$cluster/log/ost0.log" || fail "a dirty object was reported"
