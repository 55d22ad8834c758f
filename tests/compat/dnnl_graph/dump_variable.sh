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
