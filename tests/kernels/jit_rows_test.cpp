// SPDX-License-Identifier: Apache-2.0
// Generated loops against the interpreter: random expressions, types, shapes, layouts and partial vectors, under every
// instruction set of the machine, on guarded memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/jit/flat/row_kernel.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

TEST(jit_rows, loops_agree_with_the_interpreter) {
  constexpr uint64_t kSeeds = 300;
  int compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    compared += expect_generated_rows_agree(random_loop(random), random, Closeness::rounded);
    if (HasFailure()) return;
  }
  if (generates_code()) {
    EXPECT_GE(compared, static_cast<int>(kSeeds) / 2);
  }
}

/// However many rows a call has, each has the same sum to the bit.
TEST(jit_rows, numbers_of_rows_do_not_depend_on_the_other_rows) {
  constexpr int64_t kRows = 11;
  Random random(7);
  for (const Isa isa : generated_isas())
    for (const Fold how : {Fold::sum, Fold::max, Fold::min, Fold::mul})
      for (const int64_t length : {1, 7, 16, 28, 33, 190, 300}) {
        SCOPED_TRACE(str(name_of(isa), " length ", length, " fold ", static_cast<int>(how)));
        std::vector<float> src(static_cast<size_t>(kRows * length));
        for (float& x : src) x = static_cast<float>(random.real(0.5, 1.5));
        if (how == Fold::max || how == Fold::min) src[static_cast<size_t>(length)] = NAN;  // of the second row
        jit::RowKernelWriter w;
        const auto x = w.load({Dtype::f32, true, length * 4});
        w.fold({Dtype::f32, false, 4, how}, w.builder().mul(x, x));
        const auto kernel = w.make(isa, length, false);
        std::vector<float> together(kRows, 1), alone(kRows, 1);
        const void* all_in[] = {src.data()};
        void* all_out[] = {together.data()};
        (*kernel)({all_in, all_out, nullptr, kRows});
        for (int64_t row = 0; row < kRows; ++row) {
          const void* in[] = {src.data() + row * length};
          void* out[] = {alone.data() + row};
          (*kernel)({in, out, nullptr, 1});
        }
        EXPECT_EQ(std::memcmp(together.data(), alone.data(), sizeof(float) * kRows), 0);
      }
}

}  // namespace
}  // namespace partita::test
