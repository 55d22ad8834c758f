// SPDX-License-Identifier: Apache-2.0
// Maxima of rows that are compared as stored, whatever bits those hold.
#include "kernels/jit/rows/row_maxima.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

struct Rows {
  Dtype dtype;
  int64_t count, length, gap;  ///< elements between rows
};

int64_t bytes_of(const Rows& rows, int64_t count) { return count * element_bytes(rows.dtype); }

/// Numbers of one sign or both; some zeros, denormals and infinities. No NaN.
void fill(std::byte* to, Dtype dtype, int64_t count, Random& random) {
  const int64_t infinity = dtype == Dtype::f16 ? 0x7c00 : 0x7f80;
  const int64_t most = random.coin() ? infinity - 1 : random.whole(0, infinity - 1);
  const int64_t signs = random.whole(0, 2);
  for (int64_t i = 0; i < count; ++i) {
    int64_t high = random.whole(0, most);
    if (random.whole(0, 200) == 0) high = random.pick<int64_t>({0, 1, infinity});
    if (signs == 1 || (signs == 2 && random.coin())) high |= 0x8000;
    const auto half = static_cast<uint16_t>(high);
    const uint32_t word = static_cast<uint32_t>(half) << 16;
    if (bits_of(dtype) == 16)
      std::memcpy(to + 2 * i, &half, sizeof half);
    else
      std::memcpy(to + 4 * i, &word, sizeof word);
  }
}

TEST(row_maxima, are_the_largest_numbers_of_rows_and_of_what_was_there) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const int64_t least = int64_t{jit::lanes_of(isa)} * 32 / bits_of(dtype);
      const Rows rows{dtype, random.whole(1, 5), least + random.whole(0, random.coin() ? 40 * least : least),
                      random.whole(0, 3)};
      SCOPED_TRACE(str("seed ", seed, ": ", rows.count, " rows of ", rows.length, " ", name_of(dtype)));
      ASSERT_TRUE(jit::RowMaxima::fits(isa, dtype, rows.length));
      const int64_t distance = bytes_of(rows, rows.length + rows.gap);
      const int64_t bytes = (rows.count - 1) * distance + bytes_of(rows, rows.length);
      GuardedMemory memory(static_cast<size_t>(bytes), 0xff);  // gaps are NaN
      auto* data = static_cast<std::byte*>(memory.data());
      std::vector<float> maxima, expected;
      for (int64_t r = 0; r < rows.count; ++r) {
        fill(data + r * distance, dtype, rows.length, random);
        double largest = random.coin() ? -INFINITY : random.real(-100, 100);
        maxima.push_back(static_cast<float>(largest));
        largest = static_cast<double>(maxima.back());
        for (int64_t i = 0; i < rows.length; ++i)
          largest = std::max(largest, load_as_double(data + r * distance, dtype, i));
        expected.push_back(static_cast<float>(largest));
      }
      const jit::RowMaxima kernel(isa, dtype, rows.length, distance);
      kernel(data, maxima.data(), rows.count);
      EXPECT_EQ(maxima, expected);
      if (HasFailure()) return;
    }
}

TEST(row_maxima, fit_known_types_and_rows_of_a_vector_alone) {
  EXPECT_TRUE(jit::RowMaxima::fits(Isa::avx2, Dtype::bf16, 16));
  EXPECT_FALSE(jit::RowMaxima::fits(Isa::avx2, Dtype::bf16, 15));
  EXPECT_FALSE(jit::RowMaxima::fits(Isa::avx512, Dtype::f16, 31));
  EXPECT_FALSE(jit::RowMaxima::fits(Isa::avx512, Dtype::f32, 15));
  EXPECT_FALSE(jit::RowMaxima::fits(Isa::avx512, Dtype::s8, 640));
}

}  // namespace
}  // namespace partita::test
