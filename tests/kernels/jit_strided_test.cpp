// SPDX-License-Identifier: Apache-2.0
// Transposing generated code on guarded memory: the copy of tiles against plain loops, and loops whose operands and
// outputs lie in any order, with gaps or repeated, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/jit/transpose.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

void check_transpose(Isa isa, const jit::TransposeShape& s) {
  const auto bytes = static_cast<size_t>(s.bytes);
  GuardedMemory src(static_cast<size_t>((s.a - 1) * s.src_row + s.b * s.bytes), 0);
  GuardedMemory dst(static_cast<size_t>((s.b - 1) * s.dst_row + s.a * s.bytes), 0xee);
  for (size_t i = 0; i < src.size(); ++i) src.data()[i] = static_cast<std::byte>(i * 37 + i / 251);
  const jit::TransposeKernel kernel(isa, s);
  kernel(src.data(), dst.data());
  std::vector<bool> written(dst.size());
  for (int64_t a = 0; a < s.a; ++a)
    for (int64_t b = 0; b < s.b; ++b) {
      const int64_t from = a * s.src_row + b * s.bytes, to = b * s.dst_row + a * s.bytes;
      ASSERT_EQ(std::memcmp(src.data() + from, dst.data() + to, bytes), 0) << "element " << a << ", " << b;
      std::fill_n(written.begin() + to, s.bytes, true);
    }
  for (size_t i = 0; i < dst.size(); ++i) ASSERT_TRUE(written[i] || dst.data()[i] == std::byte{0xee}) << "byte " << i;
}

TEST(jit_strided, tiles_of_every_size_are_transposed) {
  for (Isa isa : generated_isas())
    for (int bytes : {1, 2, 4})
      for (int64_t a = 1; a <= 35; a += a < 18 ? 1 : 4)
        for (int64_t b = 1; b <= 35; b += b < 18 ? 1 : 4) {
          SCOPED_TRACE(str(name_of(isa), " ", bytes, " bytes, ", a, " x ", b));
          Random random(static_cast<uint64_t>(a * 100 + b));
          check_transpose(isa, {bytes, a, b, (b + random.whole(0, 3)) * bytes, (a + random.whole(0, 3)) * bytes});
          if (HasFailure()) return;
        }
}

TEST(jit_strided, streaming_transposes_write_the_same) {
  for (Isa isa : generated_isas()) check_transpose(isa, {4, 48, 21, 21 * 4, 64 * 4, true});
}

/// Memory order, gaps and offset at random; inputs may repeat along axes.
TensorDesc strided(Dtype dtype, const Dims& space, Random& random, bool output) {
  if (output || random.whole(0, 2) > 0) return any_desc(dtype, space, random);
  Dims kept = space;
  for (int64_t& extent : kept)
    if (random.coin()) extent = 1;
  TensorDesc desc = any_desc(dtype, kept, random);
  for (int d = 0; d < space.size(); ++d)
    if (kept[d] != space[d]) desc.strides[d] = 0;
  desc.dims = space;
  return desc;
}

/// Axes of the memory in reverse, as between channel-first and channel-last.
TensorDesc reversed(Dtype dtype, const Dims& space) {
  TensorDesc desc{.dtype = dtype, .dims = space, .strides = space};
  int64_t stride = 1;
  for (int d = 0; d < space.size(); ++d) {
    desc.strides[d] = stride;
    stride *= space[d];
  }
  return desc;
}

Problem random_loop(Random& random) {
  Dims space;
  for (int64_t rank = random.whole(1, 4); rank > 0; --rank)
    space.push_back(random.whole(0, 5) == 0 ? random.whole(1, 3) : random.whole(1, 40));
  if (space.size() == 4) space[0] = random.whole(1, 3), space[1] = random.whole(1, 9);
  if (random.whole(0, 9) == 0) space = {random.whole(100, 700), random.whole(1, 70)};  // more than a tile
  Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
  const auto type = [&] {
    return random.pick({Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::s32});
  };
  for (int64_t k = random.whole(1, 3); k > 0; --k) {
    const Dtype dtype = random.whole(0, 7) == 0 ? random.pick({Dtype::s4, Dtype::u4, Dtype::f64, Dtype::s64}) : type();
    p.in.push_back(random.coin() ? reversed(dtype, space) : strided(dtype, space, random, false));
  }
  for (int64_t k = random.whole(1, 2); k > 0; --k)
    p.out.push_back(random.whole(0, 3) == 0 ? reversed(type(), space) : strided(type(), space, random, true));
  ExprBuilder b(p.back);
  std::vector<ExprBuilder::Value> values;
  for (size_t k = 0; k < p.in.size(); ++k) {
    const auto loaded = b.load(static_cast<int>(k));
    values.push_back(p.in[k].dtype == Dtype::s32 ? b.apply(ExprOp::to_f32, loaded) : loaded);
  }
  auto sum = values[0];
  for (size_t k = 1; k < values.size(); ++k) sum = b.add(sum, b.mul(values[k], b.constant(0.5f)));
  if (random.whole(0, 3) == 0)
    sum = b.add(sum, b.apply(ExprOp::to_f32, b.index(static_cast<int>(random.whole(0, space.size() - 1)))));
  const bool copy = random.whole(0, 3) == 0;
  for (size_t k = 0; k < p.out.size(); ++k) b.store(static_cast<int>(k), copy || k == 1 ? values[0] : sum);
  return p;
}

TEST(jit_strided, loops_agree_with_the_interpreter_to_the_bit) {
  constexpr uint64_t kSeeds = 400;
  int compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    const Problem p = random_loop(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), " ", text_of(p.back)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-9, 9}));
    const auto rows = kernels_for(StepKind::loop);
    const auto expected = run_kernel(rows.back(), p, in, 1);
    for (const Kernel& row : rows.first(rows.size() - 1)) {
      if (std::string_view(row.name).find("transpose") == std::string_view::npos) continue;
      if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa})) continue;
      SCOPED_TRACE(row.name);
      const auto got = run_kernel(row, p, in, static_cast<int>(random.whole(1, 3)));
      for (size_t k = 0; k < got.size(); ++k) {
        EXPECT_EQ(difference(got[k], expected[k], 0), "");
        EXPECT_EQ(damage(got[k]), "");
      }
      ++compared;
      if (HasFailure()) return;
    }
  }
  if (!generated_isas().empty()) {
    EXPECT_GE(compared, static_cast<int>(kSeeds) / 2);
  }
}

}  // namespace
}  // namespace partita::test
