# shellcheck shell=bash
# Part of tools/deps: the distribution's packages.

readonly BUILD_PACKAGES=(
  clang-19 lld-19 llvm-19 libclang-rt-19-dev clang-format-19
  meson ninja-build ccache pkg-config make patch python3
  liburing-dev libnuma-dev liblmdb-dev libxxhash-dev libsodium-dev
  libcli11-dev libtomlplusplus-dev libspdlog-dev libfmt-dev nlohmann-json3-dev prometheus-cpp-dev
  catch2
)
readonly RUN_AND_TEST_PACKAGES=(
  fuse3 systemd attr acl git rsync tar sqlite3 fio procps gcc libc6-dev groff-base
  python3-numpy python3-torch python3-tqdm python3-h5py python3-zarr python3-lmdb
)
# Of these a release itself may have too old a version; its backports then have a new enough one.
declare -rA MINIMUM=([catch2]=3.4)

WANTED=("${BUILD_PACKAGES[@]}" "${RUN_AND_TEST_PACKAGES[@]}") # what this run wants
declare -A INSTALLED=()                                       # package -> version

look_at_packages() {
  local name status version
  INSTALLED=()
  while read -r name status version; do
    [[ $status != installed ]] || INSTALLED[$name]=$version
  done < <(dpkg-query -W -f '${Package} ${db:Status-Status} ${Version}\n')
}

new_enough() { # version package
  [[ -n $1 ]] && dpkg --compare-versions "$1" ge "${MINIMUM[$2]:-0}"
}

missing_packages() {
  local name
  for name in "${WANTED[@]}"; do
    new_enough "${INSTALLED[$name]:-}" "$name" || echo "$name${MINIMUM[$name]:+ >= ${MINIMUM[$name]}}"
  done
}

report_packages() {
  local name
  for name in "${WANTED[@]}"; do
    report_line "$name" "${INSTALLED[$name]}" distribution
  done
}

install_packages() {
  local missing name names=()
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} > 0)) || return 0
  ((EUID == 0)) || die "packages have to be installed: run it as root (--check tells which)"
  update_lists # old ones name packages that are gone from the archive
  for name in "${missing[@]%% *}"; do
    if [[ -n ${MINIMUM[$name]:-} ]]; then
      [[ -n $(offered_version "$name") ]] || add_backports
      [[ -n $(offered_version "$name") ]] || die "no $name >= ${MINIMUM[$name]} in this release or its backports"
      name+==$(offered_version "$name")
    fi
    names+=("$name")
  done
  step "installing packages (${#names[@]})" run_apt install --no-install-recommends "${names[@]}"
  look_at_packages
}

# The newest on offer in any suite that apt knows, if that is new enough.
offered_version() { # package
  local version
  version=$(apt-cache madison "$1" | awk 'NR == 1 { print $3 }')
  ! new_enough "$version" "$1" || echo "$version"
}

update_lists() { step "updating the package lists" run_apt update; }

run_apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600 -o APT::Status-Fd=1 "$@"
}
