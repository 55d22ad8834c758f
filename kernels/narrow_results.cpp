// SPDX-License-Identifier: Apache-2.0
#include "kernels/narrow_results.hpp"

#include <algorithm>

#include "src/base/dtype.hpp"

namespace partita {
namespace {

bool is_narrow(Dtype type) { return is_floating(type) && bits_of(type) <= 16; }

}  // namespace

bool is_elementary(ExprOp op) {
  switch (op) {
    case ExprOp::exp:
    case ExprOp::log:
    case ExprOp::tanh:
    case ExprOp::erf:
    case ExprOp::sigmoid:
    case ExprOp::expm1:
    case ExprOp::softplus:
    case ExprOp::gelu_erf:
    case ExprOp::gelu_tanh:
    case ExprOp::mish:
    case ExprOp::gelu_erf_slope:
    case ExprOp::gelu_tanh_slope:
    case ExprOp::mish_slope:
    case ExprOp::pow: return true;
    default: return false;
  }
}

bool is_narrow_function(const Instr& in) { return is_elementary(in.op) && (in.imm & kNarrowResult) != 0; }

void mark_narrow_results(Problem& loop) {
  std::vector<Instr>& code = loop.back.code;
  std::vector<bool> narrow(code.size(), true);
  for (size_t i = code.size(); i-- > 0;) {
    Instr& in = code[i];
    if (narrow[i] && is_elementary(in.op)) in.imm |= kNarrowResult;
    bool kept = false;
    switch (in.op) {
      case ExprOp::store: kept = is_narrow(loop.out[static_cast<size_t>(in.imm)].dtype); break;
      case ExprOp::cast: kept = is_narrow(static_cast<Dtype>(in.imm)); break;
      case ExprOp::mul:
      case ExprOp::div:
      case ExprOp::neg:
      case ExprOp::abs: kept = narrow[i]; break;
      default: break;
    }
    if (kept) continue;
    const uint16_t read[] = {in.a, in.b, in.c};
    for (int k = 0; k < operand_count(in.op); ++k) narrow[read[k]] = false;
  }
}

bool has_narrow_results(const Problem& problem) {
  return std::ranges::all_of(problem.out, [](const TensorDesc& desc) { return is_narrow(desc.dtype); });
}

}  // namespace partita
