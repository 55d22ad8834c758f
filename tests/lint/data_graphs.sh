#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/data holds what tests/data/make_graphs.py writes, nothing more and nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
python3 tests/data/make_graphs.py "$fresh"
diff -r --exclude='*.py' tests/data "$fresh" ||
  { echo 'tests/data is out of date: python3 tests/data/make_graphs.py writes it anew'; exit 1; }
