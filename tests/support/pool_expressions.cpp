// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pool_expressions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

/// An operand of a tensor's dims: dense, one number a channel, one in all; or one a channel and image, or one a cell.
int add_operand(Problem& p, const Dims& dims, Random& random, PoolOperands operands) {
  TensorDesc desc = dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::u8}), dims);
  const int64_t kind = random.whole(0, operands == PoolOperands::all ? 4 : 2);
  const int channel = p.attrs.is(Attr::data_format, "NXC") ? dims.size() - 1 : 1;
  for (int axis = 0; axis < dims.size(); ++axis) {
    const bool is_cell = axis != 0 && axis != channel;
    if (kind == 1 || kind == 2 || (kind == 3 && is_cell) || (kind == 4 && !is_cell)) desc.strides[axis] = 0;
  }
  if (kind == 1 || kind == 3) desc.strides[channel] = 1;
  if (kind == 3) desc.strides[0] = dims[channel];
  p.in.push_back(desc);
  return static_cast<int>(p.in.size()) - 1;
}

const Kernel& interpreter_of(StepKind step) {
  const auto rows = kernels_for(step);
  return *std::ranges::find_if(rows,
                               [](const Kernel& row) { return std::string_view(row.name).ends_with("_interpreter"); });
}

}  // namespace

void add_pool_expressions(Problem& p, Random& random, PoolOperands operands) {
  p.ports_in = static_cast<int>(p.in.size());
  p.ports_out = 1;
  const int main = front_port(p.step);
  if (random.coin()) {
    const int operand = add_operand(p, p.in[static_cast<size_t>(main)].dims, random, operands);
    ExprBuilder b(p.front);
    const auto value = b.load(main);
    p.front.result = random.coin() ? b.exp(b.mul(value, b.load(operand))) : b.add(value, b.load(operand));
  }
  if (random.coin()) return;
  const int operand = add_operand(p, p.out[0].dims, random, operands);
  ExprBuilder b(p.back);
  const auto sum = b.add(b.skeleton(), b.load(operand));
  b.store(0, b.max(sum, b.constant(0)));
  if (random.coin()) return;
  p.out.push_back(dense_desc(random.pick({Dtype::f32, Dtype::f16}), p.out[0].dims));
  b.store(1, sum);
}

void expect_interpreted(const Problem& p, Random& random, Isa isa) {
  SCOPED_TRACE(str("front ", text_of(p.front), " back ", text_of(p.back)));
  const Kernel* row = generated_row(p.step, isa);
  ASSERT_NE(row, nullptr);
  ASSERT_EQ(row->refuse(p, {.isa = isa}), nullptr);
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-2, 2}));
  const auto expected = run_kernel(interpreter_of(p.step), p, in, 1);
  const auto got = run_kernel(*row, p, in, 2);
  for (size_t k = 0; k < got.size(); ++k) {
    EXPECT_EQ(difference(got[k], expected[k], 2 * tolerance_of(got[k].desc.dtype)), "") << "output " << k;
    EXPECT_EQ(damage(got[k]), "");
  }
}

}  // namespace partita::test
