#!/bin/sh
# What mkfs.trainfs does to directories, step by step. $1: the program.
set -u
mkfs=$(realpath "$1")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() { echo "FAILED: $*"; echo "--- stdout"; cat out; echo "--- stderr"; cat err; exit 1; }
# expect STATUS ARGUMENTS...: runs it, keeps its output in `out` and `err`.
expect() {
  want=$1; shift
  "$mkfs" "$@" >out 2>err
  got=$?
  [ "$got" = "$want" ] || fail "$*: status $got, not $want"
}
says() {
  grep -q -F -- "$1" err || fail "stderr lacks '$1'"
  [ "$(grep -v -c ': warning: ' err)" = 1 ] || fail "not one line"  # but for the kind of file system
}
prints() { grep -q -- "$1" out || fail "stdout lacks '$1'"; }
listed() { find "$1" -mindepth 1 | sort; }
mdt="--fsname=trainfs --mdt --mgs"
ost="--fsname=trainfs --ost --index=18 --mgsnode=h1,h2:7000 --mgsnode=[::1]"

# A new MDT, a new OST.
mkdir mdt0 ost18
expect 0 $mdt mdt0
prints 'Target: *trainfs-MDT0000$'; prints 'trainfs FS: *trainfs$'; prints 'data: not found$'
[ -s mdt0/mdt/data.mdb ] && [ -s mdt0/trainfs-target.toml ] || fail "no MDT"
expect 0 $ost ost18
prints 'Target: *trainfs-OST0012$'; prints 'Index: *18$'; prints 'mgsnode=h1,h2:7000,\[::1\]$'
[ "$(listed ost18)" = "$(printf 'ost18/index\nost18/objects\nost18/trainfs-target.toml')" ] || fail "no OST"
[ "$(stat -c %a ost18/objects mdt0/mdt | sort -u)" = 700 ] || fail "data open to others"

# A used one is refused and left alone.
cp -a ost18 before
expect 1 $ost ost18; says 'mkfs.trainfs: ost18: is target trainfs-OST0012 already'
expect 1 $mdt ost18; says 'trainfs-OST0012'
diff -r before ost18 || fail "changed"

# --reformat takes away what is ours, and nothing else.
echo data >ost18/objects/0; echo mine >ost18/notes
expect 0 $mdt --reformat ost18
prints 'removing target trainfs-OST0012$'
[ "$(cat ost18/notes)" = mine ] && [ ! -e ost18/objects ] && [ ! -e ost18/index ] || fail "wrong removal"
expect 0 $ost --reformat ost18
[ ! -e ost18/mdt ] && [ -d ost18/objects ] || fail "wrong removal"
echo garbage >ost18/trainfs-target.toml
expect 1 $ost ost18; says 'damaged'
expect 0 $ost --reformat ost18

# Foreign data.
mkdir foreign; echo mine >foreign/x
expect 1 $ost foreign; says "foreign: is not empty: there is 'x'"
mkdir foreign/objects; echo mine >foreign/objects/y
expect 1 $ost --reformat foreign; says "'objects' is in the way"
[ "$(cat foreign/objects/y)" = mine ] && [ ! -e foreign/trainfs-target.toml ] || fail "harmed foreign data"
mkdir -p disk/lost+found
expect 0 $ost disk

# Interrupted formats: the draft alone, the draft and a part of the data.
mkdir cut; touch cut/trainfs-target.toml.new
expect 1 $ost cut; says 'interrupted'
mkdir cut/objects; touch cut/objects/z
expect 0 $ost --reformat cut
prints 'removing what an interrupted format left'
[ "$(listed cut)" = "$(printf 'cut/index\ncut/objects\ncut/trainfs-target.toml')" ] || fail "leftovers"

# A target in use.
( flock 9; "$mkfs" $mdt --reformat mdt0 >out 2>err; echo $? >status ) 9<mdt0
[ "$(cat status)" = 1 ] || fail "formatted a target in use"
says 'mkfs.trainfs: mdt0: in use'

# Dry runs touch nothing.
mkdir dry
expect 0 $mdt --dry-run dry; prints 'Dry-run'
expect 0 $mdt -n dry
[ -z "$(listed dry)" ] || fail "dry run wrote"
expect 0 $mdt -n --reformat mdt0
[ -s mdt0/mdt/data.mdb ] || fail "dry run removed"

# Wrong command lines, each with its reason.
refused() { words=$1; shift; expect 2 "$@"; says "$words"; [ -z "$(listed dry)" ] || fail "wrote"; }
refused 'directory' $mdt
refused 'one directory' $mdt dry dry
refused '--mdt or --ost' --fsname=trainfs dry
refused '--mdt or --ost' --fsname=trainfs --mdt --ost --index=0 dry
refused '--fsname' --mdt --mgs dry
refused 'fsname' --fsname=ninechars --mdt --mgs dry
refused 'fsname' --fsname=a/b --mdt --mgs dry
refused '--index' --fsname=trainfs --ost --mgsnode=h dry
refused '0 to 65534' --fsname=trainfs --ost --index=65535 --mgsnode=h dry
refused 'index' --fsname=trainfs --ost --index=-1 --mgsnode=h dry
refused 'mgsnode' --fsname=trainfs --ost --index=1 dry
refused 'mgsnode' --fsname=trainfs --ost --index=1 --mgsnode=h, dry
refused 'mgsnode' --fsname=trainfs --ost --index=1 --mgsnode=h:0 dry
refused 'mgs is for an MDT' --fsname=trainfs --ost --mgs --index=1 --mgsnode=h dry
refused 'MDT of index 0' --fsname=trainfs --mdt --mgs --index=1 dry
refused 'mgsnode is missing' --fsname=trainfs --mdt --index=1 dry
expect 1 $mdt missing; says 'mkfs.trainfs: missing: No such file'
expect 1 $mdt dry/../err; says 'Not a directory'
echo "mkfs: all as expected"
