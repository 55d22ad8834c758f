// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient, in whatever spelling of scales, masks, dropout, casts and quantization lies between the
// matrix products. What only feeds these (dequantized keys, reshapes, mask positions) and what follows joins by rule.
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {
namespace {

/// Scales, masks, casts, layout changes, dropout and rounding to integers and back.
Pat between_products() {
  const OpSet kinds = (kElementwise - kWidening - kNarrowing) | StaticReshape | StaticTranspose | Reorder | Dropout;
  return many(either({op(kinds), op(kNarrowing) >> op(kWidening)}));
}

/// The gradient of softmax: one operator, or with probabilities p and their gradient d either p d - p sum(p d), or
/// p (d - sum(p d)), where the first p may have a scale in it already.
Pat softmax_gradient() {
  return either({op(Multiply).other(bind("probabilities")) >> bind("weighted") >> op(ReduceSum) >>
                     op(Multiply).other(same("probabilities")) >> op(Subtract).at(1).in(0, same("weighted")),
                 bind("diff_probabilities") >> op(Multiply) >> op(ReduceSum) >>
                     op(Subtract).at(1).in(0, same("diff_probabilities")) >> op(Multiply),
                 op(SoftMaxBackward).at(0)});
}

}  // namespace

std::vector<Pattern> attention_patterns() {
  const OpSet scaled = kPostOp | Select | TypeCast | Dropout, biased = kPostOp | BiasAdd | TypeCast;
  return {
      {.name = "attention",
       .text =
           "a matrix product (scores), softmax, and the matrix product with the values, with all that lies between: "
           "scale, masks, dropout, casts, quantization, transposes",
       .chain = op(MatMul) >> between_products() >> op(SoftMax) >> between_products() >> op(MatMul),
       .inner_outputs = true},
      {.name = "attention_backward",
       .text = "the gradient of attention from recomputed scores: probabilities as an exponential of scores and "
               "statistics, the gradients of values, probabilities, queries and keys",
       .chain = op(MatMul) >> many(scaled) >> op(Exp) >> bind("probabilities") >> many(scaled - kBinary) >>
                op(Multiply).other(op(MatMul) >> many(scaled)) >> many(scaled) >> bind("diff_scores") >> op(MatMul),
       .with = {same("diff_scores") >> op(MatMul),
                same("probabilities") >> many(TypeCast | Dropout | Multiply) >> maybe(op(MatMul))},
       .inner_outputs = true},
      {.name = "attention_backward_softmax",
       .text = "the gradient of attention from stored probabilities, with SoftMaxBackward or what it stands for: the "
               "gradients of values, probabilities, queries and keys",
       .chain = op(MatMul).in(0, bind("diff_dst")) >> many(scaled) >> softmax_gradient() >> many(scaled) >>
                bind("diff_scores") >> op(MatMul),
       .with = {same("diff_scores") >> op(MatMul), same("diff_dst") >> maybe(op(MatMul).at(1))},
       .inner_outputs = true},
      {.name = "gated_mlp",
       .text = "two matrix products of one source, the gate with its activation joined to the other by a binary "
               "operator, each with biases and scales, and the matrix product of the result",
       .chain = op(MatMul).in(0, bind("src")) >> many(biased) >>
                op(kBinary).other(op(MatMul).in(0, same("src")) >> many(biased)) >> many(biased) >> op(MatMul).at(0),
       .inner_outputs = true},
  };
}

}  // namespace partita::patterns
