# What one mount has written and not yet reported does not undo what another one has set meanwhile: a size, a time. And
# what it writes after that, without having heard of it, is there for everybody.
. "$ROOT/test/cluster/lib.sh"

all() {
  local a=$WORK/a b=$WORK/b
  start_cluster 2 "$a" "$b"
  "$tfs" setstripe -c 2 -S 64k "$a" # so that a truncation cuts several objects
  python3 - "$a" "$b" <<'PYTHON'
import os, sys
a, b = sys.argv[1:]
MB = 1_000_000

class File:
    """Written by the first mount, 1 MB of it unreported."""
    def __init__(self, name):
        self.name = name
        self.fd = os.open(f"{a}/{name}", os.O_RDWR | os.O_CREAT)
        os.pwrite(self.fd, b"x" * MB, 0)
    def size(self, wanted, when):
        there, here = os.stat(f"{b}/{self.name}").st_size, os.fstat(self.fd).st_size
        assert (there, here) == (wanted, wanted), f"{self.name} {when}: {there} there, {here} here, not {wanted}"
    def reported(self, wanted):
        """What it is before, after a report, and when it is closed."""
        self.size(wanted, "before the report")
        os.fsync(self.fd)
        self.size(wanted, "after the report")
        os.close(self.fd)
        there = os.stat(f"{b}/{self.name}").st_size
        assert there == wanted, f"{self.name} closed: {there}"

for to in 0, 1, 65536, 100_000, 999_999, 2 * MB:
    file = File(f"cut{to}")
    os.truncate(f"{b}/{file.name}", to)
    file.reported(to)

# Nobody asks in between: the report itself is the first to hear of it.
file = File("unasked")
os.truncate(f"{b}/unasked", 5)
os.fsync(file.fd)
file.size(5, "after the report")
os.close(file.fd)
file = File("closed")
os.truncate(f"{b}/closed", 5)
os.close(file.fd)
assert os.stat(f"{b}/closed").st_size == 5

# Opened with O_TRUNC, and written again by the other.
file = File("rewritten")
with open(f"{b}/rewritten", "wb") as other:
    other.write(b"y" * 10)
file.reported(10)
assert open(f"{b}/rewritten", "rb").read() == b"y" * 10

# Written after the truncation by the one that has not heard of it.
for name, report_first in ("unheard", False), ("reported", True):
    file = File(name)
    os.truncate(f"{b}/{name}", 100_000)
    os.pwrite(file.fd, b"z" * 1000, 500_000)
    if report_first:
        os.fsync(file.fd)
    file.size(501_000, "written after the truncation")
    os.pwrite(file.fd, b"z" * 1000, 501_000)
    file.reported(502_000)
    wanted = b"x" * 100_000 + bytes(400_000) + b"z" * 2000
    assert open(f"{b}/{name}", "rb").read() == wanted, name

# Times.
file = File("timed")
os.utime(f"{b}/timed", (1000, 1000))
os.fsync(file.fd)
assert os.stat(f"{b}/timed").st_mtime == 1000
file.size(MB, "time set by the other")
os.close(file.fd)
assert os.stat(f"{a}/timed").st_mtime == 1000
file = File("timed_written")
os.utime(f"{b}/timed_written", (1000, 1000))
os.pwrite(file.fd, b"x", 0)
os.close(file.fd)
assert os.stat(f"{b}/timed_written").st_mtime > 1_000_000_000, "a write after a time was set"
PYTHON

  # Left alone before it reports, with a new server: the mark that asks the objects is durable.
  exec 8>"$a/alone"
  head -c 1000000 /dev/zero >&8
  truncate -s 77 "$b/alone"
  umount "$b"
  restart mds0
  expect 77 stat -c %s "$a/alone"
  exec 8>&-
  minicluster remount "$a"
  expect 77 stat -c %s "$a/alone"
}
both_transports all
