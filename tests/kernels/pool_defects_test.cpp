// SPDX-License-Identifier: Apache-2.0
// What other implementations of pooling gradients get wrong, or do not test: overlapping volumes with different axes,
// many channels, wide padding, infinities and NaN among the gradients, no batch items at all.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

using List = std::vector<int64_t>;

struct Windows {
  List wide, narrow, kernel, strides, begin, end;
};

Problem average_backward(const Windows& w, bool channel_last, int64_t batch, int64_t channels, Dtype dtype) {
  Problem p = problem_for(StepKind::pool_backward, OpKind::AvgPoolBackward);
  p.attrs =
      window_attrs({w.wide, w.narrow, w.kernel, w.strides, List(w.wide.size(), 1), w.begin, w.end, {}}, channel_last);
  p.attrs.set(Attr::kernel, w.kernel);
  p.attrs.set(Attr::exclude_pad, true);
  p.in = {dense_desc(dtype, activation_dims(batch, channels, w.narrow, channel_last))};
  p.out = {dense_desc(dtype, activation_dims(batch, channels, w.wide, channel_last))};
  return p;
}

/// Calls check(row's name, results) for every row of the machine that takes the problem.
template <class Check>
void each_row(const Problem& p, const std::vector<Buffer>& in, Check check) {
  for (const Kernel& row : kernels_for(p.step)) {
    const Target target{.isa = row.isa, .threads = 2};
    if (machine_isa() < row.isa || row.refuse(p, target)) continue;
    SCOPED_TRACE(str(row.name, ": ", text_of(p)));
    check(row.name, run_kernel(row, p, in, 2));
  }
}

/// Gradients of 1 are shared among the cells of a window: their sum is the number of windows, whatever overlaps.
TEST(pool_defects, overlapping_windows_of_volumes_with_different_axes_lose_nothing) {
  const Windows cases[] = {
      {{4, 5, 7}, {4, 5, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {{3, 6, 9}, {2, 3, 8}, {2, 4, 3}, {1, 1, 1}, {0, 0, 0}, {0, 0, 1}},
      {{5, 4, 6}, {3, 3, 3}, {3, 2, 5}, {2, 1, 2}, {1, 0, 2}, {1, 0, 1}},
      {{9, 2, 3}, {3, 2, 1}, {3, 1, 2}, {4, 1, 3}, {0, 0, 0}, {2, 0, 0}},  // strides beyond kernels; rounded up
      {{6, 5}, {4, 3}, {3, 2}, {2, 2}, {2, 0}, {1, 1}},                    // padding beyond half the kernel
  };
  for (const Windows& w : cases)
    for (const bool channel_last : {false, true}) {
      const Problem p = average_backward(w, channel_last, 2, 3, Dtype::f32);
      std::vector<Buffer> in;
      in.push_back(nan_buffer(p.in[0]));
      for (int64_t i = 0; i < elements(p.in[0].dims); ++i) store_from_double(in[0].data(), Dtype::f32, i, 1);
      each_row(p, in, [&](const char*, const std::vector<Buffer>& out) {
        double sum = 0;
        for (int64_t i = 0; i < elements(p.out[0].dims); ++i) sum += out[0].get(i);
        EXPECT_NEAR(sum, static_cast<double>(elements(p.in[0].dims)), 1e-3);
      });
    }
}

TEST(pool_defects, more_channels_than_16_bits_count) {
  constexpr int64_t kChannels = 70001;
  const Target target{.isa = machine_isa(), .threads = 2};
  const Windows w{{3, 2}, {2, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
  Random random(1);
  expect_rows_agree(average_backward(w, true, 1, kChannels, Dtype::f32), random, {.target = target});
  Problem p = problem_for(StepKind::max_pool_indices_backward, OpKind::MaxPoolIndicesBackward);
  p.attrs.set(Attr::data_format, std::string("NCX"));
  p.in = {dense_desc(Dtype::f32, activation_dims(1, kChannels, w.narrow, false)),
          dense_desc(Dtype::s64, activation_dims(1, kChannels, w.narrow, false))};
  p.out = {dense_desc(Dtype::f32, activation_dims(1, kChannels, w.wide, false))};
  expect_rows_agree(p, random,
                    {.ranges = {{}, {0, 5}}, .at_least = generates_code() ? 1 : 0, .target = target});
}

/// They reach the cells of their windows and no other, in every kind of gradient.
TEST(pool_defects, infinities_and_nan_stay_in_their_windows) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const Windows w{{9, 41}, {4, 14}, {3, 5}, {2, 3}, {1, 2}, {0, 1}};
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    const bool channel_last = random.coin();
    const int64_t channels = random.pick<int64_t>({1, 5, 16, 40});
    Problem p = average_backward(w, channel_last, 1, channels, Dtype::f32);
    const Dims wide = p.out[0].dims, narrow = p.in[0].dims;
    size_t gradient = 0;
    switch (seed % 4) {
      case 0: break;
      case 1:
        p.step = StepKind::max_pool_backward;
        p.op = OpKind::MaxPoolBackward;
        p.in = {dense_desc(Dtype::f32, wide), p.in[0]};
        gradient = 1;
        break;
      case 2:
        p.step = StepKind::max_pool_indices_backward;
        p.op = OpKind::MaxPoolIndicesBackward;
        p.in.push_back(dense_desc(Dtype::s64, narrow));
        p.attrs.set(Attr::kernel, {});
        break;
      default:
        p.step = StepKind::resample;
        p.op = OpKind::AdaptiveAvgPoolBackward;
        p.attrs.set(Attr::kernel, {});
    }
    SCOPED_TRACE(str("seed ", seed));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in)
      in.push_back(random_buffer(desc, random, desc.dtype == Dtype::s64 ? Range{0, 9 * 41 - 1} : Range{}));
    for (int64_t k = 0; k < 5; ++k)
      store_from_double(in[gradient].data(), Dtype::f32, random.whole(0, elements(narrow) - 1),
                        random.pick({kInf, -kInf, kNan}));
    const auto expected = reference_results(p, in);
    each_row(p, in, [&](const char*, const std::vector<Buffer>& out) {
      EXPECT_EQ(difference(out[0], expected[0], tolerance_of(Dtype::f32)), "");
    });
    if (HasFailure()) return;
  }
}

/// NaN is the maximum whatever the tensors' strides: no kernel that takes another cell comes before one that does not.
TEST(pool_defects, nan_is_the_maximum_under_any_strides) {
  const Isa isa = machine_isa();
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Windows w{{7, 19}, {3, 9}, {3, 3}, {2, 2}, {0, 0}, {0, 0}};
    Problem p = average_backward(w, random.coin(), 2, random.pick<int64_t>({3, 16}), Dtype::f32);
    p.step = StepKind::max_pool_backward;
    p.op = OpKind::MaxPoolBackward;
    p.in.insert(p.in.begin(), p.out[0]);
    for (auto* side : {&p.in, &p.out})
      for (TensorDesc& desc : *side) desc = any_desc(desc.dtype, desc.dims, random);
    const Target target{.isa = isa, .threads = 2};
    const auto picked = pick_kernel(p, target);
    ASSERT_TRUE(picked.ok());
    if (!PARTITA_JIT && std::string_view(picked->kernel->name).find("onednn") != std::string_view::npos) continue;
    SCOPED_TRACE(str(picked->kernel->name, " seed ", seed, ": ", text_of(p)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
    const TensorDesc& source = p.in[0];
    for (int64_t i = 0; i < elements(source.dims); ++i) {
      if (random.whole(0, 9) > 0) continue;
      const Dims place = coordinates(i, source.dims);
      int64_t at = source.offset;
      for (int d = 0; d < place.size(); ++d) at += place[d] * source.strides[d];
      store_from_double(in[0].data(), Dtype::f32, at, std::numeric_limits<double>::quiet_NaN());
    }
    const auto got = run_kernel(*picked->kernel, p, in, target);
    EXPECT_EQ(difference(got[0], reference_results(p, in)[0], tolerance_of(Dtype::f32)), "");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace partita::test
