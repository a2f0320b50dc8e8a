# A time that was set stays, though the writer's periodic report of its own mtime falls into the same moment.
# (Two files in five thousand lost the time that `cp -a` had given them.)
. "$ROOT/test/cluster/lib.sh"
start_cluster 1
python3 - "$mnt" <<'PYTHON'
import os, sys, time
fds = [os.open(f"{sys.argv[1]}/f{i}", os.O_WRONLY | os.O_CREAT) for i in range(20)]
end, rounds = time.monotonic() + 11, 0  # reports come every 5 seconds
while time.monotonic() < end:
    rounds += 1
    for fd in fds:
        os.pwrite(fd, b"x", rounds)
        os.utime(fd, (1_000_000, 1_000_000 + rounds))
for fd in fds:
    os.close(fd)
print(rounds, file=open("rounds", "w"))
PYTHON
minicluster remount "$mnt"
for file in "$mnt"/f*; do expect $((1000000 + $(cat rounds))) stat -c %Y "$file"; done
