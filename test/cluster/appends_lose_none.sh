# Processes of two mounts append records to one file: none is lost, torn or written over, each process's come in its order,
# and a reader sees what had been answered before. The first mount begins alone; then servers are killed under way. With
# FUSE over io_uring and without.
. "$ROOT/test/cluster/lib.sh"
records=${RECORDS:-1500} # of each process
cat >"$WORK/append.py" <<'PYTHON'
"""append.py FILE PROCESS RECORDS: appends, and prints how many have been answered now and then."""
import os, random, sys
path, process, records = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random = random.Random(process)
fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for number in range(records):
    filling = bytes([ord("a") + process]) * random.choice([1, 20, 300, 5000])
    record = b"<%d %d %d %s>\n" % (process, number, len(filling), filling)
    written = os.write(fd, record)
    assert written == len(record), f"{written} of {len(record)} bytes"
    if number % 100 == 0:
        print(number, flush=True)
PYTHON
cat >"$WORK/check.py" <<'PYTHON'
"""check.py FILE PROCESSES RECORDS"""
import re, sys
path, processes, records = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = open(path, "rb").read()
next_of, at = [0] * processes, 0
for record in re.finditer(rb"<(\d+) (\d+) (\d+) ([a-z]+)>\n", data):
    process, number, length = (int(record[group]) for group in (1, 2, 3))
    assert record.start() == at, f"bytes {at} to {record.start()} are of no record: {data[at:at + 80]}"
    assert record[4] == bytes([ord("a") + process]) * length, f"record {process} {number} is torn"
    assert number == next_of[process], f"record {number} of process {process} comes after {next_of[process] - 1}"
    next_of[process] += 1
    at = record.end()
assert at == len(data), f"{len(data) - at} bytes after the last record"
assert next_of == [records] * processes, f"records: {next_of}"
PYTHON

# append_all DIRECTORY_A DIRECTORY_B COMMAND...: four processes on each; runs the command when some way is gone.
append_all() {
  local a=$1 b=$2 pids=() process
  shift 2
  for process in 0 1 2 3 4 5 6 7; do
    [ $process -lt 4 ] && mount=$a || mount=$b
    [ $process = 0 ] || until_true 60 grep -q 100 "$WORK/answered.0" || fail "the first process does not get on"
    python3 "$WORK/append.py" "$mount/file" $process "$records" >"$WORK/answered.$process" & pids+=($!)
  done
  "$@"
  for pid in "${pids[@]}"; do wait "$pid" || fail "a process could not append"; done
  for mount in "$a" "$b"; do
    python3 "$work/check.py" "$mount/file" 8 "$records" || fail "seen through $mount: see above"
  done
  rm "$a/file" "$WORK"/answered.*
}
kill_servers() {
  local node
  for node in mds0 ost0 mds0 ost1; do
    minicluster kill $node
    minicluster start $node
  done
}
work=$WORK
all() {
  local a=$WORK/a b=$WORK/b
  cp "$work"/*.py "$WORK"
  start_cluster 2 "$a" "$b"
  "$tfs" setstripe -c 2 -S 64k "$a"
  append_all "$a" "$b" true
  append_all "$a" "$b" kill_servers
}
both_transports all
