# A full OST: ENOSPC at write or fsync and never silent loss, other files go elsewhere, and deleting makes room again.
# What was acknowledged is compared after a remount and a restart of the OSS.
. "$ROOT/test/cluster/lib.sh"
[ "$(id -u)" = 0 ] || skip "mounting a small file system takes root"
mkdir -p "$cluster/ost0"
mount -t tmpfs -o size=96m trainfs-small "$cluster/ost0" || skip "no tmpfs can be mounted"
at_exit+=("umount -l $cluster/ost0")
start_cluster 2
pattern=$WORK/pattern
head -c 128M /dev/urandom >"$pattern"

# fill FILE fsync|close: writes the pattern into it until there is no room, and prints how many bytes of it were
# acknowledged: by write and fsync, or by write and a close without an error.
fill() {
  "$tfs" setstripe -c 1 -i 0 "$1"
  python3 - "$pattern" "$@" <<'PYTHON'
import errno, os, sys
pattern, path, last_word = sys.argv[1:]
acknowledged, failed = 0, None
fd = os.open(path, os.O_WRONLY)
with open(pattern, "rb") as file:
    while failed is None and (chunk := memoryview(file.read(1 << 20))):
        try:
            while chunk:
                written = os.write(fd, chunk)
                if last_word == "fsync":
                    os.fsync(fd)
                acknowledged, chunk = acknowledged + written, chunk[written:]
        except OSError as error:
            failed = error.errno
assert failed == errno.ENOSPC, f"{acknowledged} bytes were written to 96 MiB, error {failed}"
# Nothing is written behind the caller's back: write() has said all there is to say, and close adds no error to it.
os.close(fd)
print(acknowledged)
PYTHON
}
kept() { # kept BYTES FILE: it begins with so many bytes of the pattern
  cmp -n "$1" "$pattern" "$2" || fail "$2 has lost some of the $1 bytes that were acknowledged"
}
start_again() { minicluster remount "$mnt"; restart ost0; }

synced=$(fill "$mnt/big" fsync)
[ "$synced" -ge $((32 << 20)) ] || fail "only $synced bytes found room in 96 MiB"
kept "$synced" "$mnt/big"

# New files go to the other one once the MDS knows.
elsewhere() { rm -f "$mnt/probe" && "$tfs" setstripe -c 1 "$mnt/probe" && [ "$("$tfs" getstripe -i "$mnt/probe")" = 1 ]; }
known() { for _ in 1 2 3 4; do elsewhere || return 1; done; }
until_true 30 known
for number in $(seq 8); do
  "$tfs" setstripe -c 1 "$mnt/new$number"
  expect 1 "$tfs" getstripe -i "$mnt/new$number"
  dd if="$pattern" of="$mnt/new$number" bs=1M skip="$number" count=1 conv=fsync status=none || fail "file $number found no room"
done
start_again
kept "$synced" "$mnt/big"
for number in $(seq 8); do
  dd if="$pattern" bs=1M skip="$number" count=1 status=none | cmp - "$mnt/new$number" || fail "file $number is another one"
done

# Deleted, and there is room.
rm "$mnt/big"
"$tfs" setstripe -c 1 -i 0 "$mnt/again"
writable() { head -c 20M "$pattern" | dd of="$mnt/again" bs=1M iflag=fullblock conv=notrunc,fsync status=none 2>/dev/null; }
until_true 60 writable

# Without an fsync, close has the last word; a later fsync finds nothing lost either.
closed=$(fill "$mnt/closed" close)
[ "$closed" -ge $((16 << 20)) ] || fail "only $closed bytes found room after the deletion"
sync "$mnt/closed" || fail "an fsync after the close tells of a loss"
start_again
kept "$closed" "$mnt/closed"
kept $((20 << 20)) "$mnt/again"
