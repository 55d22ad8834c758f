// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution and their gradients as products over (channel, tap). "Wide" is the side the
// windows slide over (the convolution's src), "narrow" the side with one element a window (its dst). A transposed
// convolution is the same with the sides exchanged, and its XOI/IOX weights are the convolution's XIO/OIX.
#include <numeric>

#include "kernels/ref/product.hpp"
#include "kernels/ref/references.hpp"
#include "kernels/ref/taps.hpp"

namespace partita::ref {
namespace {

/// Axes in the order narrow channel, wide channel in its group, taps.
View weights_view(View weights, const Attrs& attrs) {
  if (attrs.is(Attr::weights_format, "OIX") || attrs.is(Attr::weights_format, "IOX")) return weights;
  for (Dims* list : {&weights.dims, &weights.strides}) {
    std::reverse(list->end() - 2, list->end());
    std::rotate(list->begin(), list->end() - 2, list->end());
  }
  return weights;
}

struct Conv {
  Conv(const Problem& problem, const View& wide_side, const View& narrow_side, const View& weights_as_given)
      : wide(channel_first(wide_side, problem.attrs)),
        narrow(channel_first(narrow_side, problem.attrs)),
        weights(weights_view(weights_as_given, problem.attrs)),
        sliding{window_shape(problem.attrs, tail(weights.dims, 2)), tail(wide.dims, 2), tail(narrow.dims, 2)},
        groups(problem.attrs.i64_or(Attr::groups, 1)),
        wide_channels(wide.dims[1] / groups),
        narrow_channels(narrow.dims[1] / groups),
        taps(sliding.shape.taps()) {
    for (int64_t t = 0; t < taps; ++t) tap_places.push_back(coordinates(t, sliding.shape.kernel));
  }

  View wide, narrow, weights;
  Sliding sliding;
  int64_t groups, wide_channels, narrow_channels, taps;  ///< channels of one group
  std::vector<Dims> tap_places;

  int64_t batches() const { return wide.dims[0] * groups; }
  int64_t windows() const { return elements(sliding.narrow); }
  int64_t wide_places() const { return elements(sliding.wide); }
  const Dims& tap(int64_t t) const { return tap_places[static_cast<size_t>(t)]; }
  /// Position of a channel of batch b = (image, group).
  int64_t wide_at(int64_t b, int64_t channel) const {
    return b / groups * wide.strides[0] + (b % groups * wide_channels + channel) * wide.strides[1];
  }
  int64_t narrow_at(int64_t b, int64_t channel) const {
    return b / groups * narrow.strides[0] + (b % groups * narrow_channels + channel) * narrow.strides[1];
  }
};

/// Adds the bias (where there is one) and writes places [j, j + n) of a channel.
void store_places(const View& dst, const Dims& spatial, int64_t at, int64_t j, int64_t n, double bias, double* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += bias;
  Dims place = coordinates(j, spatial);
  const int last = spatial.size() - 1;
  while (n > 0) {
    const int64_t count = std::min(n, spatial[last] - place[last]);
    int64_t position = at;
    for (int axis = 0; axis <= last; ++axis) position += place[axis] * dst.strides[axis + 2];
    dst.write(position, dst.strides[last + 2], count, sums);
    place[last] += count - 1;
    advance(place, spatial);
    sums += count;
    n -= count;
  }
}

std::vector<double> bias_values(const Problem& problem, Args args, int64_t channels) {
  if (problem.in.size() < 3) return std::vector<double>(static_cast<size_t>(channels), 0);
  return dense_doubles(in_view(problem, args, 2));
}

/// narrow = weights * what the windows see (+ bias).
void gather(const Conv& c, const std::vector<double>& bias) {
  const std::vector<float> weights = dense_floats(c.weights);
  const int64_t depth = c.wide_channels * c.taps;
  Product product{.batches = c.batches(),
                  .rows = c.narrow_channels,
                  .columns = c.windows(),
                  .depth = depth,
                  .exact = c.narrow.dtype() == Dtype::f64};
  product.left = [&](int64_t b, int64_t i, int64_t k, int64_t n, float* to) {
    std::copy_n(weights.data() + (b % c.groups * c.narrow_channels + i) * depth + k, n, to);
  };
  product.right = [&](int64_t b, int64_t k, int64_t j, int64_t n, float* to) {
    read_under_tap(c.sliding, c.wide, c.wide_at(b, k / c.taps), c.tap(k % c.taps), j, n, to);
  };
  product.store = [&](int64_t b, int64_t i, int64_t j, int64_t n, double* sums) {
    const double added = bias[static_cast<size_t>(b % c.groups * c.narrow_channels + i)];
    store_places(c.narrow, c.sliding.narrow, c.narrow_at(b, i), j, n, added, sums);
  };
  multiply_all(product);
}

/// wide = transposed weights * what the windows give back (+ bias).
void scatter(const Conv& c, const std::vector<double>& bias) {
  const std::vector<float> weights = dense_floats(c.weights);
  Product product{.batches = c.batches(),
                  .rows = c.wide_channels,
                  .columns = c.wide_places(),
                  .depth = c.narrow_channels * c.taps,
                  .exact = c.wide.dtype() == Dtype::f64};
  product.left = [&](int64_t b, int64_t i, int64_t k, int64_t n, float* to) {
    for (; n > 0; --n, ++k, ++to) {
      const int64_t channel = b % c.groups * c.narrow_channels + k / c.taps;
      *to = weights[static_cast<size_t>((channel * c.wide_channels + i) * c.taps + k % c.taps)];
    }
  };
  product.right = [&](int64_t b, int64_t k, int64_t j, int64_t n, float* to) {
    read_through_tap(c.sliding, c.narrow, c.narrow_at(b, k / c.taps), c.tap(k % c.taps), j, n, to);
  };
  product.store = [&](int64_t b, int64_t i, int64_t j, int64_t n, double* sums) {
    const double added = bias[static_cast<size_t>(b % c.groups * c.wide_channels + i)];
    store_places(c.wide, c.sliding.wide, c.wide_at(b, i), j, n, added, sums);
  };
  multiply_all(product);
}

/// weights(narrow channel, wide channel, tap) = sum over images and windows of narrow * what the window sees.
void correlate(const Conv& c) {
  const int64_t windows = c.windows(), images = c.wide.dims[0];
  Product product{.batches = c.groups,
                  .rows = c.wide_channels * c.taps,
                  .columns = c.narrow_channels,
                  .depth = images * windows,
                  .exact = c.weights.dtype() == Dtype::f64};
  product.left = [&](int64_t group, int64_t i, int64_t k, int64_t n, float* to) {
    while (n > 0) {
      const int64_t image = k / windows, window = k % windows, count = std::min(n, windows - window);
      const int64_t at = c.wide_at(image * c.groups + group, i / c.taps);
      read_under_tap(c.sliding, c.wide, at, c.tap(i % c.taps), window, count, to);
      k += count;
      to += count;
      n -= count;
    }
  };
  product.right = [&](int64_t group, int64_t k, int64_t j, int64_t n, float* to) {
    int64_t at = c.narrow_at(k / windows * c.groups + group, j);
    const Dims place = coordinates(k % windows, c.sliding.narrow);
    for (int axis = 0; axis < place.size(); ++axis) at += place[axis] * c.narrow.strides[axis + 2];
    c.narrow.read(at, c.narrow.strides[1], n, to);
  };
  product.store = [&](int64_t group, int64_t i, int64_t j, int64_t n, double* sums) {
    int64_t at = (group * c.narrow_channels + j) * c.weights.strides[0] + i / c.taps * c.weights.strides[1];
    const Dims& tap = c.tap(i % c.taps);
    for (int axis = 0; axis < tap.size(); ++axis) at += tap[axis] * c.weights.strides[axis + 2];
    c.weights.write(at, c.weights.strides[0], n, sums);
  };
  multiply_all(product);
}

}  // namespace

Status convolution(const Problem& problem, Args args) {
  const Conv c(problem, in_view(problem, args, 0), out_view(problem, args, 0), in_view(problem, args, 1));
  gather(c, bias_values(problem, args, c.narrow.dims[1]));
  return {};
}

Status convolution_backward_data(const Problem& problem, Args args) {
  const Conv c(problem, out_view(problem, args, 0), in_view(problem, args, 0), in_view(problem, args, 1));
  scatter(c, std::vector<double>(static_cast<size_t>(c.wide.dims[1]), 0));
  return {};
}

Status convolution_backward_weights(const Problem& problem, Args args) {
  correlate(Conv(problem, in_view(problem, args, 0), in_view(problem, args, 1), out_view(problem, args, 0)));
  return {};
}

Status conv_transpose(const Problem& problem, Args args) {
  const Conv c(problem, out_view(problem, args, 0), in_view(problem, args, 0), in_view(problem, args, 1));
  scatter(c, bias_values(problem, args, c.wide.dims[1]));
  return {};
}

Status conv_transpose_backward_data(const Problem& problem, Args args) {
  const Conv c(problem, in_view(problem, args, 0), out_view(problem, args, 0), in_view(problem, args, 1));
  gather(c, std::vector<double>(static_cast<size_t>(c.narrow.dims[1]), 0));
  return {};
}

Status conv_transpose_backward_weights(const Problem& problem, Args args) {
  correlate(Conv(problem, in_view(problem, args, 1), in_view(problem, args, 0), out_view(problem, args, 0)));
  return {};
}

}  // namespace partita::ref
