# tfs find against find: the same files for the tests that both have, and by layout what getstripe says.
. "$ROOT/test/cluster/lib.sh"
start_cluster 3
tree=$mnt/tree
mkdir -p "$tree"/{d1/d2/d3,empty}
for i in $(seq 20); do head -c $((i * 1000)) /dev/zero >"$tree/d1/f$i"; done
head -c 3M /dev/zero >"$tree/d1/d2/big"
ln "$tree/d1/f1" "$tree/d1/d2/hard"
ln -s f1 "$tree/d1/soft"
mkfifo "$tree/d1/pipe"
touch "$tree/d1/nothing"
touch -d '10 days ago' "$tree/d1/f2" "$tree/d1/f3"
chmod 600 "$tree/d1/f4"
printf x >"$tree/d1/with
newline"

same() { # same TEST...: find and tfs find agree, with more than nothing
  local found wanted
  wanted=$(find "$tree" "$@" -print0 | sort -z | tr '\0' '|')
  found=$("$tfs" find "$tree" "$@" -print0 | sort -z | tr '\0' '|')
  [ -n "$wanted" ] || fail "find $* finds nothing: no test"
  [ "$found" = "$wanted" ] || fail "find $*: '$found', not '$wanted'"
}
same -name '*'
for type in f d l p; do same -type $type; done
same -name 'f1*'
same ! -name 'f*'
same -type f ! -name 'f1*'
same -size +5000c
same -size -5000c -type f
same -size 20000c
same -mtime +5
same -mtime -5
same -newer "$tree/d1/f2"
same -links 2
same -links +1 -type f
same -perm 600
same -perm -400 -type f
same -empty
same -uid 0
same -user root -group root
same -maxdepth 1
same -mindepth 2 -maxdepth 3
expect "$tree/d1/d2/big" "$tfs" find "$tree" -type f --size=+1M
expect "$tree/d1/d2/big" "$tfs" find "$tree" -type f -size 3M

# Every command that has --json prints JSON, one value or one a line, also of a name that is not UTF-8.
strange=$tree/strang$'\xe9'
echo x >"$strange"
set_arguments() {
  case $1 in
    df | osts | mdts | features | stats | changelog | changelog_register) arguments=("$mnt") ;;
    check) arguments=(all "$mnt") ;;
    fid2path) arguments=("$mnt" "$("$tfs" path2fid "$strange")") ;;
    find | path2fid | getstripe) arguments=("$strange") ;;
    *) fail "what are arguments of tfs $1?" ;;
  esac
}
of_json() { # of_json EXPRESSION: of the `values` on standard input
  python3 -c 'import json, sys
text = sys.stdin.buffer.read().decode()
try: values = [json.loads(text)]
except ValueError: values = [json.loads(line) for line in text.splitlines()]
assert values and all(values), "nothing is told"
print(eval(sys.argv[1]))' "$1"
}
"$tfs" changelog_register --json -u indexer "$mnt" >said
expect "{'id': 'cl1', 'mdt': 'trainfs-MDT0000', 'name': 'indexer'}" of_json 'values[0]' <said
touch "$strange"
until_true 10 sh -c "'$tfs' changelog '$mnt' | grep -q ."
with_json=0
for command in $("$tfs" --help | sed -nE 's/^  ([a-z][a-z0-9_]*) .*/\1/p' | grep -vx -e help -e tfs); do
  grep -q -- '^ *--json' <<<"$("$tfs" "$command" --help)" || continue
  set_arguments "$command"
  "$tfs" "$command" --json "${arguments[@]}" >said || fail "tfs $command --json ends with $?"
  of_json True <said >/dev/null || fail "tfs $command --json: $(cat said)"
  with_json=$((with_json + 1))
done
[ $with_json -ge 12 ] || fail "only $with_json commands have --json"
"$tfs" find "$tree" --json >said
expect "$("$tfs" find "$tree" -print0 | tr -cd '\0' | wc -c)" of_json 'len(values)' <said
"$tfs" find "$tree/d1/d2" --json -type f -name big >said
expect "$(stat -c '%s %h %Y' "$tree/d1/d2/big") $("$tfs" path2fid "$tree/d1/d2/big") f" of_json \
  '(lambda v: "%d %d %d %s %s" % (v["size"], v["links"], __import__("datetime").datetime.fromisoformat(
    v["mtime"][:19] + "+00:00").timestamp(), v["fid"], v["type"]))(values[0])' <said
rm "$strange"

# Layouts.
"$tfs" setstripe -c 2 -S 128K "$tree/wide"
"$tfs" setstripe -i 1 "$tree/one"
head -c 300K /dev/zero >"$tree/wide"
echo x >"$tree/one"
expect "$tree/wide" "$tfs" find "$tree" -stripe-count 2
expect "$tree/wide" "$tfs" find "$tree" -stripe-count +1
expect "$tree/wide" "$tfs" find "$tree" -stripe-size 128K
expect "$tree/wide" "$tfs" find "$tree" -type f ! -stripe-count -2
on_ost() { "$tfs" getstripe -q "$1" 2>/dev/null | awk -v ost="$2" '$1 == ost && $2 ~ /^[0-9]+$/' | grep -q .; }
for ost in 0 1 2; do
  "$tfs" find "$tree" -type f -ost $ost -print0 >"$WORK/found"
  while IFS= read -rd '' file; do on_ost "$file" $ost || fail "$file is not on OST $ost"; done <"$WORK/found"
done
"$tfs" find "$tree" -ost trainfs-OST0001 | grep -x "$tree/one" >/dev/null || fail "'one' is not found on OST 1 by name"
[ "$("$tfs" find "$tree" -type f -ost 0,1,2 | wc -l)" = "$("$tfs" find "$tree" -type f | wc -l)" ] ||
  fail "not every file is on an OST"

# A pool by the name that a layout asks for; of a directory, its default.
mkdir "$tree/pooled"
"$tfs" setstripe -p flash "$tree/pooled" 2>/dev/null
touch "$tree/pooled/file"
"$tfs" setstripe -p disk "$tree/of_disk" 2>/dev/null
expect "$tree/pooled $tree/pooled/file" sh -c "'$tfs' find '$tree' -pool flash | sort | xargs"
expect "$tree/of_disk" "$tfs" find "$tree" -pool disk
expect "$tree/of_disk" "$tfs" find "$tree" -maxdepth 1 -name '*of_*' ! -pool flash

# Deeper than the directories that are open at once, and back; a directory of many entries.
deep=$tree/deep
mkdir "$deep"
(cd "$deep"; for i in $(seq 150); do mkdir d; touch before.$i; cd d; touch z; done)
[ "$("$tfs" find "$deep" -type f | wc -l)" = 300 ] || fail "not all of the deep tree"
mkdir "$tree/many"
(cd "$tree/many"; seq 3000 | xargs touch)
[ "$("$tfs" find "$tree/many" -type f | sort -u | wc -l)" = 3000 ] || fail "not all of a large directory"

# Wrong command lines: 4. Something that cannot be read: the rest, and 1.
status() { "$@" >/dev/null 2>&1 && echo 0 || echo $?; }
expect 4 status "$tfs" find "$tree" -size big
expect 4 status "$tfs" find "$tree" -nonsense
expect 4 status "$tfs" find "$tree" -name
expect 4 status "$tfs" find "$tree" '!'
expect 1 status "$tfs" find "$tree/absent" "$tree/one"
expect "$tree/one" bash -c '"$1" find "$2/absent" "$2/one" 2>/dev/null' - "$tfs" "$tree"
