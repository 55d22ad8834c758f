// SPDX-License-Identifier: Apache-2.0
// Element-wise operators of two and three inputs with numpy broadcasting.
#include <cmath>
#include <limits>

#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"

namespace partita::ref {
namespace {

constexpr int64_t kCost = 3;

bool is_s32(const TensorDesc& desc) { return desc.dtype == Dtype::s32; }

bool all_s32(const Problem& problem) {
  return is_s32(problem.in[0]) && is_s32(problem.in[1]) && is_s32(problem.out[0]);
}

/// Integers on one side only: such operators are computed in f32.
bool mixes_s32(const Problem& problem) {
  return is_s32(problem.in[0]) != is_s32(problem.in[1]) ||
         (problem.out[0].dtype != Dtype::boolean && is_s32(problem.in[0]) != is_s32(problem.out[0]));
}

float in_f32(double value) { return static_cast<float>(value); }

template <class F>
Status binary(const Problem& problem, Args args, F f) {
  const View dst = out_view(problem, args, 0);
  const View a = broadcast_to(in_view(problem, args, 0), dst.dims);
  const View b = broadcast_to(in_view(problem, args, 1), dst.dims);
  // Which of two integers a sum is rounded to depends on its last bit.
  if (mixes_s32(problem))
    map(
        kCost, [&](double x, double y) { return in_f32(f(in_f32(x), in_f32(y))); }, dst, a, b);
  else
    map(kCost, f, dst, a, b);
  return {};
}

/// The low 32 bits; sums of two s32 are exact in f64.
double wrapped(double sum) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum))); }

}  // namespace

Status add(const Problem& problem, Args args) {
  if (all_s32(problem)) return binary(problem, args, [](double a, double b) { return wrapped(a + b); });
  return binary(problem, args, [](double a, double b) { return a + b; });
}

Status subtract(const Problem& problem, Args args) {
  if (all_s32(problem)) return binary(problem, args, [](double a, double b) { return wrapped(a - b); });
  return binary(problem, args, [](double a, double b) { return a - b; });
}

Status multiply(const Problem& problem, Args args) {
  return binary(problem, args, [](double a, double b) { return a * b; });
}

Status divide(const Problem& problem, Args args) {
  return binary(problem, args, [](double a, double b) { return a / b; });
}

Status maximum(const Problem& problem, Args args) {
  return binary(problem, args, [](double a, double b) { return a > b || std::isnan(a) ? a : b; });
}

Status minimum(const Problem& problem, Args args) {
  return binary(problem, args, [](double a, double b) { return a < b || std::isnan(a) ? a : b; });
}

Status squared_difference(const Problem& problem, Args args) {
  return binary(problem, args, [](double a, double b) { return (a - b) * (a - b); });
}

Status greater_equal(const Problem& problem, Args args) {
  return binary(problem, args, [](double a, double b) { return a >= b ? 1.0 : 0.0; });
}

Status bias_add(const Problem& problem, Args args) {
  const View dst = out_view(problem, args, 0);
  const View bias = along_axis(in_view(problem, args, 1), dst.dims, channel_axis(dst.rank(), problem.attrs));
  map(
      kCost, [](double x, double b) { return x + b; }, dst, in_view(problem, args, 0), bias);
  return {};
}

Status select(const Problem& problem, Args args) {
  const View dst = out_view(problem, args, 0);
  const auto operand = [&](int port) { return broadcast_to(in_view(problem, args, port), dst.dims); };
  map(
      kCost, [](double condition, double a, double b) { return condition != 0 ? a : b; }, dst, operand(0), operand(1),
      operand(2));
  return {};
}

}  // namespace partita::ref
