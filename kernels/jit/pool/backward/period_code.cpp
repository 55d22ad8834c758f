// SPDX-License-Identifier: Apache-2.0
// Streams, loops and places of rows of periods: rcx first channel of the group, r8 periods left, rdx for a moment.
#include "kernels/jit/pool/backward/period_code.hpp"

#include <algorithm>

#include "src/base/dtype.hpp"

namespace partita::jit {

using Xbyak::RegExp;
using Xbyak::Xmm;

void PeriodCode::add_period_streams() {
  const int64_t step = p_.g.strides[2];
  for (int k : p_.front_in) add_stream(p_.in[static_cast<size_t>(k)].x);
  for (int64_t r = 0; r < p_.g.strides[1]; ++r)
    for (int k : p_.back_in) add_stream(p_.in[static_cast<size_t>(k)].x * step);
  for (int64_t r = 0; r < p_.g.strides[1]; ++r)
    for (const PoolOperand& o : p_.out) add_stream(o.x * step);
}

void PeriodCode::emit_periods(const std::function<void(const PeriodPart& columns)>& emit) {
  const int64_t periods = periods_of(p_, 2);
  for (int64_t period = 0, end = 0; period < periods; period = end) {
    const PeriodPart columns = period_part(p_, 2, period);
    for (end = period + 1; end < periods && period_part(p_, 2, end) == columns;) ++end;
    Xbyak::Label next;
    mov(r8, end - period);
    align(16);
    L(next);
    emit(columns);
    advance_streams();
    dec(r8);
    jnz(next, T_NEAR);
  }
}

void PeriodCode::load_period_gradient(Body& front, const Xmm& gradient, const Group& group, int vector) {
  emit_gradient(front, gradient, [&](Xmm dst, const PoolOperand& o, size_t k) {
    const int each = element_bytes(o.dtype), behind = vector * lanes() * each;
    const Xbyak::Reg64 windows = at(front_stream(k));
    load_elements(dst, o, o.c == 0, o.c == 0 ? RegExp(windows) : windows + rcx * each + behind, group.count(vector),
                  o.begins_line(behind, lanes()));
  });
}

void PeriodCode::load_cell(const Xmm& dst, int operand, const Group& group, int64_t row, int64_t column, int vector) {
  const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
  const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
  load_elements(dst, o, o.c == 0, cell_at(o, at(back_stream(row, k)), column, vector), group.count(vector),
                o.begins_line(vector * lanes() * element_bytes(o.dtype), lanes()), next_rows_of(o));
}

RegExp PeriodCode::cell_at(const PoolOperand& o, const Xbyak::Reg64& cells, int64_t column, int vector) const {
  const RegExp at = cells + static_cast<int>((column - p_.g.pads_begin[2]) * o.x);
  const int each = element_bytes(o.dtype);
  return o.c == 0 ? at : at + rcx * each + vector * lanes() * each;
}

}  // namespace partita::jit
