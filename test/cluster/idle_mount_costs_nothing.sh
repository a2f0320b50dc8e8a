# A second mount that only exists does not cost the first its caches; what it changes is seen at once all the same.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"
# How often the MDS was asked for something by the first mount.
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

# Both work in one directory, at the same time and by turns, with pauses in which one or the other gets the caches: nobody
# waits for ever for the other, and in the end both see the same.
storm() { # MOUNT NAME
  local i round
  for round in 1 2 3; do
    for i in $(seq 40); do
      mkdir "$1/dir/$2$i"; echo "$round" >"$1/dir/$2$i/f"; mv "$1/dir/$2$i/f" "$1/dir/$2.f"; rmdir "$1/dir/$2$i"
    done
    expect "$round" cat "$1/dir/$2.f"
    sleep $((2 + ${#2}))
  done
}
storm "$a" x & first=$!
timeout 60 bash -c "$(declare -f storm expect fail); storm '$b' yy" || fail "the second mount's storm"
wait "$first" || fail "the first mount's storm"
expect "$(ls "$a/dir")" ls "$b/dir"
expect 3 cat "$a/dir/yy.f"
expect 3 cat "$b/dir/x.f"
