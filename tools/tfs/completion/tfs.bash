# Completion of tfs for bash. Commands and options are asked of tfs itself, so that they are those of the tfs that is
# there.

# The words that begin with a dash in the list of options of a help text.
_tfs_options() {
  "$1" "$2" --help 2>/dev/null | grep -E '^ +-' | sed -E 's/^ +//; s/  .*//' |
    grep -oE '(^|[ ,;])--?([A-Za-z][A-Za-z-]*0?|0)' | tr -d ' ,;'
}

_tfs_commands() { "$1" --help 2>/dev/null | sed -nE 's/^  ([a-z][a-z0-9_]*)  +[^ ].*/\1/p'; }

_tfs_mounts() { sed -nE "s,^([^ ]+ ){4}([^ ]+) .* - fuse\.trainfs .*,\2,p" /proc/self/mountinfo; }

_tfs() {
  local tfs=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-}
  local -a words=()
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t words < <(_tfs_commands "$tfs"; printf '%s\n' --help --version)
  elif [ "$command" = help ]; then
    mapfile -t words < <(_tfs_commands "$tfs")
  elif [[ $word == -* ]]; then
    mapfile -t words < <(_tfs_options "$tfs" "$command"; echo --help)
  else
    case $command in
      check) words=(osts mdts mgts all servers) ;;
      df | osts | mdts | features | stats | fid2path | changelog*) mapfile -t words < <(_tfs_mounts) ;;
    esac
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    compopt -o filenames 2>/dev/null
  fi
  local candidate
  for candidate in "${words[@]}"; do
    [[ $candidate == "$word"* ]] && COMPREPLY+=("$candidate")
  done
}
complete -F _tfs tfs
