#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each library of exports/<library>.txt exports exactly the symbols that its list names. A list that begins with
# "# optional" is of a library that is built only where its headers are. PARTITA_BUILD_DIR: where the libraries are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${PARTITA_BUILD_DIR:-build}
failed=0
for list in tests/lint/exports/*.txt; do
  name=$(basename "$list" .txt)
  library=$build/lib$name.so
  if [ ! -e "$library" ]; then
    if grep -q '^# optional' "$list"; then continue; fi
    echo "$library: not built"
    failed=1
    continue
  fi
  # Names of symbol versions are absolute symbols, no functions.
  exported=$(nm --dynamic --defined-only --format=posix "$library" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }')
  diff <(grep -v '^#' "$list" | sort) <(sort <<<"$exported") >/dev/null && continue
  echo "$library: < is listed and not exported, > is exported and not listed"
  diff <(grep -v '^#' "$list" | sort) <(sort <<<"$exported") | grep '^[<>]'
  failed=1
done
# A library that keeps its own copy of oneDNN takes no function from another.
library=$build/libpartita_dnnl_graph.so
if ! readelf -d "$library" | grep -q 'NEEDED.*libdnnl' && nm -D --undefined-only "$library" | grep -E ' dnnl_|4dnnl'; then
  echo "$library wants these symbols of oneDNN from the process"
  failed=1
fi
exit $failed
