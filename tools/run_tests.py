"""Installs what is missing, builds, runs every test; the last line is "N passed, N failed".

  test                   all of it (about 20 minutes on two cores the first time)
  test --only PATTERN    only tests whose name contains PATTERN, e.g. --only unit/, --only cluster/kill
  test --no-sanitizers   leave out the builds under address, undefined and thread sanitizers
  test --list            names only

Unit tests are the Catch2 programs of the meson suite `unit`; cluster tests are test/cluster/*.sh with real
daemons and mounts; client tests are test/clients/*.sh with real applications. A script ends with 0 (passed),
77 (skipped: something it needs cannot be had here) or anything else (failed), and has --timeout seconds.
A random test that fails prints the seed that replays it: TRAINFS_SEED=... tools/test --only NAME.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
DOWN_SECONDS = 300  # for a cluster that a test left up
# Name of a build -> meson options. Sanitized builds run the Catch2 programs only.
BUILDS = {
    "build": [],
    "build-asan": ["-Db_sanitize=address,undefined", "-Db_lundef=false"],
    "build-tsan": ["-Db_sanitize=thread", "-Db_lundef=false"],
}
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:suppressions={ROOT}/test/tsan-suppressions.txt",
    "LSAN_OPTIONS": f"suppressions={ROOT}/test/lsan-suppressions.txt",
}


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, name, outcome, seconds, detail=""):
        if outcome == "passed":
            self.passed += 1
        else:
            (self.failed if outcome == "failed" else self.skipped).append(name)
        print(f"{outcome:8}{name}  ({seconds:.1f} s)", flush=True)
        if detail:
            print("    " + detail.strip().replace("\n", "\n    "), flush=True)


def build(name):
    print(f"== {name}", flush=True)
    targets = "" if name == "build" else " ".join(unit_targets())
    done = subprocess.run([os.path.join(ROOT, "tools/build"), os.path.join(ROOT, name), *BUILDS[name]],
                          env={**os.environ, "TARGETS": targets}, stdin=subprocess.DEVNULL)
    return done.returncode == 0


def unit_programs(build_name):
    """Commands of the suite `unit`, by name."""
    text = subprocess.run(["meson", "introspect", "--tests", os.path.join(ROOT, build_name)],
                          capture_output=True, text=True, check=True).stdout
    return {test["name"]: test["cmd"] for test in json.loads(text) if "unit" in " ".join(test["suite"])
            and (build_name == "build" or not is_script(test["cmd"]))}


def is_script(command):
    return any(word.endswith(".sh") for word in command)


def unit_targets():
    base = os.path.join(ROOT, "build") + "/"
    return [command[0].removeprefix(base) for command in unit_programs("build").values() if not is_script(command)]


def run_unit(build_name, only, tally, timeout):
    for name, command in unit_programs(build_name).items():
        label = f"unit/{name}" if build_name == "build" else f"unit/{name} ({build_name.removeprefix('build-')})"
        if only not in label:
            continue
        script = is_script(command)
        with tempfile.NamedTemporaryFile(suffix=".xml") as report:
            started = time.monotonic()
            try:
                arguments = [] if script else ["-r", "compact", "-r", f"junit::out={report.name}"]
                done = subprocess.run([*command, *arguments], timeout=timeout,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                      env={**os.environ, **SANITIZER_ENVIRONMENT},
                                      cwd=os.path.join(ROOT, build_name))  # what meson's paths are relative to
                code, output = done.returncode, done.stdout + done.stderr
            except subprocess.TimeoutExpired as late:
                code, output = None, f"no end after {timeout} s\n" + (late.stdout or b"").decode(errors="replace")
            seconds = time.monotonic() - started
            # A script of the suite is one test; a Catch2 program reports its cases.
            cases = [(name, code == 0)] if script else catch_cases(report.name)
        failed = [case for case, good in cases if not good]
        if code != 0 or failed or not cases:
            tally.passed += len(cases) - len(failed)
            tally.add(label, "failed", seconds, "\n".join(failed + output.splitlines()[-60:]))
        else:
            tally.passed += len(cases) - 1
            tally.add(label, "passed", seconds, f"{len(cases)} test cases")


def catch_cases(path):
    try:
        tree = xml.parse(path)
    except xml.ParseError:  # the program died before it could write the report
        return []
    return [(case.get("name"), case.find("failure") is None and case.find("error") is None)
            for case in tree.iter("testcase")]


def scripts():
    for folder in ("cluster", "clients"):
        for file in sorted(os.listdir(os.path.join(ROOT, "test", folder))):
            if file.endswith(".sh") and file != "lib.sh":
                yield f"{folder}/{file.removesuffix('.sh')}", os.path.join(ROOT, "test", folder, file)


def run_script(name, path, tally, timeout):
    work = tempfile.mkdtemp(prefix="trainfs-test-", dir="/var/tmp")
    started = time.monotonic()
    with open(os.path.join(work, "output"), "w+", errors="replace") as output:
        process = subprocess.Popen(["bash", path], cwd=work, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, "WORK": work, "ROOT": ROOT})
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 15)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
            code = None
        output.seek(0)
        text = output.read()
        try:
            subprocess.run([os.path.join(ROOT, "tools/minicluster"), "down", os.path.join(work, "cluster")],
                           capture_output=True, timeout=DOWN_SECONDS)
        except subprocess.TimeoutExpired:
            code, text = 1, text + f"\nits cluster was not down within {DOWN_SECONDS} s"
    outcome = {0: "passed", 77: "skipped"}.get(code, "failed")
    if code is None:
        text += f"\nno end after {timeout} s"
    tally.add(name, outcome, time.monotonic() - started,
              "\n".join(text.splitlines()[-40:]) if outcome != "passed" else "")
    if outcome == "failed":
        print(f"    left for you to look at: {work}", flush=True)
    else:
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="test", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN", help=argparse.SUPPRESS)
    parser.add_argument("--no-sanitizers", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=int, default=600, metavar="S", help="seconds that one test may take (600)")
    args = parser.parse_args()
    chosen = [(name, path) for name, path in scripts() if args.only in name]
    if args.list:
        print("\n".join(name for name, _ in chosen))
        return
    if os.geteuid() != 0:
        sys.exit("test: needs root: it mounts file systems")

    tally = Tally()
    for name in BUILDS:
        if name != "build" and (args.no_sanitizers or (args.only and "unit" not in args.only)):
            continue
        if not build(name):
            tally.add(name, "failed", 0, "does not build")
            if name == "build":
                break
            continue
        run_unit(name, args.only, tally, args.timeout)
        if name == "build":
            for script in chosen:
                run_script(*script, tally, args.timeout)
    for name in tally.failed:
        print(f"failed: {name}")
    skipped = f", {len(tally.skipped)} skipped" if tally.skipped else ""
    print(f"{tally.passed} passed, {len(tally.failed)} failed{skipped}")
    sys.exit(1 if tally.failed or not tally.passed else 0)


if __name__ == "__main__":
    main()
