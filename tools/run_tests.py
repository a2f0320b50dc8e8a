"""Installs what is missing, builds, runs every test; the last line is "N passed, N failed".

  test                   all of it (about half an hour on two cores the first time)
  test --only PATTERN    only tests whose name contains PATTERN, e.g. --only unit/, --only cluster/kill
  test --no-sanitizers   leave out the builds under address, undefined and thread sanitizers, and fuzzing
  test --long            the long forms: 1,000 power cuts, 50 rounds of kill -9, an hour for each fuzzer, and
                         more; hours in all, so best with --only
  test --fuzz-seconds N  how long each fuzzer searches (60)
  test --timeout S       how long one program or script may take (600; 4 hours with --long)
  test --list            names only

unit/ are the Catch2 programs of the meson suite `unit`, without and under sanitizers (then two at a time). fuzz/ are
the libFuzzer programs of the suite `fuzz`, two at a time. cluster/ are the scripts test/cluster/*.sh with real daemons
and mounts, clients/ are test/clients/*.sh with real applications: a script ends with 0 (passed), 77 (skipped:
something it needs cannot be had here) or anything else (failed). They run two at a time, and while they do, the
sanitized builds are compiled in the time that processors would be idle.
A random test that fails prints the seed that replays it: TRAINFS_SEED=... tools/test --only NAME.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

from run_scripts import ScriptRunner, scripts

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
FUZZERS_AT_ONCE = 2
SANITIZED_AT_ONCE = 2  # programs of a sanitized build; the plain ones run alone, some of them look at memory or threads
FUZZ_END_SECONDS = 240  # for a fuzzer to end after its search: with its last input, and the sanitizer's check for leaks
OUTPUT_LINES = 60   # of a failed test that are shown
# Name of a build -> meson options. Sanitized builds run the Catch2 programs and the fuzzers only; how long they take to
# compile is most of what they cost, so they are optimized a little, and know lines but no variables.
SANITIZED = ["-Db_lundef=false", "-Doptimization=1", "-Dcpp_args=-gline-tables-only"]
BUILDS = {
    "build": [],
    "build-asan": ["-Db_sanitize=address,undefined", "-Dfuzzers=true", *SANITIZED],
    "build-tsan": ["-Db_sanitize=thread", *SANITIZED],
}
# Cases of programs that are mostly about what has no threads: what the thread sanitizer looks at.
THREADED_CASES = {"mds": "[threads]"}
# What --long says to tests that have a long form; without it each has its own short one.
LONG_FORMS = {"TRAINFS_POWER_CUTS": "1000", "TRAINFS_KILL_ROUNDS": "50", "TRAINFS_BIG_DIRECTORY": "1000000"}
LONG_FUZZ_SECONDS, LONG_TIMEOUT = 3600, 4 * 3600
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:suppressions={ROOT}/test/tsan-suppressions.txt",
    "LSAN_OPTIONS": f"suppressions={ROOT}/test/lsan-suppressions.txt",
}


class Tally:
    """Counts what passed, failed and was skipped, by group (unit, unit under a sanitizer, cluster, ...)."""

    def __init__(self):
        self.groups = collections.defaultdict(collections.Counter)
        self.failed = []

    def add(self, group, name, outcomes, seconds, detail=""):
        """`outcomes` counts the cases of one program or script: "passed", "failed", "skipped"."""
        self.groups[group].update(outcomes)
        outcome = next(each for each in ("failed", "passed", "skipped") if outcomes[each])
        cases = f"{outcomes.total()} cases, " if outcomes.total() > 1 else ""
        print(f"{outcome:8}{name}  ({cases}{seconds:.1f} s)", flush=True)
        if outcome == "failed":
            self.failed.append(name)
        if outcome != "passed" and detail.strip():
            print("    " + "\n    ".join(detail.strip().splitlines()[-OUTPUT_LINES:]), flush=True)

    def total(self, outcome):
        return sum(outcomes[outcome] for outcomes in self.groups.values())

    def summary(self):
        lines = [f"{group:20}" + ", ".join(f"{outcomes[each]} {each}" for each in ("passed", "failed", "skipped")
                                           if outcomes[each])
                 for group, outcomes in self.groups.items()]
        lines += [f"failed: {name}" for name in self.failed]
        skipped = f", {self.total('skipped')} skipped" if self.total("skipped") else ""
        return "\n".join(lines + [f"{self.total('passed')} passed, {self.total('failed')} failed{skipped}"])


def counts(outcome):
    return collections.Counter([outcome])


# ---- programs that meson knows ----

def programs(build_name, suite):
    """Commands of a suite, by name; empty if that build is not configured."""
    done = subprocess.run(["meson", "introspect", "--tests", os.path.join(ROOT, build_name)],
                          capture_output=True, text=True)
    tests = json.loads(done.stdout) if done.returncode == 0 else []
    return {test["name"]: test["cmd"] for test in tests if any(each.split(":")[-1] == suite for each in test["suite"])}


def is_script(command):
    return any(word.endswith(".sh") for word in command)


def unit_label(name, build_name):
    return f"unit/{name}" if build_name == "build" else f"unit/{name} ({build_name.removeprefix('build-')})"


def units(known_by, build_name, only):
    """The unit tests that run in a build, name -> command, as the build `known_by` knows them."""
    chosen = {name: list(command) for name, command in programs(known_by, "unit").items()
              if only in unit_label(name, build_name) and (build_name == "build" or not is_script(command))}
    if build_name == "build-tsan":
        for name in chosen.keys() & THREADED_CASES.keys():
            chosen[name].append(THREADED_CASES[name])
    return chosen


def fuzzer_names():
    return sorted(file.removesuffix("_fuzz.cc") for file in os.listdir(os.path.join(ROOT, "test/fuzz"))
                  if file.endswith("_fuzz.cc"))


def targets(build_name, only):
    """What is built in a sanitized build: the programs that are chosen."""
    unit = [os.path.relpath(command[0], os.path.join(ROOT, "build"))
            for command in units("build", build_name, only).values()]
    fuzz = [f"test/fuzz/{name}_fuzz" for name in fuzzer_names() if only in f"fuzz/{name}"]
    return unit + (fuzz if build_name == "build-asan" else [])


def build_command(name, only_targets):
    """`only_targets`: all if empty."""
    return ["env", "TARGETS=" + " ".join(only_targets), os.path.join(ROOT, "tools/build"), os.path.join(ROOT, name),
            *BUILDS[name]]


def build(name, only_targets):
    print(f"== {name}", flush=True)
    return subprocess.run(build_command(name, only_targets), stdin=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def building_ahead(chosen):
    """Compiles `chosen`, build name -> targets, with processor time that nobody else wants (SCHED_IDLE of sched(7)). What
    is not done at the end of the context, or fails, is for build(), which also says so."""
    commands = "; ".join(shlex.join(build_command(name, only_targets)) for name, only_targets in chosen.items())
    alive, held_by_all = os.pipe()
    process = subprocess.Popen(["chrt", "--idle", "0", "bash", "-c", commands], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                               pass_fds=[held_by_all])
    os.close(held_by_all)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # ninja makes again what it has not noted as done
        process.wait()
        os.read(alive, 1)  # ends with the last of them: two ninjas would undo each other's work
        os.close(alive)


def ending(status):
    """How a program ended that did not end well; "" if it did. `status` as subprocess has it."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"ended with status {status}" if status > 0 else ""


def run_program(build_name, command, seconds):
    """(exit status or None after `seconds`, output): what it printed, then what its sanitizer or an assertion says, then
    how it ended, so that the end of the output tells why."""
    try:
        done = subprocess.run(command, timeout=seconds, stdin=subprocess.DEVNULL, capture_output=True,
                              env={**os.environ, **SANITIZERS},
                              cwd=os.path.join(ROOT, build_name))  # what meson's paths are relative to
        code, said = done.returncode, [done.stdout, done.stderr, ending(done.returncode).encode()]
    except subprocess.TimeoutExpired as late:
        code, said = None, [late.stdout or b"", late.stderr or b"", f"no end after {seconds} s".encode()]
    return code, "\n".join(text for each in said if (text := each.decode(errors="replace").strip()))


def run_unit(build_name, only, tally, timeout):
    def run(command):
        started = time.monotonic()
        if is_script(command):
            code, output = run_program(build_name, command, timeout)
            outcomes = counts("passed" if code == 0 else "failed")
        else:
            outcomes, output = run_catch(build_name, command, timeout)
        return outcomes, time.monotonic() - started, output

    chosen = units(build_name, build_name, only)
    with concurrent.futures.ThreadPoolExecutor(1 if build_name == "build" else SANITIZED_AT_ONCE) as pool:
        for name, (outcomes, took, output) in zip(chosen, pool.map(run, chosen.values())):
            label = unit_label(name, build_name)
            tally.add(label.replace(f"/{name}", ""), label, outcomes, took, output)


def run_catch(build_name, command, timeout):
    """(outcomes of its cases, output) of a Catch2 program."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        reporters = ["-r", "compact", "-r", f"junit::out={report.name}"]
        code, output = run_program(build_name, [*command, *reporters], timeout)
        outcomes, failures = catch_outcomes(report.name)
    if code != 0 and not outcomes["failed"] or not outcomes:
        outcomes["failed"] += 1  # it died, or ran nothing
    return outcomes, output + failures  # failures last, so that what is shown has them: logs may be long


def catch_outcomes(path):
    """How many cases ended how, and what the failed ones say."""
    outcomes, failures = collections.Counter(), ""
    with contextlib.suppress(xml.ParseError):  # the program died before it could write the report
        for case in xml.parse(path).iter("testcase"):
            wrong = case.findall("failure") + case.findall("error")
            failures += "".join(f"\n{case.get('name')}: {element.get('message')}\n{element.text}" for element in wrong)
            bad = bool(wrong)
            outcomes["failed" if bad else "skipped" if case.find("skipped") is not None else "passed"] += 1
    return outcomes, failures


def run_fuzzers(build_name, only, tally, seconds):
    def fuzz(command):
        started = time.monotonic()
        code, output = run_program(build_name, [*command, f"-max_total_time={seconds}"], seconds + FUZZ_END_SECONDS)
        return code, output, time.monotonic() - started

    chosen = {f"fuzz/{name}": command for name, command in programs(build_name, "fuzz").items() if only in f"fuzz/{name}"}
    with concurrent.futures.ThreadPoolExecutor(FUZZERS_AT_ONCE) as pool:
        for label, (code, output, took) in zip(chosen, pool.map(fuzz, chosen.values())):
            tally.add("fuzz", label, counts("passed" if code == 0 else "failed"), took, output)


# ---- all of it ----

def list_names(only):
    unit = programs("build", "unit")
    if not unit:
        print("test: the names of unit tests are known after a build (tools/build)", file=sys.stderr)
    names = [f"unit/{name}" for name in unit] + [f"fuzz/{name}" for name in fuzzer_names()]
    names += [name for _, name, _ in scripts()]
    print("\n".join(name for name in names if only in name))


def run_build(name, only_targets, args, tally):
    """Builds `name` and runs its programs. Whether it did build."""
    if not build(name, only_targets):
        tally.add("builds", name, counts("failed"), 0, "does not build")
        return False
    run_unit(name, args.only, tally, args.timeout)
    if name == "build-asan":
        run_fuzzers(name, args.only, tally, args.fuzz_seconds)
    return True


def run_all(args, tally):
    if not run_build("build", [], args, tally):
        return
    sanitized = {} if args.no_sanitizers else {
        name: chosen for name in BUILDS if name != "build" and (chosen := targets(name, args.only))}
    with building_ahead(sanitized):
        chosen = [script for script in scripts() if args.only in script[1]]
        for group, name, outcome, seconds, output in ScriptRunner(args.timeout).run_all(chosen):
            tally.add(group, name, counts(outcome), seconds, output)
    for name, chosen in sanitized.items():
        run_build(name, chosen, args, tally)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="test", description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=argparse.SUPPRESS)
    parser.add_argument("--no-sanitizers", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--long", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--fuzz-seconds", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.fuzz_seconds = args.fuzz_seconds or (LONG_FUZZ_SECONDS if args.long else 60)
    args.timeout = args.timeout or (LONG_TIMEOUT if args.long else 600)
    return args


def main():
    args = parse_arguments()
    if args.list:
        return list_names(args.only)
    if os.geteuid() != 0:
        sys.exit("test: needs root: it mounts file systems")
    if args.long:
        os.environ.update(LONG_FORMS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tally = Tally()
    run_all(args, tally)
    print(tally.summary())
    sys.exit(1 if tally.failed or not tally.total("passed") else 0)


if __name__ == "__main__":
    main()
