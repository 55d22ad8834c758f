#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs and shared libraries of PARTITA_BUILD_DIR are position-independent, have a stack that is not executable, no
# segment that can be written and executed, and tables that are read-only once they are linked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${PARTITA_BUILD_DIR:-build}
failed=0
complain() { echo "$1: $2"; failed=1; }

seen=0
for binary in "$build"/partita "$build"/libpartita*.so; do
  [ -f "$binary" ] || continue
  seen=$((seen + 1))
  segments=$(readelf --wide --program-headers "$binary")
  dynamic=$(readelf --wide --dynamic "$binary")
  grep -q '^Elf file type is DYN' <<<"$segments" || complain "$binary" 'is not position-independent'
  grep -q 'GNU_RELRO' <<<"$segments" || complain "$binary" 'has no read-only relocations'
  grep -Eq 'BIND_NOW|FLAGS_1.* NOW' <<<"$dynamic" || complain "$binary" 'binds functions while it runs'
  grep -Eq 'GNU_STACK .* RW  ' <<<"$segments" || complain "$binary" 'has an executable stack'
  if grep -Eq '^ +LOAD .* RWE ' <<<"$segments"; then complain "$binary" 'has memory that can be written and executed'; fi
done
[ "$seen" -gt 0 ] || complain "$build" 'has no program of ours'
exit $failed
