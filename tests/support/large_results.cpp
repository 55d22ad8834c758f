// SPDX-License-Identifier: Apache-2.0
#include "tests/support/large_results.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita::test {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;

/// Some bits, fast.
void fill(Buffer& b, uint16_t least, uint16_t most) {
  auto* to = reinterpret_cast<uint16_t*>(b.data());
  for (size_t i = 0; i < b.bytes.size() / 2; ++i) to[i] = static_cast<uint16_t>(least + i * 7919 % (most - least));
}

}  // namespace

int64_t large_bytes() {
  for (int64_t bytes = int64_t{1} << 20; bytes <= kMostBytes; bytes += int64_t{1} << 20)
    if (leaves_the_caches(bytes)) return bytes;
  return 0;
}

void add_and_store_twice(Problem& p) {
  p.ports_in = p.ports_out = 1;
  p.in.push_back(p.out[0]);
  p.out.push_back(p.out[0]);
  ExprBuilder back(p.back);
  const auto sum = back.add(back.skeleton(), back.load(1));
  back.store(0, sum);
  back.store(1, sum);
}

void expect_same_bits(Isa isa, const Problem& p) {
  const Kernel* generated = generated_row(p.step, isa);
  ASSERT_NE(generated, nullptr);
  const Kernel& row = *generated;
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) {
    in.push_back(nan_buffer(desc));
    fill(in.back(), 0x3800, 0x3c00);
  }
  const Result<Run> run = row.make(p, {.isa = row.isa, .threads = 2});
  ASSERT_TRUE(run.ok()) << run.status().text();
  GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0xff);
  std::vector<const void*> sources;
  for (const Buffer& b : in) sources.push_back(b.data());
  std::vector<GuardedMemory> aligned, shifted;
  for (const size_t shift : {size_t{0}, size_t{4}}) {
    auto& results = shift == 0 ? aligned : shifted;
    std::vector<void*> out;
    for (const TensorDesc& desc : p.out) {
      const auto bytes = static_cast<size_t>(elements(desc.dims) * element_bytes(desc.dtype));
      // Memory ends at a guarded page, so whole lines start at one.
      results.emplace_back((bytes + 63) / 64 * 64 + shift, 0xff);
      out.push_back(results.back().data());
    }
    ASSERT_TRUE(run->call({sources, out, scratch.data()}).ok());
  }
  for (size_t k = 0; k < aligned.size(); ++k)
    EXPECT_EQ(std::memcmp(aligned[k].data(), shifted[k].data(), aligned[k].size()), 0) << row.name << " output " << k;
}

void expect_same_bits_of_seeds(uint64_t seeds, const std::function<Problem(Random&, Dtype, int64_t)>& make) {
  const int64_t bytes = large_bytes();
  if (bytes == 0) GTEST_SKIP() << "the last-level cache is very large";
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const Problem p = make(random, dtype, bytes);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      expect_same_bits(isa, p);
      if (testing::Test::HasFailure()) return;
    }
}

}  // namespace partita::test
