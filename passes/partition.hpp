// SPDX-License-Identifier: Apache-2.0
// Partition: a group of operators with its ports; partition_graph makes them with the patterns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partita/op.hpp"
#include "passes/match.hpp"
#include "src/base/attrs.hpp"
#include "src/ir/finalize.hpp"

namespace partita {

/// Immutable once made; owns copies, so it outlives the graph.
struct Partition {
  uint64_t id = 0;  ///< unique in the process
  std::string pattern;
  std::vector<op> ops;       ///< in topological order
  std::vector<Attrs> attrs;  ///< of each operator, defaults filled
  bool supported = true;
  std::string reason;                           ///< why not supported
  std::vector<logical_tensor> inputs, outputs;  ///< ports
  EngineKind kind = EngineKind::cpu;
  FpMath fpmath = FpMath::strict;
  bool apply_to_int = false;
  uint64_t content_hash = 0;  ///< of operators and attributes
};

/// A pattern that was tried at an operator and did not take it.
struct PatternNote {
  uint64_t op = 0;  ///< id of the operator where the chain would have started
  std::string_view pattern;
  Refusal refusal;
};

struct PartitionSettings {
  Policy policy = Policy::fusion;
  EngineKind kind = EngineKind::cpu;
  FpMath fpmath = FpMath::strict;
  bool apply_to_int = false;
};

/// Every operator in exactly one partition, partitions in topological order (each stands at its last operator).
/// `notes` (or null) collects the refusals of patterns that matched at least one operator.
std::vector<Partition> partition_graph(const FinalGraph& graph, const PartitionSettings& settings,
                                       std::vector<PatternNote>* notes = nullptr);

/// A number that neither a partition nor anything else of this process has.
uint64_t next_id();

/// A partition of all operators of a graph, whatever the patterns say. Used for single operators and by tests.
Partition whole_partition(const FinalGraph& graph, const PartitionSettings& settings);

}  // namespace partita
