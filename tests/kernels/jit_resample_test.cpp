// SPDX-License-Identifier: Apache-2.0
// Generated resampling against the reference: random sizes, scales, types and layouts, expressions in front and
// behind, any number of threads, under every instruction set of the machine, on guarded memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/ref/reference.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/random_windows.hpp"
#include "tests/support/resampling.hpp"

namespace partita::test {
namespace {

Resampled random_shape(Random& random) {
  Resampled s{random.whole(1, 2), random.pick<int64_t>({1, 2, 3, 8, 16, 21, 40, 70}), {}, {}, random.coin()};
  for (int64_t axes = random.whole(1, 3), i = 0; i < axes; ++i) {
    const int64_t most = i + 1 == axes ? 24 : axes == 3 ? 5 : 10;
    const int64_t small = random.whole(1, most);
    s.small.push_back(small);
    // Whole factors up and down, and anything.
    const int64_t factor = random.whole(1, 4);
    s.large.push_back(random.pick<int64_t>({small * factor, (small + factor - 1) / factor, random.whole(1, 2 * most)}));
  }
  return s;
}

Manner random_manner(Random& random) {
  return {random.coin(), random.pick<std::string>({"nearest", "linear", "bilinear", "trilinear"}),
          random.pick<std::string>({"half_pixel", "align_corners"}),
          random.pick({Dtype::f32, Dtype::bf16, Dtype::f16})};
}

TEST(jit_resample, agrees_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 250; ++seed) {
      Random random(seed);
      const Resampled shape = random_shape(random);
      Problem p = resampling(shape, random_manner(random));
      if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
      expect_rows_agree(
          p, random,
          {.tolerance_factor = 4, .at_least = isa == Isa::avx512 ? 2 : 1, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

TEST(jit_resample, takes_other_strides_or_refuses_them) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Problem p = resampling(random_shape(random), random_manner(random));
    for (auto* side : {&p.in, &p.out})
      for (TensorDesc& desc : *side) desc = any_desc(desc.dtype, desc.dims, random);
    expect_rows_agree(p, random, {.tolerance_factor = 4, .at_least = 0, .target = {.isa = machine_isa()}});
    if (HasFailure()) return;
  }
}

/// Sums of more taps than one call takes, rows cut into chunks, and blocks of rows.
TEST(jit_resample, far_scales_and_long_rows_agree_with_the_reference) {
  const Resampled shapes[] = {{1, 3, {20, 700}, {40, 1400}, false},
                              {1, 3, {6, 700}, {9, 1400}, true},
                              {2, 70, {3, 80}, {5, 160}, true},
                              {1, 2, {3, 4}, {60, 70}, false},
                              {1, 20, {3, 4}, {60, 70}, true},
                              {1, 2, {60, 70}, {3, 4}, false},
                              {1, 17, {60, 70}, {3, 4}, true},
                              {1, 1, {2, 3, 4}, {17, 19, 21}, true},
                              {1, 1, {2, 3, 4}, {17, 19, 21}, false},
                              {2, 5, {3000}, {6000}, false},
                              {1, 40, {100}, {161}, true}};
  uint64_t seed = 1000;
  for (const Resampled& shape : shapes)
    for (const Isa isa : generated_isas())
      for (const bool backward : {false, true}) {
        Random random(++seed);
        const Problem p = resampling(shape, {.backward = backward, .mode = random.coin() ? "nearest" : "linear"});
        expect_rows_agree(
            p, random,
            {.tolerance_factor = 8, .at_least = isa == Isa::avx512 ? 2 : 1, .target = {.isa = isa, .threads = 3}});
        if (HasFailure()) return;
      }
}

/// Rows that do not fill a vector: axes are joined where nothing lies between them.
TEST(jit_resample, small_images_agree_with_the_reference) {
  const Resampled shapes[] = {{2, 8, {2, 4, 12}, {4, 8, 6}, false}, {1, 5, {7, 7}, {3, 3}, false},
                              {2, 3, {2, 2, 2}, {3, 3, 3}, false},  {1, 4, {3, 5, 1}, {2, 9, 1}, false},
                              {2, 1, {1, 6}, {4, 6}, false},        {1, 3, {9, 2}, {300, 7}, false},
                              {1, 2, {40, 50}, {5, 6}, false},      {3, 4, {1, 1}, {5, 7}, false}};
  uint64_t seed = 3000;
  for (const Resampled& shape : shapes)
    for (const Isa isa : generated_isas())
      for (const bool backward : {false, true})
        for (const std::string mode : {"linear", "nearest"})
          for (const bool gaps : {false, true}) {
            Random random(++seed);
            Problem p = resampling(shape, {.backward = backward, .mode = mode, .dtype = random_manner(random).dtype});
            // Rows one element apart, in the result or in the source.
            TensorDesc& desc = random.coin() ? p.in[0] : p.out[0];
            for (int d = desc.dims.size() - 2; gaps && d >= 0; --d)
              desc.strides[d] = desc.strides[d + 1] * desc.dims[d + 1] + (d + 2 == desc.dims.size() ? 1 : 0);
            expect_rows_agree(
                p, random,
                {.tolerance_factor = 4, .at_least = isa == Isa::avx512 ? 2 : 1, .target = {.isa = isa, .threads = 2}});
            if (HasFailure()) return;
          }
}

/// An adaptive average over `large` places, to `small` ones.
Problem adaptive_average(const Resampled& s, Dtype dtype) {
  Problem p = problem_for(StepKind::resample, OpKind::AdaptiveAvgPool);
  p.attrs.set(Attr::data_format, std::string(s.channel_last ? "NXC" : "NCX"));
  p.in = {dense_desc(dtype, activation_dims(s.batch, s.channels, s.large, s.channel_last))};
  p.out = {dense_desc(dtype, activation_dims(s.batch, s.channels, s.small, s.channel_last))};
  return p;
}

/// Means of up to more places than a stencil takes, of channels that fill vectors and do not, more than one piece of
/// them; windows that share cells and do not, and so follow each other alike and not.
TEST(jit_resample, adaptive_averages_to_far_fewer_places_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      Resampled s{random.whole(1, 2), random.pick<int64_t>({3, 16, 21, 64, 70, 96, 331}), {}, {}, random.coin()};
      for (int64_t axes = random.whole(1, 3), i = 0; i < axes; ++i) {
        s.small.push_back(random.whole(1, 5));
        const int64_t most = i + 1 == axes ? random.pick<int64_t>({9, 30, 75}) : 6;
        s.large.push_back(random.coin() ? s.small.back() * random.whole(1, 4) : s.small.back() + random.whole(0, most));
      }
      const Problem p = adaptive_average(s, random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}));
      expect_rows_agree(p, random, {.tolerance_factor = 4, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

/// Rows of generated code for the problem.
std::vector<const Kernel*> generated(const Problem& p, const Target& target) {
  std::vector<const Kernel*> list;
  for (const Kernel& row : kernels_for(p.step))
    if (std::string_view(row.name).find("_jit_") != std::string_view::npos && row.isa <= machine_isa() &&
        !row.refuse(p, target))
      list.push_back(&row);
  return list;
}

void expect_same_bits_on_threads(const Problem& p, Random& random) {
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
  for (const Kernel* row : generated(p, {.isa = machine_isa()})) {
    const auto one = run_kernel(*row, p, in, 1);
    for (const int threads : {2, 3, 8}) {
      const auto more = run_kernel(*row, p, in, threads);
      EXPECT_EQ(std::memcmp(one[0].data(), more[0].data(), one[0].bytes.size()), 0)
          << row->name << ", " << threads << " threads";
    }
  }
}

TEST(jit_resample, any_number_of_threads_gives_the_same_bits) {
  const Resampled shapes[] = {{2, 33, {7, 30}, {15, 61}, true},
                              {2, 3, {14, 33}, {28, 66}, false},
                              {3, 40, {4, 6}, {8, 12}, false},
                              {1, 2, {3, 7, 30}, {6, 9, 50}, false},
                              {1, 7, {2, 7, 30}, {6, 9, 50}, true}};
  uint64_t seed = 2000;
  for (const Resampled& shape : shapes)
    for (const bool backward : {false, true}) {
      Random random(++seed);
      SCOPED_TRACE(str("seed ", seed));
      expect_same_bits_on_threads(
          resampling(shape, {.backward = backward, .dtype = random.pick({Dtype::f32, Dtype::bf16})}), random);
    }
  for (const bool channel_last : {false, true}) {
    Random random(++seed);
    SCOPED_TRACE(str("seed ", seed));
    expect_same_bits_on_threads(adaptive_average({2, 70, {5, 4}, {23, 37}, channel_last}, Dtype::f32), random);
  }
}

/// front: element * factor;  back: out0 = max(value + bias, 0), out1 = value. The bias repeats along some axes.
Problem with_expressions(Problem p, Random& random) {
  const auto port = static_cast<size_t>(p.step == StepKind::resample_backward ? 1 : 0);
  TensorDesc factor = p.in[port], bias = p.out[0];
  if (random.coin()) factor.strides = Dims(factor.dims.size(), 0);
  const int64_t repeat = random.whole(0, 3);
  const int channel = p.attrs.is(Attr::data_format, "NXC") ? bias.dims.size() - 1 : 1;
  for (int d = 0; d < bias.dims.size(); ++d) {
    if (repeat == 1) bias.strides[d] = 0;
    if (repeat == 2) bias.strides[d] = d == channel ? 1 : 0;
  }
  ExprBuilder f(p.front);
  p.front.result = f.mul(f.load(static_cast<int>(port)), f.load(static_cast<int>(p.in.size())));
  ExprBuilder b(p.back);
  const auto value = b.skeleton();
  b.store(0, b.max(b.add(value, b.load(static_cast<int>(p.in.size()) + 1)), b.constant(0)));
  b.store(1, value);
  p.in.push_back(factor);
  p.in.push_back(bias);
  p.out.push_back(p.out[0]);
  return p;
}

Buffer buffer_of(const TensorDesc& desc, const std::function<double(int64_t)>& value) {
  Buffer b = nan_buffer(desc);
  auto* data = reinterpret_cast<float*>(b.bytes.data());
  for (int64_t i = 0; i < elements(desc.dims); ++i) data[i] = static_cast<float>(value(i));
  return b;
}

TEST(jit_resample, expressions_in_front_and_behind_agree_with_single_operators) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    Manner how = random_manner(random);
    how.dtype = Dtype::f32;
    const Problem plain = resampling(random_shape(random), how);
    const Problem p = with_expressions(plain, random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    std::vector<Buffer> in, plain_in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
    const size_t port = plain.in.size() - 1;
    for (size_t k = 0; k < plain.in.size(); ++k)
      plain_in.push_back(buffer_of(
          plain.in[k], [&](int64_t i) { return in[k].get(i) * (k == port ? in[plain.in.size()].get(i) : 1); }));
    std::vector<Buffer> made;
    made.push_back(nan_buffer(plain.out[0]));
    std::vector<const void*> sources;
    for (const Buffer& b : plain_in) sources.push_back(b.data());
    void* target = made[0].data();
    ASSERT_TRUE(reference_of(plain.op)(plain, {sources, {&target, 1}, nullptr}).ok());
    const Buffer relu = buffer_of(
        plain.out[0], [&](int64_t i) { return std::max(made[0].get(i) + in[plain.in.size() + 1].get(i), 0.0); });

    const auto rows = generated(p, {.isa = machine_isa()});
    EXPECT_EQ(rows.size(), generated_isas().size());
    for (const Kernel* row : rows) {
      SCOPED_TRACE(row->name);
      const auto got = run_kernel(*row, p, in, 2);
      EXPECT_EQ(difference(got[0], relu, 4 * tolerance_of(Dtype::f32)), "");
      EXPECT_EQ(difference(got[1], made[0], 4 * tolerance_of(Dtype::f32)), "");
    }
    if (HasFailure()) return;
  }
}

/// A place that has fewer taps than its neighbours must not see their infinities.
TEST(jit_resample, infinities_stay_where_they_are_read) {
  for (const bool channel_last : {false, true})
    for (const bool backward : {false, true}) {
      const Problem p = resampling({1, 2, {4, 20}, {8, 40}, channel_last}, {.backward = backward});
      Random random(7);
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in)
        in.push_back(buffer_of(desc, [&](int64_t i) { return i % 37 == 0 ? INFINITY : random.real(-1, 1); }));
      std::vector<const void*> sources;
      for (const Buffer& b : in) sources.push_back(b.data());
      Buffer expected = nan_buffer(p.out[0]);
      void* target = expected.data();
      ASSERT_TRUE(reference_of(p.op)(p, {sources, {&target, 1}, nullptr}).ok());
      for (const Kernel* row : generated(p, {.isa = machine_isa()}))
        EXPECT_EQ(difference(run_kernel(*row, p, in, 2)[0], expected, 2e-4), "") << row->name;
    }
}

/// Nearest neighbours of whole factors are their sources, repeated.
TEST(jit_resample, whole_factors_repeat_every_number) {
  const Resampled shapes[] = {{2, 20, {5, 6}, {10, 18}, true},
                              {2, 3, {5, 6}, {10, 18}, false},
                              {1, 33, {2, 3, 4}, {4, 3, 8}, true},
                              {1, 1, {40}, {80}, true},
                              {2, 1, {17}, {68}, false}};
  const float values[] = {-0.0f, 0.0f, INFINITY, -INFINITY, 1.5f, -2.25f, 6e-8f, 3e4f};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (const Resampled& shape : shapes) {
      const Problem p = resampling(shape, {.mode = "nearest", .dtype = dtype});
      SCOPED_TRACE(text_of(p));
      std::vector<Buffer> in;
      in.push_back(nan_buffer(p.in[0]));
      for (int64_t i = 0; i < elements(p.in[0].dims); ++i) store_floats(in[0].data(), dtype, i, 1, &values[i * 7 % 8]);
      Buffer expected = nan_buffer(p.out[0]);
      const void* source = in[0].data();
      void* target = expected.data();
      ASSERT_TRUE(reference_of(p.op)(p, {{&source, 1}, {&target, 1}, nullptr}).ok());
      for (const Isa isa : generated_isas())
        for (const Kernel* row : generated(p, {.isa = isa}))
          EXPECT_EQ(difference(run_kernel(*row, p, in, 2)[0], expected, 0), "") << row->name;
    }
}

/// Results that leave the caches go past them where their memory is aligned.
TEST(jit_resample, large_results_have_the_bits_of_stores_through_the_caches) {
  const int64_t bytes = large_bytes();
  if (bytes == 0) GTEST_SKIP() << "the caches are very large";
  for (const bool channel_last : {false, true})
    for (const char* mode : {"nearest", "linear"}) {
      const int64_t channels = 32, rows = bytes / (channels * 256 * 2) + 2;
      const Problem p = resampling({1, channels, {rows / 2, 128}, {rows / 2 * 2, 256}, channel_last},
                                   {.mode = mode, .dtype = Dtype::bf16});
      const int64_t count = elements(p.out[0].dims);
      std::vector<uint16_t> source(static_cast<size_t>(count / 4));
      for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint16_t>(0x3f80 + i * 7 % 128);
      GuardedMemory aligned(static_cast<size_t>(count) * 2, 0xff), shifted(static_cast<size_t>(count) * 2 + 4, 0xff);
      for (const Kernel* row : generated(p, {.isa = machine_isa()})) {
        const Result<partita::Run> run = row->make(p, {.isa = row->isa, .threads = 2});
        ASSERT_TRUE(run.ok()) << run.status().text();
        GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0xff);
        const void* in = source.data();
        for (void* out : {static_cast<void*>(aligned.data()), static_cast<void*>(shifted.data())}) {
          const RunArgs args{{&in, 1}, {&out, 1}, scratch.data()};
          ASSERT_TRUE(run->call(args).ok());
        }
        EXPECT_EQ(std::memcmp(aligned.data(), shifted.data(), aligned.size()), 0) << row->name;
      }
    }
}

/// Rows that start anywhere are put together in the caches first, then streamed.
TEST(jit_resample, large_results_of_odd_rows_have_the_bits_of_small_ones) {
  const int64_t bytes = large_bytes();
  if (bytes == 0) GTEST_SKIP() << "the caches are very large";
  const int64_t from = 7 * 5, to = 57 * 43, few = 3, many = bytes / (to * 4) + 2;
  const Manner how{.mode = "linear"};
  const Problem large = resampling({1, many, {7, 5}, {57, 43}}, how),
                small = resampling({1, few, {7, 5}, {57, 43}}, how);
  Random random(11);
  std::vector<float> source(static_cast<size_t>(many * from));
  for (float& value : source) value = static_cast<float>(random.real(-1, 1));
  const auto run = [](const Kernel& row, const Problem& p, const void* in, void* out) {
    const Result<partita::Run> made = row.make(p, {.isa = row.isa, .threads = 2});
    ASSERT_TRUE(made.ok()) << made.status().text();
    GuardedMemory scratch((made->scratch_bytes + 63) / 64 * 64, 0xff);
    ASSERT_TRUE(made->call({{&in, 1}, {&out, 1}, scratch.data()}).ok());
  };
  for (const Kernel* row : generated(large, {.isa = machine_isa()}))
    for (const int64_t first : {int64_t{0}, many - few}) {
      GuardedMemory all(static_cast<size_t>(many * to) * 4, 0xff), some(static_cast<size_t>(few * to) * 4, 0xff);
      run(*row, large, source.data(), all.data());
      run(*row, small, source.data() + first * from, some.data());
      EXPECT_EQ(std::memcmp(all.data() + first * to * 4, some.data(), some.size()), 0)
          << row->name << ", plane " << first;
    }
}

}  // namespace
}  // namespace partita::test
