// SPDX-License-Identifier: Apache-2.0
// graph: operators, connected by the ids of their tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "partita/op.hpp"
#include "partita/partition.hpp"
#include "partita/status.hpp"

namespace partita {

struct FinalGraph;  // src/ir/finalize.hpp

/// Collects operators, then is finalized and partitioned. Not thread-safe; finalized graphs may be read concurrently.
class graph {
 public:
  explicit graph(EngineKind kind = EngineKind::cpu, FpMath fpmath = FpMath::strict) : kind_(kind), fpmath_(fpmath) {}

  EngineKind engine_kind() const { return kind_; }
  FpMath fpmath_mode() const { return fpmath_; }
  bool fpmath_apply_to_int() const { return apply_to_int_; }
  /// Which lower precision f32 mathematics of the whole graph may use. invalid_graph once finalized. `apply_to_int` is
  /// kept, written to JSON and given back, and changes nothing else: products of integers are computed in integers, and
  /// integers that are dequantized before a product with floating-point numbers take part in its mathematics anyway.
  Status set_fpmath_mode(FpMath mode, bool apply_to_int = false);

  /// Checks the operator against the registry and adds a copy. invalid_graph_op with the reason where it does not fit
  /// (a repeated op id included), invalid_graph once finalized.
  Status add_op(const op& added);
  const std::vector<op>& ops() const { return ops_; }

  /// Connects tensors by id. invalid_graph where two uses of one id disagree, where a tensor has two producers, or
  /// where there is a cycle. A second call does nothing.
  Status finalize();
  bool finalized() const { return final_ != nullptr; }

  /// Groups the operators; each is in exactly one partition; topological order. invalid_graph before finalize.
  Result<std::vector<partition>> get_partitions(Policy policy = Policy::fusion) const;
  /// Null before finalize.
  const FinalGraph* form() const { return final_.get(); }

 private:
  EngineKind kind_;
  FpMath fpmath_;
  bool apply_to_int_ = false;
  std::vector<op> ops_;
  std::unordered_set<uint64_t> ids_;
  std::shared_ptr<const FinalGraph> final_;
};

}  // namespace partita
