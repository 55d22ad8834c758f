// SPDX-License-Identifier: Apache-2.0
// References of convolutions and matmul against the textbook sum, adjointness of the gradients, layouts and types.
#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

using enum OpKind;

/// A convolution in canonical layout: src n, c, x; weights o, i in its group, taps; dst n, o, x.
struct Case {
  Int64s strides, begin, end, dilations;
  int64_t groups = 1;
  Dims src, weights, dst;

  AttrList attrs(const char* weights_format, const char* data_format = "NCX") const {
    return {{Attr::strides, strides},        {Attr::pads_begin, begin}, {Attr::pads_end, end},
            {Attr::dilations, dilations},    {Attr::groups, groups},    {Attr::weights_format, weights_format},
            {Attr::data_format, data_format}};
  }
};

Case random_case(Random& random) {
  Case c;
  c.groups = random.whole(1, 3);
  const int64_t in = random.whole(1, 3), out = random.whole(1, 3);
  c.src = {random.whole(1, 2), c.groups * in};
  c.weights = {c.groups * out, in};
  c.dst = {c.src[0], c.groups * out};
  for (int64_t axis = 0, rank = random.whole(1, 3); axis < rank; ++axis) {
    const int64_t kernel = random.whole(1, 3), dilation = random.whole(1, 2), stride = random.whole(1, 3);
    const int64_t extent = (kernel - 1) * dilation + 1, size = extent + random.whole(0, 5);
    c.strides.push_back(stride);
    c.dilations.push_back(dilation);
    c.begin.push_back(random.whole(0, 2));
    c.end.push_back(random.whole(0, 2));
    c.weights.push_back(kernel);
    c.src.push_back(size);
    c.dst.push_back((size + c.begin.back() + c.end.back() - extent) / stride + 1);
  }
  return c;
}

int64_t index_of(const Dims& dims, const Dims& place) {
  int64_t index = 0;
  for (int axis = 0; axis < dims.size(); ++axis) index = index * dims[axis] + place[axis];
  return index;
}

Dims place_in(const Dims& dims, int64_t index) {
  Dims place = dims;
  for (int axis = dims.size(); axis-- > 0; index /= dims[axis]) place[axis] = index % dims[axis];
  return place;
}

/// Every (dst element, weight) pair whose source lies inside contributes one product.
Numbers textbook(const Case& c, const Numbers& src, const Numbers& weights) {
  Numbers dst(static_cast<size_t>(elements(c.dst)), 0);
  for (int64_t d = 0; d < elements(c.dst); ++d) {
    for (int64_t w = 0; w < elements(c.weights); ++w) {
      const Dims at = place_in(c.dst, d), tap = place_in(c.weights, w);
      if (tap[0] != at[1]) continue;
      const int64_t group = at[1] / (c.dst[1] / c.groups);
      Dims from{at[0], group * c.weights[1] + tap[1]};
      bool inside = true;
      for (int axis = 2; axis < c.src.size(); ++axis) {
        const size_t s = static_cast<size_t>(axis - 2);
        from.push_back(at[axis] * c.strides[s] - c.begin[s] + tap[axis] * c.dilations[s]);
        inside = inside && from.back() >= 0 && from.back() < c.src[axis];
      }
      if (inside)
        dst[static_cast<size_t>(d)] +=
            src[static_cast<size_t>(index_of(c.src, from))] * weights[static_cast<size_t>(w)];
    }
  }
  return dst;
}

/// o, i, x.. to x.., i, o.
Sample taps_first(const Sample& s) {
  Dims order;
  for (int axis = 2; axis < s.desc.dims.size(); ++axis) order.push_back(axis);
  order.push_back(1);
  order.push_back(0);
  Sample moved = s;
  moved.desc.dims = permuted(s.desc.dims, order);
  moved.desc.strides = permuted(s.desc.strides, order);
  for (int64_t i = 0; i < elements(s.desc.dims); ++i) {
    const int64_t to = index_of(moved.desc.dims, permuted(place_in(s.desc.dims, i), order));
    moved.values[static_cast<size_t>(to)] = s.values[static_cast<size_t>(i)];
  }
  return moved;
}

TEST(reference_convolution, is_the_textbook_sum_in_every_layout) {
  Random random(31);
  SCOPED_TRACE(random.seed());
  for (int round = 0; round < 60; ++round) {
    const Case c = random_case(random);
    const Sample src = random_f32(c.src, random), weights = random_f32(c.weights, random);
    const Numbers expected = textbook(c, src.values, weights.values);
    constexpr double kTolerance = 1e-5;  // of up to 81 products added in f32
    expect_near(run(Convolution, c.attrs("OIX"), {src, weights}, {f32(c.dst)})[0], expected, kTolerance);
    expect_near(run(Convolution, c.attrs("OIX"), {scattered(src), scattered(weights)}, {scattered(f32(c.dst))})[0],
                expected, kTolerance);
    const Sample nxc = as_nxc(f32(c.dst));
    const Numbers got = run(Convolution, c.attrs("XIO", "NXC"), {as_nxc(src), taps_first(weights)}, {nxc})[0];
    expect_near(from_nxc(nxc.desc.dims, got), expected, kTolerance);
  }
}

TEST(reference_convolution, gradients_are_the_transposes) {
  Random random(32);
  SCOPED_TRACE(random.seed());
  for (int round = 0; round < 60; ++round) {
    const Case c = random_case(random);
    const Sample src = random_f32(c.src, random), weights = random_f32(c.weights, random),
                 dy = random_f32(c.dst, random);
    const double expected = dot(textbook(c, src.values, weights.values), dy.values);
    const Numbers diff_src = run(ConvolutionBackwardData, c.attrs("OIX"), {dy, weights}, {f32(c.src)})[0];
    EXPECT_NEAR(dot(diff_src, src.values), expected, 1e-4);
    const Numbers diff_weights = run(ConvolutionBackwardWeights, c.attrs("OIX"), {src, dy}, {f32(c.weights)})[0];
    EXPECT_NEAR(dot(diff_weights, weights.values), expected, 1e-4);

    const Sample src_nxc = as_nxc(scattered(f32(c.src))), dy_nxc = as_nxc(scattered(dy)),
                 weights_xio = taps_first(f32(c.weights));
    const Numbers other_src =
        run(ConvolutionBackwardData, c.attrs("XIO", "NXC"), {dy_nxc, taps_first(weights)}, {src_nxc})[0];
    expect_near(from_nxc(src_nxc.desc.dims, other_src), diff_src);
    const Numbers other_weights =
        run(ConvolutionBackwardWeights, c.attrs("XIO", "NXC"), {as_nxc(src), dy_nxc}, {weights_xio})[0];
    expect_near(other_weights, taps_first(f32(c.weights, diff_weights)).values);
  }
}

TEST(reference_convolution, transposed_convolution_exchanges_the_sides) {
  Random random(33);
  SCOPED_TRACE(random.seed());
  for (int round = 0; round < 40; ++round) {
    const Case c = random_case(random);
    const Sample wide = random_f32(c.src, random), weights = random_f32(c.weights, random),
                 narrow = random_f32(c.dst, random);
    expect_near(run(ConvTranspose, c.attrs("IOX"), {narrow, weights}, {f32(c.src)})[0],
                run(ConvolutionBackwardData, c.attrs("OIX"), {narrow, weights}, {f32(c.src)})[0]);
    expect_near(run(ConvTranspose, c.attrs("XOI"), {narrow, taps_first(weights)}, {f32(c.src)})[0],
                run(ConvolutionBackwardData, c.attrs("OIX"), {narrow, weights}, {f32(c.src)})[0]);
    expect_near(run(ConvTransposeBackwardData, c.attrs("IOX"), {wide, weights}, {f32(c.dst)})[0],
                run(Convolution, c.attrs("OIX"), {wide, weights}, {f32(c.dst)})[0]);
    expect_near(run(ConvTransposeBackwardWeights, c.attrs("IOX"), {narrow, wide}, {f32(c.weights)})[0],
                run(ConvolutionBackwardWeights, c.attrs("OIX"), {wide, narrow}, {f32(c.weights)})[0]);
  }
}

TEST(reference_convolution, computes_small_cases_by_hand) {
  const Case c{.strides = {1},
               .begin = {1},
               .end = {0},
               .dilations = {1},
               .src = {1, 1, 3},
               .weights = {1, 1, 2},
               .dst = {1, 1, 3}};
  const Sample src = f32({1, 1, 3}, {1, 2, 3}), weights = f32({1, 1, 2}, {10, 1});
  EXPECT_EQ(run(Convolution, c.attrs("OIX"), {src, weights}, {f32({1, 1, 3})})[0], (Numbers{1, 12, 23}));
  EXPECT_EQ(run(Convolution, c.attrs("OIX"), {src, weights, f32({1}, {100})}, {f32({1, 1, 3})})[0],
            (Numbers{101, 112, 123}));
  // Transposed with stride 2: each source element puts a copy of the kernel down; one output_padding cell at the end.
  const Case t{.strides = {2},
               .begin = {0},
               .end = {0},
               .dilations = {1},
               .src = {1, 1, 7},
               .weights = {1, 1, 2},
               .dst = {1, 1, 3}};
  EXPECT_EQ(run(ConvTranspose, t.attrs("IOX"), {src, weights, f32({1}, {0.5})}, {f32({1, 1, 7})})[0],
            (Numbers{10.5, 1.5, 20.5, 2.5, 30.5, 3.5, 0.5}));
}

TEST(reference_convolution, reads_and_writes_small_types) {
  const Case c{.strides = {1},
               .begin = {0},
               .end = {0},
               .dilations = {1},
               .src = {1, 1, 3},
               .weights = {1, 1, 2},
               .dst = {1, 1, 2}};
  for (Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    EXPECT_EQ(
        run(Convolution, c.attrs("OIX"), {sample(dtype, {1, 1, 3}, {1, 2, 3}), sample(dtype, {1, 1, 2}, {0.5, 1})},
            {sample(dtype, {1, 1, 2})})[0],
        (Numbers{2.5, 4}));
  }
}

TEST(reference_convolution, rows_longer_than_a_tile_are_right_at_every_edge) {
  Random random(34);
  SCOPED_TRACE(random.seed());
  const Case c{.strides = {1, 2},
               .begin = {1, 0},
               .end = {1, 1},
               .dilations = {1, 1},
               .groups = 1,
               .src = {1, 20, 9, 81},
               .weights = {70, 20, 3, 3},
               .dst = {1, 70, 9, 40}};
  const Sample src = random_f32(c.src, random), weights = random_f32(c.weights, random), dy = random_f32(c.dst, random);
  const Numbers got = run(Convolution, c.attrs("OIX"), {src, weights}, {f32(c.dst)})[0];
  for (int64_t d : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{359}, int64_t{64 * 360 + 7}, elements(c.dst) - 1}) {
    double sum = 0;
    const Dims at = place_in(c.dst, d);
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t kh = 0; kh < 3; ++kh) {
        for (int64_t kw = 0; kw < 3; ++kw) {
          const int64_t h = at[2] - 1 + kh, w = at[3] * 2 + kw;
          if (h < 0 || h >= 9 || w >= 81) continue;
          sum += src.values[static_cast<size_t>((i * 9 + h) * 81 + w)] *
                 weights.values[static_cast<size_t>(index_of(c.weights, {at[1], i, kh, kw}))];
        }
      }
    }
    EXPECT_NEAR(got[static_cast<size_t>(d)], sum, 1e-4) << "element " << d;
  }
  const double expected = dot(got, dy.values);
  EXPECT_NEAR(dot(run(ConvolutionBackwardData, c.attrs("OIX"), {dy, weights}, {f32(c.src)})[0], src.values), expected,
              1e-2);
  EXPECT_NEAR(dot(run(ConvolutionBackwardWeights, c.attrs("OIX"), {src, dy}, {f32(c.weights)})[0], weights.values),
              expected, 1e-2);
}

TEST(reference_matmul, multiplies_with_transposes_and_bias) {
  const Sample a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(MatMul, {}, {a, b}, {f32({2, 2})})[0], (Numbers{22, 28, 49, 64}));
  EXPECT_EQ(run(MatMul, {{Attr::transpose_a, true}, {Attr::transpose_b, true}}, {a, b}, {f32({3, 3})})[0],
            (Numbers{9, 19, 29, 12, 26, 40, 15, 33, 51}));
  EXPECT_EQ(run(MatMul, {}, {a, b, f32({2}, {100, 200})}, {f32({2, 2})})[0], (Numbers{122, 228, 149, 264}));
  EXPECT_EQ(run(MatMul, {}, {a, b, f32({2, 1}, {100, 200})}, {f32({2, 2})})[0], (Numbers{122, 128, 249, 264}));
}

TEST(reference_matmul, follows_numpy_for_vectors_and_ignores_their_transposes) {
  const Sample v = f32({2}, {1, 2}), m = f32({2, 2}, {1, 2, 3, 4});
  const AttrList transposed{{Attr::transpose_a, true}, {Attr::transpose_b, true}};
  EXPECT_EQ(run(MatMul, transposed, {v, f32({2}, {3, 4})}, {f32({})})[0], (Numbers{11}));
  EXPECT_EQ(run(MatMul, {}, {v, m}, {f32({2})})[0], (Numbers{7, 10}));
  EXPECT_EQ(run(MatMul, {}, {m, v}, {f32({2})})[0], (Numbers{5, 11}));
  EXPECT_EQ(run(MatMul, transposed, {m, v}, {f32({2})})[0], (Numbers{7, 10}));
  EXPECT_EQ(run(MatMul, {}, {f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), v, f32({2}, {10, 20})}, {f32({2, 2})})[0],
            (Numbers{15, 31, 27, 43}));
}

TEST(reference_matmul, broadcasts_batches_from_the_right) {
  Random random(35);
  SCOPED_TRACE(random.seed());
  const Sample a = random_f32({2, 1, 3, 70}, random), b = random_f32({4, 70, 5}, random),
               bias = random_f32({4, 1, 5}, random);
  const Numbers got = run(MatMul, {}, {a, b, bias}, {scattered(f32({2, 4, 3, 5}))})[0];
  for (int64_t i = 0; i < 2 * 4 * 3 * 5; ++i) {
    const Dims at = place_in({2, 4, 3, 5}, i);
    double sum = bias.values[static_cast<size_t>(at[1] * 5 + at[3])];
    for (int64_t k = 0; k < 70; ++k) {
      sum += a.values[static_cast<size_t>((at[0] * 3 + at[2]) * 70 + k)] *
             b.values[static_cast<size_t>((at[1] * 70 + k) * 5 + at[3])];
    }
    EXPECT_NEAR(got[static_cast<size_t>(i)], sum, 1e-5);
  }
}

TEST(reference_matmul, is_right_across_the_edges_of_tiles) {
  Random random(36);
  SCOPED_TRACE(random.seed());
  const int64_t rows = 67, columns = 261, depth = 130;
  const Sample a = random_f32({rows, depth}, random), b = random_f32({columns, depth}, random);
  const Numbers got = run(MatMul, {{Attr::transpose_b, true}}, {a, b}, {f32({rows, columns})})[0];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const double sum = std::inner_product(a.values.begin() + i * depth, a.values.begin() + (i + 1) * depth,
                                            b.values.begin() + j * depth, 0.0);
      ASSERT_NEAR(got[static_cast<size_t>(i * columns + j)], sum, 1e-4) << i << ", " << j;
    }
  }
}

TEST(reference_matmul, of_no_products_is_the_bias) {
  EXPECT_EQ(run(MatMul, {}, {f32({1, 0}), f32({0, 2}), f32({2}, {3, 4})}, {f32({1, 2})})[0], (Numbers{3, 4}));
}

TEST(reference_matmul, mixes_types) {
  EXPECT_EQ(
      run(MatMul, {}, {sample(Dtype::bf16, {1, 2}, {1, 2}), sample(Dtype::bf16, {2, 1}, {3, 0.5})}, {f32({1, 1})})[0],
      (Numbers{4}));
  EXPECT_EQ(
      run(MatMul, {}, {sample(Dtype::u8, {1, 2}, {200, 2}), sample(Dtype::s8, {2, 1}, {-3, 5})}, {s32({1, 1})})[0],
      (Numbers{-590}));
}

}  // namespace
}  // namespace partita::test
