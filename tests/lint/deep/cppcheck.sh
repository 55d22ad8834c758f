#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cppcheck over the library and its headers, without the system's headers.
# Left out: shifting negative numbers (defined since C++20), and views of work memory as other numbers than f32, which is
# how the work memory of a kernel is made to be used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

build=${PARTITA_BUILD_DIR:-build}/cppcheck
mkdir -p "$build"
exec cppcheck --quiet -j "$(nproc)" --cppcheck-build-dir="$build" --error-exitcode=1 --std=c++20 --language=c++ \
  --enable=warning,performance,portability --inline-suppr --suppress=missingInclude --suppress=shiftNegativeLHS \
  --suppress=invalidPointerCast -Iinclude -I. -DPARTITA_JIT=1 -DPARTITA_VERSION='"0"' \
  --template='{file}:{line}: {message} [{id}]' include src passes kernels
