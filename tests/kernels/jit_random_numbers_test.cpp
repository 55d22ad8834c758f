// SPDX-License-Identifier: Apache-2.0
// Random numbers in generated code: each element has the one that its number says (src/base/philox.hpp), however
// numbers lie over the loop, and Dropout's loop has the bits of the reference.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "src/base/philox.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

int64_t any_s64(Random& random) {
  const int64_t near = random.whole(-3, 3);
  switch (random.whole(0, 4)) {
    case 0: return near;
    case 1: return int64_t{UINT32_MAX} + near;
    case 2: return std::numeric_limits<int64_t>::max() + std::min<int64_t>(near, 0);
    case 3: return std::numeric_limits<int64_t>::min() + std::max<int64_t>(near, 0);
    default: return random.whole(0, INT64_MAX - 1);
  }
}

/// A loop whose operands are seed, offset (each as two words) and the numbers; further ones follow.
struct Drawing {
  Problem loop = problem_for(StepKind::loop, OpKind::Wildcard);
  std::vector<GuardedMemory> memory;  ///< of the first two
  std::vector<const void*> in;
  Value drawn = 0;

  Drawing(int64_t seed, int64_t offset, const TensorDesc& numbers, int64_t first) {
    const Dims& space = numbers.dims;
    ExprBuilder b(loop.back);
    std::vector<Value> pairs;
    for (const int64_t number : {seed, offset}) {
      memory.emplace_back(sizeof number, 0);
      std::memcpy(memory.back().data(), &number, sizeof number);
      std::vector<Value> words;
      for (int64_t word : {0, 1}) {
        loop.in.push_back({Dtype::s32, space, Dims(space.size(), 0), word});
        in.push_back(memory.back().data());
        words.push_back(b.load(static_cast<int>(in.size()) - 1));
      }
      pairs.push_back(b.apply(ExprOp::pair_s32, words[0], words[1]));
    }
    loop.in.push_back(numbers);
    in.push_back(reinterpret_cast<const void*>(static_cast<uintptr_t>(first)));
    drawn = b.apply(ExprOp::uniform, pairs[0], pairs[1], 0, static_cast<int32_t>(in.size()) - 1);
  }

  std::vector<Buffer> run(const Kernel& row, int threads) const {
    std::vector<Buffer> out;
    std::vector<void*> results;
    for (const TensorDesc& desc : loop.out) out.push_back(nan_buffer(desc));
    for (Buffer& b : out) results.push_back(b.data());
    const ThreadScope scope(threads);
    const Result<Run> made = row.make(loop, {.isa = row.isa, .threads = threads});
    EXPECT_TRUE(made.ok());
    GuardedMemory scratch((made->scratch_bytes + 63) / 64 * 64, 0xff);
    EXPECT_TRUE(made->call({in, results, scratch.data()}).ok());
    for (const Buffer& b : out) EXPECT_EQ(damage(b), "");
    return out;
  }

  /// Calls check(results) for every row and number of threads; returns how many rows of generated code there were.
  template <class Check>
  int each_row(const Check& check) const {
    int generated = 0;
    for (const Kernel& row : kernels_for(StepKind::loop)) {
      if (machine_isa() < row.isa || row.refuse(loop, {.isa = row.isa})) continue;
      generated += row.isa != Isa::any ? 1 : 0;
      for (const int threads : {1, 2, 3, 8}) {
        SCOPED_TRACE(str(row.name, " with ", threads, " threads"));
        check(run(row, threads));
        if (testing::Test::HasFailure()) return generated;
      }
    }
    return generated;
  }
};

Dims any_space(Random& random) {
  Dims space;
  for (int64_t rank = random.whole(1, 4); rank > 0; --rank) space.push_back(random.whole(1, rank > 2 ? 5 : 40));
  if (random.whole(0, 5) == 0) space = {random.whole(1, 4), random.whole(2000, 9000)};  // for several threads
  return space;
}

TEST(jit_random_numbers, are_those_of_the_elements_numbers_however_these_lie) {
  int generated = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    const Dims space = any_space(random);
    TensorDesc numbers = random.coin() ? dense_desc(Dtype::u8, space) : scattered_desc(Dtype::u8, space, random);
    numbers.offset = random.whole(0, 9);
    for (int d = 0; d < space.size(); ++d) {
      if (random.whole(0, 4) == 0) numbers.strides[d] = 0;
      if (random.whole(0, 9) == 0) numbers.strides[d] = random.pick<int64_t>({2, 3, 4, 1 << 20, 100000007});
    }
    const int64_t first = random.whole(0, int64_t{1} << 34) * (numbers.offset % 4 == 0 ? 4 : 1);
    const int64_t key = any_s64(random), offset = any_s64(random);
    Drawing drawing(key, offset, numbers, first);
    drawing.loop.out = {any_desc(Dtype::f32, space, random)};
    ExprBuilder(drawing.loop.back).store(0, drawing.drawn);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(drawing.loop), " from ", first));
    generated += drawing.each_row([&](const std::vector<Buffer>& got) {
      for (int64_t i = 0; i < elements(space); ++i) {
        int64_t number = first + numbers.offset;
        const Dims at = coordinates(i, space);
        for (int d = 0; d < space.size(); ++d) number += at[d] * numbers.strides[d];
        const float expected = unit_float(dropout_words(key, offset, number / 4)[static_cast<size_t>(number % 4)]);
        ASSERT_EQ(got[0].get(i), static_cast<double>(expected)) << "element " << i << ", number " << number;
      }
    });
    if (HasFailure()) return;
  }
  EXPECT_TRUE(generated > 100 || !generates_code());
}

/// Probabilities whose difference from one is a number of f32, so that the quotient is the reference's to the bit.
TEST(jit_random_numbers, dropout_has_the_bits_of_the_reference) {
  int generated = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    const Dims space = any_space(random);
    const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
    const float probability = random.pick({0.0f, 0.25f, 0.5f, 0.8f, 1.0f, 2.0f, std::nanf("")});
    const int64_t key = any_s64(random), offset = any_s64(random);
    const TensorDesc scalar = dense_desc(Dtype::f32, {1}), whole = dense_desc(Dtype::s64, {1});

    Drawing drawing(key, offset, dense_desc(Dtype::u8, space), 0);
    Problem& loop = drawing.loop;
    loop.in.push_back(any_desc(dtype, space, random));
    loop.in.push_back({Dtype::f32, space, Dims(space.size(), 0), 0});
    loop.out = {any_desc(dtype, space, random)};
    if (random.coin()) loop.out.push_back(any_desc(Dtype::u8, space, random));
    std::vector<Buffer> in;
    in.push_back(random_buffer(loop.in[5], random));
    for (const int64_t number : {key, offset}) {
      in.push_back(nan_buffer(whole));
      std::memcpy(in.back().data(), &number, sizeof number);
    }
    in.push_back(nan_buffer(scalar));
    std::memcpy(in.back().data(), &probability, sizeof probability);
    drawing.in.push_back(in[0].data());
    drawing.in.push_back(in[3].data());

    ExprBuilder b(loop.back);
    const Value x = b.load(5), p = b.load(6), kept = b.ge(drawing.drawn, p);
    b.store(0, b.select(kept, b.div(x, b.sub(b.constant(1), p)), b.constant(0)));
    if (loop.out.size() > 1) b.store(1, kept);

    Problem dropout = problem_for(StepKind::dropout, OpKind::Dropout);
    dropout.in = {loop.in[5], whole, whole, scalar};
    dropout.out = loop.out;
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(loop), " probability ", probability));
    const std::vector<Buffer> expected = reference_results(dropout, in);
    generated +=
        drawing.each_row([&](const std::vector<Buffer>& got) { EXPECT_EQ(byte_difference(got, expected), ""); });
    if (HasFailure()) return;
  }
  EXPECT_TRUE(generated > 80 || !generates_code());
}

TEST(jit_random_numbers, are_folded_as_they_are_stored) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const Dims space{random.whole(1, 60), random.whole(1, 70)};
    Drawing drawing(seed, 1, dense_desc(Dtype::u8, space), 0);
    const bool rows = random.coin();
    drawing.loop.out = {{Dtype::f32, space, rows ? Dims{1, 0} : Dims{0, 1}, 0}};
    ExprBuilder b(drawing.loop.back);
    b.fold(Fold::max, 0, drawing.drawn);
    std::vector<float> largest(static_cast<size_t>(rows ? space[0] : space[1]), 0);
    for (int64_t i = 0; i < elements(space); ++i) {
      float& most = largest[static_cast<size_t>(rows ? i / space[1] : i % space[1])];
      most =
          std::max(most, unit_float(dropout_words(static_cast<int64_t>(seed), 1, i / 4)[static_cast<size_t>(i % 4)]));
    }
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(drawing.loop)));
    drawing.each_row([&](const std::vector<Buffer>& got) {
      for (size_t k = 0; k < largest.size(); ++k)
        ASSERT_EQ(std::memcmp(got[0].bytes.data() + k * sizeof(float), &largest[k], sizeof(float)), 0)
            << "number " << k;
    });
    if (HasFailure()) return;
  }
}

TEST(jit_random_numbers, neighbours_farther_apart_than_generated_code_counts_are_refused) {
  Drawing drawing(1, 2, {Dtype::u8, {8}, {int64_t{1} << 30}, 0}, 0);
  drawing.loop.out = {dense_desc(Dtype::f32, {8})};
  ExprBuilder(drawing.loop.back).store(0, drawing.drawn);
  EXPECT_EQ(drawing.each_row([](const std::vector<Buffer>&) {}), 0);
}

}  // namespace
}  // namespace partita::test
