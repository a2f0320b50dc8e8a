# shellcheck shell=bash
# Part of tools/deps: the libraries that no release has in a usable form. They are built from Debian's own source
# tarballs and share one prefix.

# libfuse over io_uring hangs up to and including 3.18.3 when threads of the file system reply; hence the patch, and
# without it a client refuses io_uring.
# Cap'n Proto: Debian 12 has 0.9, and Debian 13 has 1.1 without coroutines, since the library has them only when it is
# itself compiled as C++20.
readonly LIBRARIES=(libfuse capnproto)
declare -rA VERSION=([libfuse]=3.18.3 [capnproto]=1.1.0)
declare -rA TARBALL=( # below the archive's pool/main/
  [libfuse]=f/fuse3/fuse3_3.18.3.orig.tar.gz
  [capnproto]=c/capnproto/capnproto_1.1.0.orig.tar.gz
)
declare -rA SHA256=(
  [libfuse]=bcd19582c5e30f7fe45dd86a5540e998590aa01903afc7ebcbeea6c8ac5421ee
  [capnproto]=07167580e563f5e821e3b2af1c238c16ec7181612650c5901330fa9a0da50939
)
declare -rA PATCH=([libfuse]=$PARTS/libfuse-3.18.3-uring-submit.patch)
readonly JOBS=${TRAINFS_DEPS_JOBS:-$(nproc)}
readonly RECORDS=$PREFIX/share/trainfs-deps # of each library the tarball, and the stamp of what was built

# What a library is built from, how, and for where: when that changes it is built anew.
stamp() { # library
  { echo "$PREFIX ${SHA256[$1]}" && cat "${PATCH[$1]:-/dev/null}" && declare -f "build_$1" unpack; } | sha256sum
}

is_built() { # library
  [[ -f $RECORDS/$1.stamp && $(<"$RECORDS/$1.stamp") == "$(stamp "$1")" ]]
}

missing_libraries() {
  local name
  for name in "${LIBRARIES[@]}"; do
    is_built "$name" || echo "$name ${VERSION[$name]} in $PREFIX"
  done
}

report_libraries() {
  local name
  for name in "${LIBRARIES[@]}"; do
    report_line "$name" "${VERSION[$name]}" "built into $PREFIX"
  done
}

build_libraries() {
  local name missing
  mapfile -t missing < <(missing_libraries)
  ((${#missing[@]} > 0)) || return 0
  WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/trainfs-deps.XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  for name in "${missing[@]%% *}"; do
    get_tarball "$name"
    step "building $name" "build_$name"
    step "installing $name into $PREFIX" install_staged "$name"
  done
}

# The stamp goes first and comes last: whatever happens in between, there is none to a half.
install_staged() { # library
  mkdir -p "$RECORDS"
  rm -f "$RECORDS/$1.stamp"
  cp -a --remove-destination "$WORK/stage-$1$PREFIX/." "$PREFIX/"
  cp "$WORK/${TARBALL[$1]##*/}" "$RECORDS/"
  stamp "$1" >"$RECORDS/$1.stamp"
}

# Symbol versions are for shared libraries; a static one would only get names that the linker cannot resolve.
# fusermount3 is the distribution's.
build_libfuse() {
  unpack libfuse
  CC=clang-19 CXX=clang++-19 CFLAGS='' LDFLAGS='' meson setup build \
    --prefix="$PREFIX" --libdir=lib --default-library=static -Db_staticpic=true \
    --buildtype=debugoptimized --wrap-mode=nofallback \
    -Dutils=false -Dexamples=false -Dtests=false -Duseroot=false \
    -Ddisable-libc-symbol-version=true -Denable-io-uring=true
  grep '^#define HAVE_URING' build/fuse_config.h # which meson leaves out without a word when a library is missing
  ninja -C build -j "$JOBS"
  DESTDIR=$WORK/stage-libfuse meson install -C build --no-rebuild
}

# No TLS and no gzip: trainfs uses neither of KJ's. Its own tests are long, and not built.
build_capnproto() {
  unpack capnproto
  ./configure --prefix="$PREFIX" --libdir="$PREFIX/lib" --enable-silent-rules \
    --disable-shared --enable-static --with-pic --without-openssl --without-zlib \
    CC=clang-19 CXX=clang++-19 CFLAGS='-O2 -g' CXXFLAGS='-std=c++20 -O2 -g'
  make -j "$JOBS"
  make install DESTDIR="$WORK/stage-capnproto"
}

# Into a directory of that name, which it enters; with our patch, where there is one.
unpack() { # library
  mkdir "$WORK/$1"
  cd "$WORK/$1"
  tar -xf "$WORK/${TARBALL[$1]##*/}" --strip-components=1 --no-same-owner
  patch -p1 <"${PATCH[$1]:-/dev/null}"
}
