// SPDX-License-Identifier: Apache-2.0
// Names, printing and building of expressions.
#include "kernels/expr.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/narrow_results.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

struct ExprOpInfo {
  ExprOp op;
  std::string_view name;
  int operands;
};

constexpr ExprOpInfo kInfo[] = {
    {ExprOp::load, "load", 0},
    {ExprOp::store, "store", 1},
    {ExprOp::skeleton, "skeleton", 0},
    {ExprOp::constant, "constant", 0},
    {ExprOp::index_s32, "index", 0},
    {ExprOp::pair_s32, "pair_s32", 2},
    {ExprOp::uniform, "uniform", 2},
    {ExprOp::add, "add", 2},
    {ExprOp::sub, "sub", 2},
    {ExprOp::mul, "mul", 2},
    {ExprOp::div, "div", 2},
    {ExprOp::max, "max", 2},
    {ExprOp::min, "min", 2},
    {ExprOp::neg, "neg", 1},
    {ExprOp::abs, "abs", 1},
    {ExprOp::square, "square", 1},
    {ExprOp::sqrt, "sqrt", 1},
    {ExprOp::reciprocal, "reciprocal", 1},
    {ExprOp::exp, "exp", 1},
    {ExprOp::log, "log", 1},
    {ExprOp::tanh, "tanh", 1},
    {ExprOp::erf, "erf", 1},
    {ExprOp::round, "round", 1},
    {ExprOp::floor, "floor", 1},
    {ExprOp::sigmoid, "sigmoid", 1},
    {ExprOp::expm1, "expm1", 1},
    {ExprOp::softplus, "softplus", 1},
    {ExprOp::gelu_erf, "gelu_erf", 1},
    {ExprOp::gelu_tanh, "gelu_tanh", 1},
    {ExprOp::mish, "mish", 1},
    {ExprOp::gelu_erf_slope, "gelu_erf_slope", 1},
    {ExprOp::gelu_tanh_slope, "gelu_tanh_slope", 1},
    {ExprOp::mish_slope, "mish_slope", 1},
    {ExprOp::pow, "pow", 2},
    {ExprOp::ge, "ge", 2},
    {ExprOp::gt, "gt", 2},
    {ExprOp::eq, "eq", 2},
    {ExprOp::select, "select", 3},
    {ExprOp::fma, "fma", 3},
    {ExprOp::add_s32, "add_s32", 2},
    {ExprOp::sub_s32, "sub_s32", 2},
    {ExprOp::mul_s32, "mul_s32", 2},
    {ExprOp::max_s32, "max_s32", 2},
    {ExprOp::min_s32, "min_s32", 2},
    {ExprOp::ge_s32, "ge_s32", 2},
    {ExprOp::to_s32, "to_s32", 1},
    {ExprOp::to_f32, "to_f32", 1},
    {ExprOp::cast, "cast", 1},
    {ExprOp::fold_sum, "fold_sum", 1},
    {ExprOp::fold_max, "fold_max", 1},
    {ExprOp::fold_min, "fold_min", 1},
    {ExprOp::fold_mul, "fold_mul", 1},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kInfo); ++i)
    if (static_cast<size_t>(kInfo[i].op) != i) return false;
  return std::size(kInfo) == static_cast<size_t>(ExprOp::fold_mul) + 1;
}
static_assert(in_order(), "kInfo must list every ExprOp in order");

const ExprOpInfo& info(ExprOp op) { return kInfo[static_cast<size_t>(op)]; }

}  // namespace

int operand_count(ExprOp op) { return info(op).operands; }

std::string_view name_of(ExprOp op) { return info(op).name; }

bool counts(const Expr& expr, int operand) {
  return std::ranges::any_of(expr.code, [&](const Instr& in) { return in.op == ExprOp::uniform && in.imm == operand; });
}

bool reads_coordinates(const Expr& expr) {
  return std::ranges::any_of(expr.code, [](const Instr& in) { return in.op == ExprOp::index_s32; });
}

Fold fold_of(ExprOp op) {
  switch (op) {
    case ExprOp::fold_sum: return Fold::sum;
    case ExprOp::fold_max: return Fold::max;
    case ExprOp::fold_min: return Fold::min;
    case ExprOp::fold_mul: return Fold::mul;
    default: return Fold::none;
  }
}

float identity_of(Fold fold) {
  switch (fold) {
    case Fold::max: return -std::numeric_limits<float>::infinity();
    case Fold::min: return std::numeric_limits<float>::infinity();
    case Fold::mul: return 1;
    default: return 0;
  }
}

std::string text_of(const Expr& expr) {
  std::string text;
  for (size_t i = 0; i < expr.code.size(); ++i) {
    const Instr& in = expr.code[i];
    if (i > 0) text += "; ";
    text += writes(in.op) ? str(name_of(in.op), " out", in.imm) : str("%", i, " = ", name_of(in.op));
    if (reads_operand(in.op)) text += str(" in", in.imm);
    if (in.op == ExprOp::constant) text += " " + text_of(in.value);
    if (in.op == ExprOp::index_s32) text += str(" axis ", in.imm);
    if (is_narrow_function(in)) text += " narrow";
    if (in.op == ExprOp::cast) text += str(" ", name_of(static_cast<Dtype>(in.imm)));
    const std::array<uint16_t, 3> operands = {in.a, in.b, in.c};
    for (int k = 0; k < operand_count(in.op); ++k) text += str(" %", operands[static_cast<size_t>(k)]);
  }
  return text;
}

void ExprBuilder::fold(Fold how, int operand, Value a) {
  constexpr std::array kOps = {ExprOp::store, ExprOp::fold_sum, ExprOp::fold_max, ExprOp::fold_min, ExprOp::fold_mul};
  emit({.op = kOps[static_cast<size_t>(how)], .a = a, .imm = operand});
}

ExprBuilder::Value ExprBuilder::emit(const Instr& instr) {
  auto& code = expr_.code;
  if (!writes(instr.op))
    for (size_t i = 0; i < code.size(); ++i)
      if (code[i] == instr && std::signbit(code[i].value) == std::signbit(instr.value)) return static_cast<Value>(i);
  PT_ASSERT(code.size() < UINT16_MAX);
  code.push_back(instr);
  return static_cast<Value>(code.size() - 1);
}

}  // namespace partita
