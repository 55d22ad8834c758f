// SPDX-License-Identifier: Apache-2.0
// Text, status, attributes and environment switches.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "src/base/attrs.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/env.hpp"
#include "src/base/hash.hpp"
#include "src/base/text.hpp"
#include "tests/support/random.hpp"

namespace partita {
namespace {

TEST(text, a_float_reads_back_as_itself) {
  test::Random random(7);
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  for (int i = 0; i < 20000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random.whole(0, UINT32_MAX)));
    if (!std::isfinite(value)) continue;
    const std::string text = text_of(value);
    ASSERT_EQ(std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr)), std::bit_cast<uint32_t>(value)) << text;
    int digits = 0;
    for (char c : text.substr(0, text.find('e'))) digits += c >= '0' && c <= '9' ? 1 : 0;
    ASSERT_LE(digits, 14) << text;  // nine, and the zeros in front of a small fraction
  }
}

TEST(text, floats_are_short) {
  EXPECT_EQ(text_of(1.0f), "1");
  EXPECT_EQ(text_of(-0.5f), "-0.5");
  EXPECT_EQ(text_of(0.1f), "0.1");
  EXPECT_EQ(text_of(1e-5f), "1e-05");
  EXPECT_EQ(text_of(-0.0f), "-0");
  EXPECT_EQ(text_of(INFINITY), "inf");
  EXPECT_EQ(text_of(-INFINITY), "-inf");
  EXPECT_EQ(text_of(-NAN), "nan");
}

TEST(text, attribute_values_are_written_as_a_person_would) {
  EXPECT_EQ(text_of(AttrValue{}), "absent");
  EXPECT_EQ(text_of(AttrValue{true}), "true");
  EXPECT_EQ(text_of(AttrValue{int64_t{-3}}), "-3");
  EXPECT_EQ(text_of(AttrValue{0.25f}), "0.25");
  EXPECT_EQ(text_of(AttrValue{std::string("none")}), "none");
  EXPECT_EQ(text_of(AttrValue{std::vector<int64_t>{1, 2}}), "[1,2]");
  EXPECT_EQ(text_of(AttrValue{std::vector<float>{}}), "[]");
  EXPECT_EQ(text_of(AttrValue{std::vector<float>{0.5f, 1.0f}}), "[0.5,1]");
}

TEST(text, lists_and_dims) {
  EXPECT_EQ(text_of(Dims{2, kUnknownDim, 4}), "2,?,4");
  EXPECT_EQ(text_of(Dims{}), "");
  EXPECT_EQ(text_of(Dims(13, 1)), "1,1,1,1,1,1,1,1,1,1,1,1,..");
  const std::string parts[] = {"a", "b"};
  EXPECT_EQ(join(std::span<const std::string>(parts), " + "), "a + b");
  EXPECT_EQ(str("x=", 3, '!'), "x=3!");
}

TEST(text, suggests_the_nearest_name_only_where_one_is_near) {
  const std::string_view names[] = {"BiasAdd", "BiasAddBackward", "ReLU", "axis", "axes"};
  EXPECT_EQ(suggestion("BiasAddBackprop", names), ", did you mean `BiasAddBackward`?");
  EXPECT_EQ(suggestion("Relu", names), ", did you mean `ReLU`?");
  EXPECT_EQ(suggestion("axiss", names), ", did you mean `axis`?");
  EXPECT_EQ(suggestion("SoftMax", names), "");
  EXPECT_EQ(suggestion("", names), "");
  EXPECT_EQ(suggestion(std::string(100000, 'a'), names), "");
}

TEST(status, tells_the_place_from_outside_inwards) {
  Status s = fail(Code::invalid_shape, "too long").at("op 7").at("model.json:3");
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::invalid_shape);
  EXPECT_EQ(s.text(), "model.json:3: op 7: too long");
  EXPECT_STRNE(s.error().file, "");
  EXPECT_GT(s.error().line, 0);
  EXPECT_EQ(Status().text(), "success");
  EXPECT_EQ(Status().at("nowhere").text(), "success");
}

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Code::invalid_arguments, str("expected an even number, found ", n));
  return n / 2;
}

Result<int> quarter(int n) {
  PT_ASSIGN(const int h, half(n));
  PT_ASSIGN(const int q, half(h));
  return q;
}

TEST(status, a_failure_passes_through_assignments) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().text(), "expected an even number, found 3");
  EXPECT_EQ(quarter(5).at("here").status().text(), "here: expected an even number, found 5");
}

TEST(status, every_code_has_its_own_name) {
  std::set<std::string_view> names;
  for (int code : {0, 1, 2, 3, 5, 7, 8, 9, 10}) names.insert(name_of(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), 9u);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(name_of(static_cast<Code>(99)), "unknown");
}

TEST(check, a_false_claim_ends_the_process_with_its_text) { EXPECT_DEATH(PT_ASSERT(1 + 1 == 3), "1 \\+ 1 == 3"); }

TEST(attrs, stay_sorted_and_typed) {
  Attrs attrs;
  attrs.set(Attr::strides, std::vector<int64_t>{2, 3});
  attrs.set(Attr::alpha, 0.5f);
  attrs.set(Attr::axis, int64_t{-1});
  attrs.set(Attr::keep_dims, true);
  attrs.set(Attr::mode, std::string("none"));
  ASSERT_EQ(attrs.all().size(), 5u);
  for (size_t i = 1; i < attrs.all().size(); ++i) EXPECT_LT(attrs.all()[i - 1].first, attrs.all()[i].first);
  EXPECT_EQ(attrs.f32(Attr::alpha), 0.5f);
  EXPECT_EQ(attrs.i64(Attr::axis), -1);
  EXPECT_TRUE(attrs.flag(Attr::keep_dims));
  EXPECT_TRUE(attrs.is(Attr::mode, "none"));
  EXPECT_FALSE(attrs.is(Attr::axis, "none"));
  EXPECT_EQ(attrs.dims(Attr::strides), (Dims{2, 3}));
  EXPECT_TRUE(attrs.dims(Attr::dilations).empty());
  EXPECT_EQ(attrs.i64_or(Attr::groups, 4), 4);
}

TEST(attrs, setting_twice_overwrites_and_monostate_removes) {
  Attrs attrs;
  attrs.set(Attr::axis, int64_t{1});
  attrs.set(Attr::axis, int64_t{2});
  EXPECT_EQ(attrs.i64(Attr::axis), 2);
  attrs.set(Attr::axis, {});
  EXPECT_FALSE(attrs.has(Attr::axis));
  EXPECT_TRUE(attrs.all().empty());
  attrs.set(Attr::axis, {});
  EXPECT_EQ(attrs, Attrs());
}

TEST(env, every_key_stands_at_its_own_place) {
  for (size_t i = 0; i < all_env().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(all_env()[i].key), i);
    const char* set = std::getenv(all_env()[i].name);
    const bool expected = set && *set;
    EXPECT_EQ(env(all_env()[i].key).has_value(), expected) << all_env()[i].name;
  }
}

TEST(env, switches_are_one_word_of_six) {
  for (const char* on : {"1", "true", "on"}) EXPECT_EQ(flag_in(on), true) << on;
  for (const char* off : {"0", "false", "off"}) EXPECT_EQ(flag_in(off), false) << off;
  for (const char* other : {"", "2", "yes", "no", "True", "1 ", "on,"})
    EXPECT_EQ(flag_in(other), std::nullopt) << other;
}

TEST(env, numbers_are_digits_alone) {
  EXPECT_EQ(number_in("0"), 0u);
  EXPECT_EQ(number_in("1024"), 1024u);
  EXPECT_EQ(number_in("18446744073709551615"), std::numeric_limits<size_t>::max());
  for (const char* other : {"", "5k", "-1", "+1", " 1", "1 ", "1.5", "0x10", "18446744073709551616"})
    EXPECT_EQ(number_in(other), std::nullopt) << other;
}

TEST(env, a_value_that_is_none_is_told_once_a_process_for_each_variable) {
  testing::internal::CaptureStderr();
  warn_of_value(Env::perf, "maybe");
  warn_of_value(Env::perf, "perhaps");
  warn_of_value(Env::force_kernel, "x", ", did you mean `y`?");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "partita: PARTITA_PERF takes 1, true, on; 0, false, off; `maybe` is ignored\n"
            "partita: PARTITA_FORCE_KERNEL takes the name of a kernel; `x` is ignored, did you mean `y`?\n");
}

TEST(cpu, answers_are_plausible) {
  EXPECT_GE(last_level_cache_bytes(), second_level_cache_bytes());
  EXPECT_LE(last_level_cache_share(), last_level_cache_bytes());
  EXPECT_LE(last_level_cache_share(), size_t{16} << 20);
  EXPECT_FALSE(leaves_the_caches(0));
  EXPECT_FALSE(leaves_the_caches(static_cast<int64_t>(last_level_cache_share() / 2)));
  EXPECT_TRUE(leaves_the_caches(static_cast<int64_t>(last_level_cache_bytes())));
  EXPECT_EQ(name_of(machine_isa()), name_of(machine_isa()));
  EXPECT_NE(name_of(machine_isa()), "unknown");
}

/// One instance of each, not what a socket has of them.
TEST(cpu, caches_are_those_the_system_names) {
  size_t last_level = 0, last_bytes = 0, second_bytes = 0;
  for (int i = 0;; ++i) {
    const std::string folder = str("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    std::ifstream level_file(folder + "level"), size_file(folder + "size"), type_file(folder + "type");
    size_t level = 0, kilobytes = 0;
    std::string type;
    if (!(level_file >> level) || !(size_file >> kilobytes) || !(type_file >> type)) break;
    if (type == "Instruction") continue;
    if (level == 2) second_bytes = kilobytes << 10;
    if (level > last_level) {
      last_level = level;
      last_bytes = kilobytes << 10;
    }
  }
  if (last_level < 2) GTEST_SKIP() << "the system names no caches";
  EXPECT_EQ(last_level_cache_bytes(), last_bytes);
  EXPECT_EQ(second_level_cache_bytes(), second_bytes);
}

TEST(hash, depends_on_order_and_on_every_value) {
  std::set<uint64_t> values;
  values.insert(Hasher().add(1).add(2).value());
  values.insert(Hasher().add(2).add(1).value());
  values.insert(Hasher().add(1).add(3).value());
  values.insert(Hasher().add(0).value());
  values.insert(Hasher().add("a").value());
  for (const Dims& list : {Dims{}, Dims{0}, Dims{0, 0}, Dims{1, 2}, Dims{2, 1}})
    values.insert(Hasher().add(list).value());
  EXPECT_EQ(values.size(), 9u);
  EXPECT_EQ(Hasher().add(1).add("x").value(), Hasher().add(1).add("x").value());
}

}  // namespace
}  // namespace partita
