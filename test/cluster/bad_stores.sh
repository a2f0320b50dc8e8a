# Stores that were cut off or emptied: the server says which file it is, and ends. Stores with flipped bits, which LMDB has
# no sums against: it serves what it can read, or ends with a word about it; nothing hangs or crashes.
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
seeded
mkdir "$mnt/many"
(cd "$mnt/many" && for i in $(seq 300); do echo "content $i" >"file $i"; done)
for i in $(seq 20); do head -c 300K /dev/urandom >"$mnt/big$i"; done
sync -f "$mnt"
(cd "$mnt" && md5sum big*) >"$WORK/sums"
minicluster down
port=$(python3 -c "import json; print(json.load(open('$cluster/minicluster.json'))['nodes']['mds0']['port'])")
mdt=$cluster/mds0/mdt/data.mdb index=$cluster/ost0/index/data.mdb
cp -a --sparse=always "$cluster/mds0" "$WORK/mds.good"
cp -a --sparse=always "$cluster/ost0" "$WORK/oss.good"
restore() { # all of both targets: a server that meets damage may have written something before it noticed
  rm -rf "$cluster/mds0" "$cluster/ost0"
  cp -a --sparse=always "$WORK/mds.good" "$cluster/mds0"
  cp -a --sparse=always "$WORK/oss.good" "$cluster/ost0"
}
mds() { "$build/src/mds/trainfs-mds" --listen="127.0.0.1:$port" "$cluster/mds0"; }
oss() { "$build/src/oss/trainfs-oss" --data-listen=127.0.0.1:0 --advertise=127.0.0.1 "$cluster/ost0"; }

# ends_naming FILE SERVER: within 20 seconds, not by a signal, with a line that names the file.
ends_naming() {
  local status=0
  timeout -k 1 20 bash -c "$(declare -f "$2"); build=$build port=$port cluster=$cluster; $2" >"$WORK/said" 2>&1 || status=$?
  [ $status = 1 ] || fail "$2 with a damaged ${1#$cluster/} ended with $status: $(cat "$WORK/said")"
  grep -q -- "$1" "$WORK/said" || fail "$2 does not name $1: $(cat "$WORK/said")"
}

for part in "mds mdt" "oss index"; do
  read -r server name <<<"$part"
  file=${!name}
  # Within the first meta page, within the second, and behind them. What is further behind may be free:
  # test/unit/oss/test_lmdb_file.cc cuts everywhere.
  for left in 1 100 5000 8192; do
    restore; truncate -s "$left" "$file"
    ends_naming "${file%/data.mdb}" "$server"
  done
  restore; : >"$file"; ends_naming "${file%/data.mdb}" "$server"
  restore; rm "$file"; ends_naming "${file%/data.mdb}" "$server"
  restore; head -c 100K /dev/urandom >"$file"; ends_naming "${file%/data.mdb}" "$server"
done

# Flipped bits, mostly in the heads of pages: whatever it is, the server serves, or ends with a line that names the file.
flip() { # flip FILE: one random bit
  python3 - "$1" $((RANDOM * 32768 + RANDOM)) <<'PYTHON'
import random, sys
path, random = sys.argv[1], random.Random(int(sys.argv[2]))
with open(path, "r+b") as file:
    pages = []  # with something in them
    while page := file.read(4096):
        pages += [file.tell() - len(page)] if any(page) else []
    at = random.choice(pages) + random.randrange(40 if random.random() < 0.7 else 4096)
    file.seek(at)
    byte = file.read(1)[0]
    file.seek(at)
    file.write(bytes([byte ^ 1 << random.randrange(8)]))
print(f"bit of byte {at} of {path}")
PYTHON
}
look() { # uses a cluster on damaged stores; every command is bounded, and may fail
  timeout 20 ls -lR "$mnt" || true
  timeout 20 bash -c 'cd "$1" && md5sum big*' - "$mnt" || true
  timeout 20 touch "$mnt/new" || true
}
for round in $(seq 8); do
  restore
  what=$(flip "$([ $((round % 2)) = 0 ] && echo "$mdt" || echo "$index")")
  : >"$cluster/log/mds0.log"; : >"$cluster/log/ost0.log"
  if timeout 120 "$ROOT/tools/minicluster" up "$cluster" >"$WORK/up" 2>&1; then
    look >"$WORK/look" 2>&1
  fi
  timeout 120 "$ROOT/tools/minicluster" down "$cluster" >/dev/null 2>&1 || true
  if grep -q "SIGSEGV\|AddressSanitizer\|terminate called" "$cluster"/log/*.log; then fail "round $round: $what: a crash"; fi
  echo "round $round: $what: $(cat "$cluster"/log/{mds0,ost0}.log | grep -ci 'critical\|damaged\|MDB_\|cannot be read' || true) lines about it"
done
restore
minicluster up >/dev/null
(cd "$mnt" && md5sum -c --quiet "$WORK/sums") || fail "the good stores are not good any more"
