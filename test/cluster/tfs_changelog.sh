# tfs changelog: a follower sees what other processes do, in lfs' format; records stay until they are cleared, over
# restarts and kills of the MDS; users come and go.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
log() { "$tfs" changelog "$mnt" "$@"; }
kinds() { log "$@" | awk '{printf "%s ", $2}'; }

touch "$mnt/unseen"
expect "" log
id=$("$tfs" changelog_register -n -u indexer "$mnt")
expect cl1 echo "$id"
"$tfs" changelog_register -u indexer "$mnt" 2>said && fail "a name was taken twice"
grep -q "user 'indexer' is registered already" said || fail "$(cat said)"

mkdir "$mnt/d"
echo data >"$mnt/d/f"
closes() { [ "$(log | grep -c 11CLOSE)" = "$1" ]; }
until_true 20 closes 1
ln "$mnt/d/f" "$mnt/g"
ln -s g "$mnt/s"
mkfifo "$mnt/p"
mv "$mnt/g" "$mnt/d/two words"
chmod 600 "$mnt/d/f"
truncate -s 2 "$mnt/d/f"  # opens it for writing
until_true 20 closes 2
setfattr -n user.kind -v x "$mnt/d/f"
rm "$mnt/d/f" "$mnt/d/two words"
rm -r "$mnt/d"
expect "02MKDIR 01CREAT 11CLOSE 03HLINK 04SLINK 05MKNOD 08RENME 14SATTR 13TRUNC 11CLOSE 15XATTR 06UNLNK 06UNLNK 07RMDIR " kinds

# A line as lfs prints it.
fid='\[0x0:0x[0-9a-f]+:0x0\]'
stamp='[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9} 20[0-9]{2}\.[0-9]{2}\.[0-9]{2}'
log 7 7 | grep -qE "^7 08RENME $stamp 0x0 t=\[0x0:0x0:0x0\] ef=0x1 u=0:0 p=$fid two words s=$fid sp=$fid g$" || fail "$(log 7 7)"
log 13 13 | grep -qE "^13 06UNLNK $stamp 0x1 t=$fid ef=0x1 u=0:0 p=$fid two words$" || fail "$(log 13 13)"
log 11 11 | grep -qE "^11 15XATTR $stamp 0x0 t=$fid ef=0x9 u=0:0 x=user.kind$" || fail "$(log 11 11)"
log --json 7 7 | python3 -c '
import json, sys
change = json.load(sys.stdin)
assert change["type"] == "RENME" and change["source_name"] == "g" and change["target"] is None, change'

# Another user has seen nothing; both are there after a kill, and the records of what was answered before it.
second=$("$tfs" changelog_register -n "$mnt")
minicluster kill mds0
minicluster start mds0
mkdir "$mnt/after"
expect "cl1-indexer 0 cl2 14 " sh -c "'$tfs' changelog --users '$mnt' | awk 'NR > 2 {printf \"%s %s \", \$1, \$2}'"
expect 15 sh -c "'$tfs' changelog '$mnt' | wc -l"
"$tfs" changelog_clear "$mnt" cl1 16 2>said && fail "a record to come was cleared"
grep -q "no such record yet" said || fail "$(cat said)"
"$tfs" changelog_clear "$mnt" cl1 14
until_true 20 sh -c "[ \"\$('$tfs' changelog '$mnt' | awk '{print \$1}')\" = 15 ]"

# Following: a record is there soon after the change.
"$tfs" changelog --follow "$mnt" 16 >followed &
follower=$!
at_exit+=("kill $follower")
for i in $(seq 2000); do echo "$i"; done | (cd "$mnt" && xargs touch)
until_true 60 sh -c "[ \$(grep -c 01CREAT followed) = 2000 ]"
kill $follower
expect "1 2000" awk '/01CREAT/ {name = $NF; if (!first) first = name} END {print first, name}' followed

# The last user takes the changelog with it.
"$tfs" changelog_deregister "$mnt" cl1 >said
grep -q "Deregistered changelog user 'cl1'" said || fail "$(cat said)"
"$tfs" changelog_deregister "$mnt" "$second" >/dev/null
touch "$mnt/unseen again"
until_true 20 sh -c "[ -z \"\$('$tfs' changelog '$mnt')\" ]"
for wrong in "changelog" "changelog $mnt x" "changelog_clear $mnt 1 1" "changelog_clear $mnt cl0 1" "changelog_register"; do
  code=0
  "$tfs" $wrong >/dev/null 2>&1 || code=$?
  [ $code = 4 ] || fail "tfs $wrong: $code"
done
code=0
"$tfs" changelog nowhere-MDT0000 >/dev/null 2>said || code=$?
[ $code = 19 ] || fail "an MDT of nothing: $code: $(cat said)"
