// SPDX-License-Identifier: Apache-2.0
// PeriodCode: what kernels of channel-last rows of periods have in common.
#pragma once

#include "kernels/jit/pool/backward/period_rows.hpp"
#include "kernels/jit/pool/code.hpp"

namespace partita::jit {

/// Code that walks along a row of periods. Of its streams those of place_period begin at number `first`.
class PeriodCode : protected PoolCode {
 protected:
  PeriodCode(Isa isa, const PoolPlan& plan, const PeriodPart& rows, bool streaming, size_t first)
      : PoolCode(isa, plan), rows_(rows), streaming_(streaming), first_(first) {}

  void add_period_streams();
  size_t front_stream(size_t k) const { return first_ + k; }
  size_t back_stream(int64_t row, size_t k) const {
    return front_stream(p_.front_in.size()) + static_cast<size_t>(row) * p_.back_in.size() + k;
  }
  size_t out_stream(int64_t row, size_t k) const {
    return back_stream(p_.g.strides[1], 0) + static_cast<size_t>(row) * p_.out.size() + k;
  }
  size_t next_stream() const { return first_ + period_streams(p_); }  ///< behind them

  /// Emits period(part) for each: those that are alike are a loop. r8 counts them, and streams advance.
  void emit_periods(const std::function<void(const PeriodPart& columns)>& period);
  /// gradient = front's result for a vector of the group, at the window where the streams are.
  void load_period_gradient(Body& front, const Xbyak::Xmm& gradient, const Group& group, int vector);
  /// Loads an operand of back, at a cell of the period.
  void load_cell(const Xbyak::Xmm& dst, int operand, const Group& group, int64_t row, int64_t column, int vector);
  /// Of a cell of the period; `cells` has the place of column 0 as many periods further.
  Xbyak::RegExp cell_at(const PoolOperand& o, const Xbyak::Reg64& cells, int64_t column, int vector) const;

  PeriodPart rows_;
  bool streaming_;

 private:
  size_t first_;
};

}  // namespace partita::jit
