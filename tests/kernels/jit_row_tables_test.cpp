// SPDX-License-Identifier: Apache-2.0
// Loops with operands that are the same for many rows: what is computed of them once has the interpreter's bits.
#include <gtest/gtest.h>

#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/row_tables.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

/// [images, cells, channels] = cast(src * gate) + cast(constant * shift), each an operand of any type; the gate has a
/// number for each channel and image, the shift one for each channel. Sometimes more of it is the same for all cells.
Problem gated(Random& random) {
  const auto any_type = [&] {
    return random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::s32});
  };
  const int64_t channels = random.pick<int64_t>({96, 100, 128, 203, 2500, 3072});
  const Dims space{random.whole(1, 3), channels > 1000 ? random.whole(16, 20) : random.whole(60, 90), channels};
  Problem p;
  p.step = StepKind::loop;
  TensorDesc gate = dense_desc(any_type(), space), shift = dense_desc(any_type(), space);
  gate.strides = {space[2], 0, 1};
  shift.strides = {0, 0, 1};
  p.in = {dense_desc(any_type(), space), gate, shift};
  p.out = {dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), space)};
  ExprBuilder b(p.back);
  const auto as_float = [&](int operand) {
    const Value value = b.load(operand);
    return p.in[static_cast<size_t>(operand)].dtype == Dtype::s32 ? b.apply(ExprOp::to_f32, value) : value;
  };
  const auto rounded = [&](Value value) {
    const Dtype dtype = random.pick({Dtype::f32, Dtype::f16, Dtype::bf16});
    return b.apply(ExprOp::cast, value, 0, 0, static_cast<int32_t>(dtype));
  };
  const Value product = rounded(b.mul(as_float(0), as_float(1)));
  Value moved = rounded(b.mul(as_float(2), b.constant(0.125f)));
  if (random.coin()) moved = b.select(b.gt(as_float(1), b.constant(0)), moved, b.max(moved, as_float(1)));
  b.store(0, b.add(product, moved));
  return p;
}

TEST(jit_row_tables, have_the_bits_of_the_interpreter) {
  int with_tables = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Problem p = gated(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), " ", text_of(p.back)));
    expect_generated_rows_agree(p, random, Closeness::equal);
    if (HasFailure()) return;
    for (const Isa isa : generated_isas()) with_tables += jit::RowTables::of(jit::prepared(p), isa) ? 1 : 0;
  }
  if (generates_code()) {
    EXPECT_GT(with_tables, 40);
  }
}

TEST(jit_row_tables, are_not_made_where_rows_need_as_much_without) {
  const auto has_tables = [](const Dims& space, Dtype dtype, const Dims& strides) {
    Problem p;
    p.step = StepKind::loop;
    TensorDesc other = dense_desc(dtype, space);
    other.strides = strides;
    p.in = {dense_desc(Dtype::f32, space), other};
    p.out = {dense_desc(Dtype::f32, space)};
    ExprBuilder b(p.back);
    b.store(0, b.add(b.load(0), b.load(1)));
    return jit::RowTables::of(jit::prepared(p), machine_isa()).has_value();
  };
  if (!generates_code()) GTEST_SKIP() << "no code is generated here";
  EXPECT_TRUE(has_tables({64, 128}, Dtype::bf16, {0, 1}));
  EXPECT_FALSE(has_tables({64, 128}, Dtype::f32, {0, 1}));     // a load as well
  EXPECT_FALSE(has_tables({64, 128}, Dtype::bf16, {128, 1}));  // another row each time
  EXPECT_FALSE(has_tables({64, 128}, Dtype::bf16, {1, 0}));    // one number a row
  EXPECT_TRUE(has_tables({64, 8192}, Dtype::bf16, {0, 1}));    // rows of their own, not pieces
  EXPECT_FALSE(has_tables({64, 8208}, Dtype::bf16, {0, 1}));   // pieces, which follow each other
  EXPECT_FALSE(has_tables({4, 2048}, Dtype::bf16, {0, 1}));    // few rows
  EXPECT_FALSE(has_tables({16, 64}, Dtype::bf16, {0, 1}));     // small
}

}  // namespace
}  // namespace partita::test
