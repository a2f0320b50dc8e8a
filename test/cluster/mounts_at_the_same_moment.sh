# Two clients that mount at the same moment: each learns that it is not alone, whatever order it hears it in.
# (A recall that was delivered before the answer to the mount was forgotten when that answer came.)
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 1 "$a" "$b"
for round in $(seq 12); do
  echo one >"$a/file"
  expect one cat "$b/file"
  echo longer text >"$b/file"
  expect "longer text" cat "$a/file"
  chmod $((600 + round % 2 * 40)) "$a/file"
  expect $((600 + round % 2 * 40)) stat -c %a "$b/file"
  minicluster down
  minicluster up >/dev/null
done
