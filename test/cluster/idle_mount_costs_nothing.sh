# A second mount that only exists does not cost the first its caches; what it changes is seen at once all the same.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"
questions() { getfattr --only-values -n system.trainfs.stats "$a" 2>/dev/null | awk '$2 == "mds.questions" {print $3}'; }
mkdir "$a/dir"
for i in $(seq 50); do echo "$i" >"$a/dir/$i"; done
second_pass() { # whether looking and reading again asks the MDS nothing
  cat "$a"/dir/* >/dev/null; stat "$a"/dir/* >/dev/null
  local before after
  before=$(questions)
  cat "$a"/dir/* >/dev/null; stat "$a"/dir/* >/dev/null
  after=$(questions)
  echo "asked $((after - before)) times"
  [ "$before" -gt 0 ] && [ $((after - before)) -lt 3 ]
}
until_true 20 second_pass

for round in 1 2 3; do
  echo "round $round" >"$b/dir/1"
  expect "round $round" cat "$a/dir/1"
  mv "$b/dir/2" "$b/dir/moved"
  [ ! -e "$a/dir/2" ] && [ -e "$a/dir/moved" ] || fail "the first mount sees the old names"
  chmod $((600 + round)) "$b/dir/3"
  expect $((600 + round)) stat -c %a "$a/dir/3"
  mv "$a/dir/moved" "$a/dir/2"
  expect 2 cat "$b/dir/2"
  until_true 20 second_pass
done
