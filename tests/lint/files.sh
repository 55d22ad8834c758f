#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where files are, how they are named and how long they may be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

top='CMakeLists\.txt|CMakePresets\.json|README\.md|CHANGELOG\.md|LICENSE|dev'
top+='|\.ci|\.clang-format|\.clang-tidy|\.gitignore|cmake|include|src|passes|kernels|tests|docs'
max_lines=600   # 400 is the aim
failed=0

# complain_about WHAT: each line of the input is one offence
complain_about() {
  local line
  while read -r line; do
    echo "$line: $1"
    failed=1
  done
}

files=$(find . -mindepth 1 \( -path './.git' -o -path './build*' -o -path './.cache' \) -prune -o -type f -printf '%P\n' | sort)
sources=$(grep -E '\.(cpp|hpp|h|sh|py|cmake|cmake\.in)$|(^|/)CMakeLists\.txt$|^dev$|^\.ci/run$' <<<"$files")

complain_about 'not a top-level name that DESIGN knows; see docs/architecture.md' < <(
  cut -d/ -f1 <<<"$files" | sort -u | grep -vxE "$top")

complain_about 'name it by its subject' < <(
  grep -E '(^|[/_])(utils?|helpers?|common|misc|manager|impl)\.[a-z]+$' <<<"$sources")

complain_about "longer than $max_lines lines; split it by subject" < <(
  grep -E '\.(cpp|hpp|h)$' <<<"$sources" | grep -v '^tests/' | xargs wc -l |
    awk -v max=$max_lines '$2 != "total" && $1 > max { print $2 " (" $1 ")" }')

complain_about 'the first lines lack "SPDX-License-Identifier: Apache-2.0"' < <(
  xargs -a <(echo "$sources") awk '
    FNR == 1 && name { if (!found) print name; }
    FNR == 1 { name = FILENAME; found = 0 }
    FNR <= 2 && /SPDX-License-Identifier: Apache-2\.0/ { found = 1 }
    END { if (name && !found) print name }')

complain_about 'an unfinished place; finish it or file it' < <(
  xargs -a <(echo "$sources") grep -nE '\b(TO''DO|FIX''ME|X''XX)\b' | cut -d: -f1,2)

exit $failed
