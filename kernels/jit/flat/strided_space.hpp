// SPDX-License-Identifier: Apache-2.0
// The space of a loop whose operands disagree: which two axes its tiles have, and how each operand gets into a tile.
#pragma once

#include "kernels/problem.hpp"

namespace partita::jit {

/// The same loop with at least two axes, joined where possible. The last axis is the one that results are written
/// along; the axis before it is the one along which most of the other operands lie.
Problem tiled_space(const Problem& loop);

/// Of a copy: which of its tensors has parts of one cache line in neighbouring tiles along the last axis before the
/// tile's two.
enum class SharedLines : uint8_t { none, source, result };
/// Where neither has, an axis is moved there along which the source has.
SharedLines put_lines_together(Problem& tiled);

/// How an operand takes part in a tile of rows along the last axis.
enum class Access : uint8_t {
  direct,      ///< its rows lie in memory as generated code walks them
  transposed,  ///< its elements lie next to each other along the axis before the last
  scattered,   ///< anything else, also element types without generated conversion
};
Access access_of(const TensorDesc& desc, bool output);

}  // namespace partita::jit
