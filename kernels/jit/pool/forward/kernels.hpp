// SPDX-License-Identifier: Apache-2.0
// Generated code of a forward pooling's steps.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/forward/deinterleave.hpp"
#include "kernels/jit/pool/forward/plan.hpp"
#include "kernels/jit/taps/stencil.hpp"

namespace partita::jit {

struct ForwardKernels {
  using Kernel = std::shared_ptr<const FlatKernel>;
  /// Throws Xbyak::Error where there is no memory for code.
  ForwardKernels(const ForwardPlan& plan, Isa isa);

  /// By the number of source rows: the first of a folded row, and those joining the ones before.
  std::vector<Kernel> fold_first, fold_further;
  std::unique_ptr<const Deinterleave> take_apart;
  int64_t apart_length = 0;  ///< elements that take_apart makes of a row
  /// From folded rows to results; the second one bypasses the caches.
  std::unique_ptr<const Stencil> combine, combine_streaming;

 private:
  Kernel fold(int64_t source_rows, bool first) const;
  std::unique_ptr<const Stencil> combination(bool streaming) const;
  ExprBuilder::Value finished(Expr& expr, int numbers) const;

  const ForwardPlan& plan_;
  Isa isa_;
};

}  // namespace partita::jit
