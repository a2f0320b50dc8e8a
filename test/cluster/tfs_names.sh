# tfs path2fid and fid2path: every hard link's path, through link, rename and unlink, and after a restart of the MDS.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
paths() { "$tfs" fid2path "$mnt" "$1" | sort | tr '\n' ' '; }

mkdir -p "$mnt/a/b"
echo data >"$mnt/a/b/f"
fid=$("$tfs" path2fid "$mnt/a/b/f")
[[ $fid =~ ^\[0x0:0x[0-9a-f]+:0x0\]$ ]] || fail "the FID is '$fid'"
[ "$(stat -c %i "$mnt/a/b/f")" = $((16#$(cut -d: -f2 <<<"$fid" | cut -c3-))) ] || fail "$fid is not the inode number"
expect "$mnt/a/b/f " paths "$fid"
ln "$mnt/a/b/f" "$mnt/g"
ln "$mnt/g" "$mnt/a/two words"
expect "$mnt/a/b/f $mnt/a/two words $mnt/g " paths "$fid"
rm "$mnt/a/b/f"
mv "$mnt/a" "$mnt/A"
expect "$mnt/A/two words $mnt/g " paths "$fid"
restart mds0
expect "$mnt/A/two words $mnt/g " paths "$fid"
expect "$mnt/A/b" "$tfs" fid2path "$mnt/A" "$("$tfs" path2fid "$mnt/A/b")"
# By the file system's name: of several clusters on one machine that is any.
if [ "$(grep -c ' fuse.trainfs ' /proc/self/mountinfo)" = 1 ]; then
  expect "$mnt/A/b" "$tfs" fid2path trainfs "$("$tfs" path2fid "$mnt/A/b")"
fi
expect "$mnt" "$tfs" fid2path "$mnt" "[0x0:0x1:0x0]"

# Of several names the parents come on one line, in no order.
root=$("$tfs" path2fid "$mnt") above=$("$tfs" path2fid "$mnt/A")
parents() { "$tfs" path2fid --parents "$1" | tr '\t' '\n' | sort | tr '\n' ' '; }
wanted=$(printf '%s\n' "$root/g" "$above/two words" | sort | tr '\n' ' ')
expect "$wanted" parents "$mnt/g"

# 600 names come in pages.
for i in $(seq 600); do ln "$mnt/g" "$mnt/A/b/link$i"; done
[ "$("$tfs" fid2path -0 "$mnt" "$fid" | tr -d '\n' | tr '\0' '\n' | sort -u | wc -l)" = 602 ] || fail "not 602 names"
[ "$("$tfs" fid2path --json "$mnt" "$fid" | python3 -c 'import json,sys; print(len(json.load(sys.stdin)[0]["paths"]))')" = 602 ] ||
  fail "not 602 names in JSON"

# A gone file is no file; what is no FID is refused; ordinary users may not ask past permissions.
gone=$("$tfs" path2fid "$mnt/A/b/link1")
rm -r "$mnt/A" "$mnt/g"
said=$("$tfs" fid2path "$mnt" "$gone" 2>&1) && fail "a removed file has the path $said"
[[ $said == *"there is no such file"* ]] || fail "said: $said"
said=$("$tfs" fid2path "$mnt" nonsense 2>&1) && fail "nonsense is a FID"
[[ $said == *"is not a FID"* ]] || fail "said: $said"
touch "$mnt/mine"
chmod 755 "$WORK"
if setpriv --reuid=65534 --regid=65534 --clear-groups stat "$mnt/mine" "$tfs" >/dev/null 2>&1; then
  said=$(setpriv --reuid=65534 --regid=65534 --clear-groups "$tfs" fid2path "$mnt" "[0x0:0x1:0x0]" 2>&1) && fail "anybody may ask"
  [[ $said == *superuser* ]] || fail "said: $said"
fi
