# meson install puts everything where a distribution would, and the units are right.
. "$ROOT/test/cluster/lib.sh"
command -v meson >/dev/null || skip "there is no meson"
export CC=${CC:-clang-19} CXX=${CXX:-clang++-19}
meson setup "$WORK/build" "$ROOT" --prefix=/usr --sysconfdir=/etc -Dtests=false >"$WORK/setup" || fail "$(tail -n 20 "$WORK/setup")"
# What is built is the build's that is tested: only what is installed where is asked here.
meson introspect --installed "$WORK/build" >"$WORK/installed.json"
python3 - "$WORK/installed.json" "$WORK/build" <<'PYTHON'
import json, os, sys
places = set(json.load(open(sys.argv[1])).values())
source = os.environ["ROOT"]
wanted = """
/usr/sbin/trainfs-mds /usr/sbin/trainfs-oss /usr/sbin/trainfs-client /usr/sbin/mkfs.trainfs /usr/bin/tfs
/usr/bin/trainfs-minicluster /sbin/mount.trainfs /usr/lib/systemd/system/trainfs-mds@.service
/usr/lib/systemd/system/trainfs-oss@.service /etc/trainfs/mds.toml.example /etc/trainfs/oss.toml.example
/usr/share/bash-completion/completions/tfs /usr/share/zsh/vendor-completions/_tfs /sbin/mount.fuse.trainfs
/usr/share/doc/trainfs/README.md /usr/share/doc/trainfs/LICENSE /usr/share/doc/trainfs/docs""".split()
wanted += [f"/usr/share/man/man{page[-1]}/{page}" for page in os.listdir(f"{source}/man") if page[-1].isdigit()]
assert {page[-1] for page in wanted if "/man/" in page} == set("1578"), wanted
missing = [place for place in wanted if place not in places]
assert not missing, f"not installed: {missing}"
PYTHON

# The examples, with nothing but what is commented out turned on, and the units.
for each in mds oss; do
  sed 's/^#\([a-z-]* = \)/\1/' "$WORK/build/systemd/$each.toml.example" >"$WORK/$each.toml"
  grep -q '^metrics-listen' "$WORK/$each.toml" || fail "$(cat "$WORK/$each.toml")"
  expect "$WORK/$each.toml is right" "$build/src/$each/trainfs-$each" "--config=$WORK/$each.toml" --check-config
done
command -v systemd-analyze >/dev/null || skip "there is no systemd-analyze: the units are not verified"
mkdir "$WORK/units"
for each in mds oss; do
  sed "s|/usr/sbin/trainfs-$each|$build/src/$each/trainfs-$each|" "$WORK/build/systemd/trainfs-$each@.service" \
    >"$WORK/units/trainfs-$each@test.service"
  said=$(systemd-analyze verify --man=no "$WORK/units/trainfs-$each@test.service" 2>&1 | grep "trainfs-$each" || true)
  [ -z "$said" ] || fail "$said"
done
