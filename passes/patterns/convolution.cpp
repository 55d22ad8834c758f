// SPDX-License-Identifier: Apache-2.0
// Convolutions that are worth more together.
#include <algorithm>

#include "passes/match.hpp"
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"
#include "src/base/axes.hpp"

namespace partita::patterns {
namespace {

constexpr int other_axis(int summed) { return summed == kSummedRows ? kSummedColumns : kSummedRows; }

/// The product that sums over rows or columns of the value here, which may be reshaped on the way; where it is
/// transposed, the product sums over the others.
Pat product_over(int summed) {
  return many(StaticReshape) >>
         either({op(StaticTranspose) >> op(MatMul).at(other_axis(summed)), op(MatMul).at(summed)});
}

/// The same as the first operator of a chain.
Pat product_over(int summed, const Pat& value) {
  return either({op(MatMul).in(other_axis(summed), value >> many(StaticReshape) >> op(StaticTranspose)),
                 op(MatMul).in(summed, value >> many(StaticReshape))});
}

/// The gradients that read the gradient of what a convolution or matrix product makes.
Pat source_gradient() { return either({op(kDataGradient).at(0), op(MatMul).at(kSummedColumns)}); }
Pat weights_gradient() { return either({op(kWeightsGradient).at(1), product_over(kSummedRows)}); }

/// The last convolution has one group a channel.
const char* not_depthwise(const FinalGraph& graph, const Match& match) {
  int last = match.ops[0];
  for (int i : match.ops)
    if (graph.ops[static_cast<size_t>(i)].kind == Convolution &&
        graph.position[static_cast<size_t>(i)] > graph.position[static_cast<size_t>(last)])
      last = i;
  const Attrs& attrs = graph.attrs[static_cast<size_t>(last)];
  const logical_tensor& weights = graph.ops[static_cast<size_t>(last)].inputs[1];
  const int64_t groups = attrs.i64_or(Attr::groups, 1);
  if (!weights.rank_known || !weights.shape_known())
    return "the shape of the second convolution's weights is not known";
  const FilterAxes axes = filter_axes(attrs, weights.rank());
  const int64_t out = weights.dims[axes.narrow], in = weights.dims[axes.wide];
  return groups > 1 && groups == out && in == 1 ? nullptr : "the second convolution is not depthwise";
}

/// Convolutions in a row, each with the element-wise operators behind it; `most` of them.
Pat convolutions(int least, int most) {
  Pat chain = many(op(Convolution).at(0) >> many(kElementwise - Add));
  chain.items[0].min = least;
  chain.items[0].max = most;
  return chain;
}

/// The sum that ends a residual block; its other operand is the block's source, or a convolution of that. Behind it no
/// further sum: that would be the next block's, reached past its convolutions.
Pat residual_sum(std::string_view src) {
  return op(Add).other(same(src) >> maybe(many(kElementwise) >> op(Convolution).at(0)) >> many(kElementwise)) >>
         many(kElementwise - Add);
}

/// Blocks of one stage of a ResNet; deeper stages become several groups.
constexpr int kMostBlocks = 8;

Pat further_blocks() {
  Pat blocks = many(bind("src of a further block") >> many(kElementwise - Add) >> convolutions(1, 4) >>
                    residual_sum("src of a further block"));
  blocks.items[0].max = kMostBlocks - 1;
  return blocks;
}

/// Products of one value that are no gradients: a chain of products with one matrix on both sides of it, and heads that
/// a transpose brings to the front, which leaves the last axis where it is.
const char* not_gradients(const FinalGraph& graph, const Match& match) {
  const auto matched_product = [&](int i) {
    return i >= 0 && graph.ops[static_cast<size_t>(i)].kind == MatMul &&
           std::find(match.ops.begin(), match.ops.end(), i) != match.ops.end();
  };
  for (int i : match.ops) {
    for (int v : graph.in[static_cast<size_t>(i)])
      if (matched_product(graph.values[static_cast<size_t>(v)].producer)) return "one product waits for the other";
    if (graph.ops[static_cast<size_t>(i)].kind != StaticTranspose) continue;
    const std::vector<int64_t>& order = graph.attrs[static_cast<size_t>(i)].ints(Attr::order);
    const auto rank = static_cast<int64_t>(order.size());
    const auto axis = [&](int64_t place) { return (order[static_cast<size_t>(place)] + rank) % rank; };
    if (rank < 2 || axis(rank - 1) != rank - 2 || axis(rank - 2) != rank - 1)
      return "a transpose does not swap the last two axes";
  }
  return nullptr;
}

}  // namespace

std::vector<Pattern> convolution_patterns() {
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
      {.name = "residual_blocks",
       .text = "residual blocks in a row: convolutions with their element-wise operators whose result is added to the "
               "block's source or a convolution of it, in floating point or with quantized convolutions",
       .chain = op(Convolution).in(0, bind("src") >> many(kElementwise)) >> many(kElementwise - Add) >>
                convolutions(0, 3) >> residual_sum("src") >> further_blocks()},
      {.name = "convolution_depthwise",
       .text = "a convolution, element-wise operators and the depthwise convolution of the result",
       .chain = op(Convolution) >> many(kElementwise) >> op(Convolution).at(0),
       .refuse = not_depthwise},
      {.name = "pool_backward_convolution_gradients",
       .text = "the gradient of an average pooling and the gradients of the convolution before the pooling",
       .chain =
           op(kAverageBackward) >> bind("diff_dst") >> either({op(kDataGradient).at(0), op(kWeightsGradient).at(1)}),
       .with = {same("diff_dst") >> maybe(op(kWeightsGradient).at(1))},
       .inner_outputs = true},
      {.name = "convolution_gradients",
       .text = "the gradients of a convolution's source and weights, which read one gradient",
       .chain = op(kDataGradient).in(0, bind("diff_dst")),
       .with = {same("diff_dst") >> op(kWeightsGradient).at(1)},
       .inner_outputs = true},
      {.name = "matmul_gradients",
       .text =
           "the gradients of both factors of a matrix product: one sums over the columns, the other over the rows of "
           "one gradient, which may be reshaped or transposed before",
       .chain = product_over(kSummedColumns, bind("diff_dst")),
       .with = {same("diff_dst") >> product_over(kSummedRows)},
       .inner_outputs = true,
       .refuse = not_gradients},
  };
}

}  // namespace partita::patterns
