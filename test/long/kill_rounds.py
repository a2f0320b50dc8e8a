#!/usr/bin/env python3
"""kill -9 of an MDS, an OSS or the client at random moments while real programs run on the mount.

  ROOT=CHECKOUT TRAINFS_BUILD=BUILD kill_rounds.py DIR [--rounds N] [--seed S] [--osts N] [--victims LIST] [-o OPTIONS]

Each round starts some of the programs of test/lib/programs.sh and three ledgers, kills one process of the cluster
in DIR at a random moment, and starts it again. Whoever lives on has to come to a good end, nothing may hang, and what a
ledger was answered, written or fsynced or changed in names, has to be there, on a fresh mount. After the last round
the cluster goes down and leaves nothing. The short form is test/cluster/kill_rounds.sh; the long one takes --rounds 50.
"""
import argparse
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import time

ROOT = os.environ["ROOT"]
PROGRAMS = ("git", "sqlite", "build", "tar", "rsync", "fio")
END_SECONDS = 240     # for all that runs in a round to end, once everything serves again
CLIENT_END_SECONDS = 60  # for what ran on a mount whose client is dead
KILL_AFTER_SECONDS = (0.1, 6.0)
DOWN_SECONDS = (0.0, 3.0)  # how long the victim stays down
LEDGERS = 3


class Wrong(Exception):
    pass


class Ledger:
    """Changes files of its own at random, and knows what has to be there: `files` is what was answered, `pending` the
    one change that was not (its file, and what may be in it)."""

    def __init__(self, top, seed, book):
        self.top, self.random, self.book = top, random.Random(seed), book
        self.files, self.pending, self.number = {}, None, 0

    def run(self):
        stopping, failure = [], None
        signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
        try:
            while not stopping:
                self.step()
            self.pending = None
        except OSError as error:
            failure = str(error)
        with open(self.book, "wb") as file:
            pickle.dump((self.files, self.pending, failure), file)

    def step(self):
        name = self.random.choice(sorted(self.files)) if self.files and self.random.random() < 0.7 else None
        if name is None:
            return self.create()
        self.random.choice([self.overwrite, self.append, self.rename, self.unlink, self.truncate])(name)

    def create(self):
        name = f"f{self.number}"
        self.number += 1
        self.change(name, b"", lambda: os.close(os.open(self.path(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
        self.append(name)

    def overwrite(self, name):
        self.write(name, self.random.randrange(len(self.files[name]) + 1))

    def append(self, name):
        self.write(name, len(self.files[name]))

    def write(self, name, at):
        old, data = self.files[name], self.random.randbytes(self.random.choice([1, 700, 4096, 65536, 200_000]))
        new = old[:at] + data + old[at + len(data):]

        def act():
            fd = os.open(self.path(name), os.O_WRONLY)
            try:
                if os.pwrite(fd, data, at) != len(data):
                    raise Wrong(f"short write to {name}")
                if self.random.random() < 0.3:
                    os.fsync(fd)
            finally:
                os.close(fd)
        self.change(name, new, act)

    def truncate(self, name):
        size = self.random.randrange(len(self.files[name]) + 1)
        self.change(name, self.files[name][:size], lambda: os.truncate(self.path(name), size))

    def unlink(self, name):
        self.change(name, None, lambda: os.unlink(self.path(name)))

    def rename(self, name):
        new = f"r{self.number}"
        self.number += 1
        self.pending = ("rename", name, new)
        os.rename(self.path(name), self.path(new))
        self.files[new] = self.files.pop(name)

    def change(self, name, content, act):
        self.pending = ("change", name, content)
        act()
        if content is None:
            del self.files[name]
        else:
            self.files[name] = content

    def path(self, name):
        return f"{self.top}/{name}"


def check_ledger(top, book, may_fail):
    with open(book, "rb") as file:
        files, pending, failure = pickle.load(file)
    if failure and not may_fail:
        raise Wrong(f"{top}: {failure}")
    there = {}
    for name in os.listdir(top):
        with open(f"{top}/{name}", "rb") as file:
            there[name] = file.read()
    if pending and pending[0] == "rename" and pending[2] in there and pending[1] not in there:
        files[pending[2]] = files.pop(pending[1])
    unsure, after = (pending[1], pending[2]) if pending and pending[0] == "change" else (None, None)
    for name in sorted(files.keys() | there.keys()):
        if name == unsure and may_be(there.get(name), files.get(name), after):
            continue
        if files.get(name) != there.get(name):
            raise Wrong(f"{top}/{name}: {difference(files.get(name), there.get(name))}; pending: {name == unsure}")
    return len(files)


def may_be(found, before, after):
    """What a change that was not answered may leave: the old, the new, or some of both: of a write, any of its bytes;
    of a truncation, the old size with what was cut off reading as zeros (objects are cut before the MDS is told)."""
    if found in (before, after):
        return True
    if None in (found, before, after):
        return False
    longer = max(len(before), len(after))
    if not min(len(before), len(after)) <= len(found) <= longer or (len(after) < len(before) and len(found) != longer):
        return False
    old, new = before.ljust(longer, b"\0"), after.ljust(longer, b"\0")
    return all(byte in (old[i], new[i]) for i, byte in enumerate(found))


def difference(wanted, found):
    if wanted is None or found is None:
        return "should not be there" if wanted is None else "is missing"
    at = next((i for i, (a, b) in enumerate(zip(wanted, found)) if a != b), min(len(wanted), len(found)))
    return f"{len(found)} bytes, should be {len(wanted)}; differs from byte {at} on"


class Rounds:
    def __init__(self, args):
        self.args, self.random = args, random.Random(args.seed)
        self.dir, self.mount = f"{args.dir}/cluster", f"{args.dir}/mnt"

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
            self.round(number)
        self.minicluster("down", seconds=300)
        if os.path.ismount(self.mount):
            raise Wrong("down left a mount")

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
        running = {name: self.start_program(name, top, out) for name in programs}
        ledgers = [self.start_ledger(i, top, out) for i in range(LEDGERS)]
        time.sleep(after)
        self.minicluster("kill", victim)
        time.sleep(down)
        if victim.startswith("client"):
            self.end_on_dead_mount(running, ledgers)
        self.minicluster("start", victim)
        if not victim.startswith("client"):
            self.end_well(running, ledgers, out)
        self.minicluster("remount", self.mount)
        files = sum(check_ledger(f"{top}/ledger{i}", f"{out}/book{i}", victim.startswith("client"))
                    for i in range(LEDGERS))
        if "sqlite" in programs:
            self.check_rows(top, out)
        subprocess.run(["rm", "-r", top], check=True, timeout=END_SECONDS)
        self.minicluster("status")
        subprocess.run(["rm", "-r", out], check=True)
        print(f"  {files} files of the ledgers are right; {time.monotonic() - started:.0f} s", flush=True)

    def start_program(self, name, top, out):
        os.mkdir(f"{top}/{name}")
        with open(f"{out}/{name}.out", "wb") as output:
            return subprocess.Popen(
                ["bash", f"{ROOT}/test/lib/programs.sh", name, f"{top}/{name}"], stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True, env={**os.environ, "acks": f"{out}/acks"})

    def start_ledger(self, i, top, out):
        os.mkdir(f"{top}/ledger{i}")
        ledger = Ledger(f"{top}/ledger{i}", self.random.random(), f"{out}/book{i}")
        process = multiprocessing.Process(target=ledger.run)
        process.start()
        return process

    def end_well(self, running, ledgers, out):
        deadline = time.monotonic() + END_SECONDS
        for name, process in running.items():
            if self.wait(name, process, deadline):
                with open(f"{out}/{name}.out", errors="replace") as output:
                    raise Wrong(f"{name} failed: {output.read()[-2000:]}")
        self.stop_ledgers(ledgers, deadline)

    def end_on_dead_mount(self, running, ledgers):
        deadline = time.monotonic() + CLIENT_END_SECONDS
        for name, process in running.items():
            self.wait(name, process, deadline)  # it may fail, but not hang
        self.stop_ledgers(ledgers, deadline)

    def wait(self, name, process, deadline):
        try:
            return process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Wrong(f"{name} hangs")

    def stop_ledgers(self, ledgers, deadline):
        for process in ledgers:
            process.terminate()
        for process in ledgers:
            process.join(max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                raise Wrong("a ledger hangs")
            if process.exitcode != 0:
                raise Wrong(f"a ledger ended with {process.exitcode}")

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
    try:
        rounds.run()
    except (Wrong, OSError, subprocess.SubprocessError) as wrong:
        sys.exit(f"FAILED: {wrong}\nleft as it is: {args.dir}; replay with --seed {args.seed}")
    print(f"{args.rounds} rounds passed")


if __name__ == "__main__":
    main()
