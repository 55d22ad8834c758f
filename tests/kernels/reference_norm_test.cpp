// SPDX-License-Identifier: Apache-2.0
// References of softmax, reductions and normalisations: values from the definitions, gradients by finite differences.
#include <functional>

#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

using enum OpKind;

AttrValue axis(int64_t value) { return value; }

/// Checks `gradient` against difference quotients of <forward(x), dy>.
void expect_gradient(const std::function<Numbers(const Numbers&)>& forward, const Numbers& x, const Numbers& dy,
                     const Numbers& gradient) {
  constexpr double kStep = 1.0 / 128;
  for (size_t i = 0; i < x.size(); ++i) {
    Numbers above = x, below = x;
    above[i] += kStep;
    below[i] -= kStep;
    const double slope = (dot(forward(above), dy) - dot(forward(below), dy)) / (2 * kStep);
    EXPECT_NEAR(gradient[i], slope, 2e-3) << "element " << i;
  }
}

TEST(reference_softmax, rows_sum_to_one_along_the_axis) {
  const Sample src = f32({2, 3}, {0, 0, 0, 1, 2, 3});
  expect_near(run(SoftMax, {{Attr::axis, axis(1)}}, {src}, {f32({2, 3})})[0],
              {1.0 / 3, 1.0 / 3, 1.0 / 3, 0.09003057, 0.24472847, 0.66524096});
  expect_near(run(SoftMax, {{Attr::axis, axis(0)}}, {src}, {f32({2, 3})})[0],
              {0.26894142, 0.11920292, 0.04742587, 0.73105858, 0.88079708, 0.95257413});
  EXPECT_EQ(run(SoftMax, {{Attr::axis, axis(-1)}}, {scattered(src)}, {scattered(f32({2, 3}))})[0],
            run(SoftMax, {{Attr::axis, axis(1)}}, {src}, {f32({2, 3})})[0]);
}

TEST(reference_softmax, stats_are_the_log_of_the_sum_of_exponentials) {
  const Sample src = f32({2, 2}, {0, 0, 1000, 1000});
  expect_near(run(SoftMax, {{Attr::axis, axis(1)}}, {src}, {f32({2, 2}), f32({2, 1})})[1], {0.69314718, 1000.69314718});
}

TEST(reference_softmax, a_row_of_minus_infinity_is_nan_or_zero_by_mode) {
  const Sample src = f32({2, 2}, {-kInf, -kInf, -kInf, 1});
  expect_near(run(SoftMax, {{Attr::axis, axis(1)}, {Attr::mode, "none"}}, {src}, {f32({2, 2})})[0], {kNan, kNan, 0, 1});
  const auto zero =
      run(SoftMax, {{Attr::axis, axis(1)}, {Attr::mode, "inf_as_zero"}}, {src}, {f32({2, 2}), f32({2, 1})});
  expect_near(zero[0], {0, 0, 0, 1});
  expect_near(zero[1], {-kInf, 1});
}

TEST(reference_softmax, log_softmax_is_the_logarithm) {
  expect_near(run(LogSoftmax, {{Attr::axis, axis(-1)}}, {f32({1, 3}, {1, 2, 1003})}, {f32({1, 3})})[0],
              {-1002, -1001, 0});
}

TEST(reference_softmax, gradients_are_slopes) {
  Random random(41);
  SCOPED_TRACE(random.seed());
  for (const auto& [forward, backward] :
       {std::pair(SoftMax, SoftMaxBackward), std::pair(LogSoftmax, LogSoftmaxBackward)}) {
    for (int64_t a : {0, 1, 2}) {
      const AttrList attrs{{Attr::axis, axis(a)}};
      const Dims dims{2, 3, 2};
      const auto y = [&, kind = forward](const Numbers& x) { return run(kind, attrs, {f32(dims, x)}, {f32(dims)})[0]; };
      const Sample x = random_f32(dims, random), dy = random_f32(dims, random);
      expect_gradient(y, x.values, dy.values, run(backward, attrs, {dy, f32(dims, y(x.values))}, {f32(dims)})[0]);
    }
  }
}

Numbers reduced(OpKind kind, const Int64s& axes, bool keep, const Sample& src, const Dims& dst) {
  return run(kind, {{Attr::axes, axes}, {Attr::keep_dims, keep}}, {src}, {f32(dst)})[0];
}

TEST(reference_reduce, computes_the_definitions) {
  const Sample src = f32({2, 3}, {1, -2, 3, -4, 5, 6});
  EXPECT_EQ(reduced(ReduceSum, {1}, false, src, {2}), (Numbers{2, 7}));
  EXPECT_EQ(reduced(ReduceSum, {0}, false, src, {3}), (Numbers{-3, 3, 9}));
  EXPECT_EQ(reduced(ReduceSum, {0, -1}, true, src, {1, 1}), (Numbers{9}));
  EXPECT_EQ(reduced(ReduceSum, {0, 1}, false, src, {}), (Numbers{9}));
  EXPECT_EQ(reduced(ReduceL1, {1}, true, src, {2, 1}), (Numbers{6, 15}));
  expect_near(reduced(ReduceL2, {1}, false, src, {2}), {std::sqrt(14.0), std::sqrt(77.0)});
  EXPECT_EQ(reduced(ReduceMax, {1}, false, src, {2}), (Numbers{3, 6}));
  EXPECT_EQ(reduced(ReduceMin, {1}, false, src, {2}), (Numbers{-2, -4}));
  EXPECT_EQ(reduced(ReduceProd, {1}, false, src, {2}), (Numbers{-6, -120}));
  expect_near(reduced(ReduceMean, {1}, false, src, {2}), {2.0 / 3, 7.0 / 3});
}

TEST(reference_reduce, works_on_any_layout_and_on_middle_axes) {
  Random random(42);
  SCOPED_TRACE(random.seed());
  const Sample src = random_f32({2, 3, 4, 2}, random);
  Numbers expected(8, 0);
  for (size_t i = 0; i < 48; ++i) expected[i / 24 * 4 + i / 2 % 4] += src.values[i];
  expect_near(reduced(ReduceSum, {1, 3}, false, src, {2, 4}), expected);
  expect_near(reduced(ReduceSum, {1, 3}, true, scattered(src), {2, 1, 4, 1}), expected);
}

TEST(reference_reduce, of_nothing_gives_the_neutral_element) {
  const Sample empty = f32({2, 0});
  EXPECT_EQ(reduced(ReduceSum, {1}, false, empty, {2}), (Numbers{0, 0}));
  EXPECT_EQ(reduced(ReduceProd, {1}, false, empty, {2}), (Numbers{1, 1}));
  EXPECT_EQ(reduced(ReduceMax, {1}, false, empty, {2}), (Numbers{-kInf, -kInf}));
  EXPECT_EQ(reduced(ReduceMin, {1}, false, empty, {2}), (Numbers{kInf, kInf}));
  EXPECT_TRUE(std::isnan(reduced(ReduceMean, {1}, false, empty, {2})[0]));
}

TEST(reference_reduce, nan_wins_in_maximum_and_minimum) {
  for (OpKind kind : {ReduceMax, ReduceMin})
    EXPECT_TRUE(std::isnan(reduced(kind, {0}, false, f32({3}, {1, kNan, 2}), {})[0]));
}

TEST(reference_reduce, the_bias_gradient_sums_all_but_the_channels) {
  const Sample dy = f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(run(BiasAddBackward, {{Attr::data_format, "NCX"}}, {dy}, {f32({2})})[0], (Numbers{14, 22}));
  EXPECT_EQ(run(BiasAddBackward, {{Attr::data_format, "NXC"}}, {dy}, {f32({2})})[0], (Numbers{16, 20}));
}

AttrList batch_norm(const char* format = "NCX") { return {{Attr::epsilon, 0.5f}, {Attr::data_format, format}}; }

TEST(reference_batch_norm, inference_uses_the_given_statistics) {
  const Sample src = f32({1, 2, 2}, {1, 2, 3, 4}), gamma = f32({2}, {2, 3}), beta = f32({2}, {10, 20});
  const Sample mean = f32({2}, {1, 2}), variance = f32({2}, {3.5, 0.5});
  expect_near(run(BatchNormInference, batch_norm(), {src, gamma, beta, mean, variance}, {f32({1, 2, 2})})[0],
              {10, 11, 23, 26});
  expect_near(run(BatchNormInference, batch_norm("NXC"), {src, gamma, beta, mean, variance}, {f32({1, 2, 2})})[0],
              {10, 20, 12, 26});
}

std::vector<Numbers> train(const AttrList& attrs, const Sample& src, const Sample& gamma, const Sample& beta) {
  const Dims list{2};
  return run(BatchNormForwardTraining, attrs, {src, f32(list, {100, 200}), f32(list, {1, 2}), gamma, beta},
             {f32(src.desc.dims), f32(list), f32(list), f32(list), f32(list)});
}

TEST(reference_batch_norm, training_moves_the_running_statistics) {
  const Sample src = f32({2, 2, 1}, {1, 5, 4, 9}), gamma = f32({2}, {1, 2}), beta = f32({2}, {0, 1});
  AttrList attrs = batch_norm();
  attrs.emplace_back(Attr::momentum, 0.75f);
  const std::vector<Numbers> out = train(attrs, src, gamma, beta);
  expect_near(out[0], {-1.5 / std::sqrt(2.75), 1 - 4 / std::sqrt(4.5), 1.5 / std::sqrt(2.75), 1 + 4 / std::sqrt(4.5)});
  expect_near(out[1], {75 + 0.25 * 2.5, 150 + 0.25 * 7});
  expect_near(out[2], {0.75 + 0.25 * 2.25, 1.5 + 0.25 * 4});
  expect_near(out[3], {2.5, 7});
  expect_near(out[4], {2.25, 4});
  expect_near(train(batch_norm(), src, gamma, beta)[1], {51.25, 103.5});  // without momentum: 0.5
}

TEST(reference_batch_norm, gradients_are_slopes_in_both_layouts) {
  Random random(43);
  SCOPED_TRACE(random.seed());
  const Dims dims{2, 2, 3};
  const Sample x = random_f32(dims, random), dy = random_f32(dims, random), gamma = f32({2}, {0.5, 2}),
               beta = f32({2}, {0, 0});
  const std::vector<Numbers> forward = train(batch_norm(), x, gamma, beta);
  const Sample mean = f32({2}, forward[3]), variance = f32({2}, forward[4]);
  const auto got =
      run(BatchNormTrainingBackward, batch_norm(), {x, dy, mean, variance, gamma}, {f32(dims), f32({2}), f32({2})});
  expect_gradient([&](const Numbers& v) { return train(batch_norm(), f32(dims, v), gamma, beta)[0]; }, x.values,
                  dy.values, got[0]);
  expect_gradient([&](const Numbers& v) { return train(batch_norm(), x, f32({2}, v), beta)[0]; }, gamma.values,
                  dy.values, got[1]);
  expect_gradient([&](const Numbers& v) { return train(batch_norm(), x, gamma, f32({2}, v))[0]; }, beta.values,
                  dy.values, got[2]);
  const Sample nxc = as_nxc(f32(dims));
  const auto other = run(BatchNormTrainingBackward, batch_norm("NXC"),
                         {as_nxc(x), as_nxc(scattered(dy)), mean, variance, gamma}, {nxc});
  expect_near(from_nxc(nxc.desc.dims, other[0]), got[0]);
}

AttrList layer_norm(int64_t from, bool affine = true) {
  return {{Attr::epsilon, 0.25f}, {Attr::begin_norm_axis, from}, {Attr::use_affine, affine}, {Attr::keep_stats, true}};
}

TEST(reference_layer_norm, normalises_the_axes_from_begin_norm_axis_on) {
  const Sample src = f32({2, 2}, {0, 2, 1, 5}), gamma = f32({2}, {1, 10}), beta = f32({2}, {0, 1});
  const std::vector<Numbers> out =
      run(LayerNorm, layer_norm(-1), {src, gamma, beta}, {f32({2, 2}), f32({2}), f32({2})});
  const double first = 1 / std::sqrt(1.25), second = 2 / std::sqrt(4.25);
  expect_near(out[0], {-first, 10 * first + 1, -second, 10 * second + 1});
  expect_near(out[1], {1, 3});
  expect_near(out[2], {1, 4});
  const std::vector<Numbers> all = run(LayerNorm, layer_norm(0, false), {src}, {f32({2, 2}), f32({}), f32({})});
  expect_near(all[1], {2});
  expect_near(all[2], {3.5});
  expect_near(all[0], {-2 / std::sqrt(3.75), 0, -1 / std::sqrt(3.75), 3 / std::sqrt(3.75)});
}

TEST(reference_layer_norm, gradients_are_slopes) {
  Random random(44);
  SCOPED_TRACE(random.seed());
  for (int64_t from : {1, 2, -1}) {
    const Dims dims{2, 2, 3}, inner = from == 1 ? Dims{2, 3} : Dims{3}, outer = from == 1 ? Dims{2} : Dims{2, 2};
    const Sample x = random_f32(dims, random), dy = random_f32(dims, random);
    const Sample gamma = random_f32(inner, random), beta = random_f32(inner, random);
    const auto forward = [&](const Sample& src, const Sample& g, const Sample& b) {
      return run(LayerNorm, layer_norm(from), {src, g, b}, {f32(dims), f32(outer), f32(outer)});
    };
    const std::vector<Numbers> y = forward(x, gamma, beta);
    const auto got =
        run(LayerNormBackward, layer_norm(from), {scattered(x), dy, f32(outer, y[1]), f32(outer, y[2]), gamma, beta},
            {f32(dims), f32(inner), f32(inner)});
    expect_gradient([&](const Numbers& v) { return forward(f32(dims, v), gamma, beta)[0]; }, x.values, dy.values,
                    got[0]);
    expect_gradient([&](const Numbers& v) { return forward(x, f32(inner, v), beta)[0]; }, gamma.values, dy.values,
                    got[1]);
    expect_gradient([&](const Numbers& v) { return forward(x, gamma, f32(inner, v))[0]; }, beta.values, dy.values,
                    got[2]);
  }
}

TEST(reference_rms_norm, divides_by_the_root_of_the_mean_square) {
  const Sample src = f32({1, 2}, {3, 4});
  const AttrList attrs{{Attr::epsilon, 0.f}, {Attr::begin_norm_axis, axis(-1)}};
  expect_near(run(RMSNorm, attrs, {src}, {f32({1, 2})})[0], {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
  expect_near(run(RMSNorm, attrs, {src, f32({2}, {10, 100})}, {f32({1, 2})})[0],
              {30 / std::sqrt(12.5), 400 / std::sqrt(12.5)});
  const AttrList with_epsilon{{Attr::epsilon, 3.5f}, {Attr::begin_norm_axis, axis(-1)}};
  expect_near(run(RMSNorm, with_epsilon, {src}, {f32({1, 2})})[0], {0.75, 1});
}

TEST(reference_group_norm, normalises_groups_of_channels) {
  const AttrList attrs{{Attr::epsilon, 0.f}, {Attr::groups, axis(2)}, {Attr::data_format, "NCX"}};
  const Sample src = f32({1, 4, 1}, {1, 3, 10, 30}), gamma = f32({4}, {1, 1, 2, 2}), beta = f32({4}, {0, 0, 0, 5});
  const auto out = run(GroupNorm, attrs, {src, gamma, beta}, {f32({1, 4, 1}), f32({1, 2}), f32({1, 2})});
  expect_near(out[0], {-1, 1, -2, 7});
  expect_near(out[1], {2, 20});
  expect_near(out[2], {1, 100});
  const AttrList one_group{{Attr::epsilon, 0.f}, {Attr::groups, axis(1)}, {Attr::data_format, "NCX"}};
  expect_near(run(GroupNorm, one_group, {src}, {f32({1, 4, 1}), f32({1, 1}), f32({1, 1})})[1], {11});
}

TEST(reference_group_norm, adds_epsilon_and_leaves_out_the_affine_part_when_told) {
  const Sample src = f32({1, 2, 1}, {0, 2}), gamma = f32({2}, {10, 10}), beta = f32({2}, {1, 1});
  const AttrList attrs{
      {Attr::epsilon, 3.f}, {Attr::groups, axis(1)}, {Attr::data_format, "NCX"}, {Attr::use_affine, false}};
  expect_near(run(GroupNorm, attrs, {src}, {f32({1, 2, 1})})[0], {-0.5, 0.5});
  const AttrList affine{
      {Attr::epsilon, 3.f}, {Attr::groups, axis(1)}, {Attr::data_format, "NCX"}, {Attr::use_affine, true}};
  expect_near(run(GroupNorm, affine, {src, gamma, beta}, {f32({1, 2, 1})})[0], {-4, 6});
}

TEST(reference_group_norm, gives_the_same_in_both_layouts) {
  Random random(45);
  SCOPED_TRACE(random.seed());
  const Dims dims{2, 6, 2, 3};
  const Sample x = random_f32(dims, random), gamma = random_f32({6}, random), beta = random_f32({6}, random);
  const auto attrs = [](const char* format) { return AttrList{{Attr::groups, axis(3)}, {Attr::data_format, format}}; };
  const auto first = run(GroupNorm, attrs("NCX"), {x, gamma, beta}, {f32(dims), f32({2, 3}), f32({2, 3})});
  const Sample nxc = as_nxc(f32(dims));
  const auto last = run(GroupNorm, attrs("NXC"), {as_nxc(scattered(x)), gamma, beta}, {nxc, f32({2, 3}), f32({2, 3})});
  expect_near(from_nxc(nxc.desc.dims, last[0]), first[0]);
  expect_near(last[1], first[1]);
  expect_near(last[2], first[2]);
}

}  // namespace
}  // namespace partita::test
