#!/bin/bash
# test_completion.sh BUILD: help, completion and manual pages know the same commands and options of tfs.
set -u
here=$(dirname "$(realpath "$0")")
tfs=$1/tools/tfs/tfs
pages=$here/../../../man
wrong=0
complain() { echo "$*"; wrong=1; }
. "$here/tfs.bash"

complete_line() { # complete_line WORD...: what is offered for the last
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _tfs
  printf '%s\n' "${COMPREPLY[@]}"
}
plain() { sed 's/\\-/-/g; s/\\f[BIRP]//g; s/\\&//g' "$1"; }

commands=$("$tfs" --help | sed -nE 's/^  ([a-z][a-z0-9_]*) .*/\1/p' | grep -vx -e help -e tfs)
[ "$(wc -w <<<"$commands")" -ge 11 ] || complain "only these commands: $commands"
offered=$(complete_line "$tfs" "")
for command in $commands; do
  grep -qx -- "$command" <<<"$offered" || complain "$command is not completed"
  page=$pages/tfs-$command.1
  [ -e "$page" ] || { complain "there is no page tfs-$command.1"; continue; }
  grep -qF "tfs\\-$command" "$pages/tfs.1" || complain "tfs.1 does not refer to tfs-$command.1"
  help=$("$tfs" "$command" --help)
  grep -q '^Example' <<<"$help" || complain "$command --help has no example"
  options=$(sed -nE 's/^ +(-.*)/\1/p' <<<"$help" | sed 's/  .*//' | grep -oE '(^|[ ,;])--?([A-Za-z][A-Za-z-]*0?|0)' | tr -d ' ,;')
  [ -n "$options" ] || complain "$command --help names no options"
  offered_here=$(complete_line "$tfs" "$command" -)
  for option in $options; do
    grep -qx -- "$option" <<<"$offered_here" || complain "$option of $command is not completed"
    plain "$page" | grep -qE -- "(^|[^a-zA-Z0-9-])$option([^a-zA-Z0-9-]|$)" || complain "tfs-$command.1 does not name $option"
  done
done
grep -qx -- --stripe-count <<<"$(complete_line "$tfs" setstripe --str)" || complain "--str does not become --stripe-count"
grep -qx all <<<"$(complete_line "$tfs" check a)" || complain "check a does not become all"
if command -v zsh >/dev/null; then
  zsh -n "$here/_tfs" || complain "zsh does not read _tfs"
fi
exit $wrong
