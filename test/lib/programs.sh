# Programs that lean on POSIX, each a function that works in directory $1 on the mount and checks what it did.
# Sourced by tests; or: bash programs.sh PROGRAM DIRECTORY [SCALE], for test/long/kill_rounds.py. SCALE (1): how much.
: "${ROOT:?}"
programs=(git sqlite build tar rsync fio)
scale=${scale:-1}

wrong() { echo "FAILED: $*" >&2; exit 1; }

programs_missing() { # prints what is not installed
  local name
  for name in git sqlite3 make gcc tar rsync fio; do command -v $name >/dev/null || echo $name; done
}

run_git() {
  git clone -q --no-hardlinks "$ROOT" "$1/clone" || wrong "git clone"
  git -C "$1/clone" fsck --full --no-dangling >"$1/fsck" 2>&1 || wrong "git fsck: $(cat "$1/fsck")"
  [ -z "$(git -C "$1/clone" status --short)" ] || wrong "git status is not clean"
  echo change >"$1/clone/change"
  git -C "$1/clone" add change
  git -C "$1/clone" -c user.name=test -c user.email=test@example.org commit -qm change || wrong "git commit"
  git -C "$1/clone" fsck --full --no-dangling >"$1/fsck" 2>&1 || wrong "git fsck after a commit: $(cat "$1/fsck")"
}

# Four processes write to one database. Who has a row committed says so in the file $acks, if that is set.
run_sqlite() {
  local db=$1/db number writers=()
  sqlite3 "$db" "pragma journal_mode=delete; create table t(writer, i, b);" >/dev/null || wrong "sqlite"
  for number in 1 2 3 4; do
    (for ((i = 0; i < 20 * scale; ++i)); do
      sqlite3 -cmd ".timeout 60000" "$db" "begin immediate; insert into t values ($number, $i, hex(randomblob(500)));
        update t set b = 'x' where i = $i - 5; commit;" || exit 1
      [ -z "${acks:-}" ] || echo "$number $i" >>"$acks"
    done) & writers+=($!)
  done
  for number in "${writers[@]}"; do wait "$number" || wrong "a writer of the database failed"; done
  [ "$(sqlite3 "$db" "pragma integrity_check")" = ok ] || wrong "sqlite: integrity"
  [ "$(sqlite3 "$db" "select count(*) from t")" = $((80 * scale)) ] || wrong "sqlite: rows are missing"
}

run_build() { # a C project of some files
  local i files=$((60 * scale)) sum=0
  for ((i = 0; i < files; ++i)); do
    printf '#include "all.h"\nint f%d(int x) { return x + %d; }\n' "$i" "$i" >"$1/f$i.c"
    echo "int f$i(int);"
    sum=$((sum + i))
  done >"$1/all.h"
  {
    printf '#include <stdio.h>\n#include "all.h"\nint main(void) { int s = 0;\n'
    for ((i = 0; i < files; ++i)); do echo "s += f$i(0);"; done
    printf 'printf("%%d\\n", s); return 0; }\n'
  } >"$1/main.c"
  printf 'sources := $(wildcard *.c)\nprogram: $(sources:.c=.o)\n\tgcc -o $@ $^\n%%.o: %%.c all.h\n\tgcc -c -o $@ $<\n' >"$1/Makefile"
  make -s -j4 -C "$1" program >"$1/log" 2>&1 || wrong "make: $(tail -5 "$1/log")"
  [ "$("$1/program")" = $sum ] || wrong "the program that was built says $("$1/program"), not $sum"
  [[ $(make -C "$1" program) == *"up to date"* ]] || wrong "make would build it again"
}

sources=("$ROOT/src" /usr/share/common-licenses)  # the latter has links

run_tar() { # both ways
  tar -cPf "$1/packed.tar" "${sources[@]}" || wrong "tar into the mount"
  mkdir "$1/untar"
  tar -C "$1/untar" -xf "$1/packed.tar" 2>/dev/null || wrong "tar within the mount"
  tar -C "$1/untar" -cf - . | tar -dC "$1/untar" || wrong "what tar packs is not what is there"
  for source in "${sources[@]}"; do
    diff -r --no-dereference "$source" "$1/untar$source" || wrong "what tar unpacked differs"
  done
}

run_rsync() { # the second time there is nothing to do
  rsync -a "${sources[@]}" "$1/copy/" || wrong "rsync"
  [ -z "$(rsync -ani --delete "${sources[@]}" "$1/copy/")" ] || wrong "rsync would transfer again"
  [ -z "$(rsync -acni --delete "${sources[@]}" "$1/copy/")" ] || wrong "rsync finds other contents"
}

run_fio() { # random sizes that overlap, several jobs
  local kind
  for kind in "randrw --norandommap=0" "randwrite --norandommap=1"; do
    fio --name=verify --directory="$1" --rw=$kind --bsrange=512-200k --bs_unaligned=1 --size=$((8 * scale))m \
      --numjobs=3 --verify=xxhash --do_verify=1 --verify_fatal=1 --randrepeat=0 --fallocate=none \
      --serialize_overlap=1 --ioengine=psync --end_fsync=1 >"$1/fio.log" 2>&1 || wrong "fio: $(cat "$1/fio.log")"
    rm "$1"/verify.*
  done
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  scale=${3:-1}
  "run_$1" "$2"
fi
