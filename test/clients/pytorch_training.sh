# The quickstart's training, short: a DataLoader with 4 workers over small files and a mapping, torch.save and
# torch.load; it goes on through the death of an OST and of the MDS.
. "$ROOT/test/cluster/lib.sh"
/usr/bin/python3 -c "import torch, tqdm" 2>/dev/null || skip "there is no python3-torch or python3-tqdm"
start_cluster 4
mkdir "$mnt/corpus"
"$tfs" setstripe -c -1 -S 64K "$mnt/corpus"
cp -rL /usr/lib/python3/dist-packages/tqdm /usr/share/common-licenses "$mnt/corpus/"
cp /usr/bin/python3 "$mnt/corpus/"  # something larger

/usr/bin/python3 "$ROOT/tools/quickstart_train.py" "$mnt" --steps 60 >"$WORK/training" 2>&1 &
training=$!
packed() { [ -s "$mnt/corpus.bin" ] || ! kill -0 $training 2>/dev/null; }
until_true 60 packed
for name in ost1 mds0; do minicluster kill $name; minicluster start $name; done
wait $training || fail "$(cat "$WORK/training")"
grep "read back equal" "$WORK/training" || fail "$(cat "$WORK/training")"
