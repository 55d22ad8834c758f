// SPDX-License-Identifier: Apache-2.0
// Copies in blocks: moves of every kind against plain loops on guarded memory, and which copies are made in blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/jit/flat/block_copy.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

/// Any order of the axes in memory, here and there with gaps.
TensorDesc turned_desc(Dtype dtype, const Dims& dims, Random& random) {
  TensorDesc desc{dtype, dims, Dims(dims.size(), 0), 0};
  Dims order;
  for (int d = 0; d < dims.size(); ++d) order.push_back(d);
  for (int d = dims.size() - 1; d > 0; --d) std::swap(order[d], order[static_cast<int>(random.whole(0, d))]);
  int64_t stride = 1;
  for (int i = dims.size() - 1; i >= 0; --i) {
    const auto d = static_cast<int>(order[i]);
    desc.strides[d] = stride;
    stride = stride * dims[d] + (random.whole(0, 4) == 0 ? random.whole(1, 5) : 0);
  }
  return desc;
}

Problem random_copy(Random& random) {
  const Dtype dtype = random.coin() ? Dtype::f32 : Dtype::bf16;
  Dims dims;
  const bool lines = random.whole(0, 2) == 0;
  for (int64_t d = random.whole(1, 5); d > 0; --d)
    dims.push_back(lines ? random.pick<int64_t>({2, 4, 16, 32}) : random.pick<int64_t>({1, 2, 3, 4, 5, 7, 9, 14, 17}));
  Problem p = copy_loop(turned_desc(dtype, dims, random), turned_desc(dtype, dims, random));
  if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
  return p;
}

/// The source's elements are its own bytes' numbers; what is written must be nothing but they.
void check_copy(const Problem& p, const jit::BlockPlan& plan, int threads) {
  SCOPED_TRACE(str(text_of(p.in[0]), " to ", text_of(p.out[0]), ", ", threads, " threads"));
  const int64_t each = element_bytes(p.in[0].dtype);
  const auto bytes_of = [&](const TensorDesc& desc) {
    return static_cast<size_t>((span_of(desc.dims, desc.strides) + desc.offset) * each);
  };
  GuardedMemory src(bytes_of(p.in[0]), 0), got(bytes_of(p.out[0]), 0xee), expected(bytes_of(p.out[0]), 0xee);
  for (size_t i = 0; i < src.size(); ++i) src.data()[i] = static_cast<std::byte>(i * 37 + i / 251);
  for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
    const Dims at = coordinates(i, p.out[0].dims);
    int64_t from = p.in[0].offset, to = p.out[0].offset;
    for (int d = 0; d < at.size(); ++d) from += at[d] * p.in[0].strides[d], to += at[d] * p.out[0].strides[d];
    std::memcpy(expected.data() + to * each, src.data() + from * each, static_cast<size_t>(each));
  }
  const auto run = jit::make_block_copy(p, {.isa = Isa::avx512, .threads = threads}, plan);
  ASSERT_TRUE(run.ok()) << run.status().text();
  const void* in[] = {src.data()};
  void* out[] = {got.data()};
  GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0xff);
  ASSERT_TRUE(run->call({in, out, scratch.data()}).ok());
  ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0);
}

TEST(jit_blocks, elements_go_to_their_places) {
  if (!has_avx512()) GTEST_SKIP() << "blocks are copied with AVX-512";
  int made = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    SCOPED_TRACE(str("seed ", seed));
    const Problem p = random_copy(random);
    const Problem copy = random.coin() ? jit::prepared(p) : jit::in_words(jit::prepared(p));
    const auto plan = jit::plan_blocks(copy);
    if (!plan) continue;
    ++made;
    Problem tried = copy;
    tried.result_bytes = p.result_bytes;
    check_copy(tried, *plan, static_cast<int>(random.whole(1, 3)));
    if (HasFailure()) return;
  }
  EXPECT_GT(made, 300);
}

TensorDesc permuted_source(Dtype dtype, const Dims& dims, const Dims& order) {
  return {dtype, permuted(dims, order), permuted(dense_strides(dims), order), 0};
}

bool is_in_blocks(Dtype dtype, const Dims& dims, const Dims& order) {
  const Problem p = copy_loop(permuted_source(dtype, dims, order), dense_desc(dtype, permuted(dims, order)));
  const auto plan = jit::block_copy_plan(p, {.isa = Isa::avx512});
  EXPECT_FALSE(jit::block_copy_plan(p, {.isa = Isa::avx2}));
  return plan.has_value();
}

TEST(jit_blocks, short_runs_are_copied_in_blocks) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    // patches of an image, channels first and last within them, and back
    EXPECT_TRUE(is_in_blocks(dtype, {2, 3, 56, 4, 56, 4}, {0, 2, 4, 1, 3, 5}));
    EXPECT_TRUE(is_in_blocks(dtype, {2, 3, 16, 14, 16, 14}, {0, 2, 4, 3, 5, 1}));
    EXPECT_TRUE(is_in_blocks(dtype, {2, 16, 16, 14, 14, 3}, {0, 5, 1, 3, 2, 4}));
    // blocks of depth to cells
    EXPECT_TRUE(is_in_blocks(dtype, {1, 48, 48, 2, 2, 3}, {0, 1, 3, 2, 4, 5}));
    // short axes in the opposite order
    EXPECT_TRUE(is_in_blocks(dtype, {100, 3, 32, 3}, {0, 3, 2, 1}));
  }
}

TEST(jit_blocks, long_axes_are_exchanged_in_tiles_and_long_runs_copied) {
  EXPECT_FALSE(is_in_blocks(Dtype::f32, {4, 64, 56, 56}, {0, 2, 3, 1}));
  EXPECT_FALSE(is_in_blocks(Dtype::bf16, {4, 56, 56, 64}, {0, 3, 1, 2}));
  EXPECT_FALSE(is_in_blocks(Dtype::f32, {768, 3072}, {1, 0}));
  EXPECT_FALSE(is_in_blocks(Dtype::f32, {2, 128, 12, 128}, {0, 2, 1, 3}));
  // a run that becomes few rows has a kernel of its own
  EXPECT_FALSE(is_in_blocks(Dtype::f32, {4, 224, 224, 3}, {0, 3, 1, 2}));
}

}  // namespace
}  // namespace partita::test
