// SPDX-License-Identifier: Apache-2.0
// Convolutions that are worth more together.
#include <algorithm>

#include "passes/match.hpp"
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"
#include "src/base/axes.hpp"

namespace partita::patterns {
namespace {

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

}  // namespace

std::vector<Pattern> convolution_patterns() {
  return {
      {.name = "residual_blocks",
       .text = "residual blocks in a row: convolutions with their element-wise operators whose result is added to the "
               "block's source or a convolution of it, in floating point or with quantized convolutions",
       .chain = op(Convolution).in(0, bind("src") >> many(kElementwise)) >> many(kElementwise - Add) >>
                convolutions(0, 3) >> residual_sum("src") >> further_blocks()},
      {.name = "convolution_depthwise",
       .text = "a convolution, element-wise operators and the depthwise convolution of the result",
       .chain = op(Convolution) >> many(kElementwise) >> op(Convolution).at(0),
       .refuse = not_depthwise},
  };
}

}  // namespace partita::patterns
