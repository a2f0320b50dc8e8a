"""The scripts test/cluster/*.sh and test/clients/*.sh, for run_tests.py: two at a time, as most of them wait for
something. One whose leading comment has a line "# Alone: WHY" runs beside nothing."""
import concurrent.futures
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
AT_ONCE = 2
STOP_SECONDS = 30   # for a script that was told to end
DOWN_SECONDS = 300  # for a cluster that a script left up
PASSED, SKIPPED = 0, 77


def scripts():
    """(group, name, path) of all."""
    for group in ("cluster", "clients"):
        for file in sorted(os.listdir(os.path.join(ROOT, "test", group))):
            if file.endswith(".sh") and file != "lib.sh":
                yield group, f"{group}/{file.removesuffix('.sh')}", os.path.join(ROOT, "test", group, file)


def runs_alone(path):
    with open(path) as script:
        for line in script:
            if not line.startswith("#"):
                return False
            if line.startswith("# Alone: "):
                return True
    return False


class ScriptRunner:
    """Runs scripts, each in a directory of its own and for `timeout` seconds at most. From several threads."""

    def __init__(self, timeout):
        self.timeout = timeout
        self.running = set()
        self.interrupted = False

    def run_all(self, chosen):
        """Yields (group, name, outcome, seconds, output) for each of `chosen`, in the order in which they are run. Whoever
        stops listening, or is interrupted, leaves nothing running."""
        beside = [each for each in chosen if not runs_alone(each[-1])]
        alone = [each for each in chosen if runs_alone(each[-1])]
        for several, at_once in ((beside, AT_ONCE), (alone, 1)):
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                try:
                    yield from pool.map(lambda each: self.run(*each), several)
                except BaseException:
                    self.interrupt()
                    raise

    def interrupt(self):
        self.interrupted = True
        for process in list(self.running):
            end_group(process)

    def run(self, group, name, path):
        if self.interrupted:
            return group, name, "skipped", 0, "interrupted"
        work = tempfile.mkdtemp(prefix="trainfs-test-", dir="/var/tmp")
        started = time.monotonic()
        code, text = self.run_in(work, path)
        outcome = {PASSED: "passed", SKIPPED: "skipped"}.get(code, "failed")
        if outcome == "failed":
            text += f"\nleft for you to look at: {work}"
        else:
            shutil.rmtree(work, ignore_errors=True)
        return group, name, outcome, time.monotonic() - started, text

    def run_in(self, work, path):
        """(exit status or None, output)"""
        with open(os.path.join(work, "output"), "w+", errors="replace") as output:
            process = subprocess.Popen(["bash", path], cwd=work, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, "WORK": work, "ROOT": ROOT})
            self.running.add(process)
            try:
                code = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                code = None
            end_group(process)
            self.running.discard(process)
            down = take_down(os.path.join(work, "cluster"))
            output.seek(0)
            text = output.read()
        if code is None:
            text += f"\nno end after {self.timeout} s"
        if not down:
            code, text = None, text + f"\nits cluster was not down within {DOWN_SECONDS} s"
        return code, text


def end_group(process):
    """Ends a script that still runs, with what it started."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def take_down(cluster):
    """Whether the cluster that a script left up, if any, is down now."""
    if not os.path.exists(cluster):
        return True
    try:
        subprocess.run([os.path.join(ROOT, "tools/minicluster"), "down", cluster], capture_output=True,
                       timeout=DOWN_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True
