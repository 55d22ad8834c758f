#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is generated for AVX2 has no instruction of AVX-512, which a machine that tests with PARTITA_MAX_ISA=avx2 may well
# have: every kernel that the tests of kernels make is disassembled. PARTITA_BUILD_DIR: where kernels_tests is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tests=$(realpath "${PARTITA_BUILD_DIR:-build}")/kernels_tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PARTITA_CODE=1 PARTITA_MAX_ISA=avx2 "$tests" --gtest_brief=1 >log 2>&1 || { tail -20 log; exit 1; }
if [ "$(echo code-*.s)" = 'code-*.s' ]; then echo 'no code is generated here: skipped'; exit 0; fi
as -o code.o code-*.s
# EVEX begins with 62; instructions on masks (VEX) have names with k.
objdump -d --insn-width=16 code.o | awk '
  /^[0-9a-f]+ </ { kernel = $0; ++kernels; next }
  $2 == "62" || /\tk[a-z]+ / { print kernel; print; failed = 1 }
  END { print kernels + 0, "kernels"; exit failed }' >found || { head -40 found; exit 1; }
cat found
