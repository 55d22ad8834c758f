// SPDX-License-Identifier: Apache-2.0
// A count of operations, weighted by what generated code makes of them.
#include "passes/optimize/front_cost.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/narrow_results.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

constexpr double kMostRepeated = 12, kMostBesideMemory = 60;  ///< operations an element

double cost_of(ExprOp op) {
  constexpr double kDivision = 4, kFunction = 20;
  if (is_elementary(op) || op == ExprOp::uniform) return kFunction;
  switch (op) {
    case ExprOp::load:
    case ExprOp::skeleton:
    case ExprOp::constant:
    case ExprOp::cast: return 0;
    case ExprOp::div:
    case ExprOp::sqrt:
    case ExprOp::reciprocal: return kDivision;
    default: return 1;
  }
}

/// A result of an interpolation has two neighbours along each axis.
double evaluations_of_resampling(const Problem& p) {
  const auto read = static_cast<double>(elements(p.in[0].dims)), made = static_cast<double>(elements(p.out[0].dims));
  const bool linear = p.op == OpKind::Interpolate && !p.attrs.is(Attr::mode, "nearest");
  return made / std::max(read, 1.0) * (linear ? std::exp2(p.in[0].dims.size() - 2) : 1);
}

/// Of each element, about.
double evaluations(const Problem& p) {
  if (p.step == StepKind::group_norm) return 3;
  if (p.step == StepKind::resample) return evaluations_of_resampling(p);
  if (p.step != StepKind::pool_forward) return 1;
  double times = 1;
  for (int64_t extent : p.attrs.dims(Attr::kernel)) times *= static_cast<double>(extent);
  for (int64_t stride : p.attrs.dims(Attr::strides)) times /= static_cast<double>(stride);
  return times;
}

}  // namespace

bool is_dear_in_front(const Problem& p) {
  double operations = 0;
  for (const Instr& in : p.front.code) operations += cost_of(in.op);
  const TensorDesc& source = p.in[static_cast<size_t>(front_port(p.step))];
  const int64_t bytes = elements(source.dims) * bits_of(source.dtype) / 8;
  const double most = leaves_the_caches(bytes) ? kMostBesideMemory : kMostRepeated;
  return operations * (evaluations(p) - 1) > most;
}

}  // namespace partita
