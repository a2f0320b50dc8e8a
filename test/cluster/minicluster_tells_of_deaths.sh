# minicluster down fails, and says which, when a node ended by itself or had to be killed, and not when a node was ended by
# kill or stop, or a client by umount.
. "$ROOT/test/cluster/lib.sh"
start_cluster 2
pid() { awk '{print $1}' "$cluster/run/$1"; }
complains() { # complains WORDS VERB...
  local words=$1 said
  shift
  said=$(minicluster "$@" 2>&1) && fail "minicluster $* is content"
  [[ $said == *"$words"* ]] || fail "minicluster $*: $said"
}
minicluster kill ost0; minicluster start ost0; minicluster stop ost1; minicluster start ost1; umount "$mnt"
minicluster down

minicluster up >/dev/null
kill -SEGV "$(pid ost1)"
until_true 10 bash -c "! kill -0 $(pid ost1) 2>/dev/null"
complains "ost1 was ended by SIGSEGV, by itself" down

minicluster up >/dev/null
kill -9 "$(pid ost0)"
until_true 10 bash -c "! kill -0 $(pid ost0) 2>/dev/null"
minicluster start ost0
complains "ost0 was ended by SIGKILL, by itself" down
minicluster up >/dev/null
