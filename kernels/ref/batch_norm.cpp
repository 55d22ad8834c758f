// SPDX-License-Identifier: Apache-2.0
// Batch normalisation: inference, training forward (with running statistics) and its gradient, in f64 per channel.
#include <cmath>

#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/shape.hpp"

namespace partita::ref {
namespace {

/// Each channel of the tensors as one slice.
Slices channels_of(const std::vector<View>& views, const Attrs& attrs) {
  std::vector<Dims> strides;
  for (const View& view : views) strides.push_back(view.strides);
  std::vector<bool> inner(static_cast<size_t>(views[0].rank()), true);
  inner[static_cast<size_t>(channel_axis(views[0].rank(), attrs))] = false;
  return Slices(views[0].dims, strides, inner, Order::memory);
}

/// Sum of f(x) over a slice of operand 0, or of f(x, y) over operands 0 and 1.
template <class F>
double sum_of(const Runs& inner, const Positions& base, const View& x, F f) {
  double sum = 0;
  inner.each(base, [&](const Positions& at, int64_t, int64_t n) {
    double values[kBlock];
    x.read(at[0], inner.stride(0), n, values);
    for (int64_t i = 0; i < n; ++i) sum += f(values[i]);
  });
  return sum;
}

/// Values of a rank-1 port, or `fallback` everywhere where the port is missing.
std::vector<double> list_or(const Problem& problem, Args args, size_t port, int64_t channels, double fallback) {
  if (problem.in.size() <= port) return std::vector<double>(static_cast<size_t>(channels), fallback);
  return dense_doubles(in_view(problem, args, static_cast<int>(port)));
}

int64_t channel_count(const View& view, const Attrs& attrs) { return view.dims[channel_axis(view.rank(), attrs)]; }

void write_list(const Problem& problem, Args args, size_t port, const std::vector<double>& values) {
  if (problem.out.size() <= port) return;
  const View list = out_view(problem, args, static_cast<int>(port));
  list.write(0, list.strides[0], static_cast<int64_t>(values.size()), values.data());
}

/// dst = src * scale[channel] + shift[channel]
void scale_channels(const View& src, const View& dst, const Attrs& attrs, const std::vector<double>& scale,
                    const std::vector<double>& shift) {
  const int axis = channel_axis(src.rank(), attrs);
  const auto spread = [&](const std::vector<double>& list) {
    return along_axis(View({Dtype::f64, {static_cast<int64_t>(list.size())}, {1}, 0}, list.data()), src.dims, axis);
  };
  map(
      3, [](double x, double a, double b) { return x * a + b; }, dst, src, spread(scale), spread(shift));
}

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta
void normalise(const View& src, const View& dst, const Attrs& attrs, const std::vector<double>& mean,
               const std::vector<double>& variance, const std::vector<double>& gamma, const std::vector<double>& beta) {
  std::vector<double> scale(mean.size()), shift(mean.size());
  for (size_t c = 0; c < mean.size(); ++c) {
    scale[c] = gamma[c] / std::sqrt(variance[c] + static_cast<double>(attrs.f32(Attr::epsilon)));
    shift[c] = beta[c] - mean[c] * scale[c];
  }
  scale_channels(src, dst, attrs, scale, shift);
}

}  // namespace

Status batch_norm_inference(const Problem& problem, Args args) {
  const auto list = [&](int port) { return dense_doubles(in_view(problem, args, port)); };
  normalise(in_view(problem, args, 0), out_view(problem, args, 0), problem.attrs, list(3), list(4), list(1), list(2));
  return {};
}

Status batch_norm_forward_training(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0);
  const Slices channels = channels_of({src}, problem.attrs);
  const int64_t count = channels.outer.count();
  std::vector<double> mean(static_cast<size_t>(count)), variance(mean);
  const double places = static_cast<double>(channels.inner.count());
  channels.each_in_parallel(4, [&](const Positions& base, int64_t c) {
    const double average = sum_of(channels.inner, base, src, [](double x) { return x; }) / places;
    mean[static_cast<size_t>(c)] = average;
    variance[static_cast<size_t>(c)] =
        sum_of(channels.inner, base, src, [=](double x) { return (x - average) * (x - average); }) / places;
  });
  normalise(src, out_view(problem, args, 0), problem.attrs, mean, variance, list_or(problem, args, 3, count, 1),
            list_or(problem, args, 4, count, 0));

  const double momentum = problem.attrs.f32_or(Attr::momentum, 0.5f);
  std::vector<double> running_mean = dense_doubles(in_view(problem, args, 1));
  std::vector<double> running_variance = dense_doubles(in_view(problem, args, 2));
  for (size_t c = 0; c < mean.size(); ++c) {
    running_mean[c] = momentum * running_mean[c] + (1 - momentum) * mean[c];
    running_variance[c] = momentum * running_variance[c] + (1 - momentum) * variance[c];
  }
  write_list(problem, args, 1, running_mean);
  write_list(problem, args, 2, running_variance);
  write_list(problem, args, 3, mean);
  write_list(problem, args, 4, variance);
  return {};
}

Status batch_norm_training_backward(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0), diff_dst = in_view(problem, args, 1),
             diff_src = out_view(problem, args, 0);
  const std::vector<double> mean = dense_doubles(in_view(problem, args, 2)),
                            variance = dense_doubles(in_view(problem, args, 3));
  const int64_t count = channel_count(src, problem.attrs);
  const std::vector<double> gamma = list_or(problem, args, 4, count, 1);
  const double epsilon = problem.attrs.f32(Attr::epsilon);
  std::vector<double> diff_gamma(static_cast<size_t>(count)), diff_beta(diff_gamma);
  const Slices channels = channels_of({src, diff_dst, diff_src}, problem.attrs);
  const Runs& inner = channels.inner;
  const double places = static_cast<double>(inner.count());
  channels.each_in_parallel(8, [&](const Positions& base, int64_t index) {
    const size_t c = static_cast<size_t>(index);
    const double rstd = 1 / std::sqrt(variance[c] + epsilon);
    double sum = 0, dot = 0;
    inner.each(base, [&](const Positions& at, int64_t, int64_t n) {
      double x[kBlock], dy[kBlock];
      src.read(at[0], inner.stride(0), n, x);
      diff_dst.read(at[1], inner.stride(1), n, dy);
      for (int64_t i = 0; i < n; ++i) sum += dy[i];
      for (int64_t i = 0; i < n; ++i) dot += dy[i] * (x[i] - mean[c]) * rstd;
    });
    diff_gamma[c] = dot;
    diff_beta[c] = sum;
    inner.each(base, [&](const Positions& at, int64_t, int64_t n) {
      double x[kBlock], dy[kBlock];
      src.read(at[0], inner.stride(0), n, x);
      diff_dst.read(at[1], inner.stride(1), n, dy);
      for (int64_t i = 0; i < n; ++i) {
        dy[i] = gamma[c] * rstd * (dy[i] - sum / places - (x[i] - mean[c]) * rstd * dot / places);
      }
      diff_src.write(at[2], inner.stride(2), n, dy);
    });
  });
  write_list(problem, args, 1, diff_gamma);
  write_list(problem, args, 2, diff_beta);
  return {};
}

}  // namespace partita::ref
