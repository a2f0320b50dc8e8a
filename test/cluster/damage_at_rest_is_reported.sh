# A bit that flips on an OST's disk is EIO for its block only, with a log line that names object, block and both sums; an
# object that is gone is EIO, never zeros.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
seeded
"$tfs" setstripe -c 1 "$mnt/flipped"
head -c 1M /dev/urandom >"$WORK/wanted"
dd if="$WORK/wanted" of="$mnt/flipped" bs=1M conv=fsync status=none
object=$(find "$cluster/ost0/objects" -type f)
block=$((RANDOM % 16))
minicluster stop ost0
python3 - "$object" $((block * 65536 + RANDOM)) <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 1]))
PYTHON
minicluster start ost0
minicluster remount "$mnt"

part() { dd if="$1" bs=64k count=1 skip="$2" iflag=direct status=none; }
for number in $(seq 0 15); do
  if [ "$number" = "$block" ]; then
    ! part "$mnt/flipped" "$number" >/dev/null 2>"$WORK/error" || fail "damaged block $block was read"
    grep -q "Input/output error" "$WORK/error" || fail "not EIO: $(cat "$WORK/error")"
  else
    cmp -s <(part "$mnt/flipped" "$number") <(part "$WORK/wanted" "$number") || fail "block $number beside $block is not right"
  fi
done
line="object ${object##*/}, block $block: damaged at rest: sum [0-9a-f]\{16\}, should be [0-9a-f]\{16\}"
grep -q "$line" "$cluster/log/ost0.log" || fail "no line in the log: $line"

# Through the page cache, too, and what is before the damage is there.
minicluster remount "$mnt"
dd if="$mnt/flipped" of="$WORK/read" bs=4k conv=noerror,sync status=none 2>/dev/null || true
cmp -s -n $((block * 65536)) "$WORK/wanted" "$WORK/read" || fail "bytes before block $block are not right"

# Missing.
minicluster stop ost0
rm "$object"
minicluster start ost0
minicluster remount "$mnt"
! cat "$mnt/flipped" >/dev/null 2>"$WORK/error" || fail "a file without its object was read"
grep -q "Input/output error" "$WORK/error" || fail "not EIO: $(cat "$WORK/error")"
grep -q "object ${object##*/} is known here, but its file is gone" "$cluster/log/ost0.log" || fail "no line about the missing object"
