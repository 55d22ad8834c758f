// SPDX-License-Identifier: Apache-2.0
// Evaluation of expressions over runs of elements; entry: RowProgram::run.
#include "kernels/loop/row_program.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/loop/activations.hpp"
#include "src/base/dtype.hpp"
#include "src/base/philox.hpp"

namespace partita {
namespace {

int32_t as_int(float lane) { return std::bit_cast<int32_t>(lane); }
float as_lane(int32_t value) { return std::bit_cast<float>(value); }

int32_t saturate(float v) {
  if (std::isnan(v)) return 0;
  if (v >= 2147483648.0f) return INT32_MAX;
  if (v <= -2147483648.0f) return INT32_MIN;
  return static_cast<int32_t>(std::nearbyint(v));
}

/// NaN in either operand gives NaN, as the generated code does.
float max_of(float a, float b) { return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b; }
float min_of(float a, float b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b; }
float sigmoid(float x) { return x >= 0 ? 1.0f / (1.0f + std::exp(-x)) : std::exp(x) / (1.0f + std::exp(x)); }
float softplus(float x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

int64_t wrap(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(v))); }

template <class F>
void each(int64_t n, float* to, F f) {
  for (int64_t i = 0; i < n; ++i) to[i] = f(i);
}

/// One arithmetic instruction over n lanes; s32 values travel as bit patterns.
void compute(const Instr& in, int64_t n, const float* a, const float* b, const float* c, float* to) {
  auto ints = [&](auto f) {
    each(n, to, [&](int64_t i) {
      return as_lane(static_cast<int32_t>(wrap(f(int64_t{as_int(a[i])}, int64_t{as_int(b[i])}))));
    });
  };
  switch (in.op) {
    case ExprOp::add: return each(n, to, [&](int64_t i) { return a[i] + b[i]; });
    case ExprOp::sub: return each(n, to, [&](int64_t i) { return a[i] - b[i]; });
    case ExprOp::mul: return each(n, to, [&](int64_t i) { return a[i] * b[i]; });
    case ExprOp::div: return each(n, to, [&](int64_t i) { return a[i] / b[i]; });
    case ExprOp::max: return each(n, to, [&](int64_t i) { return max_of(a[i], b[i]); });
    case ExprOp::min: return each(n, to, [&](int64_t i) { return min_of(a[i], b[i]); });
    case ExprOp::neg: return each(n, to, [&](int64_t i) { return -a[i]; });
    case ExprOp::abs: return each(n, to, [&](int64_t i) { return std::fabs(a[i]); });
    case ExprOp::square: return each(n, to, [&](int64_t i) { return a[i] * a[i]; });
    case ExprOp::sqrt: return each(n, to, [&](int64_t i) { return std::sqrt(a[i]); });
    case ExprOp::reciprocal: return each(n, to, [&](int64_t i) { return 1.0f / a[i]; });
    case ExprOp::exp: return each(n, to, [&](int64_t i) { return std::exp(a[i]); });
    case ExprOp::log: return each(n, to, [&](int64_t i) { return std::log(a[i]); });
    case ExprOp::tanh: return each(n, to, [&](int64_t i) { return std::tanh(a[i]); });
    case ExprOp::erf: return each(n, to, [&](int64_t i) { return std::erf(a[i]); });
    case ExprOp::round: return each(n, to, [&](int64_t i) { return std::nearbyint(a[i]); });
    case ExprOp::floor: return each(n, to, [&](int64_t i) { return std::floor(a[i]); });
    case ExprOp::sigmoid: return each(n, to, [&](int64_t i) { return sigmoid(a[i]); });
    case ExprOp::softplus: return each(n, to, [&](int64_t i) { return softplus(a[i]); });
    case ExprOp::expm1: return each(n, to, [&](int64_t i) { return std::expm1(a[i]); });
    case ExprOp::gelu_erf: return each(n, to, [&](int64_t i) { return gelu_erf(a[i]); });
    case ExprOp::gelu_tanh: return each(n, to, [&](int64_t i) { return gelu_tanh(a[i]); });
    case ExprOp::mish: return each(n, to, [&](int64_t i) { return mish(a[i]); });
    case ExprOp::gelu_erf_slope: return each(n, to, [&](int64_t i) { return gelu_erf_slope(a[i]); });
    case ExprOp::gelu_tanh_slope: return each(n, to, [&](int64_t i) { return gelu_tanh_slope(a[i]); });
    case ExprOp::mish_slope: return each(n, to, [&](int64_t i) { return mish_slope(a[i]); });
    case ExprOp::pow: return each(n, to, [&](int64_t i) { return std::pow(a[i], b[i]); });
    case ExprOp::ge: return each(n, to, [&](int64_t i) { return a[i] >= b[i] ? 1.0f : 0.0f; });
    case ExprOp::gt: return each(n, to, [&](int64_t i) { return a[i] > b[i] ? 1.0f : 0.0f; });
    case ExprOp::eq: return each(n, to, [&](int64_t i) { return a[i] == b[i] ? 1.0f : 0.0f; });
    case ExprOp::select: return each(n, to, [&](int64_t i) { return a[i] != 0.0f ? b[i] : c[i]; });
    case ExprOp::fma: return each(n, to, [&](int64_t i) { return std::fma(a[i], b[i], c[i]); });
    case ExprOp::add_s32: return ints([](int64_t x, int64_t y) { return x + y; });
    case ExprOp::sub_s32: return ints([](int64_t x, int64_t y) { return x - y; });
    case ExprOp::mul_s32: return ints([](int64_t x, int64_t y) { return x * y; });
    case ExprOp::max_s32: return ints([](int64_t x, int64_t y) { return std::max(x, y); });
    case ExprOp::min_s32: return ints([](int64_t x, int64_t y) { return std::min(x, y); });
    case ExprOp::ge_s32: return each(n, to, [&](int64_t i) { return as_int(a[i]) >= as_int(b[i]) ? 1.0f : 0.0f; });
    case ExprOp::to_s32: return each(n, to, [&](int64_t i) { return as_lane(saturate(a[i])); });
    case ExprOp::to_f32: return each(n, to, [&](int64_t i) { return static_cast<float>(as_int(a[i])); });
    case ExprOp::load:
    case ExprOp::store:
    case ExprOp::skeleton:
    case ExprOp::constant:
    case ExprOp::index_s32:
    case ExprOp::pair_s32:
    case ExprOp::uniform:
    case ExprOp::cast:
    case ExprOp::fold_sum:
    case ExprOp::fold_max:
    case ExprOp::fold_min:
    case ExprOp::fold_mul: return;
  }
}

/// Rounds lanes to a narrower type and back.
void cast(Dtype type, int64_t n, const float* from, float* to) {
  alignas(8) std::byte narrow[RowProgram::kRun * 8];
  store_floats(narrow, type, 0, n, from);
  load_floats(narrow, type, 0, n, to);
}

int64_t element_at(const TensorDesc& desc, const Dims& at) {
  int64_t index = desc.offset;
  for (int d = 0; d < desc.strides.size(); ++d) index += at[d] * desc.strides[d];
  return index;
}

}  // namespace

RowProgram::RowProgram(const Expr& expr, const Problem& problem, const Dims& space)
    : expr_(expr), in_(problem.in), out_(problem.out), rank_(space.size()), integer_(expr.code.size()) {
  for (size_t i = 0; i < expr.code.size(); ++i) {
    Instr& instr = expr_.code[i];
    integer_[i] = makes_integer(instr, problem);
    // Of two zeros the second operand wins, but a constant never does, as in generated code.
    if ((instr.op == ExprOp::max || instr.op == ExprOp::min) && expr.code[instr.b].op == ExprOp::constant &&
        expr.code[instr.a].op != ExprOp::constant)
      std::swap(instr.a, instr.b);
  }
}

void RowProgram::load(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, float* to) const {
  const TensorDesc& desc = in_[static_cast<size_t>(in.imm)];
  const void* data = args.in[static_cast<size_t>(in.imm)];
  const int64_t first = element_at(desc, at), step = rank_ == 0 ? 0 : desc.strides.back();
  if (desc.dtype == Dtype::s32) {
    const auto* from = static_cast<const int32_t*>(data);
    return each(n, to, [&](int64_t i) { return as_lane(from[first + i * step]); });
  }
  if (step == 1) return load_floats(data, desc.dtype, first, n, to);
  if (step == 0) {
    load_floats(data, desc.dtype, first, 1, to);
    return std::fill(to + 1, to + n, to[0]);
  }
  if (desc.dtype == Dtype::f32) {
    const auto* from = static_cast<const float*>(data) + first;
    return each(n, to, [&](int64_t i) { return from[i * step]; });
  }
  for (int64_t i = 0; i < n; ++i) load_floats(data, desc.dtype, first + i * step, 1, to + i);
}

/// `work`: the lanes of the instructions, of which pairs have none of their own.
void RowProgram::draw(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, const float* work,
                      float* to) const {
  const TensorDesc& desc = in_[static_cast<size_t>(in.imm)];
  const auto start = static_cast<int64_t>(reinterpret_cast<uintptr_t>(args.in[static_cast<size_t>(in.imm)]));
  const int64_t first = start + element_at(desc, at), step = rank_ == 0 ? 0 : desc.strides.back();
  const auto whole = [&](const Instr& pair, int64_t i) {
    const auto word = [&](uint16_t value) { return std::bit_cast<uint32_t>(work[value * kRun + i]); };
    return static_cast<int64_t>(uint64_t{word(pair.b)} << 32 | word(pair.a));
  };
  each(n, to, [&](int64_t i) {
    const int64_t number = first + i * step;
    const auto words = dropout_words(whole(expr_.code[in.a], i), whole(expr_.code[in.b], i), number >> 2);
    return unit_float(words[static_cast<size_t>(number & 3)]);
  });
}

void RowProgram::store(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, const float* from) const {
  const TensorDesc& desc = out_[static_cast<size_t>(in.imm)];
  void* data = args.out[static_cast<size_t>(in.imm)];
  const int64_t first = element_at(desc, at), step = rank_ == 0 ? 1 : desc.strides.back();
  if (integer_[in.a]) {
    if (desc.dtype == Dtype::s32) {
      for (int64_t i = 0; i < n; ++i) static_cast<int32_t*>(data)[first + i * step] = as_int(from[i]);
      return;
    }
    for (int64_t i = 0; i < n; ++i) store_from_double(data, desc.dtype, first + i * step, as_int(from[i]));
    return;
  }
  if (step == 1) return store_floats(data, desc.dtype, first, n, from);
  if (desc.dtype == Dtype::f32) {
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(data)[first + i * step] = from[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) store_floats(data, desc.dtype, first + i * step, 1, from + i);
}

/// In double, as the results of loops with folds are while they grow (kernels/loop/folds.hpp).
void RowProgram::fold(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, const float* from) const {
  const TensorDesc& desc = out_[static_cast<size_t>(in.imm)];
  auto* to = static_cast<double*>(args.out[static_cast<size_t>(in.imm)]) + element_at(desc, at);
  const int64_t step = rank_ == 0 ? 0 : desc.strides.back();
  for (int64_t i = 0; i < n; ++i) to[i * step] = folded(fold_of(in.op), to[i * step], from[i]);
}

void RowProgram::run(float* work, const RunArgs& args, const Dims& at, int64_t n, const float* skeleton) const {
  auto lane = [&](size_t i) { return work + i * kRun; };
  // Loads first: an output may share its memory with an input that is read at the same place.
  for (size_t i = 0; i < expr_.code.size(); ++i)
    if (expr_.code[i].op == ExprOp::load) load(expr_.code[i], args, at, n, lane(i));
  for (size_t i = 0; i < expr_.code.size(); ++i) {
    const Instr& in = expr_.code[i];
    float* to = lane(i);
    switch (in.op) {
      case ExprOp::load: break;
      case ExprOp::store: store(in, args, at, n, lane(in.a)); break;
      case ExprOp::skeleton: std::memcpy(to, skeleton, static_cast<size_t>(n) * sizeof(float)); break;
      case ExprOp::constant: std::fill(to, to + n, in.value); break;
      case ExprOp::cast: cast(static_cast<Dtype>(in.imm), n, lane(in.a), to); break;
      case ExprOp::pair_s32: break;
      case ExprOp::uniform: draw(in, args, at, n, work, to); break;
      case ExprOp::index_s32: {
        const int64_t start = at[in.imm], step = in.imm == rank_ - 1 ? 1 : 0;
        each(n, to, [&](int64_t k) { return as_lane(static_cast<int32_t>(start + k * step)); });
        break;
      }
      case ExprOp::fold_sum:
      case ExprOp::fold_max:
      case ExprOp::fold_min:
      case ExprOp::fold_mul: fold(in, args, at, n, lane(in.a)); break;
      default: compute(in, n, lane(in.a), lane(in.b), lane(in.c), to);
    }
  }
}

}  // namespace partita
