// SPDX-License-Identifier: Apache-2.0
// What the rule must group, drawn as chains for the sampler.
#include "passes/patterns/sets.hpp"
#include "tests/support/sample.hpp"

namespace partita::patterns {

const std::vector<Pattern>& neighbourhoods() {
  const auto merges = [] { return many(either({op(kBinary).other(maybe(kElementwise)), op(kElementwise)})); };
  const auto around = [&](std::string_view name, Pat middle) {
    return Pattern{.name = name, .text = {}, .chain = many(kElementwise) >> std::move(middle) >> merges()};
  };
  const auto pool_backward = [] { return either({op(MaxPoolBackward).at(1), op(AvgPoolBackward).at(0)}); };
  const Pat quantized = maybe(Quantize) >> op(Dequantize);
  static const std::vector<Pattern> list = {
      around("pool_backward_neighbourhood", pool_backward()),
      around("pool_backward_neighbourhood",
             pool_backward() >> many(kElementwise) >> op(BatchNormTrainingBackward).at(1)),
      {.name = "pool_backward_neighbourhood",
       .text = {},
       .chain = many(kElementwise) >> pool_backward() >> many(kElementwise) >> bind("gradient"),
       .with = {same("gradient") >> op(BiasAddBackward | kReduction)}},
      around("batch_norm_neighbourhood", op(BatchNormForwardTraining).at(0)),
      around("batch_norm_backward_neighbourhood", op(BatchNormTrainingBackward).at(1)),
      around("rows_neighbourhood", op(kRows).at(0)),
      around("rows_backward_neighbourhood",
             either({op(SoftMaxBackward | LogSoftmaxBackward).at(0), op(LayerNormBackward).at(1)})),
      around("pool_neighbourhood", op(kPool).at(0)),
      around("resample_neighbourhood", either({op(Interpolate).at(0), op(InterpolateBackward).at(1)})),
      around("reduction_neighbourhood", op(kReduction | BiasAddBackward).at(0)),
      around("elementwise_neighbourhood", op(kElementwise)),
      around("convolution_neighbourhood", op(Convolution | ConvTranspose).at(0)),
      {.name = "convolution_neighbourhood",
       .text = {},
       .chain = op(Dequantize) >> op(Convolution | ConvTranspose).at(0).in(1, quantized) >> maybe(BiasAdd) >>
                many(kPostOp) >> maybe(Quantize)},
      {.name = "matmul_neighbourhood",
       .text = {},
       .chain = op(Dequantize) >> op(MatMul).at(0).in(1, quantized) >> many(kPostOp) >> maybe(Quantize)},
      around("matmul_neighbourhood", op(MatMul).at(0)),
  };
  return list;
}

}  // namespace partita::patterns
