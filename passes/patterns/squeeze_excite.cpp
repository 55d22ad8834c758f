// SPDX-License-Identifier: Apache-2.0
// Gates made of averages over space, and their gradients.
#include "passes/patterns/gradients.hpp"
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {
namespace {

/// The gradients that read the gradient of what a convolution or matrix product makes.
Pat source_gradient() { return either({op(kDataGradient).at(0), op(MatMul).at(kSummedColumns)}); }
Pat weights_gradient() { return either({op(kWeightsGradient).at(1), product_over(kSummedRows)}); }

}  // namespace

std::vector<Pattern> squeeze_excite_patterns() {
  const OpSet gate = (kElementwise - kWidening - kNarrowing - TypeCast) | StaticReshape;
  return {
      {.name = "squeeze_excite",
       .text = "averages over space, two convolutions or matrix products of them with element-wise operators, and what "
               "was averaged multiplied with the gates that they make",
       .chain = op(kAverage | ReduceMean).in(0, bind("src")) >> many(gate) >> op(Convolution | MatMul).at(0) >>
                many(gate) >> op(Convolution | MatMul).at(0) >> many(gate) >> op(Multiply).other(same("src")),
       .inner_outputs = true},
      {.name = "squeeze_excite_gradients",
       .text =
           "the gradient of the gates as a sum over space, the gradients of the two convolutions or matrix products "
           "that made them, and the gradient of the averages that these read, added to the one that does not go "
           "through the gates",
       .chain = op(ReduceSum).in(0, op(Multiply).other(bind("diff_dst"))) >> many(gate) >> bind("diff of the second") >>
                source_gradient() >> many(gate) >> bind("diff of the first") >> source_gradient() >> many(gate) >>
                either({op(kAverageBackward) >> maybe(op(Add).other(maybe(op(Multiply)))),
                        op(Add).other(op(Multiply).other(same("diff_dst")))}),
       .with = {same("diff of the second") >> maybe(weights_gradient()),
                same("diff of the first") >> maybe(weights_gradient())},
       .inner_outputs = true},
  };
}

}  // namespace partita::patterns
