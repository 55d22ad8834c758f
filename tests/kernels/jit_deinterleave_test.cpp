// SPDX-License-Identifier: Apache-2.0
// Taking rows apart into phases: every type, short and long strides, any length, on guarded memory.
#include <gtest/gtest.h>

#if PARTITA_JIT
#include <algorithm>

#include "kernels/jit/pool/forward/deinterleave.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

constexpr float kUntouched = -77;

void expect_taken_apart(Random& random, Isa isa) {
  const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8});
  const int64_t each = element_bytes(dtype), rows = random.whole(1, 3), gap = random.whole(0, 2);
  jit::InterleavedRows shape;
  shape.dtype = dtype;
  shape.length = random.whole(1, 150);
  shape.stride = random.pick<int64_t>({2, 2, 3, 4, 5, 7, 8, 9, 20});
  const int64_t places = (shape.length + shape.stride - 1) / shape.stride;
  for (int64_t phase = 0; phase < shape.stride; ++phase)
    if (random.whole(0, 3) > 0) shape.phases.push_back(phase);
  shape.row_bytes = (shape.length + gap) * each;
  shape.places_bytes = (places + gap) * 4;
  shape.phase_bytes = rows * shape.places_bytes;
  SCOPED_TRACE(str("seed ", random.seed(), ": ", name_of(dtype), " x", shape.length, " stride ", shape.stride));

  const Buffer from = random_buffer(dense_desc(dtype, {rows * (shape.length + gap) - gap}), random, {-100, 100});
  const int64_t floats = shape.stride * rows * (places + gap);
  GuardedMemory memory(static_cast<size_t>(floats) * sizeof(float), 0);
  auto* to = reinterpret_cast<float*>(memory.data());
  std::fill_n(to, floats, kUntouched);
  std::vector<float> expected(static_cast<size_t>(floats), kUntouched);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < shape.length; ++i) {
      const int64_t phase = i % shape.stride;
      if (std::find(shape.phases.begin(), shape.phases.end(), phase) == shape.phases.end()) continue;
      expected[static_cast<size_t>((phase * rows + row) * (places + gap) + i / shape.stride)] =
          static_cast<float>(from.get(row * (shape.length + gap) + i));
    }
  const jit::Deinterleave take_apart(isa, shape);
  take_apart(from.data(), to, rows);
  for (int64_t i = 0; i < floats; ++i) ASSERT_EQ(to[i], expected[static_cast<size_t>(i)]) << "float " << i;
}

TEST(jit_deinterleave, phases_hold_every_strideth_element) {
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    for (uint64_t seed = 1; seed <= 300 && machine_isa() >= isa; ++seed) {
      Random random(seed);
      expect_taken_apart(random, isa);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace partita::test
#endif
