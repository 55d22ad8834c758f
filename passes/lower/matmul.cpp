// SPDX-License-Identifier: Apache-2.0
// Lowering of MatMul: a bias that is one row belongs to the product, any other bias is added by a loop.
#include "passes/lower/lowering.hpp"

namespace partita {
namespace {

/// One value for each column of the result: what product kernels add without cost.
bool is_row(const TensorDesc& bias, const TensorDesc& dst) {
  if (bias.dims.empty() || dst.dims.empty() || bias.dims.back() != dst.dims.back()) return false;
  for (int d = 0; d + 1 < bias.dims.size(); ++d)
    if (bias.dims[d] != 1) return false;
  return true;
}

}  // namespace

Status lower_matmul(Lowering& l) {
  const TensorDesc dst = l.output(0);
  Step product = l.whole_op();
  if (l.inputs() < 3 || is_row(l.input(2), dst)) {
    l.add_step(std::move(product));
    return {};
  }
  const int sum = l.add_temporary(Dtype::f32, dst.dims);
  const TensorDesc sum_desc = l.buffer_desc(sum);
  product.problem.in.pop_back();
  product.in.pop_back();
  product.problem.out[0] = sum_desc;
  product.out[0] = sum;
  l.add_step(std::move(product));
  LoopStep loop;
  const auto x = loop.load(sum_desc, sum), bias = loop.load(spread(l.input(2), dst.dims), l.input_buffer(2));
  loop.store(dst, l.output_buffer(0), loop.builder().add(x, bias));
  l.add_step(loop.take());
  return {};
}

}  // namespace partita
