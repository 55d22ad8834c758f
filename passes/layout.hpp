// SPDX-License-Identifier: Apache-2.0
// How tensors lie in memory whose layout is left open, and what lowering makes of that.
#pragma once

#include <unordered_set>

#include "kernels/problem.hpp"
#include "passes/partition.hpp"
#include "src/ir/subgraph.hpp"

namespace partita {

/// Ids of tensors by what reads them, or reads what operators that keep the axes make of them.
struct TensorReaders {
  /// `inputs`: the values of the partition's inputs, which are settled.
  TensorReaders(const Partition& partition, const Subgraph& inputs);

  std::unordered_set<uint64_t> convolved;  ///< a convolution with windows or groups
  /// A batch norm's gradient, beside a row-major image that comes from outside. It reads both twice, so that copying
  /// the one before takes longer than what a convolution saves that lays the other channels last.
  std::unordered_set<uint64_t> normalized;
};

/// Strides without gaps for result `out` of an operator whose inputs are settled. Convolutions lay their results
/// channels last, for which products are fast; those that multiply matrices where they lie leave them row-major, unless
/// a convolution reads the result. Whoever reads such a tensor keeps its order of axes where the result has the same
/// axes. Row-major otherwise, and where the result is normalized and no convolution reads it.
Dims open_strides(const Subgraph& graph, const SubOp& op, size_t out, const TensorReaders& readers);

/// Strides without gaps for a tensor of `dims` whose axes lie in the order that those of `like` have.
Dims strides_in_order_of(const logical_tensor& like, const Dims& dims);

/// The same problem with channels as the last axis (data_format NXC) where its main tensor lies so, though data_format
/// names them second: kernels find the innermost axis in memory where they look for it. A single channel is named
/// second for the same reason: cells lie beside each other then.
Problem in_data_format_of_memory(Problem problem);

/// A loop over the space of `theirs` that has its channels at another place: its axes in their order. False, and
/// nothing changed, where the one operand does not become the other.
bool reorder_axes(Problem& loop, const TensorDesc& mine, const TensorDesc& theirs);

/// A loop over fewer axes than `theirs` has: each of them as several, where the one operand becomes the other by that
/// (groups along an axis). False, and nothing changed, where it does not.
bool split_axes(Problem& loop, const TensorDesc& mine, const TensorDesc& theirs);

}  // namespace partita
