// SPDX-License-Identifier: Apache-2.0
// Joining of folded numbers: as one by one, to the bit, for counts around those that wider vectors take.
#include "kernels/loop/fold_numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace partita::test {
namespace {

constexpr int64_t kMost = 100;

/// Some are NaN, infinite or zeros of either sign.
double number(std::mt19937& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (random() % 12) {
    case 0: return std::numeric_limits<float>::quiet_NaN();
    case 1: return kInfinity;
    case 2: return -kInfinity;
    case 3: return -0.0;
    default: return std::uniform_real_distribution<float>(-2, 2)(random);
  }
}

/// Which NaN it is depends on the order of operands, which compilers may choose.
template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
void expect_one_by_one(uint32_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const Fold how : {Fold::sum, Fold::max, Fold::min, Fold::mul})
    for (int64_t n = 0; n <= kMost; ++n) {
      std::vector<double> to(kMost + 1), expected;
      std::vector<T> from(kMost + 1);
      for (double& x : to) x = number(random);
      for (T& x : from) x = static_cast<T>(number(random));
      expected = to;
      for (int64_t i = 0; i < n; ++i) expected[i] = folded(how, to[i], static_cast<double>(from[i]));
      fold_numbers(how, to.data(), from.data(), n);
      for (int64_t i = 0; i <= kMost; ++i)
        ASSERT_TRUE(same(to[i], expected[i])) << "number " << i << " of " << n << ": " << to[i] << ", " << expected[i];
    }
}

TEST(FoldNumbers, OfFloatsAreThoseOfOneByOne) { expect_one_by_one<float>(std::random_device{}()); }

TEST(FoldNumbers, OfDoublesAreThoseOfOneByOne) { expect_one_by_one<double>(std::random_device{}()); }

TEST(FoldNumbers, AreRoundedOneByOne) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int64_t n = 0; n <= kMost; ++n) {
    std::vector<double> from(kMost + 1);
    for (double& x : from) x = number(random) / 3;
    std::vector<float> to(kMost + 1, 7.0f);
    round_numbers(to.data(), from.data(), n);
    for (int64_t i = 0; i <= kMost; ++i)
      ASSERT_TRUE(same(to[i], i < n ? static_cast<float>(from[i]) : 7.0f)) << "number " << i << " of " << n;
  }
}

}  // namespace
}  // namespace partita::test
