# Bytes of a writer that was killed while their OST was away do not come over what others wrote, and synced, later.
. "$ROOT/test/cluster/lib.sh"

writer=$WORK/write.py
cat >"$writer" <<'PYTHON'
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
print("open", flush=True)
sys.stdin.readline()
os.pwrite(fd, sys.argv[2].encode() * 4096, 0)
os.fsync(fd)
print("synced", flush=True)
PYTHON
in_write() { grep -q fuse "/proc/$1/stack"; }

body() {
  start_cluster 1
  head -c 4096 /dev/zero >"$mnt/file"
  sync -f "$mnt"
  for round in 1 2 3 4; do
    for who in killed later; do
      rm -f "$WORK/$who.go"
      mkfifo "$WORK/$who.go"
      python3 "$writer" "$mnt/file" "${who:0:1}" <"$WORK/$who.go" >"$WORK/$who.said" &
      declare "$who=$!"
    done
    exec 5>"$WORK/killed.go" 6>"$WORK/later.go"
    for who in killed later; do until_true 10 grep -q open "$WORK/$who.said"; done
    minicluster kill ost0
    echo >&5
    until_true 10 in_write $killed
    kill -KILL $killed
    wait $killed || true
    echo >&6
    until_true 10 in_write $later
    minicluster start ost0 >/dev/null
    wait $later
    expect synced tail -n 1 "$WORK/later.said"
    exec 5>&- 6>&-
    # The killed one's bytes may come first, or not at all.
    expect "l" bash -c "head -c 4096 '$mnt/file' | fold -w 1 | sort -u"
    minicluster remount "$mnt"
    expect "l" bash -c "head -c 4096 '$mnt/file' | fold -w 1 | sort -u"
    minicluster remount "$mnt"
  done
}
both_transports body
