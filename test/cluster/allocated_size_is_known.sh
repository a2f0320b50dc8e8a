# What fallocate makes longer is so for everybody once it has answered, and stays so when the client dies; what the layout
# cannot hold is EFBIG.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"
exec 8>"$a/allocated" 7<>"$a/zeroed"
fallocate -l 5000000 "$a/allocated"
expect 5000000 stat -c %s "$b/allocated"
expect 5000000 stat -c %s "$a/allocated"
echo data >&7
fallocate --zero-range -l 3000000 "$a/zeroed"
expect 3000000 stat -c %s "$b/zeroed"
cmp "$b/zeroed" <(head -c 3000000 /dev/zero) || fail "what was zeroed is not zeros"
fallocate --keep-size -o 1000 -l 9000000 --punch-hole "$a/zeroed"
expect 3000000 stat -c %s "$b/zeroed"

"$tfs" setstripe -E 1M -c 1 "$a/bounded"
echo data >"$a/bounded"
for mode in "" --zero-range; do
  ! fallocate $mode -l 2M "$a/bounded" 2>"$WORK/error" || fail "longer than its layout ($mode)"
  grep -q "File too large" "$WORK/error" || fail "not EFBIG: $(cat "$WORK/error")"
done
expect data cat "$a/bounded"
fallocate -l 1M "$a/bounded"
expect 1048576 stat -c %s "$b/bounded"

fallocate -l 7000000 "$a/allocated"
minicluster kill client0
exec 8>&- 7>&-
expect 7000000 stat -c %s "$b/allocated"
