#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The drop-in library exports the C interface and nothing else, and every function of it is in the list beside this
# script. PARTITA_BUILD_DIR: where the library is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
library=${PARTITA_BUILD_DIR:-build}/libpartita_dnnl_graph.so

nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort | diff "$here/exports.txt" - ||
  { echo "$library exports other symbols (>) than tests/lint/exports.txt lists (<)"; exit 1; }
# A library that keeps its own copy of oneDNN takes no function from another.
if ! readelf -d "$library" | grep -q 'NEEDED.*libdnnl'; then
  ! nm -D --undefined-only "$library" | grep -E ' dnnl_|4dnnl' ||
    { echo "$library wants these symbols of oneDNN from the process"; exit 1; }
fi
