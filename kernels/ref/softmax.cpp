// SPDX-License-Identifier: Apache-2.0
// SoftMax, LogSoftmax and their gradients, one slice along `axis` at a time in f64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ref/references.hpp"
#include "kernels/ref/runs.hpp"
#include "kernels/ref/view.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita::ref {
namespace {

/// Slices along `axis` of views of equal dims, each read and written as a whole.
struct Rows {
  std::vector<View> views;
  int axis;
  Slices slices;

  static Rows of(const std::vector<View>& views, int axis) {
    std::vector<Dims> strides;
    for (const View& view : views) strides.push_back(view.strides);
    std::vector<bool> inner(static_cast<size_t>(views[0].rank()), false);
    if (!inner.empty()) inner[static_cast<size_t>(axis)] = true;
    return {views, axis, Slices(views[0].dims, strides, inner, Order::row_major)};
  }
  int64_t length() const { return slices.inner.count(); }
  std::vector<double> read(const Positions& base, int operand) const {
    std::vector<double> values(static_cast<size_t>(length()));
    view(operand).read(base[static_cast<size_t>(operand)], slices.inner.stride(operand), length(), values.data());
    return values;
  }
  void write(const Positions& base, int operand, const std::vector<double>& values) const {
    view(operand).write(base[static_cast<size_t>(operand)], slices.inner.stride(operand), length(), values.data());
  }
  const View& view(int operand) const { return views[static_cast<size_t>(operand)]; }
};

/// The attribute as an index; 0 for a scalar.
Result<int> axis_of(const Problem& problem, int rank) {
  if (rank == 0) return 0;
  const int64_t given = problem.attrs.i64(Attr::axis);
  const auto axis = normal_axis(given, rank);
  if (!axis)
    return fail(Code::invalid_arguments, str("`axis` must be in [-rank, rank) with rank ", rank, ", found ", given));
  return *axis;
}

struct LogSum {
  double max, sum;  ///< sum of exp(x - max)
  double log_sum() const { return sum == 0 ? max : max + std::log(sum); }
};

LogSum log_sum_of(const std::vector<double>& row) {
  LogSum result{-std::numeric_limits<double>::infinity(), 0};
  for (double x : row) result.max = x > result.max || std::isnan(x) ? x : result.max;
  for (double x : row) result.sum += std::exp(x - result.max);
  return result;
}

bool all_minus_infinity(const std::vector<double>& row) {
  return std::all_of(row.begin(), row.end(), [](double x) { return x == -std::numeric_limits<double>::infinity(); });
}

}  // namespace

Status softmax(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0);
  PT_ASSIGN(const int axis, axis_of(problem, src.rank()));
  std::vector<View> views{src, out_view(problem, args, 0)};
  const bool wants_stats = problem.out.size() > 1;
  if (wants_stats) views.push_back(out_view(problem, args, 1));
  const bool inf_as_zero = problem.attrs.is(Attr::mode, "inf_as_zero");
  const Rows rows = Rows::of(views, axis);
  rows.slices.each_in_parallel(20, [&](const Positions& base, int64_t) {
    std::vector<double> row = rows.read(base, 0);
    LogSum total{-std::numeric_limits<double>::infinity(), 0};
    if (inf_as_zero && all_minus_infinity(row)) {
      std::fill(row.begin(), row.end(), 0.0);
    } else {
      total = log_sum_of(row);
      for (double& x : row) x = std::exp(x - total.max) / total.sum;
    }
    rows.write(base, 1, row);
    if (wants_stats) rows.view(2).set(base[2], total.log_sum());
  });
  return {};
}

Status log_softmax(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0);
  PT_ASSIGN(const int axis, axis_of(problem, src.rank()));
  const Rows rows = Rows::of({src, out_view(problem, args, 0)}, axis);
  rows.slices.each_in_parallel(20, [&](const Positions& base, int64_t) {
    std::vector<double> row = rows.read(base, 0);
    const LogSum total = log_sum_of(row);
    const double log_of_sum = std::log(total.sum);
    for (double& x : row) x = (x - total.max) - log_of_sum;
    rows.write(base, 1, row);
  });
  return {};
}

Status softmax_backward(const Problem& problem, Args args) {
  const View diff_dst = in_view(problem, args, 0), dst = in_view(problem, args, 1);
  PT_ASSIGN(const int axis, axis_of(problem, dst.rank()));
  const Rows rows = Rows::of({diff_dst, dst, out_view(problem, args, 0)}, axis);
  rows.slices.each_in_parallel(4, [&](const Positions& base, int64_t) {
    std::vector<double> dy = rows.read(base, 0);
    const std::vector<double> y = rows.read(base, 1);
    double dot = 0;
    for (size_t i = 0; i < y.size(); ++i) dot += dy[i] * y[i];
    for (size_t i = 0; i < y.size(); ++i) dy[i] = y[i] * (dy[i] - dot);
    rows.write(base, 2, dy);
  });
  return {};
}

Status log_softmax_backward(const Problem& problem, Args args) {
  const View diff_dst = in_view(problem, args, 0), dst = in_view(problem, args, 1);
  PT_ASSIGN(const int axis, axis_of(problem, dst.rank()));
  const Rows rows = Rows::of({diff_dst, dst, out_view(problem, args, 0)}, axis);
  rows.slices.each_in_parallel(20, [&](const Positions& base, int64_t) {
    std::vector<double> dy = rows.read(base, 0);
    const std::vector<double> y = rows.read(base, 1);
    double sum = 0;
    for (double d : dy) sum += d;
    for (size_t i = 0; i < y.size(); ++i) dy[i] -= std::exp(y[i]) * sum;
    rows.write(base, 2, dy);
  });
  return {};
}

}  // namespace partita::ref
