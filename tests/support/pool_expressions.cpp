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

/// An operand of a tensor's dims: dense, one number a channel, or one in all.
int add_operand(Problem& p, const Dims& dims, Random& random) {
  TensorDesc desc = dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::u8}), dims);
  const int64_t kind = random.whole(0, 2);
  if (kind > 0) desc.strides = Dims(desc.dims.size(), 0);
  if (kind == 1) desc.strides[p.attrs.is(Attr::data_format, "NXC") ? desc.dims.size() - 1 : 1] = 1;
  p.in.push_back(desc);
  return static_cast<int>(p.in.size()) - 1;
}

const Kernel& interpreter_of(StepKind step) {
  const auto rows = kernels_for(step);
  return *std::ranges::find_if(rows,
                               [](const Kernel& row) { return std::string_view(row.name).ends_with("_interpreter"); });
}

}  // namespace

void add_pool_expressions(Problem& p, Random& random) {
  p.ports_in = p.ports_out = 1;
  if (random.coin()) {
    const int operand = add_operand(p, p.in[0].dims, random);
    ExprBuilder b(p.front);
    const auto value = b.load(0);
    p.front.result = random.coin() ? b.exp(b.mul(value, b.load(operand))) : b.add(value, b.load(operand));
  }
  if (random.coin()) return;
  const int operand = add_operand(p, p.out[0].dims, random);
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
