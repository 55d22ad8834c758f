#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the words of ONEDNN_GRAPH_DUMP make a client write. Usage: dump_variable.sh CLIENT (a graph of one partition,
# compiled once).
set -euo pipefail
client=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# expect COUNT VARIABLE=WORDS: so many files are written
expect() {
  rm -f ./*
  env "$2" "$client" >/dev/null
  local found=(graph-*.json)
  [ -e "${found[0]}" ] || found=()
  [ ${#found[@]} = "$1" ] || { echo "$2 writes ${#found[@]} files (${found[*]}), not $1"; exit 1; }
}

expect 0 ONEDNN_GRAPH_DUMP=
expect 2 ONEDNN_GRAPH_DUMP=graph
expect 1 ONEDNN_GRAPH_DUMP=subgraph
expect 3 ONEDNN_GRAPH_DUMP=Graph,SUBGRAPH
expect 0 ONEDNN_GRAPH_DUMP=graph,nonsense
expect 1 ONEDNN_GRAPH_DUMP=nonsense,subgraph
expect 2 DNNL_GRAPH_DUMP=graph

told=$(ONEDNN_GRAPH_DUMP=graph,nonsense "$client" 2>&1 >/dev/null)
[ "$told" = "partita: ONEDNN_GRAPH_DUMP takes graph, subgraph, or both with a comma between; \`nonsense\` is ignored" ] ||
  { echo "nonsense is not told: $told"; exit 1; }

# Where nothing can be written there is one warning, the client's results are as always, and nothing half-written is left.
# expect_warning BLOCKS FOLDER: the client runs in the folder, and may write files of so many blocks
expect_warning() {
  local told
  rm -f ./* ./.graph-*
  told=$( (ulimit -f "$1" && cd "$2" && ONEDNN_GRAPH_DUMP=graph,subgraph "$client" 2>&1 >/dev/null) ) ||
    { echo "the client fails where nothing can be written: $told"; exit 1; }
  [ "$(wc -l <<<"$told")" = 1 ] && [[ $told == "partita: "*"cannot be written"* ]] ||
    { echo "not one warning: $told"; exit 1; }
  [ -z "$(ls -A)" ] || { echo "left behind: $(ls -A)"; exit 1; }
}

expect_warning 0 .
expect_warning unlimited /proc
