#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The files that pages of docs name exist: targets of links with their headings, and paths in backquotes, from the top of
# the tree or (modules of generated code) from kernels/jit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

failed=0
complain() { echo "$1: $2"; failed=1; }

# Headings of a page as links name them.
anchors() { sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }

# One entry of the list of a path in backquotes: a file, a folder or a pattern of either.
exists() { compgen -G "$1" >/dev/null || compgen -G "kernels/jit/$1" >/dev/null; }

for page in README.md docs/*.md docs/generated/*.md; do
  folder=$(dirname "$page")
  while read -r link; do
    file=${link%%#*} heading=
    [[ $link == *#* ]] && heading=${link#*#}
    target=$page
    [ -z "$file" ] || target=$folder/$file
    if [ ! -e "$target" ]; then complain "$page" "links to $link, which is not there"
    elif [ -n "$heading" ] && ! anchors "$target" | grep -qxF -- "$heading"; then
      complain "$page" "links to $link, a heading that is not there"
    fi
  done < <(sed '/^```/,/^```/d' "$page" | grep -oP '\]\(\K[^) ]+(?=\))' | grep -vE '^[a-z]+:' || true)
  while read -r path; do
    exists "$path" || complain "$page" "names \`$path\`, which is not there"
  done < <(sed '/^```/,/^```/d' "$page" |
    grep -oP '`\K(\.ci|cmake|docs|include|kernels|passes|src|tests|code|flat|rows|taps|pool|resample)/[A-Za-z0-9_./*-]+(?=`)' || true)
done
exit $failed
