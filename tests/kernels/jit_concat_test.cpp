// SPDX-License-Identifier: Apache-2.0
// Generated concatenations: the copy of rows of pieces against memcpy, and whole problems in every layout that it takes
// against the reference, on guarded memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/jit/flat/concat_kernel.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

struct Source {
  GuardedMemory memory;
  int64_t row;
};

void check_rows(Isa isa, const std::vector<int64_t>& bytes, int64_t rows, Random& random) {
  SCOPED_TRACE(str(name_of(isa), " ", rows, " rows, first pieces of ", bytes[0], " and ", bytes.back(), " bytes"));
  jit::ConcatShape shape{.pieces = {}, .dst_row = random.whole(0, 9)};
  std::vector<Source> sources;
  std::vector<const void*> from;
  for (int64_t n : bytes) {
    const int64_t row = n + random.whole(0, 5);
    sources.push_back({GuardedMemory(static_cast<size_t>((rows - 1) * row + n), 0), row});
    GuardedMemory& memory = sources.back().memory;
    for (size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<std::byte>(random.whole(0, 255));
    from.push_back(memory.data());
    shape.pieces.push_back({n, row});
    shape.dst_row += n;
  }
  int64_t row_bytes = 0;
  for (int64_t n : bytes) row_bytes += n;
  GuardedMemory got(static_cast<size_t>((rows - 1) * shape.dst_row + row_bytes), 0xee);
  GuardedMemory expected(got.size(), 0xee);
  for (int64_t r = 0; r < rows; ++r) {
    std::byte* to = expected.data() + r * shape.dst_row;
    for (size_t k = 0; k < bytes.size(); to += bytes[k++])
      std::memcpy(to, sources[k].memory.data() + r * sources[k].row, static_cast<size_t>(bytes[k]));
  }
  jit::ConcatKernel(isa, shape)(from.data(), got.data(), rows);
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0);
}

TEST(jit_concat, pieces_of_every_length_are_copied) {
  Random random(1);
  for (Isa isa : generated_isas())
    for (int64_t n = 1; n < 3000; n += n < 300 ? 1 : 67) {
      check_rows(isa, {n, 7}, 3, random);
      if (HasFailure()) return;
    }
}

TEST(jit_concat, any_number_of_sources_is_copied) {
  Random random(2);
  for (Isa isa : generated_isas())
    for (int64_t sources = 1; sources <= 40; ++sources) {
      std::vector<int64_t> bytes;
      for (int64_t k = 0; k < sources; ++k) bytes.push_back(random.whole(1, 200));
      check_rows(isa, bytes, random.whole(1, 9), random);
      if (HasFailure()) return;
    }
}

/// Axes in this order in memory, with gaps between those before `run` of them, which are the innermost.
TensorDesc ordered_desc(Dtype dtype, const Dims& dims, const Dims& order, int run, Random& random) {
  TensorDesc desc{dtype, dims, Dims(dims.size(), 0), random.whole(0, 3)};
  int64_t stride = 1;
  for (int i = dims.size() - 1; i >= 0; --i) {
    const auto d = static_cast<int>(order[i]);
    desc.strides[d] = stride;
    stride *= dims[d];
    if (i <= dims.size() - run && random.whole(0, 3) == 0) stride += random.whole(1, 5);
  }
  return desc;
}

Problem random_concat(Random& random) {
  Problem p = problem_for(StepKind::concat, OpKind::Concat);
  const auto rank = static_cast<int>(random.whole(1, 4));
  Dims order, space;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  for (int d = rank - 1; d > 0; --d) std::swap(order[d], order[static_cast<int>(random.whole(0, d))]);
  const bool lines = random.whole(0, 3) == 0;
  for (int d = 0; d < rank; ++d) space.push_back(lines ? random.pick<int64_t>({1, 4, 16}) : random.whole(1, 9));
  const auto axis = static_cast<int>(random.whole(0, rank - 1));
  const auto place = static_cast<int>(std::ranges::find(order, axis) - order.begin());
  const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::s8, Dtype::boolean});
  p.attrs.set(Attr::axis, random.coin() ? axis : int64_t{axis} - rank);
  Dims whole = space;
  whole[axis] = 0;
  const int64_t most = random.pick<int64_t>({3, 40, 3000});
  for (int64_t k = random.whole(1, 7); k > 0; --k) {
    Dims dims = space;
    dims[axis] = lines ? 16 * random.whole(1, 4) : random.whole(1, most);
    whole[axis] += dims[axis];
    p.in.push_back(ordered_desc(dtype, dims, order, rank - place, random));
  }
  p.out = {ordered_desc(dtype, whole, order, rank - place, random)};
  if (lines || random.coin()) p.out[0].offset = 0;
  if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
  return p;
}

TEST(jit_concat, agrees_with_the_reference) {
  const auto rows = static_cast<int>(generated_isas().size());
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Problem p = random_concat(random);
    SCOPED_TRACE(str("seed ", seed));
    expect_rows_agree(p, random, {.at_least = rows, .target = {.isa = machine_isa(), .threads = 3}});
    if (HasFailure()) return;
  }
}

TEST(jit_concat, declines_what_does_not_lie_in_runs) {
  Problem p = problem_for(StepKind::concat, OpKind::Concat);
  p.attrs.set(Attr::axis, int64_t{0});
  p.in = {dense_desc(Dtype::f32, {2, 3}), dense_desc(Dtype::f32, {5, 3})};
  p.out = {dense_desc(Dtype::f32, {7, 3})};
  const auto is_declined = [&] {
    const Result<Picked> picked = pick_kernel(p, {.isa = machine_isa()});
    return picked.ok() && picked->kernel->slow;
  };
  EXPECT_EQ(is_declined(), !generates_code());
  p.in[1].strides = {1, 5};
  EXPECT_TRUE(is_declined());
  p.in[1] = dense_desc(Dtype::f32, {0, 3});
  EXPECT_TRUE(is_declined());
}

}  // namespace
}  // namespace partita::test
