// SPDX-License-Identifier: Apache-2.0
// Pooling with element-wise neighbours on both sides.
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {

std::vector<Pattern> pooling_patterns() {
  return {
      {.name = "max_pool_backward_elementwise",
       .text = "the gradient of a max pooling with the element-wise operators before and after it",
       .chain = many(kElementwise) >> op(MaxPoolBackward).at(1) >> many(kElementwise),
       .inner_outputs = true},
      {.name = "avg_pool_backward_elementwise",
       .text = "the gradient of an average pooling with the element-wise operators before and after it",
       .chain = many(kElementwise) >> op(AvgPoolBackward).at(0) >> many(kElementwise),
       .inner_outputs = true},
      {.name = "pool_elementwise",
       .text = "a forward pooling with the element-wise operators after it",
       .chain = op(kPool) >> some(kElementwise),
       .inner_outputs = true},
  };
}

}  // namespace partita::patterns
