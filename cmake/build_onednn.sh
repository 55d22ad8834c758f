#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds oneDNN once per user, for machines whose packages have none that is new enough (Debian 12 has 2.6). The source
# is Debian 13's package, fetched by apt from the machine's own mirror through a throw-away source list.
# Usage: build_onednn.sh [--find]    prints the prefix of the finished build; --find: only if there is one
set -eEuo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-~/.cache}/partita
suite=trixie

# The primitives Partita uses, and Debian's own choice of the micro-kernel API.
options=(
  -DCMAKE_BUILD_TYPE=Release
  "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG"
  -DONEDNN_BUILD_GRAPH=OFF
  -DONEDNN_BUILD_TESTS=OFF
  -DONEDNN_BUILD_EXAMPLES=OFF
  -DONEDNN_CPU_RUNTIME=OMP
  -DONEDNN_GPU_RUNTIME=NONE
  -DONEDNN_EXPERIMENTAL_UKERNEL=ON
  "-DONEDNN_ENABLE_PRIMITIVE=BATCH_NORMALIZATION;BINARY;CONCAT;CONVOLUTION;DECONVOLUTION;ELTWISE;LAYER_NORMALIZATION;MATMUL;POOLING;PRELU;REDUCTION;REORDER;RESAMPLING;SOFTMAX;SUM"
  -DBUILD_GROUP_NORMALIZATION=ON   # the list above does not take this one
)

# A finished build is known by its recipe: another recipe is another folder.
recipe=$({ uname -m; printf '%s\n' "$suite" "${options[@]}"; grep -v '^#' "$here/onednn_trim.cmake"; cat "$here/onednn_cache_size.cpp"; } | sha256sum)
recipe=${recipe:0:12}

say() { printf 'oneDNN: %s\n' "$*" >&2; }
die() {
  if [ -s "${work:-}/log" ]; then tail -n 30 "$work/log" >&2; fi
  say "$*"
  exit 1
}
trap 'die "failed at: $BASH_COMMAND"' ERR

find_finished() { find "$cache" -maxdepth 1 -name "onednn-*-$recipe" 2>/dev/null | sort -V | tail -n 1 | grep .; }

# The machine's Debian mirrors, best first: those that serve its own release, without the security archive.
debian_mirrors() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
  {
    { cat /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } | awk -v RS= -v codename="$codename" '
      { uris = suites = ""; count = split($0, line, "\n")
        for (i = 1; i <= count; i++) {
          if (line[i] ~ /^URIs:/) uris = substr(line[i], 6)
          if (line[i] ~ /^Suites:/) suites = substr(line[i], 8) " "
        }
        if (index(" " suites, " " codename " ") || suites ~ / (old)?stable /) print uris }'
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
      sed -nE "s/^deb +(\[[^]]*\] +)?([^ ]+) +($codename|stable|oldstable) .*/\2/p"
  } | tr -s ' ' '\n' | awk 'NF && !seen[$0]++'
}

# apt with the machine's settings (proxy, certificates), but lists, caches and sources of its own.
private_apt() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" \
    -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root \
    -o Acquire::AllowInsecureRepositories=false -o Acquire::Retries=3 "$@" >>"$work/log" 2>&1
}

fetch_source() {
  mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,download}
  local mirror
  for mirror in $(debian_mirrors); do
    printf '%s\n' 'Types: deb-src' "URIs: $mirror" "Suites: $suite" 'Components: main' \
      'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' >"$work/sources/debian.sources"
    if private_apt -o APT::Update::Error-Mode=any update &&
      (cd "$work/download" && private_apt --only-source --download-only source onednn); then
      dpkg-source -x "$work"/download/*.dsc "$work/source" >>"$work/log" 2>&1
      return
    fi
  done
  die "no Debian mirror of this machine has the source; install oneDNN >= 3.5 and set PARTITA_ONEDNN_ROOT to its prefix"
}

build() {
  cmake -G Ninja -S "$work/source" -B "$work/build" "${options[@]}" -DCMAKE_PROJECT_INCLUDE="$here/onednn_trim.cmake" \
    >>"$work/log" 2>&1
  # In the background, so that a signal reaches this script at once. On a terminal ninja redraws its own line of
  # progress; elsewhere one line every 25 files is enough.
  local run=(ninja -C "$work/build" -j "$(nproc)")
  export NINJA_STATUS='oneDNN: [%f/%t, %es] '
  if [ -t 2 ]; then "${run[@]}" >&2 9>&- &
  else "${run[@]}" > >(exec 9>&-; tee -a "$work/log" | awk 'NR % 25 == 0 { print; fflush() }' >&2 || true) 2>&1 9>&- &
  fi
  compiler=$!
  wait "$compiler" || die "the build failed"
  cmake --install "$work/build" --prefix "$work/prefix" --strip >>"$work/log" 2>&1
}

clean_up() {
  trap '' INT TERM HUP
  if [ -n "${compiler:-}" ] && kill "$compiler" 2>/dev/null; then wait "$compiler" || true; fi
  rm -rf "$work"
}

if find_finished; then exit 0; fi
if [ "${1:-}" = --find ]; then exit 1; fi

for tool in apt-get dpkg-source cmake ninja g++; do
  command -v $tool >/dev/null ||
    die "none >= 3.5 found, and $tool is missing to build one; install oneDNN and set PARTITA_ONEDNN_ROOT to its prefix"
done

mkdir -p "$cache"
exec 9>"$cache/lock"
if ! flock -n 9; then
  say "another run is building it; waiting"
  flock 9
  if find_finished; then exit 0; fi
fi

rm -rf "$cache"/building.*   # what a killed run left behind; ours is the only one now
work=$(mktemp -d "$cache/building.XXXXXX")
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

say "no version >= 3.5 on this machine: building one, once (about $((20 / $(nproc) + 1)) minutes)"
fetch_source
version=$(sed -nE 's/^Version: ([0-9.]+).*/\1/p' "$work"/download/*.dsc | head -n 1)
[[ $version =~ ^3\.([7-9]|[1-9][0-9]) ]] || die "the mirror has version $version; Partita needs 3.7 or a later 3.x"
build
mv "$work/prefix" "$cache/onednn-$version-$recipe"
say "built version $version in $((SECONDS / 60)) min $((SECONDS % 60)) s: $cache/onednn-$version-$recipe"
find_finished
