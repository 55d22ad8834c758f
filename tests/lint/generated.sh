#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/generated is what the tables say today. PARTITA_BUILD_DIR: where the command is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PARTITA_BUILD_DIR:-build}/partita" docs "$fresh"
diff -r docs/generated "$fresh" || { echo 'docs/generated is out of date: ./dev docs writes it anew'; exit 1; }
