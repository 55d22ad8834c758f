#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A page of docs that names an example (<!-- example: FILE -->) shows docs/examples/FILE as it is. --write puts it there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

failed=0
for page in $(grep -lE '^<!-- example: [a-z0-9_.]+ -->$' docs/*.md); do
  # Everything but the block behind the mark, with the file in its place.
  fresh=$(awk '
    /^<!-- example: / {
      print; file = "docs/examples/" $3; language = file ~ /py$/ ? "python" : "cpp"
      print ""; print "```" language
      while ((getline line < file) > 0) print line
      print "```"
      skipping = 1; next
    }
    skipping && /^```/ { if (++fences == 2) { skipping = fences = 0 }; next }
    skipping && fences == 0 && NF > 0 { skipping = 0; print "" }
    !skipping { print }' "$page")
  if [ "${1:-}" = --write ]; then printf '%s\n' "$fresh" >"$page"; continue; fi
  printf '%s\n' "$fresh" | diff -q - "$page" >/dev/null ||
    { echo "$page does not show its example as it is: tests/lint/examples.sh --write"; failed=1; }
done
exit $failed
