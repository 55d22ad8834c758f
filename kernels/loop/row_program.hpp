// SPDX-License-Identifier: Apache-2.0
// RowProgram: an expression prepared for evaluation over a run of consecutive elements at a time.
#pragma once

#include <span>
#include <vector>

#include "kernels/kernel.hpp"

namespace partita {

/// Evaluates an expression over runs of elements along the last axis of a space. Immutable after construction.
class RowProgram {
 public:
  static constexpr int64_t kRun = 256;  ///< elements evaluated at a time; the values of a run stay in the L1/L2 cache

  /// `space`: dims that the coordinates run over; operands are problem.in / problem.out.
  RowProgram(const Expr& expr, const Problem& problem, const Dims& space);

  /// Numbers in the work memory of run(): the values of a run, kRun 32-bit lanes for each instruction.
  size_t work_size() const { return expr_.code.size() * static_cast<size_t>(kRun); }

  /// Evaluates `n` <= kRun elements that start at `at` along the last axis; `skeleton` gives their skeleton values (or
  /// null).
  void run(float* work, const RunArgs& args, const Dims& at, int64_t n, const float* skeleton) const;
  /// The lanes of the expression's result after run().
  const float* result(const float* work) const { return &work[size_t{expr_.result} * kRun]; }

 private:
  void load(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, float* to) const;
  void draw(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, const float* work, float* to) const;
  void store(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, const float* from) const;
  void fold(const Instr& in, const RunArgs& args, const Dims& at, int64_t n, const float* from) const;

  Expr expr_;
  std::vector<TensorDesc> in_, out_;
  int rank_;
  std::vector<bool> integer_;  ///< instruction i yields a 32-bit integer
};

}  // namespace partita
