// SPDX-License-Identifier: Apache-2.0
// Gradients of both inputs of a convolution or a matrix product, which read one gradient.
#include "passes/patterns/gradients.hpp"

#include <algorithm>

#include "passes/match.hpp"
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {
namespace {

constexpr int other_axis(int summed) { return summed == kSummedRows ? kSummedColumns : kSummedRows; }

/// product_over as the first operator of a chain, which goes on to the value that it sums.
Pat product_over(int summed, const Pat& value) {
  return either({op(MatMul).in(other_axis(summed), value >> many(StaticReshape) >> op(StaticTranspose)),
                 op(MatMul).in(summed, value >> many(StaticReshape))});
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

Pat product_over(int summed) {
  return many(StaticReshape) >>
         either({op(StaticTranspose) >> op(MatMul).at(other_axis(summed)), op(MatMul).at(summed)});
}

std::vector<Pattern> gradient_patterns() {
  return {
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
