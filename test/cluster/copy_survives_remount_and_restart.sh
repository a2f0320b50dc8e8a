# A tree of many small files is the same after a copy, a remount, and a restart of every server.
. "$ROOT/test/cluster/lib.sh"
start_cluster 4
source=/usr/share/doc
[ -d $source ] || skip "there is no $source"

cp -a $source "$mnt/"
diff -r --no-dereference $source "$mnt/doc" || fail "the copy differs"
minicluster remount "$mnt"
diff -r --no-dereference $source "$mnt/doc" || fail "the copy differs after a remount"
restart $(servers)
diff -r --no-dereference $source "$mnt/doc" || fail "the copy differs after a restart of the servers"

# Names, types, modes, owners, times and link targets, too.
list() { (cd "$1" && find . -printf '%P %y %m %U %G %T@ %l\n' | sort); }
diff <(list $source) <(list "$mnt/doc") >"$WORK/attributes" || fail "attributes differ: $(head -5 "$WORK/attributes")"
rm -r "$mnt/doc"
[ -z "$(ls -A "$mnt")" ] || fail "something is left: $(ls -A "$mnt")"
