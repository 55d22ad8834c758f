// SPDX-License-Identifier: Apache-2.0
// Loops that compute much: two vectors at once have the interpreter's bits, whatever operands and results are.
#include <gtest/gtest.h>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/side_by_side.hpp"
#include "src/base/cpu.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f16};

Value rounded(ExprBuilder b, Value v, Dtype dtype) {
  return b.apply(ExprOp::cast, v, 0, 0, static_cast<int32_t>(dtype));
}

/// `steps` times v = max(v * a + b, c) with different numbers, v the sum of all operands: a tensor, a number for each
/// row, a number for each column; v is sometimes rounded to 16 bits. The last value is stored, sometimes one between,
/// too.
Problem long_chain(Random& random, int64_t length, int steps) {
  const auto any_type = [&] { return random.pick({kTypes[0], kTypes[1], kTypes[2], Dtype::s8}); };
  const Dims space{random.whole(1, 5), length};
  Problem p = problem_for(StepKind::loop, OpKind::Add);
  for (const Dims& strides : {Dims{length, 1}, Dims{1, 0}, Dims{0, 1}}) {
    p.in.push_back(dense_desc(any_type(), space));
    p.in.back().strides = strides;
  }
  p.out = {dense_desc(random.pick({kTypes[0], kTypes[1], kTypes[2]}), space)};
  ExprBuilder b(p.back);
  Value v = b.add(b.load(0), b.add(b.load(1), b.load(2)));
  for (int k = 0; k < steps; ++k) {
    const auto number = [&] { return b.constant(static_cast<float>(random.whole(-64, 64)) / 64); };
    v = b.max(b.add(b.mul(v, number()), number()), number());
    if (random.whole(0, 3) == 0) v = rounded(b, v, random.pick({Dtype::bf16, Dtype::bf16, Dtype::f16}));
    if (k > 0 || random.coin()) continue;
    p.out.push_back(dense_desc(random.pick({kTypes[0], kTypes[1], kTypes[2], Dtype::u8}), space));
    b.store(1, v);
  }
  b.store(0, v);
  return p;
}

TEST(jit_side_by_side, two_vectors_have_the_bits_of_the_interpreter) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    const Problem p = long_chain(random, random.pick<int64_t>({31, 32, 40, 64, 96, 160, 2048, 2080}), 10);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), " ", text_of(p.back)));
    expect_generated_rows_agree(p, random, Closeness::equal);
    if (HasFailure()) return;
  }
}

/// How many vectors of a row at once, and how many results are stored in pairs of vectors.
struct Shape {
  int vectors, packed;
  friend bool operator==(const Shape&, const Shape&) = default;
  friend std::ostream& operator<<(std::ostream& to, const Shape& s) { return to << s.vectors << ", " << s.packed; }
};

Shape shape_of(const Problem& p, Isa isa, bool streaming = false) {
  jit::RowShape shape = jit::parts_of(p)[0].shape(0);
  shape.streaming = streaming;
  const jit::Lanes code = jit::two_vectors(p.back, jit::expanded(p.back, p, isa), shape, isa);
  const auto packs = [](const jit::Lane& lane) { return lane.op == jit::LaneOp::pack; };
  return {shape.vectors, static_cast<int>(std::ranges::count_if(code.code, packs))};
}

TEST(jit_side_by_side, two_vectors_are_taken_where_much_is_computed_of_whole_pairs) {
  const auto chain = [](int steps) {
    Problem made = problem_for(StepKind::loop, OpKind::Add);
    made.in = made.out = {dense_desc(Dtype::f32, {4, 64})};
    ExprBuilder b(made.back);
    Value v = b.load(0);
    for (int k = 0; k < steps; ++k) v = b.add(b.mul(v, b.constant(0.5f + static_cast<float>(k))), b.load(0));
    b.store(0, v);
    return made;
  };
  Problem narrow = chain(12), wide = chain(12), odd = chain(12), places = chain(12);
  narrow.out[0].dtype = Dtype::bf16;
  for (auto* side : {&odd.in, &odd.out})
    for (TensorDesc& desc : *side) desc.dims[1] = 48;
  ExprBuilder(places.back).store(0, ExprBuilder(places.back).apply(ExprOp::to_f32, ExprBuilder(places.back).index(1)));
  const int at_once = converts_to_bf16() ? 1 : 0;
  EXPECT_EQ(shape_of(narrow, Isa::avx512), (Shape{2, at_once}));
  EXPECT_EQ(shape_of(wide, Isa::avx512), (Shape{2, 0}));
  EXPECT_EQ(shape_of(narrow, Isa::avx2), (Shape{1, 0}));      // too few registers
  EXPECT_EQ(shape_of(chain(2), Isa::avx512), (Shape{1, 0}));  // the next vector is near enough
  Problem short_narrow = chain(2);
  short_narrow.out[0].dtype = Dtype::f16;
  EXPECT_EQ(shape_of(short_narrow, Isa::avx512), (Shape{1, 0}));
  EXPECT_EQ(shape_of(short_narrow, Isa::avx512, /*streaming=*/true), (Shape{2, 1}));  // one store of a whole line
  EXPECT_EQ(shape_of(chain(2), Isa::avx512, /*streaming=*/true), (Shape{1, 0}));
  for (const auto& [dtype, expected] :
       {std::pair{Dtype::bf16, Shape{2, at_once}}, std::pair{Dtype::f16, Shape{1, 0}}}) {
    Problem narrow_both = chain(2);
    narrow_both.in[0].dtype = narrow_both.out[0].dtype = dtype;
    EXPECT_EQ(shape_of(narrow_both, Isa::avx512), expected) << name_of(dtype);  // loads of bf16 are worth it alone
  }
  narrow.out[0].dtype = Dtype::f16;
  EXPECT_EQ(shape_of(narrow, Isa::avx512), (Shape{2, 0}));  // in the caches a store each
  EXPECT_EQ(shape_of(narrow, Isa::avx512, /*streaming=*/true), (Shape{2, 1}));
  EXPECT_EQ(shape_of(odd, Isa::avx512), (Shape{1, 0}));
  EXPECT_EQ(shape_of(places, Isa::avx512), (Shape{1, 0}));
}

/// How often code for two vectors loads, packs and unpacks.
struct Pairs {
  int loads = 0, packs = 0, unpacks = 0;
  friend bool operator==(const Pairs&, const Pairs&) = default;
  friend std::ostream& operator<<(std::ostream& to, const Pairs& p) {
    return to << p.loads << " loads, " << p.packs << " packs, " << p.unpacks << " unpacks";
  }
};

/// Of |x| + x with a tensor x of one type, |x| rounded to another one, into f32.
Pairs pairs_of(Dtype in, Dtype between, Isa isa) {
  Problem p = problem_for(StepKind::loop, OpKind::Add);
  p.in = {dense_desc(in, {4, 64})};
  p.out = {dense_desc(Dtype::f32, {4, 64})};
  ExprBuilder b(p.back);
  const Value x = b.load(0);
  b.store(0, b.add(rounded(b, b.apply(ExprOp::abs, x), between), x));
  jit::RowShape shape = jit::parts_of(p)[0].shape(0);
  Pairs pairs;
  for (const jit::Lane& lane : jit::vectors_at_once(p.back, shape, 2, isa).code) {
    pairs.loads += lane.op == jit::LaneOp::load ? 1 : 0;
    pairs.packs += lane.op == jit::LaneOp::pack ? 1 : 0;
    pairs.unpacks += lane.op == jit::LaneOp::unpack ? 1 : 0;
  }
  return pairs;
}

TEST(jit_side_by_side, pairs_of_bf16_vectors_are_loaded_and_rounded_at_once) {
  const bool at_once = converts_to_bf16();
  EXPECT_EQ(pairs_of(Dtype::bf16, Dtype::f16, Isa::avx512), (Pairs{1, 0, 2}));
  EXPECT_EQ(pairs_of(Dtype::f32, Dtype::bf16, Isa::avx512), at_once ? (Pairs{2, 1, 2}) : (Pairs{2, 0, 0}));
  EXPECT_EQ(pairs_of(Dtype::bf16, Dtype::bf16, Isa::avx512), at_once ? (Pairs{1, 1, 4}) : (Pairs{1, 0, 2}));
  EXPECT_EQ(pairs_of(Dtype::f16, Dtype::f16, Isa::avx512), (Pairs{2, 0, 0}));  // one instruction for a vector
  EXPECT_EQ(pairs_of(Dtype::bf16, Dtype::bf16, Isa::avx2), (Pairs{2, 0, 0}));
}

}  // namespace
}  // namespace partita::test
