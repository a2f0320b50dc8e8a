#!/bin/bash
# test_pages.sh BUILD PAGE...: the pages are all that there are, render without a warning, and name every option
# that the programs in the build directory name in their --help.
set -u
here=$(dirname "$(realpath "$0")")
build=$1
shift
wrong=0
complain() { echo "$*"; wrong=1; }

for page in "$here"/*.[1-8]; do
  [[ " $* " == *" ${page##*/} "* ]] || complain "${page##*/} is not in man/meson.build"
  grep -q '^\.SH SYNOPSIS' "$page" || complain "${page##*/} has no SYNOPSIS"
done
if command -v groff >/dev/null; then
  for page in "$here"/*.[1-8]; do
    said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
    [ -z "$said" ] || complain "$said"
  done
else
  echo "groff is not installed: not rendered"
fi

plain() { sed 's/\\-/-/g; s/\\f[BIRP]//g' "$here/$1"; }
# options PAGE PROGRAM [ARGUMENT...]
options() {
  local page=$1 help option
  shift
  [ -e "$here/$page" ] || { echo "there is no $page"; return; }
  help=$("$build/$@" --help) || { complain "$* --help fails"; return; }
  for option in $(grep -oE -- '(^|[ ,[])--[a-z][a-z-]*' <<<"$help" | tr -d ' ,[' | sort -u); do
    plain "$page" | grep -qE -- "$option([^a-z-]|$)" || complain "$page does not name $option of $*"
  done
}
options trainfs-mds.8 src/mds/trainfs-mds
options trainfs-oss.8 src/oss/trainfs-oss
options trainfs-client.8 src/fuse_client/trainfs-client
options mkfs.trainfs.8 tools/mkfs.trainfs
options tfs.1 tools/tfs/tfs
options tfs-setstripe.1 tools/tfs/tfs setstripe
options tfs-getstripe.1 tools/tfs/tfs getstripe
options tfs-df.1 tools/tfs/tfs df
for verb in osts mdts check find path2fid fid2path features stats changelog changelog_register changelog_deregister \
  changelog_clear; do options tfs-$verb.1 tools/tfs/tfs $verb; done

# A key of the configuration file is the name of a flag.
for program in src/mds/trainfs-mds src/oss/trainfs-oss tools/mkfs.trainfs; do
  for key in $("$build/$program" --help | sed -nE 's/^  (-n,)?--([a-z][a-z-]*).*/\2/p' | grep -vxE 'help|version|config|check-config'); do
    plain trainfs.conf.5 | grep -qE "^\.B[R]? $key( |$)" || complain "trainfs.conf.5 has no key $key of ${program##*/}"
  done
done
exit $wrong
