// SPDX-License-Identifier: Apache-2.0
// Conversions of elements against a straightforward oracle: every pattern of 8 and 16 bits, every tie, every limit.
#include "src/base/dtype.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "tests/support/random.hpp"

namespace partita {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Format {
  Dtype dtype;
  int exponent_bits, mantissa_bits;
  bool infinite;  ///< has infinities; else only the all-ones pattern is special, and it is NaN
};
const Format kFormats[] = {
    {Dtype::f16, 5, 10, true}, {Dtype::bf16, 8, 7, true}, {Dtype::f8_e5m2, 5, 2, true}, {Dtype::f8_e4m3, 4, 3, false}};

/// The value of a pattern, from the definition of the format.
double value_of_code(const Format& f, unsigned code) {
  const unsigned mantissa = code & ((1u << f.mantissa_bits) - 1);
  const int exponent = static_cast<int>(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const double sign = code >> (f.exponent_bits + f.mantissa_bits) & 1u ? -1 : 1;
  const int top = (1 << f.exponent_bits) - 1, bias = (1 << (f.exponent_bits - 1)) - 1;
  if (f.infinite && exponent == top) return mantissa ? kNan : sign * kInf;
  if (!f.infinite && exponent == top && mantissa == (1u << f.mantissa_bits) - 1) return kNan;
  const double fraction = mantissa / std::pow(2.0, f.mantissa_bits);
  return exponent == 0 ? sign * fraction * std::pow(2.0, 1 - bias)
                       : sign * (1 + fraction) * std::pow(2.0, exponent - bias);
}

unsigned codes(const Format& f) { return 1u << (1 + f.exponent_bits + f.mantissa_bits); }

double load_code(const Format& f, unsigned code) {
  const uint16_t word = static_cast<uint16_t>(code);
  const uint8_t byte = static_cast<uint8_t>(code);
  return codes(f) > 256 ? load_as_double(&word, f.dtype, 0) : load_as_double(&byte, f.dtype, 0);
}

unsigned store_code(const Format& f, double value) {
  uint16_t bits = 0;
  store_from_double(&bits, f.dtype, 0, value);
  return bits;
}

unsigned store_row_code(const Format& f, float value) {
  uint16_t bits = 0;
  store_floats(&bits, f.dtype, 0, 1, &value);
  return bits;
}

bool same_value(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(dtype, every_pattern_of_a_small_float_has_its_defined_value) {
  for (const Format& f : kFormats) {
    for (unsigned code = 0; code < codes(f); ++code) {
      ASSERT_TRUE(same_value(load_code(f, code), value_of_code(f, code))) << name_of(f.dtype) << " " << code;
    }
  }
}

TEST(dtype, every_pattern_comes_back_after_a_round_trip) {
  for (const Format& f : kFormats) {
    for (unsigned code = 0; code < codes(f); ++code) {
      const double value = load_code(f, code);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(load_code(f, store_code(f, value)))) << code;
        ASSERT_TRUE(std::isnan(load_code(f, store_row_code(f, static_cast<float>(value))))) << code;
        continue;
      }
      ASSERT_EQ(store_code(f, value), code) << name_of(f.dtype);
      ASSERT_EQ(store_row_code(f, static_cast<float>(value)), code) << name_of(f.dtype);
    }
  }
}

TEST(dtype, ties_go_to_the_even_pattern_and_neighbours_of_ties_do_not) {
  for (const Format& f : kFormats) {
    const unsigned sign = codes(f) / 2;
    for (unsigned code = 0; code + 1 < sign; ++code) {
      const double low = value_of_code(f, code), high = value_of_code(f, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double tie = (low + high) / 2;  // exact: both have few bits
      const unsigned even = code % 2 == 0 ? code : code + 1;
      for (unsigned s : {0u, sign}) {
        const double by = s ? -1 : 1;
        ASSERT_EQ(store_code(f, by * tie), s | even) << name_of(f.dtype) << " " << tie;
        ASSERT_EQ(store_code(f, by * std::nextafter(tie, low)), s | code) << name_of(f.dtype) << " " << tie;
        ASSERT_EQ(store_code(f, by * std::nextafter(tie, high)), s | (code + 1)) << name_of(f.dtype) << " " << tie;
        const float below = std::nextafter(static_cast<float>(tie), static_cast<float>(low));
        const float above = std::nextafter(static_cast<float>(tie), static_cast<float>(high));
        ASSERT_EQ(store_row_code(f, static_cast<float>(by * tie)), s | even) << name_of(f.dtype) << " " << tie;
        ASSERT_EQ(store_row_code(f, static_cast<float>(by) * below), s | code) << name_of(f.dtype) << " " << tie;
        ASSERT_EQ(store_row_code(f, static_cast<float>(by) * above), s | (code + 1)) << name_of(f.dtype);
      }
    }
  }
}

TEST(dtype, a_double_is_rounded_once) {
  // 1 + 2^-11 is a tie of f16; a little above it must go up although an f32 in between would lose the little.
  const double value = 1 + std::pow(2.0, -11) + std::pow(2.0, -40);
  uint16_t bits = 0;
  store_from_double(&bits, Dtype::f16, 0, value);
  EXPECT_EQ(bits, 0x3c01);
}

TEST(dtype, what_is_too_large_becomes_infinite_or_the_largest_e4m3) {
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32_to_f8_e5m2(61439.0f), 0x7b);
  EXPECT_EQ(f32_to_f8_e5m2(61440.0f), 0x7c);
  EXPECT_EQ(f32_to_f8_e4m3(448.0f), 0x7e);
  EXPECT_EQ(f32_to_f8_e4m3(449.0f), 0x7e);
  EXPECT_EQ(f32_to_f8_e4m3(-1e30f), 0xfe);
  EXPECT_EQ(f32_to_f8_e4m3(std::numeric_limits<float>::infinity()), 0x7e);
  EXPECT_EQ(f32_to_f8_e4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7f, 0x7f);
}

TEST(dtype, single_conversions_and_rows_agree_on_random_bits) {
  test::Random random(20);
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  for (Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s8, Dtype::u8, Dtype::s32,
                      Dtype::s64, Dtype::f64, Dtype::boolean, Dtype::s4, Dtype::u4, Dtype::f32}) {
    std::vector<float> values(4001);
    for (float& v : values) {
      v = random.coin() ? std::bit_cast<float>(static_cast<uint32_t>(random.whole(0, UINT32_MAX)))
                        : static_cast<float>(random.whole(-600, 599)) / 4.0f;
    }
    std::vector<std::byte> by_row(values.size() * 8), by_element(values.size() * 8);
    const auto n = static_cast<int64_t>(values.size());
    store_floats(by_row.data(), dtype, 0, n, values.data());
    for (int64_t i = 0; i < n; ++i) store_from_double(by_element.data(), dtype, i, values[static_cast<size_t>(i)]);
    std::vector<float> back(values.size());
    load_floats(by_row.data(), dtype, 0, n, back.data());
    for (int64_t i = 0; i < n; ++i) {
      const double expected = load_as_double(by_element.data(), dtype, i);
      ASSERT_TRUE(same_value(load_as_double(by_row.data(), dtype, i), expected))
          << name_of(dtype) << " " << values[static_cast<size_t>(i)];
      ASSERT_TRUE(same_value(back[static_cast<size_t>(i)], static_cast<float>(expected))) << name_of(dtype);
    }
  }
}

TEST(dtype, rows_of_half_bytes_start_and_end_anywhere) {
  for (const Dtype dtype : {Dtype::s4, Dtype::u4}) {
    constexpr int64_t kElements = 40;
    std::vector<std::byte> data(kElements / 2);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37 + 11);
    for (int64_t at = 0; at < 4; ++at)
      for (int64_t n = 0; at + n <= kElements; ++n) {
        std::vector<float> row(static_cast<size_t>(n) + 1, 99);
        load_floats(data.data(), dtype, at, n, row.data());
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(row[static_cast<size_t>(i)], static_cast<float>(load_as_double(data.data(), dtype, at + i)))
              << name_of(dtype) << ", " << n << " from " << at;
        ASSERT_EQ(row.back(), 99) << name_of(dtype) << ", " << n << " from " << at;
      }
  }
}

TEST(dtype, integers_saturate_and_round_to_even) {
  struct Case {
    Dtype dtype;
    double from, to;
  };
  const Case cases[] = {
      {Dtype::s8, 2.5, 2},
      {Dtype::s8, 3.5, 4},
      {Dtype::s8, -2.5, -2},
      {Dtype::s8, 300, 127},
      {Dtype::s8, -300, -128},
      {Dtype::u8, -1, 0},
      {Dtype::u8, 255.5, 255},
      {Dtype::u8, 0.5, 0},
      {Dtype::s8, kNan, 0},
      {Dtype::s32, kNan, 0},
      {Dtype::s64, kNan, 0},
      {Dtype::s8, kInf, 127},
      {Dtype::s32, 3e9, 2147483647.0},
      {Dtype::s32, -kInf, -2147483648.0},
      {Dtype::s32, 16777217, 16777217},
      {Dtype::s64, 1e300, 9223372036854775807.0},
      {Dtype::s64, -1e300, -9223372036854775808.0},
      {Dtype::s64, 1.5, 2},
      {Dtype::s4, 9, 7},
      {Dtype::s4, -9, -8},
      {Dtype::u4, 99, 15},
      {Dtype::u4, -3, 0},
      {Dtype::boolean, 0, 0},
      {Dtype::boolean, -0.25, 1},
  };
  for (const Case& c : cases) {
    uint64_t memory = 0;
    store_from_double(&memory, c.dtype, 0, c.from);
    EXPECT_EQ(load_as_double(&memory, c.dtype, 0), c.to) << name_of(c.dtype) << " from " << c.from;
    if (c.from != static_cast<double>(static_cast<float>(c.from)) && !std::isnan(c.from)) continue;
    const float from = static_cast<float>(c.from);
    memory = 0;
    store_floats(&memory, c.dtype, 0, 1, &from);
    EXPECT_EQ(load_as_double(&memory, c.dtype, 0), c.to) << name_of(c.dtype) << " row from " << c.from;
  }
}

TEST(dtype, four_bit_types_keep_two_elements_a_byte_low_half_first) {
  uint8_t bytes[2] = {0, 0};
  store_from_double(bytes, Dtype::s4, 0, -1);
  store_from_double(bytes, Dtype::s4, 1, 3);
  store_from_double(bytes, Dtype::s4, 2, -8);
  EXPECT_EQ(bytes[0], 0x3f);
  EXPECT_EQ(bytes[1], 0x08);
  store_from_double(bytes, Dtype::s4, 0, 5);
  EXPECT_EQ(bytes[0], 0x35);
  EXPECT_EQ(load_as_double(bytes, Dtype::s4, 2), -8);
  EXPECT_EQ(load_as_double(bytes, Dtype::u4, 2), 8);
}

TEST(dtype, sizes_follow_the_bits) {
  EXPECT_EQ(bytes_for(Dtype::s4, 0), 0u);
  EXPECT_EQ(bytes_for(Dtype::s4, 3), 2u);
  EXPECT_EQ(bytes_for(Dtype::f64, 3), 24u);
  EXPECT_EQ(bytes_for(Dtype::bf16, 3), 6u);
  EXPECT_EQ(bytes_for(Dtype::undef, 3), 0u);
}

TEST(dtype, every_name_finds_its_type_again) {
  int found = 0;
  for (int number = 0; number < 32; ++number) {
    const auto dtype = static_cast<Dtype>(number);
    if (name_of(dtype) == "unknown") continue;
    ++found;
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  }
  EXPECT_EQ(found, 14);
  EXPECT_FALSE(dtype_named("unknown").has_value());
  EXPECT_FALSE(dtype_named("F32").has_value());
  EXPECT_TRUE(is_floating(Dtype::f8_e4m3) && !is_floating(Dtype::s32));
  EXPECT_TRUE(is_integer(Dtype::u4) && !is_integer(Dtype::boolean) && !is_integer(Dtype::f16));
}

}  // namespace
}  // namespace partita
