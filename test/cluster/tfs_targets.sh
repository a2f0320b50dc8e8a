# A layout that names an OST that does not exist is refused, also as a directory's default; mdts and osts show addresses
# that clients use.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
mkdir "$mnt/dir"
for options in "-i 9" "-o 0,9" "-E 1M -c 1 -E -1 -i 9"; do
  said=$("$tfs" setstripe $options "$mnt/dir" 2>&1) && fail "setstripe $options was taken"
  [[ $said == *"OST that does not exist"* ]] || fail "setstripe $options: $said"
  "$tfs" setstripe $options "$mnt/file" 2>/dev/null && fail "setstripe $options of a file was taken"
done
"$tfs" setstripe -i 1 "$mnt/dir"
touch "$mnt/dir/file"
expect 1 "$tfs" getstripe -i "$mnt/dir/file"

source=$(awk -v at="$mnt" '$5 == at {print}' /proc/self/mountinfo | sed 's/.* - [^ ]* \([^ ]*\):\/.*/\1/')
address=$("$tfs" mdts --json "$mnt" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["address"])')
[ "$address" = "$source" ] || fail "mdts shows $address, the mount's source is $source"
