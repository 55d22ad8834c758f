// SPDX-License-Identifier: Apache-2.0
// Where `pending` elements wait, element l of a vector goes to place l + pending, modulo the vector's length: those in
// front complete the waiting ones, the others wait.
#include "kernels/jit/flat/joined_stores.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/base/dtype.hpp"

namespace partita::jit {

using Xbyak::Label;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

JoinedStores::JoinedStores(Emitter& e, std::vector<Dtype> outputs, int first, Xbyak::Reg32 pending,
                           Xbyak::RegExp places, std::vector<Xbyak::Reg64> pointers)
    : e_(e),
      outputs_(std::move(outputs)),
      together_(static_cast<int>(together(e.wide() ? Isa::avx512 : Isa::avx2, element_bytes(outputs_[0])))),
      integer_(outputs_.size()),
      first_(first),
      pending_(pending),
      places_(places),
      pointers_(std::move(pointers)) {}

void JoinedStores::emit_start() {
  for (size_t k = 0; k < outputs_.size() && in_registers(k); ++k) {
    e_.mov(pointers_[2 * k], place(k, offsetof(JoinedPlace, current)));
    e_.mov(pointers_[2 * k + 1], place(k, offsetof(JoinedPlace, next)));
  }
  emit_order();
}

void JoinedStores::emit_order() {
  e_.mov(e_.eax, together_);
  e_.sub(e_.eax, pending_);
  e_.lea(e_.rdx, e_.ptr[e_.rip + order_]);
  e_.vmovups(order(), e_.ptr[e_.rdx + e_.rax * (halves() ? 2 : 4)]);
  if (!e_.wide()) {
    e_.lea(e_.rdx, e_.ptr[e_.rip + fresh_]);
    e_.vmovups(fresh(), e_.ptr[e_.rdx + e_.rax * 4]);
    return;
  }
  e_.mov(e_.eax, -1);
  e_.shlx(e_.eax, e_.eax, pending_);
  e_.kmovd(e_.k7, e_.eax);
}

void JoinedStores::emit_store(size_t output, const Xmm& value, bool integer, int64_t number, bool last, int count) {
  integer_[output] = integer;
  if (!halves()) return join(output, value, last ? count : e_.lanes());
  const Xmm first = first_half(output), pair = e_.scratch(0);
  if (number % 2 == 0 && last) {
    e_.to_halves(first, value, outputs_[output], integer);
    return join(output, first, count);
  }
  if (number % 2 == 0) return integer ? e_.vcvtdq2ps(first, value) : e_.vmovaps(first, value);
  const Xmm second = integer ? pair : value;
  if (integer) e_.vcvtdq2ps(second, value);
  e_.compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(outputs_[output])}, pair, first, second, first);
  join(output, pair, e_.lanes() + (last ? count : e_.lanes()));
}

/// The next elements, `count` of them.
void JoinedStores::join(size_t output, const Xmm& value, int count) {
  const Xmm shifted = e_.scratch(0), joined = e_.scratch(1), rest = waiting(output);
  if (halves()) {
    e_.vpermw(Zmm(shifted.getIdx()), Zmm(order().getIdx()), Zmm(value.getIdx()));
    e_.vpblendmw(joined | e_.k7, rest, shifted);
  } else if (e_.wide()) {
    e_.vpermps(Zmm(shifted.getIdx()), Zmm(order().getIdx()), Zmm(value.getIdx()));
    e_.vblendmps(joined | e_.k7, rest, shifted);
  } else {
    e_.vpermps(Ymm(shifted.getIdx()), Ymm(order().getIdx()), Ymm(value.getIdx()));
    e_.vblendvps(joined, rest, shifted, fresh());
  }
  Label whole, done;
  if (count < together_) {
    e_.cmp(pending_, together_ - count);
    e_.jae(whole, Xbyak::CodeGenerator::T_NEAR);
    e_.vmovaps(rest, joined);
    e_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
    e_.L(whole);
  }
  e_.vmovaps(rest, shifted);
  emit_whole(output);
  e_.L(done);
}

void JoinedStores::emit_whole(size_t output) {
  const bool held = in_registers(output);
  const Xbyak::Reg64 to = held ? pointers_[2 * output] : e_.rdx;
  if (!held) e_.mov(to, place(output, offsetof(JoinedPlace, current)));
  if (halves())
    e_.vmovntps(e_.ptr[to], e_.scratch(1));
  else
    e_.store(e_.scratch(1), outputs_[output], integer_[output], to, e_.lanes(), true);
  const auto bytes = static_cast<uint32_t>(together_ * element_bytes(outputs_[output]));
  if (held) {
    e_.mov(to, pointers_[2 * output + 1]);
    return e_.add(pointers_[2 * output + 1], bytes);
  }
  e_.mov(e_.rdx, place(output, offsetof(JoinedPlace, next)));
  e_.mov(place(output, offsetof(JoinedPlace, current)), e_.rdx);
  e_.add(e_.rdx, bytes);
  e_.mov(place(output, offsetof(JoinedPlace, next)), e_.rdx);
}

void JoinedStores::emit_row_end(int64_t elements) {
  if (elements % together_ == 0) return;
  e_.add(pending_, static_cast<uint32_t>(elements % together_));
  e_.and_(pending_, static_cast<uint32_t>(together_ - 1));
  emit_order();
}

void JoinedStores::emit_finish() {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    e_.mov(e_.rdx, place(k, offsetof(JoinedPlace, rest)));
    if (halves())
      e_.vmovups(e_.ptr[e_.rdx], waiting(k));
    else
      e_.store(waiting(k), outputs_[k], integer_[k], e_.rdx, e_.lanes(), false);
  }
}

void JoinedStores::emit_tables() {
  e_.align(64);
  e_.L(order_);
  for (int l = 0; l < 2 * together_; ++l)
    halves() ? e_.dw(static_cast<uint16_t>(l % together_)) : e_.dd(static_cast<uint32_t>(l % together_));
  if (e_.wide()) return;
  e_.L(fresh_);
  for (int l = 0; l < 2 * together_; ++l) e_.dd(l < together_ ? 0 : UINT32_MAX);
}

JoinedCall::JoinedCall(std::span<void* const> out, int64_t each, int64_t together, int64_t elements)
    : out_(out),
      each_(each),
      together_(together),
      elements_(elements),
      pending_(static_cast<int64_t>(reinterpret_cast<uintptr_t>(out[0])) / each % together) {
  for (size_t k = 0; k < out.size(); ++k) {
    std::byte* first = static_cast<std::byte*>(out[k]) - pending_ * each;
    std::byte* aside = aside_.data() + 2 * k * kVector;
    places_[k] = {pending_ > 0 ? aside : first, first + together * each, aside + kVector};
  }
}

void JoinedCall::finish() const {
  const int64_t end = pending_ + elements_, rest = end % together_;
  for (size_t k = 0; k < out_.size(); ++k) {
    auto* to = static_cast<std::byte*>(out_[k]);
    const std::byte* aside = aside_.data() + 2 * k * kVector;
    if (pending_ > 0 && end >= together_)
      std::memcpy(to, aside + pending_ * each_, static_cast<size_t>((together_ - pending_) * each_));
    if (rest == 0) continue;
    // Lanes that wait: of the first vector only those behind the neighbour's.
    const int64_t from = end < together_ ? pending_ : 0;
    std::memcpy(to + (end - rest + from - pending_) * each_, aside + kVector + from * each_,
                static_cast<size_t>((rest - from) * each_));
  }
}

}  // namespace partita::jit
