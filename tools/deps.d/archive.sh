# shellcheck shell=bash
# Part of tools/deps: the distribution's archive, as this machine reaches it.

# Sets ARCHIVE_URI and ARCHIVE_FILE, apt's own file that names it, from the source that the release itself comes
# from, so that any mirror and either format of that file will do.
find_archive() {
  archive_entry || update_lists # apt knows no suites before it has lists
  archive_entry || die "apt has no source for Debian $(release_codename)"
}

archive_entry() {
  read -r ARCHIVE_URI ARCHIVE_FILE < <(apt-get indextargets --format '$(REPO_URI) $(SOURCESENTRY)' \
    'ORIGIN: Debian' 'LABEL: Debian' "CODENAME: $(release_codename)" 'COMPONENT: main' 'IDENTIFIER: Packages')
}

release_codename() { sed -nE 's/^VERSION_CODENAME="?([a-z]+)"?/\1/p' /etc/os-release; }

add_backports() {
  local key
  find_archive
  key=$(sed -nE 's/^Signed-By:[[:space:]]*(\/[^[:space:]]+).*/\1/Ip; s/^deb .*signed-by=([^] ]+).*/\1/p' \
    "${ARCHIVE_FILE%:*}" | head -n 1) # apt adds the number of the entry
  cat >/etc/apt/sources.list.d/trainfs-backports.sources <<END
Types: deb
URIs: $ARCHIVE_URI
Suites: $(release_codename)-backports
Components: main
${key:+Signed-By: $key}
END
  update_lists
}

# Puts the tarball of a library (libraries.sh) into $WORK: the one of an earlier run, or the archive's, which has one
# pool of files for all its releases.
get_tarball() { # library
  local file=${TARBALL[$1]##*/} directory
  for directory in ${TRAINFS_DEPS_SOURCES:+"$TRAINFS_DEPS_SOURCES"} "$RECORDS"; do
    if sha256sum --check --status <<<"${SHA256[$1]}  $directory/$file" 2>/dev/null; then
      cp "$directory/$file" "$WORK/"
      return
    fi
  done
  find_archive
  step "fetching $file" fetch "${ARCHIVE_URI%/}/pool/main/${TARBALL[$1]}" "$WORK/$file" "SHA256:${SHA256[$1]}"
}

fetch() { # uri file hash
  /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$@" && return
  say "Put a file ${2##*/} with $3 into a directory and name that in TRAINFS_DEPS_SOURCES:" \
    "once the archive drops it, snapshot.debian.org still has it."
  return 1
}
