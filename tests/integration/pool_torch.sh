#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares poolings with PyTorch: tests/integration/pool_torch.sh [COUNT]. PyTorch is python3's, or that of the Debian
# root in PARTITA_PEER_ROOT (root rights); without either the comparison is skipped. PARTITA_BUILD_DIR: default build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${PARTITA_BUILD_DIR:-$here/../../build}
root=${PARTITA_PEER_ROOT:-}
cases=$(mktemp -d)
trap 'rm -rf "$cases"' EXIT
if python3 -c 'import torch' 2>/dev/null; then
  python3 "$here/pool_torch.py" "$cases" "${1:-400}"
elif [ -n "$root" ] && chroot "$root" python3 -c 'import torch' 2>/dev/null; then
  inside=$(chroot "$root" mktemp -d)
  cp "$here/pool_torch.py" "$root$inside/"
  chroot "$root" python3 "$inside/pool_torch.py" "$inside/cases" "${1:-400}"
  cp "$root$inside"/cases/* "$cases/"
  rm -rf "${root:?}$inside"
else
  echo "skipped: no PyTorch for python3, and PARTITA_PEER_ROOT names no root that has it"
  exit 0
fi
PARTITA_POOL_CASES=$cases "$build/api_tests" --gtest_brief=1 --gtest_filter='pool_peer.*'
