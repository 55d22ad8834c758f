// SPDX-License-Identifier: Apache-2.0
// Conversions of generated code against src/base, to the bit: every pattern of the narrow types is loaded; what is
// stored and what is rounded are all f32 near the numbers where a type's rounding changes, and a sweep over the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

constexpr Dtype kNarrow[] = {Dtype::bf16, Dtype::f16, Dtype::f8_e5m2, Dtype::f8_e4m3,
                             Dtype::s8,   Dtype::u8,  Dtype::boolean};
constexpr uint32_t kStride = 10007;

/// The generated rows for loops whose operands lie as the result does, one for each instruction set of the machine.
std::vector<const Kernel*> generated_rows() {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels_for(StepKind::loop))
    if (row.isa != Isa::any && machine_isa() >= row.isa &&
        std::string_view(row.name).find("transpose") == std::string_view::npos)
      rows.push_back(&row);
  return rows;
}

Problem copy_problem(Dtype from, Dtype to, int64_t length, Dtype rounded = Dtype::f32) {
  Problem p;
  p.step = StepKind::loop;
  p.in = {dense_desc(from, {length})};
  p.out = {dense_desc(to, {length})};
  ExprBuilder b(p.back);
  auto value = b.load(0);
  if (rounded != Dtype::f32) value = b.apply(ExprOp::cast, value, 0, 0, static_cast<int32_t>(rounded));
  b.store(0, value);
  return p;
}

void run_row(const Kernel& row, const Problem& p, const void* in, void* out) {
  ASSERT_EQ(row.refuse(p, {.isa = row.isa}), nullptr);
  const Result<Run> run = row.make(p, {.isa = row.isa});
  ASSERT_TRUE(run.ok());
  const void* sources[] = {in};
  void* results[] = {out};
  ASSERT_TRUE(run->call({sources, results, nullptr}).ok());
}

/// All f32 within a few places of the numbers of `type`, of the middles between them and of the limits of f32.
std::vector<float> interesting(Dtype type) {
  std::vector<float> list;
  const auto around = [&](float centre) {
    const uint32_t at = std::bit_cast<uint32_t>(centre);
    for (uint32_t away = 0; away < 5; ++away)
      for (uint32_t sign : {0u, 0x80000000u}) list.push_back(std::bit_cast<float>((at + away - 2) ^ sign));
  };
  const auto code = [&](uint32_t bits) {
    float value = 0;
    load_floats(&bits, type, 0, 1, &value);
    return value;
  };
  const uint32_t codes = bits_of(type) == 8 ? 0x7f : bits_of(type) == 16 ? 0x7fff : 0;
  for (uint32_t bits = 0; bits < codes; ++bits) {
    around(code(bits));
    around(static_cast<float>((double{code(bits)} + double{code(bits + 1)}) / 2));
  }
  for (float limit : {0x1p31f, 0x1p24f, 65520.0f, 61440.0f, 464.0f, 127.5f, 255.5f, -128.5f, 0x1p-126f, 0x1p-149f,
                      std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN()})
    around(limit);
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStride)
    list.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return list;
}

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool both_nan(float a, float b) { return std::isnan(a) && std::isnan(b); }

TEST(jit_types, loads_every_pattern) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : kNarrow) {
      SCOPED_TRACE(str(row->name, " ", name_of(type)));
      const int64_t count = int64_t{1} << bits_of(type);
      const auto bytes = static_cast<size_t>(element_bytes(type));
      GuardedMemory patterns(static_cast<size_t>(count) * bytes, 0);
      for (int64_t i = 0; i < count; ++i) std::memcpy(patterns.data() + i * static_cast<int64_t>(bytes), &i, bytes);
      std::vector<float> got(static_cast<size_t>(count)), expected(got);
      run_row(*row, copy_problem(type, Dtype::f32, count), patterns.data(), got.data());
      load_floats(patterns.data(), type, 0, count, expected.data());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(same(got[i], expected[i]) || both_nan(got[i], expected[i])) << "pattern " << i;
    }
}

/// Nothing is converted, so that NaN of every kind stay.
TEST(jit_types, copies_of_whole_words_keep_every_bit) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : kNarrow) {
      SCOPED_TRACE(str(row->name, " ", name_of(type)));
      const int64_t each = element_bytes(type), count = int64_t{1} << bits_of(type);
      std::vector<std::byte> in(static_cast<size_t>(count * each)), out(in.size());
      for (int64_t i = 0; i < count; ++i) std::memcpy(in.data() + i * each, &i, static_cast<size_t>(each));
      run_row(*row, copy_problem(type, type, count), in.data(), out.data());
      EXPECT_EQ(in, out);

      // Rows of 4 and of 12 elements whose order changes, and which lie apart.
      for (int64_t length : {4, 12}) {
        Problem p = copy_problem(type, type, 1);
        p.in[0] = {.dtype = type, .dims = {2, 3, length}, .strides = {16, 32, 1}, .offset = 4};
        p.out[0] = {.dtype = type, .dims = {2, 3, length}, .strides = {3 * length, length, 1}, .offset = 0};
        GuardedMemory from(static_cast<size_t>((4 + 16 + 64 + length) * each), 0),
            to(static_cast<size_t>(6 * length * each), 0xee);
        for (size_t i = 0; i < from.size(); ++i) from.data()[i] = static_cast<std::byte>(0xf0 + i * 7 % 16);
        run_row(*row, p, from.data(), to.data());
        for (int64_t i = 0; i < 6; ++i)
          EXPECT_EQ(std::memcmp(to.data() + i * length * each, from.data() + (4 + i / 3 * 16 + i % 3 * 32) * each,
                                static_cast<size_t>(length * each)),
                    0)
              << "row " << i << " of " << length;
      }
    }
}

TEST(jit_types, unpacks_four_bits_of_rows_of_every_length) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : {Dtype::s4, Dtype::u4})
      for (int64_t count = 1; count < 70; ++count) {
        SCOPED_TRACE(str(row->name, " ", name_of(type), ", ", count, " elements"));
        GuardedMemory pairs(static_cast<size_t>(count + 1) / 2, 0);
        for (size_t i = 0; i < pairs.size(); ++i) pairs.data()[i] = static_cast<std::byte>(i * 37 + 0x1e);
        std::vector<float> got(static_cast<size_t>(count)), expected(got);
        run_row(*row, copy_problem(type, Dtype::f32, count), pairs.data(), got.data());
        load_floats(pairs.data(), type, 0, count, expected.data());
        ASSERT_EQ(got, expected);
      }
}

TEST(jit_types, rows_of_four_bits_begin_with_whole_bytes) {
  for (const Kernel* row : generated_rows()) {
    Problem p = copy_problem(Dtype::u4, Dtype::f32, 6);
    p.out = {dense_desc(Dtype::f32, {3, 6})};
    p.in = {{Dtype::u4, {3, 6}, {8, 1}, 0}};
    EXPECT_EQ(row->refuse(p, {.isa = row->isa}), nullptr);
    p.in[0].strides = {7, 1};
    EXPECT_NE(row->refuse(p, {.isa = row->isa}), nullptr);
    p.in[0] = {Dtype::u4, {3, 6}, {8, 1}, 1};
    EXPECT_NE(row->refuse(p, {.isa = row->isa}), nullptr);
    p.in[0] = {Dtype::u4, {3, 6}, {1, 0}, 0};
    EXPECT_NE(row->refuse(p, {.isa = row->isa}), nullptr);
  }
}

TEST(jit_types, a_repeated_element_is_loaded_as_a_row_is) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : {Dtype::bf16, Dtype::f16, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s8, Dtype::u8, Dtype::boolean,
                       Dtype::s4, Dtype::u4}) {
      SCOPED_TRACE(str(row->name, " ", name_of(type)));
      Problem p = copy_problem(type, Dtype::f32, 19);
      p.in[0].strides[0] = 0;
      for (uint32_t pattern = 0; pattern < 256; ++pattern) {
        const uint32_t bits = bits_of(type) == 16 ? pattern * 257 : pattern;
        float got[19], expected = 0;
        run_row(*row, p, &bits, got);
        load_floats(&bits, type, 0, 1, &expected);
        ASSERT_TRUE(same(got[18], expected) || both_nan(got[18], expected)) << "pattern " << bits;
      }
    }
}

/// AVX512_BF16 takes denormals for zeros.
bool becomes_zero(Dtype type, Isa isa, float value) {
  return type == Dtype::bf16 && isa == Isa::avx512 && converts_to_bf16() && std::fpclassify(value) == FP_SUBNORMAL;
}

TEST(jit_types, stores_to_the_bit) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s8, Dtype::u8,
                       Dtype::s32, Dtype::boolean}) {
      SCOPED_TRACE(str(row->name, " ", name_of(type)));
      const std::vector<float> values = interesting(type);
      const auto count = static_cast<int64_t>(values.size());
      GuardedMemory got(bytes_for(type, count), 0xee);
      std::vector<std::byte> expected(got.size());
      run_row(*row, copy_problem(Dtype::f32, type, count), values.data(), got.data());
      store_floats(expected.data(), type, 0, count, values.data());
      for (int64_t i = 0; i < count; ++i) {
        const auto bytes = bytes_for(type, 1);
        const auto at = i * static_cast<int64_t>(bytes);
        if (std::memcmp(got.data() + at, expected.data() + at, bytes) == 0) continue;
        if (becomes_zero(type, row->isa, values[static_cast<size_t>(i)]) && load_as_double(got.data(), type, i) == 0)
          continue;
        ASSERT_TRUE(both_nan(static_cast<float>(load_as_double(got.data(), type, i)),
                             static_cast<float>(load_as_double(expected.data(), type, i))))
            << values[static_cast<size_t>(i)] << " becomes " << load_as_double(got.data(), type, i) << ", expected "
            << load_as_double(expected.data(), type, i);
      }
    }
}

TEST(jit_types, rounds_inner_values_to_the_bit) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : {Dtype::bf16, Dtype::f16, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s8, Dtype::u8, Dtype::s4,
                       Dtype::u4, Dtype::s32, Dtype::boolean}) {
      SCOPED_TRACE(str(row->name, " ", name_of(type)));
      const std::vector<float> values = interesting(type);
      const auto count = static_cast<int64_t>(values.size());
      std::vector<float> got(values.size()), expected(values.size());
      std::vector<std::byte> narrow(bytes_for(type, count));
      run_row(*row, copy_problem(Dtype::f32, Dtype::f32, count, type), values.data(), got.data());
      store_floats(narrow.data(), type, 0, count, values.data());
      load_floats(narrow.data(), type, 0, count, expected.data());
      for (size_t i = 0; i < got.size(); ++i)
        // Whole numbers have no negative zero in memory.
        ASSERT_TRUE(same(got[i], expected[i]) || both_nan(got[i], expected[i]) ||
                    (got[i] == 0 && (expected[i] == 0 || becomes_zero(type, row->isa, values[i]))))
            << values[i] << " becomes " << got[i] << ", expected " << expected[i];
    }
}

TEST(jit_types, parts_of_vectors_touch_nothing_else) {
  for (const Kernel* row : generated_rows())
    for (Dtype type : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s8, Dtype::u8,
                       Dtype::s32, Dtype::boolean})
      for (int64_t length = 1; length <= 33; ++length) {
        SCOPED_TRACE(str(row->name, " ", name_of(type), " x ", length));
        Random random(static_cast<uint64_t>(length));
        const Problem p = copy_problem(type, type, length);
        Buffer in = random_buffer(p.in[0], random, {0, 100}), out = nan_buffer(p.out[0]);
        run_row(*row, p, in.data(), out.data());
        EXPECT_EQ(difference(out, in, 0), "");
      }
}

}  // namespace
}  // namespace partita::test
