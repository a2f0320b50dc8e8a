# Programs that lean on POSIX: git, SQLite, tar, rsync, and fio with verification.
. "$ROOT/test/cluster/lib.sh"
for program in git sqlite3 tar rsync fio; do command -v $program >/dev/null || skip "there is no $program"; done
start_cluster 4
"$tfs" setstripe -c 4 -S 256K "$mnt"

git clone -q --no-hardlinks "$ROOT" "$mnt/clone" || fail "git clone"
git -C "$mnt/clone" fsck --full 2>"$WORK/fsck" || fail "git fsck: $(cat "$WORK/fsck")"
[ -z "$(git -C "$mnt/clone" status --short)" ] || fail "git status is not clean"

sqlite3 "$mnt/db" "pragma journal_mode=delete; create table t(a integer primary key, b text);
  with recursive n(i) as (select 1 union all select i+1 from n where i < 5000) insert into t select i, hex(randomblob(50)) from n;
  update t set b = 'x' where a % 3 = 0; delete from t where a % 5 = 0; vacuum;" >/dev/null
expect ok sqlite3 "$mnt/db" "pragma integrity_check"
expect 4000 sqlite3 "$mnt/db" "select count(*) from t"

tar -C /usr/share -cf "$mnt/doc.tar" common-licenses perl
mkdir "$mnt/untar" "$WORK/untar"
tar -C "$mnt/untar" -xf "$mnt/doc.tar"
diff -r --no-dereference /usr/share/perl "$mnt/untar/perl" || fail "tar"
rsync -a /usr/share/perl/ "$mnt/rsync/"
expect "" rsync -ani --delete /usr/share/perl/ "$mnt/rsync/"  # the second time there is nothing to do

fio --name=verify --directory="$mnt" --rw=randrw --bsrange=512-200k --bs_unaligned=1 --size=24m --numjobs=3 \
  --verify=xxhash --do_verify=1 --verify_fatal=1 --randrepeat=0 --fallocate=none --serialize_overlap=1 \
  --ioengine=psync --end_fsync=1 >"$WORK/fio" 2>&1 || fail "$(tail -20 "$WORK/fio")"
