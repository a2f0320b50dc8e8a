# kill -9 of a server at 10 random points of a copy: the copy goes on, and what was answered or fsynced is there.
. "$ROOT/test/cluster/lib.sh"
start_cluster 4
seeded
python3 - "$WORK/source" "$seed" <<'PYTHON'
import os, random, sys
top, random = sys.argv[1], random.Random(int(sys.argv[2]))
for i in range(600):
    path = f"{top}/{i % 20}/{i}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(random.randbytes(random.choice([0, 10, 5000, 70_000, 400_000, 3_000_000])))
PYTHON

# Copies, fsyncs every third file, and writes each name to `answered` as soon as its copy was answered.
cat >"$WORK/copy.py" <<'PYTHON'
import os, sys
source, target, answered = sys.argv[1:]
with open(answered, "w", buffering=1) as log:
    for number, (folder, _, names) in enumerate(os.walk(source)):
        there = target + folder.removeprefix(source)
        os.makedirs(there, exist_ok=True)
        for name in names:
            with open(f"{folder}/{name}", "rb") as file, open(f"{there}/{name}", "xb", buffering=0) as out:
                while chunk := file.read(100_000):
                    assert out.write(chunk) == len(chunk)
                if int(name) % 3 == 0:
                    os.fsync(out.fileno())
            log.write(there.removeprefix(target) + "/" + name + "\n")
PYTHON

names=($(servers))
for round in $(seq 10); do
  victim=${names[RANDOM % ${#names[@]}]}
  [ "$round" -le 5 ] && victim=${names[round - 1]}  # each of them at least once
  : >"$WORK/answered"
  python3 "$WORK/copy.py" "$WORK/source" "$mnt/round$round" "$WORK/answered" &
  copy=$!
  want=$((RANDOM % 500 + 20))
  reached() { [ "$(wc -l <"$WORK/answered")" -ge $want ] || ! kill -0 $copy 2>/dev/null; }
  until_true 120 reached
  minicluster kill "$victim"
  minicluster start "$victim"
  wait $copy || fail "round $round: the copy failed when $victim was killed after $want files"
  diff -r "$WORK/source" "$mnt/round$round" || fail "round $round: differs after $victim was killed after $want files"
done

# Everything at once, then cold.
for name in "${names[@]}"; do minicluster kill "$name"; done
for name in "${names[@]}"; do minicluster start "$name"; done
minicluster remount "$mnt"
for round in $(seq 10); do
  diff -r "$WORK/source" "$mnt/round$round" || fail "round $round differs after all servers were killed"
done
