# 3 GiB of random data striped -c 4 -S 1M: equal when read back, also cold, and a quarter of it on each OST.
. "$ROOT/test/cluster/lib.sh"
start_cluster 4
mib=${MIB:-3072}
objects() { du -s --block-size=1M --apparent-size "$cluster/$1/objects" | cut -f1; }

"$tfs" setstripe -c 4 -S 1M "$mnt/big"
expect 4 "$tfs" getstripe -c "$mnt/big"
expect 1048576 "$tfs" getstripe -S "$mnt/big"
head -c "${mib}M" /dev/urandom | tee >(sha256sum >"$WORK/wanted") | dd of="$mnt/big" bs=1M iflag=fullblock conv=fsync status=none
[ "$(stat -c %s "$mnt/big")" = $((mib << 20)) ] || fail "size is $(stat -c %s "$mnt/big")"
sum() { sha256sum <"$mnt/big"; }
wanted=$(cat "$WORK/wanted")
expect "$wanted" sum
minicluster remount "$mnt"
expect "$wanted" sum
for ost in ost0 ost1 ost2 ost3; do
  share=$(objects $ost)
  [ "$share" -ge $((mib / 4 - mib / 50)) ] && [ "$share" -le $((mib / 4 + mib / 50)) ] ||
    fail "$ost holds $share MiB of $mib"
done

# Its objects go when it goes.
rm "$mnt/big"
empty() { [ "$(find "$cluster"/ost*/objects -type f | wc -l)" = 0 ]; }
until_true 60 empty
