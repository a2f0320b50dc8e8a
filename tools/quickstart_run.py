"""From nothing to a model trained over trainfs: builds it, starts a cluster on this machine, trains.

  quickstart [--dir DIR] [--mount PATH] [--corpus-mb N] [--steps N]

On Debian 12 or 13, as root: installs what is missing, builds, starts a cluster of 1 MDS and 4 OSTs in DIR
(/var/lib/trainfs-quickstart), mounts it at PATH (/mnt/trainfs), copies in the plain text that this machine's
own packages ship, and trains a small byte-level language model over it with PyTorch. Run again, it keeps what
is there and only trains. `tools/minicluster down DIR` stops it, `rm -r DIR` removes it.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

TOOLS = os.path.dirname(os.path.realpath(__file__))
MIB = 1 << 20
# Where a Debian machine keeps plain text, and how its files end.
SOURCES = [("/usr/share/doc", ("copyright", ".txt", "README", ".md", ".html")),
           ("/usr/share/common-licenses", ("",)), ("/usr/share/perl", (".pm", ".pl", ".pod")),
           ("/usr/lib/python3", (".py", ".txt")), ("/usr/lib/python3.11", (".py", ".txt")),
           ("/usr/lib/python3.13", (".py", ".txt")), ("/usr/include", (".h", ".hpp"))]
LEAST_MIB = 8  # less text than this is no corpus


def step(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"quickstart: {' '.join(command)} failed")


def text_files(limit):
    """(path, bytes) of plain text files of the machine's packages, each file once, up to `limit` bytes in all."""
    total, seen = 0, set()
    for top, endings in SOURCES:
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not name.endswith(endings) or os.path.islink(path):
                    continue
                status = os.stat(path)
                if status.st_size == 0 or (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                yield path, status.st_size
                total += status.st_size
                if total >= limit:
                    return


def copy_corpus(corpus, limit):
    """Copies what is not there yet; a file counts as there when its size is right."""
    from tqdm import tqdm
    files = list(text_files(limit))
    total = sum(size for _, size in files)
    if total < LEAST_MIB * MIB:
        sys.exit(f"quickstart: only {total / MIB:.1f} MiB of plain text below "
                 f"{', '.join(top for top, _ in SOURCES)}: not enough to train on")
    started, copied = time.monotonic(), 0
    with tqdm(total=total, unit="B", unit_scale=True, desc="copying", delay=1, mininterval=1 if sys.stderr.isatty() else 10) as bar:
        for path, size in files:
            target = corpus + path
            if not (os.path.exists(target) and os.path.getsize(target) == size):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(path, target)
                copied += size
            bar.update(size)
    seconds = time.monotonic() - started
    print(f"{len(files)} files, {total / MIB:.1f} MiB of text below {corpus}; copied {copied / MIB:.1f} MiB"
          + (f" at {copied / MIB / seconds:.0f} MiB/s" if copied else ": all of it was there"))


def main():
    parser = argparse.ArgumentParser(prog="quickstart", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default="/var/lib/trainfs-quickstart", help="the cluster's directory")
    parser.add_argument("--mount", default="/mnt/trainfs", metavar="PATH", help="where it is mounted")
    parser.add_argument("--corpus-mb", type=int, default=40, metavar="N", help="text to copy in, in MiB (40)")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="training steps (200)")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("quickstart: run it as root: it installs packages and mounts a file system")
    if args.steps < 10 or args.corpus_mb < LEAST_MIB:
        sys.exit(f"quickstart: --steps takes 10 and more, --corpus-mb {LEAST_MIB} and more")

    step("Installing what is missing, and building")
    run(os.path.join(TOOLS, "build"))
    step("Starting a cluster: 1 MDS, 4 OSTs, mounted at " + args.mount)
    os.makedirs(os.path.dirname(os.path.realpath(args.dir)), exist_ok=True)
    run(os.path.join(TOOLS, "minicluster"), "up", args.dir, "--mount", args.mount)
    step("Copying a text corpus in")
    corpus = os.path.join(args.mount, "corpus")
    os.makedirs(corpus, exist_ok=True)
    # The corpus is striped over all OSTs, as one does for data that many read at once.
    tfs = os.path.join(os.path.dirname(TOOLS), "build/tools/tfs/tfs")
    run(tfs, "setstripe", "-c", "-1", "-S", "1M", corpus)
    copy_corpus(corpus, args.corpus_mb * MIB)
    step("Training a byte-level language model over it")
    run(sys.executable, os.path.join(TOOLS, "quickstart_train.py"), args.mount, "--steps", str(args.steps))
    step("What to try next")
    print(f"""  {tfs} df -h {args.mount}                 how full the targets are
  {tfs} getstripe {args.mount}/corpus.bin  which OSTs hold a file
  tools/minicluster kill {args.dir} ost2           crash an OST while something reads,
  tools/minicluster start {args.dir} ost2          and bring it back
  man -l man/trainfs.7                             how it all fits together
  tools/minicluster down {args.dir}                stop it (the data stays; rm -r removes it)""")


if __name__ == "__main__":
    main()
