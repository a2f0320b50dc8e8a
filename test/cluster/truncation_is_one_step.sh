# A file over two OSTs is truncated while one of them is away; then its client is killed, or the MDS, or both, and the OST
# comes back. Whoever asks sees the file as it was or as it is to be, never the old size with zeros.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a" "$b"
"$tfs" setstripe -c 2 -S 64k "$a"
head -c 1000000 /dev/urandom >"$WORK/content"
head -c 100000 "$WORK/content" >"$WORK/cut"
alive() { kill -0 "$1" 2>/dev/null; }
is_cut() { timeout 5 cmp -s "$b/$1" "$WORK/cut"; }

# truncate_without_ost NAME: leaves a truncation of it waiting for ost1, and its process in $truncating.
truncate_without_ost() {
  cp "$WORK/content" "$a/$1"
  sync -f "$a/$1"
  minicluster kill ost1
  truncate -s 100000 "$a/$1" &
  truncating=$!
  until_true 20 ost0_has_cut
  alive $truncating || fail "$1: truncated without an OST"
}
# The objects of the OST that is there: no large one is left.
ost0_has_cut() { [ -z "$(find "$cluster/ost0/objects" -type f -size +200k)" ]; }

rest() { # rest NAME: the OST is back, and the file what it is to be
  minicluster start ost1
  until_true 60 is_cut "$1"
  expect 100000 stat -c %s "$b/$1"
}

echo "-- nobody is killed; others wait"
truncate_without_ost calm
timeout 2 stat "$b/calm" >/dev/null && fail "its size was told before it had one"
rest calm
wait $truncating || fail "the truncation failed"
rm "$b"/*

echo "-- the MDS is killed"
truncate_without_ost mds
minicluster kill mds0
minicluster start mds0
rest mds
wait $truncating || fail "the truncation failed"
rm "$b"/*

echo "-- the client is killed"
truncate_without_ost client
minicluster kill client0
rest client
wait $truncating && fail "truncated by nobody"
rm "$b"/*

echo "-- both are"
minicluster start client0
truncate_without_ost both
minicluster kill client0
minicluster kill mds0
minicluster start mds0
rest both
wait $truncating && fail "truncated by nobody"
exit 0
