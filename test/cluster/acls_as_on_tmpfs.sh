# POSIX ACLs do on a mount what they do on a local file system, for the kernel's checks, for programs that carry them
# along, and between two mounts at once; and a tree without any costs no questions for them.
. "$ROOT/test/cluster/lib.sh"
for program in getfacl setfacl tar rsync; do
  command -v $program >/dev/null || skip "$program is not installed"
done
a=$WORK/a b=$WORK/b local=$WORK/local
start_cluster 2 "$a" "$b"
mkdir "$local"
mount -t tmpfs -o mode=755 acls "$local" || skip "no tmpfs can be mounted"
at_exit+=("umount $local")
setfacl -m u:3001:r "$local" 2>/dev/null || skip "this kernel's tmpfs has no ACLs"
setfacl -b "$local"
chmod 755 "$WORK"
questions() { getfattr --only-values -n system.trainfs.stats "$1" 2>/dev/null | awk '$2 == "mds.questions" {print $3}'; }
caching() { getfattr --only-values -n system.trainfs.features "$1" 2>/dev/null | grep -q "^caching.yes"; }
as_3001() { setpriv --reuid=3001 --regid=4001 --clear-groups "$@"; }
seeded

# -- the same calls of several users on a tmpfs and on a mount: alone, and while another client is at work --
mkdir "$local/alone" "$local/shared" "$a/alone" "$a/shared"
until_true 20 caching "$a"
python3 "$ROOT/test/lib/acls.py" "$seed" 4000 "$local/alone" "$a/alone"
(while :; do touch "$b/busy"; sleep 0.5; done) & busy=$!
python3 "$ROOT/test/lib/acls.py" $((seed + 1)) 1500 "$local/shared" "$a/shared"
kill $busy
wait $busy 2>/dev/null || true

# -- programs --
programs() ( # in a new directory of $1
  mkdir "$1/programs"
  cd "$1/programs"
  mkdir dir
  setfacl -m d:u:3001:rwx,d:g:4002:r-x,u:3002:--x dir
  echo data >dir/file
  setfacl -m u:3003:rw,g:4001:r dir/file
  mkdir dir/sub
  touch dir/sub/plain
  setfacl -b dir/sub/plain
  cp -rp dir copied
  tar --acls -cf packed.tar dir
  mkdir unpacked
  tar --acls -xf packed.tar -C unpacked
  rsync -aA dir/ synced/
  [[ $(ls -ld dir/file) == -*+* ]] || fail "ls -l shows no ACL"
  [[ $(ls -ld dir/sub/plain) != -*+* ]] || fail "ls -l shows an ACL that is not there"
  [ -z "$(rsync -aAni dir/ synced/)" ] || fail "rsync would transfer again"
  find dir copied unpacked synced | sort | getfacl -
)
programs "$local" >"$local.acls"
programs "$a" >"$a.acls"
diff "$local.acls" "$a.acls" || fail "getfacl tells other things"

# -- what one mount sets, the other enforces at once: by name, by a file that is open, whether or not it was cached --
touch "$a/secret" "$a/open"
mkdir "$a/inner"
chmod 700 "$a/inner" "$a/secret" "$a/open"
touch "$a/inner/f"
turns() { # GRANTS IN_BETWEEN
  local turn
  for ((turn = 0; turn < $1; ++turn)); do
    $2
    ! as_3001 cat "$b/secret" 2>/dev/null || fail "turn $turn: read before it was granted"
    ! as_3001 ls "$b/inner" 2>/dev/null || fail "turn $turn: listed before it was granted"
    setfacl -m u:3001:rx "$a/secret" "$a/inner" "$a/open"
    as_3001 cat "$b/secret" || fail "turn $turn: granted, and refused"
    expect f as_3001 ls "$b/inner"
    grep -q user:3001 <(getfacl -cn "$b/inner" 2>/dev/null) || fail "turn $turn: getfacl does not show it"
    $2
    as_3001 cat "$b/secret" || fail "turn $turn: granted, and refused later"
    setfacl -x u:3001 "$a/secret" "$a/inner"
    ! as_3001 cat "$b/secret" 2>/dev/null || fail "turn $turn: read after it was taken away"
    ! as_3001 ls "$b/inner" 2>/dev/null || fail "turn $turn: listed after it was taken away"
    setfacl -b "$a/secret" "$a/inner"
    chmod 700 "$a/secret" "$a/inner"
  done
}
let_b_cache() {
  local before
  until_true 20 caching "$b"
  as_3001 cat "$b/secret" 2>/dev/null || true
  as_3001 ls "$b/inner" >/dev/null 2>&1 || true
  before=$(questions "$b")
  as_3001 cat "$b/secret" 2>/dev/null || true
  [ $(($(questions "$b") - before)) -le 1 ] || fail "an ACL is asked for again"
}
turns 20 true
turns 3 let_b_cache

python3 - "$a" "$b" <<'PYTHON'
import os, subprocess, sys
a, b = sys.argv[1:]
name = "system.posix_acl_access"
fd = os.open(b + "/open", os.O_RDONLY)
os.chdir(b + "/inner")
for turn in range(30):
    subprocess.run(["setfacl", "-m", f"u:{3100 + turn}:r", a + "/open", a + "/inner", a], check=True)
    for place, here in (("open", fd), ("inner", "."), ("", b)):
        wanted = os.getxattr(f"{a}/{place}", name)
        assert os.getxattr(here, name) == wanted, (turn, place)
subprocess.run(["setfacl", "-b", a], check=True)
PYTHON

# A default ACL that one sets, what the other makes gets.
setfacl -m d:u:3001:r "$a/inner"
(umask 077; touch "$b/inner/made")
grep -q user:3001:r-- <(getfacl -cn "$a/inner/made" 2>/dev/null) || fail "the default ACL was not inherited"
expect 640 stat -c %a "$a/inner/made"

# -- ACLs outlive the server --
getfacl -R "$a/programs" >"$WORK/before" 2>/dev/null
restart mds0
getfacl -R "$a/programs" >"$WORK/after" 2>/dev/null
diff "$WORK/before" "$WORK/after" || fail "other ACLs after a restart"

# -- without ACLs nothing is asked for them, whoever looks --
mkdir "$a/none"
for i in $(seq 100); do echo >"$a/none/$i"; done
until_true 20 caching "$a"
stat "$a"/none/* >/dev/null
asked() { # COMMAND...: how many questions that takes
  local before
  before=$(questions "$a")
  "$@" >/dev/null
  echo $(($(questions "$a") - before))
}
read_by_stranger=$(asked as_3001 cat "$a"/none/*)
listed=$(asked ls -l "$a/none")  # asks for security.selinux of each
echo "100 files read by a stranger: $read_by_stranger questions, ls -l: $listed"
[ "$read_by_stranger" -lt 10 ] || fail "reading asks for ACLs"
[ "$listed" -lt 110 ] || fail "ls -l asks for ACLs"
