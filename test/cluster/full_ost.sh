# A full OST: ENOSPC at write or fsync and never silent loss, other files go elsewhere, and deleting makes room again.
. "$ROOT/test/cluster/lib.sh"
[ "$(id -u)" = 0 ] || skip "mounting a small file system takes root"
mkdir -p "$cluster/ost0"
mount -t tmpfs -o size=96m trainfs-small "$cluster/ost0" || skip "no tmpfs can be mounted"
at_exit+=("umount -l $cluster/ost0")
start_cluster 2

"$tfs" setstripe -c 1 -i 0 "$mnt/big"
python3 - "$mnt/big" "$WORK/written" <<'PYTHON'
import errno, os, sys
chunk, written, failed = os.urandom(1 << 20), 0, None
fd = os.open(sys.argv[1], os.O_WRONLY)
try:
    while written < 200 << 20:
        written += os.write(fd, chunk)
    os.fsync(fd)
except OSError as error:
    failed = error.errno
assert failed == errno.ENOSPC, f"{written} bytes were written to 96 MiB, error {failed}"
PYTHON
# What was there before is there, and readable to its end.
cat "$mnt/big" >/dev/null || fail "what was written to a full OST cannot be read"

# New files go to the other one once the MDS knows.
elsewhere() { rm -f "$mnt/probe" && "$tfs" setstripe -c 1 "$mnt/probe" && [ "$("$tfs" getstripe -i "$mnt/probe")" = 1 ]; }
known() { for _ in 1 2 3 4; do elsewhere || return 1; done; }
until_true 30 known
for number in $(seq 8); do
  "$tfs" setstripe -c 1 "$mnt/new$number"
  expect 1 "$tfs" getstripe -i "$mnt/new$number"
  head -c 1M /dev/urandom | dd of="$mnt/new$number" bs=1M iflag=fullblock conv=fsync status=none || fail "file $number found no room"
done

# Deleted, and there is room.
rm "$mnt/big"
"$tfs" setstripe -c 1 -i 0 "$mnt/again"
writable() { head -c 20M /dev/zero | dd of="$mnt/again" bs=1M iflag=fullblock conv=notrunc,fsync status=none 2>/dev/null; }
until_true 60 writable
