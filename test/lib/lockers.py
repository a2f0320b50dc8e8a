"""Processes that lock a file when they are told to, for cluster tests.

    a = Locker(path)                 # a process of its own that has the file open
    a.now("record ex 0 10")          # waits for the outcome: "ok", or the name of an error
    a.start("flock ex")              # may wait for another; a.result(seconds) is None while it does
    a.kill()

Commands: KIND MODE [FIRST LENGTH] [nb], of kind flock, record (fcntl) or ofd, of mode sh, ex or un, with nb not to
wait; test MODE FIRST LENGTH; close: the file, by another descriptor; alarm SECONDS raise|restart: what SIGALRM does to
the next command; leave: a child goes on with the file open, and this process ends.
"""
import errno
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time

PATIENCE = 30  # seconds for what has to happen
LOCK = "hhqqi"
NAMES = {**errno.errorcode, errno.EDEADLK: "EDEADLK"}  # which has another name, too
MODES = {"sh": fcntl.F_RDLCK, "ex": fcntl.F_WRLCK, "un": fcntl.F_UNLCK}
WHOLE = {"sh": fcntl.LOCK_SH, "ex": fcntl.LOCK_EX, "un": fcntl.LOCK_UN}
SET, SET_WAIT = {"record": fcntl.F_SETLK, "ofd": 37}, {"record": fcntl.F_SETLKW, "ofd": 38}


class Locker:
    def __init__(self, path, flags="rw"):
        self.process = subprocess.Popen([sys.executable, __file__, path, flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        assert self.result(PATIENCE) == "open"

    def start(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def result(self, seconds=PATIENCE):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline().decode().strip() if ready else None

    def now(self, command, seconds=PATIENCE):
        self.start(command)
        said = self.result(seconds)
        assert said is not None, f"'{command}' is not answered"
        return said

    def waits(self):
        return self.result(0.3) is None

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


def expect(said, wanted, what):
    assert said == wanted, f"{what}: '{said}', not '{wanted}'"


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within its time: {what}"
        time.sleep(0.05)


class Alarm(Exception):
    pass


def run(file, words):
    kind, *rest = words
    wait = "nb" not in rest
    if kind == "flock":
        fcntl.flock(file, WHOLE[rest[0]] | (0 if wait else fcntl.LOCK_NB))
    elif kind in SET:
        first, length = int(rest[1]), int(rest[2])
        command = (SET_WAIT if wait else SET)[kind]
        fcntl.fcntl(file, command, struct.pack(LOCK, MODES[rest[0]], os.SEEK_SET, first, length, 0))
    elif kind == "test":
        lock = struct.pack(LOCK, MODES[rest[0]], os.SEEK_SET, int(rest[1]), int(rest[2]), 0)
        mode, _, first, length, pid = struct.unpack(LOCK, fcntl.fcntl(file, fcntl.F_GETLK, lock))
        if mode == fcntl.F_UNLCK:
            return "free"
        return f"{'ex' if mode == fcntl.F_WRLCK else 'sh'} {first} {length} {pid}"
    elif kind == "close":
        os.close(os.open(sys.argv[1], os.O_RDONLY))
    elif kind == "alarm":
        def raises(*_):
            raise Alarm
        signal.signal(signal.SIGALRM, raises if rest[1] == "raise" else lambda *_: None)
        signal.siginterrupt(signal.SIGALRM, rest[1] == "raise")
        signal.setitimer(signal.ITIMER_REAL, float(rest[0]))
    elif kind == "leave":
        if os.fork() != 0:
            os._exit(0)
    else:
        return f"what is {kind}?"
    return "ok"


def main():
    flags = {"rw": os.O_RDWR, "ro": os.O_RDONLY}[sys.argv[2]]
    file = os.open(sys.argv[1], flags | (os.O_CREAT if flags == os.O_RDWR else 0), 0o644)
    print("open", flush=True)
    for line in sys.stdin:
        try:
            said = run(file, line.split())
        except OSError as error:
            said = NAMES.get(error.errno, str(error.errno))
        except Alarm:
            said = "EINTR"
        print(said, flush=True)


if __name__ == "__main__":
    main()
