# An object whose file is gone is EIO for the file it belongs to, while another mount writes that file, too: nobody asks
# its OST for ever, and when the writer dies, the question of the size comes to an end.
. "$ROOT/test/cluster/lib.sh"
a=$WORK/a b=$WORK/b
start_cluster 1 "$a" "$b"
echo sound >"$a/sound"
exec 8>"$a/lost"
echo hello >&8
sync "$a/lost"
object=$(grep -rl hello "$cluster/ost0/objects")
minicluster stop ost0
rm "$object"
minicluster start ost0

is_eio() { ! timeout 10 stat "$1" >/dev/null 2>"$WORK/error" && grep -q "Input/output error" "$WORK/error"; }
until_true 30 is_eio "$b/lost"
expect "lost sound" eval 'echo $(timeout 10 ls -U "$b" | sort)'
timeout 10 ls -l "$b" >"$WORK/listed" 2>/dev/null && fail "a file that cannot be looked at was listed as if it could"
grep -q " sound$" "$WORK/listed" || fail "the sound file is not in the listing"
expect sound cat "$b/sound"
timeout 10 unlink "$b/sound" || fail "nothing can be removed beside it"

# The writer dies, alone with its caches: who comes then evicts it, and its sizes are asked of the OSTs. This one stays
# what the MDS knew, and reading is EIO.
minicluster stop client1
minicluster kill client0
exec 8>&-
minicluster start client1 >/dev/null
recovered() { [ "$(timeout 10 stat -c %s "$b/lost" 2>/dev/null)" = 6 ]; }
until_true 60 recovered
! timeout 10 cat "$b/lost" >/dev/null 2>"$WORK/error" || fail "a file without its object was read"
grep -q "Input/output error" "$WORK/error" || fail "not EIO: $(cat "$WORK/error")"
timeout 10 rm "$b/lost" || fail "the file cannot be removed"
