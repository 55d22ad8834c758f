#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random graphs of the shapes of real networks give what the references give: tests/integration/random_graphs.sh [COUNT],
# so many of each kind. PARTITA_TEST_SEED gives other graphs; a failing one is kept. PARTITA_BUILD_DIR has the program;
# the default is build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${PARTITA_BUILD_DIR:-$here/../../build}
seed=$((1 + ${PARTITA_TEST_SEED:-0}))
graphs=$(mktemp -d)
for kind in operators chains products; do
  python3 "$here/../data/random_graphs.py" "$graphs/$kind" --kind "$kind" --seed "$seed" --count "${1:-25}" \
    --elements 16384
  echo "random graphs: $kind, seed $seed"
  "$build/partita" run --verify "$graphs/$kind" || { echo "the graphs are in $graphs/$kind"; exit 1; }
done
rm -rf "$graphs"
