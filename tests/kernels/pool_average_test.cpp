// SPDX-License-Identifier: Apache-2.0
// Gradients of averages that are stored past the caches, in rows of any length, and repeated values stored so: the same
// bits as through the caches.
#include <gtest/gtest.h>

#include <cstring>

#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;

/// The least size of a result that goes past the caches; 0 where that is too large for a test.
int64_t large_bytes() {
  for (int64_t bytes = int64_t{1} << 20; bytes <= kMostBytes; bytes += int64_t{1} << 20)
    if (leaves_the_caches(bytes)) return bytes;
  return 0;
}

/// Windows over rows of any length; the result has at least `bytes` bytes.
Problem large_average(int64_t bytes, Dtype dtype, bool channel_last, Random& random) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t kernel = random.whole(2, 3), stride = random.whole(1, 3), pad = random.whole(0, 1);
    const int64_t wide = i + 1 == axes ? random.pick<int64_t>({5, 16, 35, 49, 64, 150}) : random.whole(3, 6);
    g.wide.push_back(wide);
    g.narrow.push_back((wide + 2 * pad - kernel) / stride + 1);
    g.kernel.push_back(kernel);
    g.strides.push_back(stride);
    g.dilations.push_back(1);
    g.pads_begin.push_back(pad);
    g.pads_end.push_back(pad);
  }
  Problem p = problem_for(StepKind::pool_backward, OpKind::AvgPoolBackward);
  p.attrs = window_attrs(g, channel_last);
  p.attrs.set(Attr::kernel, g.kernel);
  p.attrs.set(Attr::exclude_pad, random.coin());
  const int64_t channels = random.pick<int64_t>({16, 24, 37, 64});
  int64_t cells = channels * bits_of(dtype) / 8;
  for (int64_t wide : g.wide) cells *= wide;
  const int64_t batch = bytes / cells + 2;
  p.in = {dense_desc(dtype, activation_dims(batch, channels, g.narrow, channel_last))};
  p.out = {dense_desc(dtype, activation_dims(batch, channels, g.wide, channel_last))};
  return p;
}

/// Some bits, fast.
void fill(Buffer& b, uint16_t least, uint16_t most) {
  auto* to = reinterpret_cast<uint16_t*>(b.data());
  for (size_t i = 0; i < b.bytes.size() / 2; ++i) to[i] = static_cast<uint16_t>(least + i * 7919 % (most - least));
}

/// Runs the row with results at the start of a cache line and beside it.
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
      const auto bytes = static_cast<size_t>(elements(desc.dims) * bits_of(desc.dtype) / 8);
      // Memory ends at a guarded page, so whole lines start at one.
      results.emplace_back((bytes + 63) / 64 * 64 + shift, 0xff);
      out.push_back(results.back().data());
    }
    ASSERT_TRUE(run->call({sources, out, scratch.data()}).ok());
  }
  for (size_t k = 0; k < aligned.size(); ++k)
    EXPECT_EQ(std::memcmp(aligned[k].data(), shifted[k].data(), aligned[k].size()), 0) << row.name << " output " << k;
}

TEST(pool_average, large_results_have_the_bits_of_stores_through_the_caches) {
  const int64_t bytes = large_bytes();
  if (bytes == 0) GTEST_SKIP() << "the last-level cache is very large";
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      Problem p = large_average(bytes, dtype, random.coin(), random);
      if (random.coin()) {  // another gradient is added, and the sum is stored twice
        p.ports_in = p.ports_out = 1;
        p.in.push_back(p.out[0]);
        p.out.push_back(p.out[0]);
        ExprBuilder back(p.back);
        const auto sum = back.add(back.skeleton(), back.load(1));
        back.store(0, sum);
        back.store(1, sum);
      }
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      expect_same_bits(isa, p);
      if (HasFailure()) return;
    }
}

/// What the gradient of a global average is where planes lie apart: one number a plane, in rows of any length.
TEST(pool_average, large_repeated_values_have_the_bits_of_stores_through_the_caches) {
  const int64_t bytes = large_bytes();
  if (bytes == 0) GTEST_SKIP() << "the last-level cache is very large";
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const int64_t length = random.pick<int64_t>({1, 7, 31, 49, 64, 196, 300}), each = bits_of(dtype) / 8;
      const Dims dims{bytes / (length * each) + 5, length};
      Problem p = problem_for(StepKind::loop, OpKind::Add);
      p.in = {dense_desc(dtype, dims), dense_desc(dtype, dims)};
      p.in[0].strides = {1, 0};
      p.out = {dense_desc(dtype, dims)};
      ExprBuilder back(p.back);
      const auto repeated = back.mul(back.load(0), back.constant(1.0f / 49));
      back.store(0, random.coin() ? repeated : back.add(repeated, back.load(1)));
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      expect_same_bits(isa, p);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace partita::test
