// SPDX-License-Identifier: Apache-2.0
// Operators bound by memory with the element-wise operators around them. Behind the patterns of convolutions and matrix
// products, which take element-wise operators that follow them.
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {
namespace {

Pattern around(std::string_view name, std::string_view text, Pat middle) {
  return {.name = name,
          .text = text,
          .chain = many(kElementwise) >> std::move(middle) >> many(kElementwise),
          .inner_outputs = true};
}

}  // namespace

std::vector<Pattern> neighbourhood_patterns() {
  return {
      around("pool_elementwise", "a forward pooling with the element-wise operators before and after it",
             op(kPool).at(0)),
      around("batch_norm_elementwise",
             "a batch normalisation in training with the element-wise operators before and after it",
             op(BatchNormForwardTraining).at(0)),
      around("batch_norm_backward_elementwise",
             "the gradient of a batch normalisation with the element-wise operators before and after it",
             op(BatchNormTrainingBackward).at(1)),
      around("rows_elementwise",
             "a softmax, layer, RMS or group normalisation with the element-wise operators before and after it",
             op(kRows).at(0)),
      around("rows_backward_elementwise",
             "the gradient of a softmax or layer normalisation with the element-wise operators before and after it",
             either({op(SoftMaxBackward | LogSoftmaxBackward).at(0), op(LayerNormBackward).at(1)})),
      around("resample_elementwise",
             "an interpolation or its gradient with the element-wise operators before and after it",
             either({op(Interpolate).at(0), op(InterpolateBackward).at(1)})),
      around("reduction_elementwise", "a reduction with the element-wise operators before and after it",
             op(kReduction | BiasAddBackward).at(0)),
  };
}

}  // namespace partita::patterns
