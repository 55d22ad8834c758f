// SPDX-License-Identifier: Apache-2.0
// Graphs written into the working folder, as oneDNN names them, for ONEDNN_GRAPH_DUMP and dnnl_graph_set_dump_mode.
#pragma once

#include <span>
#include <vector>

#include "partita/graph.hpp"

namespace partita::abi {

/// Bits of the dump mode.
enum class Dump : unsigned { subgraph = 1, graph = 2 };

/// Whether such files are wanted now.
bool dumps(Dump what);

/// graph-<id>.json
void dump_graph(const graph& g, uint64_t id);
/// graph-<id>-partitioning.json: every operator with the attributes partition_id and backend.
void dump_partitioning(const graph& g, uint64_t id, const std::vector<partition>& partitions);
/// graph-<partition id>-<hash of the tensors>.json: the partition's operators with the given tensors and the shapes
/// that follow from them.
void dump_subgraph(const partition& p, std::span<const logical_tensor> in, std::span<const logical_tensor> out);

}  // namespace partita::abi
