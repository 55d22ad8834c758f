// SPDX-License-Identifier: Apache-2.0
// GroupNorm: each image's channels in groups, one mean and variance a group, in f64.
#include <cmath>

#include "kernels/ref/planes.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

std::vector<double> list_or(const Problem& problem, Args args, size_t port, int64_t channels, double fallback) {
  if (problem.in.size() <= port || !problem.attrs.flag_or(Attr::use_affine, true)) {
    return std::vector<double>(static_cast<size_t>(channels), fallback);
  }
  return dense_doubles(in_view(problem, args, static_cast<int>(port)));
}

}  // namespace

Status group_norm(const Problem& problem, Args args) {
  const Planes src(in_view(problem, args, 0), problem.attrs), dst(out_view(problem, args, 0), problem.attrs);
  const Dims& dims = problem.in[0].dims;
  const int64_t channels = dims[channel_axis(dims.size(), problem.attrs)];
  const int64_t groups = problem.attrs.i64(Attr::groups), together = channels / groups, size = src.size();
  const std::vector<double> gamma = list_or(problem, args, 1, channels, 1),
                            beta = list_or(problem, args, 2, channels, 0);
  const double epsilon = problem.attrs.f32_or(Attr::epsilon, 1e-5f), n = static_cast<double>(together * size);
  parallel_for(dims[0] * groups, together * size * 8, [&](int64_t begin, int64_t end) {
    std::vector<double> values(static_cast<size_t>(together * size));
    for (int64_t slice = begin; slice < end; ++slice) {
      // Groups are contiguous in the numbering of planes, because groups divide the channels.
      const int64_t first_plane = slice * together;
      for (int64_t c = 0; c < together; ++c) src.read(first_plane + c, values.data() + c * size);
      double sum = 0, squares = 0;
      for (double x : values) sum += x;
      const double mean = sum / n;
      for (double x : values) squares += (x - mean) * (x - mean);
      const double variance = squares / n, rstd = 1 / std::sqrt(variance + epsilon);
      for (int64_t c = 0; c < together; ++c) {
        const size_t channel = static_cast<size_t>((first_plane + c) % channels);
        double* plane = values.data() + c * size;
        for (int64_t i = 0; i < size; ++i) plane[i] = (plane[i] - mean) * rstd * gamma[channel] + beta[channel];
        dst.write(first_plane + c, plane);
      }
      if (problem.out.size() < 3) continue;
      const View means = out_view(problem, args, 1), variances = out_view(problem, args, 2);
      const int64_t image = slice / groups, group = slice % groups;
      means.set(image * means.strides[0] + group * means.strides[1], mean);
      variances.set(image * variances.strides[0] + group * variances.strides[1], variance);
    }
  });
  return {};
}

}  // namespace partita::ref
