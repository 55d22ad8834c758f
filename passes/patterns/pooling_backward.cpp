// SPDX-License-Identifier: Apache-2.0
// Pooling backward with its neighbours on both sides: the heart of a training graph's way back.
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {

std::vector<Pattern> pooling_backward_patterns() {
  return {
      {.name = "pool_backward_batch_norm_backward",
       .text = "the gradient of a pooling, element-wise operators, and the gradient of the batch normalisation before",
       .chain = many(kElementwise) >> pool_backward() >> many(kElementwise) >> op(BatchNormTrainingBackward).at(1) >>
                many(kElementwise),
       .inner_outputs = true},
      {.name = "pool_backward_reduction",
       .text = "the gradient of a pooling, element-wise operators, and a reduction of the result, as for a bias",
       .chain = many(kElementwise) >> pool_backward() >> many(kElementwise) >> bind("gradient"),
       .with = {op(BiasAddBackward | kReduction).in(0, same("gradient"))},
       .inner_outputs = true},
      {.name = "max_pool_backward_elementwise",
       .text = "the gradient of a max pooling with the element-wise operators before and after it",
       .chain = many(kElementwise) >> either({op(MaxPoolBackward).at(1), op(MaxPoolIndicesBackward).at(0)}) >>
                elementwise_merges(),
       .inner_outputs = true},
      {.name = "avg_pool_backward_elementwise",
       .text = "the gradient of an average pooling with the element-wise operators before and after it",
       .chain = many(kElementwise) >> op(kAverageBackward).at(0) >> elementwise_merges(),
       .inner_outputs = true},
  };
}

}  // namespace partita::patterns
