// SPDX-License-Identifier: Apache-2.0
// Copies whose runs are short on both sides, seen as blocks that are brought from one order into the other in
// registers: which axes a block has, and how vectors of the result are put together.
#pragma once

#include <optional>
#include <vector>

#include "kernels/problem.hpp"

namespace partita::jit {

/// An axis of source and result, with the distances in bytes.
struct BlockAxis {
  int64_t extent, src, dst;
};

/// Bytes of the result that are stored at once, and the windows of the source that they come from.
struct BlockMove {
  struct Window {
    int64_t src;  ///< from the block's first element
    int bytes;    ///< a power of two, up to a vector
  };
  /// Where an element comes from: so many elements into a window.
  struct Origin {
    int window, element;
  };
  int64_t dst;  ///< from the block's first element
  int bytes;
  std::vector<Window> windows;
  std::vector<Origin> origins;  ///< of each element

  /// Whether the elements follow each other in one window from its begin on, so that nothing is to be ordered.
  bool in_order() const;
};

struct BlockPlan {
  int element_bytes = 0;  ///< 2 or 4
  std::vector<BlockMove> moves;
  std::vector<BlockAxis> around;  ///< axes of blocks, as the result lies in memory, joined
  double cycles = 0;              ///< about so many an element
};

/// How to copy in blocks with AVX-512, of elements of 16 or 32 bits; absent where that cannot be done. The axes of
/// `copy` are in the order of the result's memory (prepared).
std::optional<BlockPlan> plan_blocks(const Problem& copy);

}  // namespace partita::jit
