# A client that is evicted without ever having been asked for its caches (the MDS was started anew while it stood still)
# and is not alone afterwards forgets all that it and its kernel remember: names that are gone, names that were absent,
# sizes, modes, data.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 2 "$a"
echo old >"$a/shared"; mkdir "$a/dir"; echo x >"$a/dir/gone"; sync -f "$a"
cat "$a/shared" "$a/dir/gone" >/dev/null; stat "$a/dir/made" 2>/dev/null && fail "made is there already"
client=$(awk '{print $1}' "$cluster/run/client0")
kill -STOP "$client"
at_exit+=("kill -CONT $client")
minicluster kill mds0
minicluster start mds0 >/dev/null
minicluster up --mount "$b" >/dev/null  # returns once the stopped one is evicted
echo newer >"$b/shared"; rm "$b/dir/gone"; echo made >"$b/dir/made"; chmod 600 "$b/shared"
kill -CONT "$client"
until_true 30 grep -q "was evicted by the MDS" "$cluster/log/client0.log"
sees() { [ "$(stat -c '%s %a' "$a/shared")" = "6 600" ] && [ ! -e "$a/dir/gone" ] && [ -e "$a/dir/made" ]; }
until_true 10 sees || fail "still sees: $(stat -c '%s %a' "$a/shared"; ls "$a/dir")"
expect newer cat "$a/shared"
expect made ls "$a/dir"
