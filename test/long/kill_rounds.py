#!/usr/bin/env python3
"""kill -9 of an MDS, an OSS or the client at random moments while real programs run on the mount.

  ROOT=CHECKOUT TRAINFS_BUILD=BUILD kill_rounds.py DIR [--rounds N] [--seed S] [--osts N] [--victims LIST] [-o OPTIONS]

Each round starts some of the programs of test/lib/programs.sh and three ledgers, kills one process of the cluster
in DIR at a random moment, and starts it again. Whoever lives on has to come to a good end, nothing may hang, and what a
ledger was answered, written or fsynced or changed in names and modes, it has to see at any time, and has to be there on
a fresh mount. No server may find anything damaged. After the last round the cluster goes down and leaves nothing. The
short form is test/cluster/kill_rounds.sh; the long one takes --rounds 50.

A round that fails leaves the cluster as it is; what is interrupted goes down.
"""
import argparse
import contextlib
import errno
import multiprocessing
import os
import pickle
import random
import signal
import stat
import subprocess
import sys
import time

ROOT = os.path.realpath(os.environ["ROOT"])
PROGRAMS = ("git", "sqlite", "build", "tar", "rsync", "fio")
END_SECONDS = 240     # for all that runs in a round to end, once everything serves again
CLIENT_END_SECONDS = 60  # for what ran on a mount whose client is dead
ROUND_SECONDS = 1200  # for whatever else may hang
KILL_AFTER_SECONDS = (0.1, 6.0)
DOWN_SECONDS = (0.0, 3.0)  # how long the victim stays down
LEDGERS = 3
NEVER_LOGGED = (" [critical] ", "damaged")  # of processes that nothing happens to but kill -9
CLIENT_IS_DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED, errno.EIO)  # what the kernel says then
FRESH_MODE, MODES = 0o600, (0o600, 0o640, 0o644, 0o700, 0o755)


class Wrong(Exception):
    pass


class Interrupted(BaseException):
    pass


class Ledger:
    """Changes files of its own at random, and knows what has to be there: `files`, name -> (content, mode), is what was
    answered, `pending` the one change that was not."""

    def __init__(self, top, seed, book):
        self.top, self.random, self.book = top, random.Random(seed), book
        self.files, self.pending, self.number, self.answers = {}, None, 0, 0

    def run(self):
        stopping, failure = [], None
        signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
        try:
            while not stopping:
                self.step()
        except (Wrong, OSError) as error:
            failure = (getattr(error, "errno", None), str(error))
        with open(self.book, "wb") as file:
            pickle.dump((self.files, self.pending, self.answers, failure), file)

    def step(self):
        name = self.random.choice(sorted(self.files)) if self.files and self.random.random() < 0.7 else None
        if name is None:
            return self.create()
        self.random.choice([self.look, self.overwrite, self.append, self.rename, self.replace, self.unlink,
                            self.truncate, self.chmod])(name)

    def look(self, name):
        if wrong := difference(self.files[name], read(self.path(name))):
            raise Wrong(f"{name} {wrong}, on the mount that changed it")

    def create(self):
        name = self.new_name("f")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        self.change(name, (b"", FRESH_MODE), lambda: os.close(os.open(self.path(name), flags, FRESH_MODE)))
        self.append(name)

    def overwrite(self, name):
        self.write(name, self.random.randrange(len(self.files[name][0]) + 1))

    def append(self, name):
        self.write(name, len(self.files[name][0]))

    def write(self, name, at):
        (old, mode), data = self.files[name], self.random.randbytes(self.random.choice([1, 700, 4096, 65536, 200_000]))

        def act():
            fd = os.open(self.path(name), os.O_WRONLY)
            try:
                if os.pwrite(fd, data, at) != len(data):
                    raise Wrong(f"short write to {name}")
                if self.random.random() < 0.3:
                    os.fsync(fd)
            finally:
                os.close(fd)
        self.change(name, (old[:at] + data + old[at + len(data):], mode), act)

    def truncate(self, name):
        content, mode = self.files[name]
        size = self.random.randrange(len(content) + 1)
        self.change(name, (content[:size], mode), lambda: os.truncate(self.path(name), size))

    def chmod(self, name):
        mode = self.random.choice(MODES)
        self.change(name, (self.files[name][0], mode), lambda: os.chmod(self.path(name), mode))

    def unlink(self, name):
        self.change(name, None, lambda: os.unlink(self.path(name)))

    def rename(self, name):
        self.move(name, self.new_name("r"))

    def replace(self, name):
        if others := sorted(self.files.keys() - {name}):
            self.move(name, self.random.choice(others))

    def move(self, name, new):
        self.pending = ("rename", name, new)
        os.rename(self.path(name), self.path(new))
        self.files[new] = self.files.pop(name)
        self.answered()

    def change(self, name, after, act):
        self.pending = ("change", name, after)
        act()
        if after is None:
            del self.files[name]
        else:
            self.files[name] = after
        self.answered()

    def answered(self):
        self.pending = None
        self.answers += 1

    def new_name(self, letter):
        self.number += 1
        return f"{letter}{self.number}"

    def path(self, name):
        return f"{self.top}/{name}"


def read(path):
    with open(path, "rb") as file:
        return file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)


def check_ledger(top, book, client_killed):
    with open(book, "rb") as file:
        files, pending, answers, failure = pickle.load(file)
    if failure and not (client_killed and failure[0] in CLIENT_IS_DEAD):
        raise Wrong(f"{top}: {failure[1]}")
    if not answers and not client_killed:
        raise Wrong(f"{top}: nothing was answered")
    there = {name: read(f"{top}/{name}") for name in os.listdir(top)}
    kind, name, after = pending or (None, None, None)
    if kind == "rename" and name not in there:
        files[after] = files.pop(name)
    elif kind == "change" and may_be(there.get(name), files.get(name), after):
        files.pop(name, None)
        there.pop(name, None)
    for each in sorted(files.keys() | there.keys()):
        if wrong := difference(files.get(each), there.get(each)):
            raise Wrong(f"{top}/{each} {wrong}; not answered: {(kind, name)}")
    return len(files)


def may_be(found, before, after):
    """What a change that was not answered may leave: the old, the new, or, of a write, some of both: any of its bytes."""
    if found in (before, after):
        return True
    if None in (found, before, after) or found[1] not in (before[1], after[1]):
        return False
    found, before, after = found[0], before[0], after[0]
    if not len(before) <= len(found) <= len(after):  # a truncation
        return False
    old, new = before.ljust(len(after), b"\0"), after
    return all(byte in (old[i], new[i]) for i, byte in enumerate(found))


def difference(wanted, found):
    """In words; nothing: there is none."""
    if wanted == found:
        return None
    if wanted is None or found is None:
        return "should not be there" if wanted is None else "is missing"
    if wanted[0] == found[0]:
        return f"has mode {found[1]:o}, should have {wanted[1]:o}"
    wanted, found = wanted[0], found[0]
    at = next((i for i, (a, b) in enumerate(zip(wanted, found)) if a != b), min(len(wanted), len(found)))
    return f"has {len(found)} bytes, should have {len(wanted)}; differs from byte {at} on"


class Rounds:
    def __init__(self, args):
        self.args, self.random = args, random.Random(args.seed)
        self.dir, self.mount = f"{args.dir}/cluster", f"{args.dir}/mnt"
        self.programs, self.ledgers = {}, []  # that run

    def minicluster(self, verb, *rest, seconds=120):
        done = subprocess.run([f"{ROOT}/tools/minicluster", verb, self.dir, *rest], capture_output=True, text=True,
                              timeout=seconds)
        if done.returncode:
            raise Wrong(f"minicluster {verb} {' '.join(rest)}: {done.stdout}{done.stderr}")
        return done.stdout

    def run(self):
        self.minicluster("up", "--osts", str(self.args.osts), "--mount", self.mount, "-o", self.args.options)
        subprocess.run([f"{os.environ['TRAINFS_BUILD']}/tools/tfs/tfs", "setstripe", "-c", "-1", "-S", "64K", self.mount],
                       check=True)
        self.victims = [line.split()[0] for line in self.minicluster("status").splitlines()]
        if self.args.victims:
            self.victims = [name for name in self.victims if name.startswith(tuple(self.args.victims.split(",")))]
        for number in range(self.args.rounds):
            signal.alarm(ROUND_SECONDS)
            self.round(number)
        signal.alarm(0)
        self.down()

    def down(self):
        self.minicluster("down", seconds=300)
        with open("/proc/self/mountinfo") as file:  # a mount whose client is dead cannot be asked
            if left := [line.split()[4] for line in file if line.split()[4].startswith(self.args.dir + "/")]:
                raise Wrong(f"down left mounts: {left}")
        if left := processes_with(f"TRAINFS_MINICLUSTER={self.dir}"):
            raise Wrong(f"down left processes: {left}")

    def round(self, number):
        started = time.monotonic()
        # The first rounds take one kind each, so that a short run has all of them.
        kinds = sorted({name.rstrip("0123456789") for name in self.victims})
        pool = [name for name in self.victims if number >= len(kinds) or name.startswith(kinds[number])]
        victim = self.random.choice(pool)
        programs = self.random.sample(PROGRAMS, self.args.programs)
        after, down = self.random.uniform(*KILL_AFTER_SECONDS), self.random.uniform(*DOWN_SECONDS)
        print(f"round {number}: kill {victim} after {after:.2f} s for {down:.2f} s; {' '.join(programs)}", flush=True)
        top, out = f"{self.mount}/round{number}", f"{self.args.dir}/round{number}"
        os.makedirs(out)
        os.mkdir(top)
        for name in programs:
            self.programs[name] = self.start_program(name, top, out)
        for i in range(LEDGERS):
            self.ledgers.append(self.start_ledger(i, top, out))
        time.sleep(after)
        self.minicluster("kill", victim)
        time.sleep(down)
        if victim.startswith("client"):
            self.end_on_dead_mount()
        self.minicluster("start", victim)
        if not victim.startswith("client"):
            self.end_well(out)
        self.minicluster("remount", self.mount)
        files = sum(check_ledger(f"{top}/ledger{i}", f"{out}/book{i}", victim.startswith("client"))
                    for i in range(LEDGERS))
        if "sqlite" in programs:
            self.check_rows(top, out)
        subprocess.run(["rm", "-r", top], check=True, timeout=END_SECONDS)
        self.minicluster("status")
        self.check_logs()
        subprocess.run(["rm", "-r", out], check=True)
        print(f"  {files} files of the ledgers are right; {time.monotonic() - started:.0f} s", flush=True)

    def start_program(self, name, top, out):
        os.mkdir(f"{top}/{name}")
        with open(f"{out}/{name}.out", "wb") as output:
            return subprocess.Popen(
                ["bash", f"{ROOT}/test/lib/programs.sh", name, f"{top}/{name}"], stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True, cwd=out,  # where fio leaves something
                env={**os.environ, "ROOT": ROOT, "acks": f"{out}/acks"})

    def start_ledger(self, i, top, out):
        os.mkdir(f"{top}/ledger{i}")
        ledger = Ledger(f"{top}/ledger{i}", self.random.random(), f"{out}/book{i}")
        process = multiprocessing.Process(target=ledger.run)
        process.start()
        return process

    def end_well(self, out):
        deadline = time.monotonic() + END_SECONDS
        for name in list(self.programs):
            if self.wait(name, deadline):
                with open(f"{out}/{name}.out", errors="replace") as output:
                    raise Wrong(f"{name} failed: {output.read()[-2000:]}")
        self.stop_ledgers(deadline)

    def end_on_dead_mount(self):
        deadline = time.monotonic() + CLIENT_END_SECONDS
        for name in list(self.programs):
            self.wait(name, deadline)  # it may fail, but not hang
        self.stop_ledgers(deadline)

    def wait(self, name, deadline):
        try:
            status = self.programs[name].wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Wrong(f"{name} hangs")
        del self.programs[name]
        return status

    def stop_ledgers(self, deadline):
        for process in self.ledgers:
            process.terminate()
        for process in self.ledgers:
            process.join(max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                raise Wrong("a ledger hangs")
            if process.exitcode != 0:
                raise Wrong(f"a ledger ended with {process.exitcode}")
        self.ledgers.clear()

    def end_all(self):
        """Whatever runs on the mount: nobody waits for it any more."""
        for process in self.programs.values():
            os.killpg(process.pid, signal.SIGKILL)
        for process in self.ledgers:
            process.kill()

    def check_logs(self):
        for name in sorted(os.listdir(f"{self.dir}/log")):
            with open(f"{self.dir}/log/{name}", errors="replace") as log:
                for line in log:
                    if any(words in line for words in NEVER_LOGGED):
                        raise Wrong(f"{name}: {line.strip()}")

    def check_rows(self, top, out):
        """Whatever row was committed is in the database, which is whole."""
        if not os.path.exists(f"{out}/acks"):
            return
        with open(f"{out}/acks") as file:
            committed = {tuple(line.split()) for line in file}
        def ask(question):
            done = subprocess.run(["sqlite3", f"{top}/sqlite/db", question], capture_output=True, text=True,
                                  timeout=END_SECONDS)
            return done.stdout + done.stderr
        if (answer := ask("pragma integrity_check").strip()) != "ok":
            raise Wrong(f"sqlite: {answer}")
        rows = {tuple(line.split("|")) for line in ask("select writer, i from t").split()}
        if committed - rows:
            raise Wrong(f"sqlite lost rows: {sorted(committed - rows)[:5]}")


def processes_with(mark):
    """Their numbers, of which the environment has the mark."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
            if mark.encode() in file.read().split(b"\0"):
                found.append(int(entry))
    return found


def stop_when_told():
    def hangs(*_):
        raise Wrong(f"a round took more than {ROUND_SECONDS} seconds")

    def interrupted(*_):
        raise Interrupted
    signal.signal(signal.SIGALRM, hangs)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)


def main():
    parser = argparse.ArgumentParser(prog="kill_rounds.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", help="an empty directory")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--osts", type=int, default=3)
    parser.add_argument("--programs", type=int, default=3, help="at a time (3 of 6)")
    parser.add_argument("--victims", default="", help="only those whose names begin so, e.g. client,mds")
    parser.add_argument("-o", dest="options", default="", help="mount options")
    args = parser.parse_args()
    args.dir = os.path.realpath(args.dir)
    print(f"replay with --seed {args.seed}", flush=True)
    rounds = Rounds(args)
    stop_when_told()
    try:
        rounds.run()
    except (Wrong, OSError, subprocess.SubprocessError) as wrong:
        rounds.end_all()
        sys.exit(f"FAILED: {wrong}\nleft as it is: {args.dir}; replay with --seed {args.seed}\n"
                 f"when nobody needs it any more: {ROOT}/tools/minicluster down {rounds.dir}")
    except Interrupted:
        rounds.end_all()
        rounds.down()
        sys.exit(130)
    print(f"{args.rounds} rounds passed")


if __name__ == "__main__":
    main()
