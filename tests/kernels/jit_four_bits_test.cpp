// SPDX-License-Identifier: Apache-2.0
// What depends on elements of four bits alone is looked up: the same results to the bit, and where that is done.
#include <gtest/gtest.h>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/four_bits.hpp"
#include "src/base/cpu.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

/// While it lives, code does without bytes that begin at any bit.
class WithoutUnalignedBytes {
 public:
  explicit WithoutUnalignedBytes(bool without) {
    if (without) assume_unaligned_bytes(false);
  }
  WithoutUnalignedBytes(const WithoutUnalignedBytes&) = delete;
  WithoutUnalignedBytes& operator=(const WithoutUnalignedBytes&) = delete;
  ~WithoutUnalignedBytes() { assume_unaligned_bytes(before_); }

 private:
  bool before_ = picks_unaligned_bytes();
};

TensorDesc one_a_row(Dtype dtype, const Dims& space) {
  TensorDesc desc = dense_desc(dtype, space);
  desc.strides = {space[1], 1, 0};
  return desc;
}

/// Of [rows, groups, elements]: what a function of elements of four bits, and of numbers that a group has in common,
/// makes of them, times another operand that moves along, or alone.
struct Quantized {
  Problem problem;
  Dims space;
  Value value;
};

Quantized quantized(Random& random) {
  const int64_t length = random.pick<int64_t>({46, 48, 64, 74, 126, 128, 200});
  Quantized q{.problem = {}, .space = {random.whole(1, 5), random.whole(1, 4), length}, .value = 0};
  Problem& p = q.problem;
  p.step = StepKind::loop;
  const auto real = [&] { return random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}); };
  p.in = {dense_desc(random.pick({Dtype::u4, Dtype::s4}), q.space), one_a_row(real(), q.space),
          one_a_row(random.pick({Dtype::u8, Dtype::s8}), q.space)};
  ExprBuilder b(p.back);
  const Value bits = b.load(0), scale = b.load(1), zero = b.load(2);
  const auto rounded = [&](Value value) {
    return b.apply(ExprOp::cast, value, 0, 0, static_cast<int32_t>(random.pick({Dtype::f16, Dtype::bf16})));
  };
  q.value = rounded(b.mul(b.sub(bits, zero), scale));
  if (random.coin()) q.value = b.select(b.gt(bits, b.constant(3)), q.value, b.max(b.mul(bits, scale), zero));
  if (random.coin()) {
    p.in.push_back(dense_desc(real(), q.space));
    q.value = b.mul(q.value, b.load(3));
  }
  return q;
}

TEST(jit_four_bits, have_the_bits_of_the_interpreter) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    const WithoutUnalignedBytes less(seed % 2 == 0);
    Quantized q = quantized(random);
    q.problem.out = {dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::s8}), q.space)};
    ExprBuilder(q.problem.back).store(0, q.value);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(q.problem), " ", text_of(q.problem.back)));
    expect_generated_rows_agree(q.problem, random, Closeness::equal);
    if (HasFailure()) return;
  }
}

TEST(jit_four_bits, are_summed_along_rows_and_over_them) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const WithoutUnalignedBytes less(seed % 2 == 0);
    Quantized q = quantized(random);
    const std::vector<bool> kept = random.pick<std::vector<bool>>({{false, true, true}, {true, true, false}});
    q.problem.out = {folded_desc(q.space, kept)};
    ExprBuilder(q.problem.back).fold(Fold::sum, 0, q.value);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(q.problem), " ", text_of(q.problem.back)));
    expect_generated_rows_agree(q.problem, random, Closeness::rounded);
    if (HasFailure()) return;
  }
}

/// The operations of an expression over u4, a number of its row, and f32 that move along; how many are lookups.
template <class Write>
std::pair<size_t, size_t> lookups(const Write& write) {
  Problem p;
  const Dims space{2, 64};
  TensorDesc number = dense_desc(Dtype::f32, space);
  number.strides = {1, 0};
  p.in = {dense_desc(Dtype::u4, space), number, dense_desc(Dtype::f32, space)};
  p.out = {dense_desc(Dtype::f32, space)};
  ExprBuilder b(p.back);
  b.store(0, write(b));
  const jit::Lanes lanes = jit::with_four_bits_looked_up(
      jit::expanded(p.back, p, Isa::avx512), [&](int k) { return p.in[static_cast<size_t>(k)].dtype; },
      [](int k) { return k == 1; });
  const auto count = [&](jit::LaneOp op) {
    return static_cast<size_t>(std::ranges::count(lanes.code, op, &jit::Lane::op));
  };
  EXPECT_EQ(count(jit::LaneOp::lookup), count(jit::LaneOp::four_bits));
  return {count(jit::LaneOp::lookup), count(jit::LaneOp::load)};
}

using Counts = std::pair<size_t, size_t>;

TEST(jit_four_bits, are_looked_up_where_they_stand_for_more_than_themselves) {
  EXPECT_EQ(lookups([](ExprBuilder& b) { return b.mul(b.sub(b.load(0), b.constant(8)), b.load(1)); }), Counts(1, 1));
  EXPECT_EQ(lookups([](ExprBuilder& b) { return b.add(b.mul(b.sub(b.load(0), b.load(1)), b.load(1)), b.load(2)); }),
            Counts(1, 2));
}

TEST(jit_four_bits, are_converted_where_that_is_all_or_they_are_read_otherwise) {
  // One operation, or none.
  EXPECT_EQ(lookups([](ExprBuilder& b) { return b.load(0); }), Counts(0, 1));
  EXPECT_EQ(lookups([](ExprBuilder& b) { return b.mul(b.load(0), b.load(1)); }), Counts(0, 2));
  // Beside what moves along.
  EXPECT_EQ(lookups([](ExprBuilder& b) { return b.sub(b.add(b.load(0), b.load(2)), b.load(1)); }), Counts(0, 3));
  // The same, with operations of the bits alone that nobody reads.
  EXPECT_EQ(lookups([](ExprBuilder& b) {
              const Value x = b.load(0);
              b.mul(b.sub(x, b.constant(8)), b.load(1));
              return b.add(x, b.load(2));
            }),
            Counts(0, 3));
  // Two values of them.
  EXPECT_EQ(lookups([](ExprBuilder& b) {
              const Value x = b.load(0), moved = b.mul(b.sub(x, b.constant(8)), b.load(1));
              return b.add(b.mul(x, b.load(2)), b.mul(moved, b.load(2)));
            }),
            Counts(0, 3));
}

}  // namespace
}  // namespace partita::test
