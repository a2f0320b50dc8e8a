# shellcheck shell=bash
# How deps and build speak and run what takes long. For those that source it: LOG is the file that the output of
# steps goes to.

say() { printf '%s\n' "$*"; }
die() {
  printf 'tools/%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# step WHAT COMMAND...: runs it with its output in the log, and shows one line: "WHAT ... 10 s (fetched 31%), 17 s".
step() {
  local what=$1 start=$SECONDS status watcher
  shift
  printf '\n=== %s: %s\n' "$what" "$*" >>"$LOG"
  printf '%s ... ' "$what"
  show_progress "$what" 9>&- &
  watcher=$!
  # In a subshell of its own, so that a step may change directory and so that errexit holds inside it (it would not
  # in an "if" or "||" list). Without the lock (descriptor 9), which a daemon that apt starts would keep.
  set +e
  (set -e && "$@") >>"$LOG" 2>&1 </dev/null 9>&-
  status=$?
  kill "$watcher" && wait "$watcher" 2>/dev/null
  set -e
  [[ ! -t 1 ]] || printf '\r\033[K%s ... ' "$what"
  if ((status != 0)); then
    say "failed"
    tail -n 25 "$LOG" >&2
    die "failed: $what (the whole log: $LOG)"
  fi
  say "$((SECONDS - start)) s"
}

# On a terminal once a second in place, elsewhere a word each ten seconds, for as long as the caller lives.
show_progress() { # what
  local start=$SECONDS interval=10
  [[ ! -t 1 ]] || interval=1
  while sleep $interval >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    if [[ -t 1 ]]; then
      printf '\r\033[K%s ... %s s%s' "$1" $((SECONDS - start)) "$(how_far)"
    else
      printf '%s s%s, ' $((SECONDS - start)) "$(how_far)"
    fi
  done
}

# What apt ("dlstatus:7:31.2:...", "pmstatus:...") or ninja ("[12/80] ...") last said about it in the log.
how_far() {
  local said
  said=$(tail -c 4096 "$LOG" | grep -aoE '^(=== |(dl|pm)status:[^:]*:[0-9]+|\[[0-9]+/[0-9]+\])' | tail -n 1)
  case $said in
    dlstatus:*) echo " (fetched ${said##*:}%)" ;;
    pmstatus:*) echo " (unpacked ${said##*:}%)" ;;
    '['*) echo " $said" ;;
  esac
}
