// SPDX-License-Identifier: Apache-2.0
// LayerNorm, its gradient, and RMSNorm: slices over the axes from `begin_norm_axis` on, in f64.
#include <cmath>

#include "kernels/ref/references.hpp"
#include "kernels/ref/runs.hpp"
#include "kernels/ref/view.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

using Row = std::vector<double>;

/// A tensor cut at `begin_norm_axis` into rows.
class Cut {
 public:
  Cut(const View& view, int axis)
      : view_(view),
        outer_(head(view.dims, axis), {head(view.strides, axis)}, Order::row_major),
        inner_(tail(view.dims, axis), {tail(view.strides, axis)}, Order::row_major) {}

  int64_t rows() const { return outer_.count(); }
  int64_t length() const { return inner_.count(); }
  Row read(int64_t row) const {
    Row values(static_cast<size_t>(length()));
    read_runs(view_, inner_, outer_.at(row)[0], values.data());
    return values;
  }
  void write(int64_t row, const Row& values) const { write_runs(view_, inner_, outer_.at(row)[0], values.data()); }

 private:
  static Dims head(const Dims& dims, int axis) {
    return Dims(std::span<const int64_t>(dims).first(static_cast<size_t>(axis)));
  }

  View view_;
  Runs outer_;
  Runs inner_;
};

int norm_axis(const Problem& problem) {
  return normal_axis(problem.attrs.i64_or(Attr::begin_norm_axis, -1), problem.in[0].dims.size()).value_or(0);
}

Cut cut_in(const Problem& problem, Args args, int port) {
  return Cut(in_view(problem, args, port), norm_axis(problem));
}
Cut cut_out(const Problem& problem, Args args, int port) {
  return Cut(out_view(problem, args, port), norm_axis(problem));
}

/// gamma or beta for every place of a slice: a list of as many elements, or one that numpy broadcasts.
Row affine_or(const Problem& problem, Args args, size_t port, double fallback) {
  const Dims inner = tail(problem.in[0].dims, norm_axis(problem));
  const int64_t length = elements(inner);
  if (problem.in.size() <= port || !problem.attrs.flag_or(Attr::use_affine, true)) {
    return Row(static_cast<size_t>(length), fallback);
  }
  const View view = in_view(problem, args, static_cast<int>(port));
  return dense_doubles(elements(view.dims) == length ? view : broadcast_to(view, inner));
}

struct Moments {
  double mean, variance;
};

Moments moments_of(const Row& row) {
  const double n = static_cast<double>(row.size());
  double sum = 0, squares = 0;
  for (double x : row) sum += x;
  const double mean = sum / n;
  for (double x : row) squares += (x - mean) * (x - mean);
  return {mean, squares / n};
}

}  // namespace

Status layer_norm(const Problem& problem, Args args) {
  const Cut src = cut_in(problem, args, 0), dst = cut_out(problem, args, 0);
  const Row gamma = affine_or(problem, args, 1, 1), beta = affine_or(problem, args, 2, 0);
  const double epsilon = problem.attrs.f32_or(Attr::epsilon, 1e-5f);
  Row means(static_cast<size_t>(src.rows())), variances(means);
  parallel_for(src.rows(), src.length() * 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Row row = src.read(r);
      const Moments m = moments_of(row);
      const double rstd = 1 / std::sqrt(m.variance + epsilon);
      for (size_t i = 0; i < row.size(); ++i) row[i] = (row[i] - m.mean) * rstd * gamma[i] + beta[i];
      dst.write(r, row);
      means[static_cast<size_t>(r)] = m.mean;
      variances[static_cast<size_t>(r)] = m.variance;
    }
  });
  if (problem.out.size() < 3) return {};
  write_dense(out_view(problem, args, 1), means.data());
  write_dense(out_view(problem, args, 2), variances.data());
  return {};
}

Status layer_norm_backward(const Problem& problem, Args args) {
  const Cut src = cut_in(problem, args, 0), diff_dst = cut_in(problem, args, 1), diff_src = cut_out(problem, args, 0);
  const Row means = dense_doubles(in_view(problem, args, 2)), variances = dense_doubles(in_view(problem, args, 3));
  const Row gamma = affine_or(problem, args, 4, 1);
  const double epsilon = problem.attrs.f32_or(Attr::epsilon, 1e-5f), n = static_cast<double>(src.length());
  const auto rstd_of = [&](int64_t r) { return 1 / std::sqrt(variances[static_cast<size_t>(r)] + epsilon); };
  const auto normalised = [&](int64_t r) {
    Row row = src.read(r);
    const double mean = means[static_cast<size_t>(r)], rstd = rstd_of(r);
    for (double& x : row) x = (x - mean) * rstd;
    return row;
  };
  parallel_for(src.rows(), src.length() * 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Row x = normalised(r);
      Row g = diff_dst.read(r);
      double sum = 0, dot = 0;
      for (size_t i = 0; i < g.size(); ++i) {
        g[i] *= gamma[i];
        sum += g[i];
        dot += g[i] * x[i];
      }
      for (size_t i = 0; i < g.size(); ++i) g[i] = rstd_of(r) * (g[i] - sum / n - x[i] * dot / n);
      diff_src.write(r, g);
    }
  });
  if (problem.out.size() < 3) return {};
  Row diff_gamma(static_cast<size_t>(src.length()), 0), diff_beta(diff_gamma);
  // One thread: the order of these sums must not depend on how many threads there are.
  for (int64_t r = 0; r < src.rows(); ++r) {
    const Row x = normalised(r), dy = diff_dst.read(r);
    for (size_t i = 0; i < x.size(); ++i) {
      diff_gamma[i] += dy[i] * x[i];
      diff_beta[i] += dy[i];
    }
  }
  write_dense(out_view(problem, args, 1), diff_gamma.data());
  write_dense(out_view(problem, args, 2), diff_beta.data());
  return {};
}

Status rms_norm(const Problem& problem, Args args) {
  const Cut src = cut_in(problem, args, 0), dst = cut_out(problem, args, 0);
  const Row gamma = affine_or(problem, args, 1, 1);
  const double epsilon = problem.attrs.f32_or(Attr::epsilon, 1e-5f);
  parallel_for(src.rows(), src.length() * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Row row = src.read(r);
      double squares = 0;
      for (double x : row) squares += x * x;
      const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + epsilon);
      for (size_t i = 0; i < row.size(); ++i) row[i] *= scale * gamma[i];
      dst.write(r, row);
    }
  });
  return {};
}

}  // namespace partita::ref
