// SPDX-License-Identifier: Apache-2.0
// Copies between plain and blocked layouts give what oneDNN's reorders give.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "kernels/onednn/blocked_copy.hpp"
#include "kernels/onednn/primitive_run.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

using dnnl::memory;
using tag = memory::format_tag;

struct Copied {
  memory::dims dims;
  tag plain, blocked;
};

std::vector<std::byte> bytes_of(const memory::desc& desc) {
  std::vector<std::byte> bytes(desc.get_size());
  // no NaN, and no denormals, which some of oneDNN's reorders make zero
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(4 + i * 7 % 109);
  return bytes;
}

std::vector<std::byte> reordered(const memory::desc& from, const memory::desc& to, std::vector<std::byte> source) {
  std::vector<std::byte> made(to.get_size());
  const dnnl::engine& cpu = onednn::cpu_engine();
  memory a(from, cpu, source.data()), b(to, cpu, made.data());
  dnnl::stream on(cpu);
  dnnl::reorder(a, b).execute(on, a, b);
  on.wait();
  return made;
}

void expect_same(const memory::desc& from, const memory::desc& to) {
  const Target target{.isa = machine_isa(), .threads = 2};
  const auto run = onednn::blocked_copy(from, to, target);
  ASSERT_EQ(run.has_value(), generates_code());
  if (!run) return;
  const std::vector<std::byte> source = bytes_of(from);
  std::vector<std::byte> made(to.get_size()), scratch(run->scratch_bytes + 64);
  const void* in = source.data();
  void* out = made.data();
  void* aligned = scratch.data();
  size_t room = scratch.size();
  ASSERT_NE(std::align(64, run->scratch_bytes, aligned, room), nullptr);
  ASSERT_TRUE(run->call({{&in, 1}, {&out, 1}, aligned}).ok());
  EXPECT_EQ(made, reordered(from, to, source));
}

TEST(blocked_copy, gives_what_a_reorder_gives) {
  const Copied cases[] = {
      {{32, 48, 3, 3}, tag::abcd, tag::ABcd16b16a},      {{64, 32, 1, 1}, tag::abcd, tag::ABcd16b16a},
      {{64, 96, 3, 3}, tag::abcd, tag::Bcda32b},         {{48, 20, 5, 1}, tag::abcd, tag::Acdb48a},
      {{2, 32, 7, 5}, tag::abcd, tag::aBcd16b},          {{2, 32, 7, 5}, tag::acdb, tag::aBcd16b},
      {{3, 16, 16, 2, 3}, tag::abcde, tag::aBCde16b16c}, {{2, 64, 9, 7}, tag::abcd, tag::acdb},
      {{64, 32, 3, 3}, tag::acdb, tag::Acdb16a}};
  for (const Copied& c : cases)
    for (const auto type : {memory::data_type::f32, memory::data_type::f16, memory::data_type::bf16}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(c.blocked)) + " of type " + std::to_string(static_cast<int>(type)));
      const memory::desc plain(c.dims, type, c.plain), blocked(c.dims, type, c.blocked);
      expect_same(plain, blocked);
      expect_same(blocked, plain);
    }
}

/// Pairs of one axis for every element of another.
TEST(blocked_copy, makes_pairs_of_elements_that_lie_beside_each_other) {
  const memory::dims dims = {64, 32, 3, 3};
  for (const auto type : {memory::data_type::f16, memory::data_type::bf16})
    expect_same({dims, type, tag::cdba}, {dims, type, tag::AcdB64a2b});
  const memory::desc plain(dims, memory::data_type::f32, tag::abcd),
      pairs(dims, memory::data_type::f32, tag::AcdB64a2b);
  expect_same(plain, pairs);
  expect_same(pairs, plain);
}

TEST(blocked_copy, leaves_pairs_in_other_orders_to_oneDNN) {
  const Target target{.isa = machine_isa()};
  const memory::dims dims = {64, 32, 3, 3};
  const auto bf16 = memory::data_type::bf16;
  const memory::desc pairs(dims, bf16, tag::AcdB64a2b);
  for (const auto plain : {tag::abcd, tag::acdb}) {
    EXPECT_FALSE(onednn::blocked_copy({dims, bf16, plain}, pairs, target));
    EXPECT_FALSE(onednn::blocked_copy(pairs, {dims, bf16, plain}, target));
  }
  EXPECT_FALSE(onednn::blocked_copy(pairs, {dims, bf16, tag::cdba}, target));
}

TEST(blocked_copy, leaves_padded_blocks_and_other_types_to_oneDNN) {
  const Target target{.isa = machine_isa()};
  const auto f32 = memory::data_type::f32;
  const memory::desc plain({30, 48, 3, 3}, f32, tag::abcd), padded({30, 48, 3, 3}, f32, tag::ABcd16b16a);
  EXPECT_FALSE(onednn::blocked_copy(plain, padded, target));
  EXPECT_FALSE(onednn::blocked_copy(padded, plain, target));
  const auto s8 = memory::data_type::s8;
  const memory::desc narrow({32, 48, 3, 3}, s8, tag::abcd), narrow_blocks({32, 48, 3, 3}, s8, tag::ABcd16b16a);
  EXPECT_FALSE(onednn::blocked_copy(narrow, narrow_blocks, target));
  const memory::desc blocked({32, 32}, f32, tag::AB16b16a), other({32, 32}, f32, tag::BA16a16b);
  EXPECT_FALSE(onednn::blocked_copy(blocked, other, target));
}

}  // namespace
}  // namespace partita::test
