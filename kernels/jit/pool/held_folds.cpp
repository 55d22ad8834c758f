// SPDX-License-Identifier: Apache-2.0
// Registers, and slots where there are none.
#include "kernels/jit/pool/held_folds.hpp"

#include <algorithm>
#include <bit>

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr int kMostHeld = 4;

}  // namespace

int HeldFolds::registers(const Emitter& e, const std::vector<PoolOperand>& out, int vectors) {
  const int wanted = folds_of(out) * vectors;
  return e.wide() && wanted <= kMostHeld ? wanted : 0;
}

HeldFolds::HeldFolds(Emitter& e, const std::vector<PoolOperand>& out, int vectors, int first)
    : e_(e), vectors_(vectors), first_(first), holds_(registers(e, out, vectors) > 0) {
  for (size_t k = 0; k < out.size(); ++k)
    if (out[k].fold != Fold::none) folds_.push_back({k, out[k].fold});
}

void HeldFolds::emit_start() {
  for (size_t f = 0; holds_ && f < folds_.size(); ++f)
    for (int v = 0; v < vectors_; ++v)
      e_.broadcast_bits(held(f, v), std::bit_cast<int32_t>(identity_of(folds_[f].how)));
}

void HeldFolds::emit_fold(size_t k, int vector, const Xmm& value, int count, const Place& place) {
  const auto f = static_cast<size_t>(std::ranges::find(folds_, k, &Output::k) - folds_.begin());
  if (holds_) return e_.fold_into(held(f, vector), value, folds_[f].how, count);
  e_.fold_to_slot(value, folds_[f].how, place(k, vector), count);
}

void HeldFolds::emit_end(int vectors, const Place& place) {
  for (size_t f = 0; holds_ && f < folds_.size(); ++f)
    for (int v = 0; v < vectors; ++v) e_.fold_to_slot(held(f, v), folds_[f].how, place(folds_[f].k, v), e_.lanes());
}

}  // namespace partita::jit
