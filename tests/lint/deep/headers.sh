#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles on its own, the public ones without any folder of ours but include/. A header whose source of the
# same name includes it first is proved by the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

database=${PARTITA_BUILD_DIR:-build}/compile_commands.json
# The folders of foreign headers, as the build found them.
foreign=$(grep -o -- '-isystem [^ "]*' "$database" | sort -u | tr '\n' ' ' || true)
export foreign

check() {
  local header=$1 options="-I include -I . $foreign -fopenmp -DPARTITA_JIT=1"
  case $header in
    include/partita/compat/onnxruntime/* | src/compat/onnxruntime/*) return 0 ;;   # needs ONNX Runtime's own headers
    include/*) options='-I include' ;;
    *)
      if [ -f "${header%.*}.cpp" ] && [ "$(grep -m1 '^#include' "${header%.*}.cpp")" = "#include \"$header\"" ]; then return 0; fi ;;
  esac
  # shellcheck disable=SC2086
  ${CXX:-g++} -std=c++20 -x c++ -fsyntax-only -Wall -Wextra -Werror $options - <<<"#include \"$PWD/$header\"" ||
    { echo "$header does not compile on its own"; return 1; }
}
export -f check

find include src passes kernels \( -name '*.hpp' -o -name '*.h' \) -print0 | sort -z |
  xargs -0 -P "$(nproc)" -I{} bash -c 'check {}'
