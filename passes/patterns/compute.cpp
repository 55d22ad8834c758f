// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products with what follows them.
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {

std::vector<Pattern> compute_patterns() {
  const Pat quantized = maybe(Quantize) >> op(Dequantize);
  const auto tail = [] { return maybe(BiasAdd) >> maybe(BatchNormInference) >> many(kPostOp) >> maybe(Select); };
  const OpSet products = MatMul | Convolution | ConvTranspose;
  return {
      {.name = "int8_matmul_conv_post_ops",
       .text = "a quantized matrix product or convolution (Dequantize on source and weights) with bias, post-ops and "
               "Quantize",
       .chain = op(Dequantize) >> op(products).at(0).in(1, quantized) >> tail() >> maybe(Quantize)},
      {.name = "conv_swish_post_ops",
       .text = "a convolution whose result is multiplied by its own sigmoid, with post-ops",
       .chain = op(Convolution) >> maybe(BiasAdd) >> maybe(BatchNormInference) >> bind("x") >> op(Sigmoid) >>
                op(Multiply).other(same("x")) >> many(kPostOp) >> maybe(TypeCast)},
      {.name = "matmul_conv_post_ops",
       .text = "a matrix product or convolution with bias, batch normalisation, element-wise operators and a type cast",
       .chain = op(products) >> tail() >> maybe(TypeCast)},
  };
}

}  // namespace partita::patterns
