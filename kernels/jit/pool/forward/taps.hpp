// SPDX-License-Identifier: Apache-2.0
// Generated forward poolings, channel-last, with few taps: every tap is an operand, nothing lies in scratch memory.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/view.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "kernels/jit/taps/half_maxima.hpp"
#include "kernels/jit/taps/stencil.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// A stretch of windows with the same valid taps is one call; where windows follow each other cell by cell in memory,
/// it is one long row, else each window is a row of channels.
class TapPool {
 public:
  /// False where the windows are better folded first, or have too many taps.
  static bool fits(const ForwardPool& pool);

  /// Throws Xbyak::Error where there is no memory for code.
  TapPool(const Problem& problem, const Target& target);
  Status operator()(const RunArgs& args) const;

 private:
  /// A stencil, of either kind, where elements are taken as they are; else the front expression stands before every
  /// tap.
  struct Kernel {
    std::shared_ptr<const HalfMaxima> halves = nullptr;
    std::shared_ptr<const Stencil> stencil = nullptr;
    std::shared_ptr<const FlatKernel> taps = nullptr;
  };
  struct Kernels {
    Kernel plain, streaming;
  };
  /// Rows of windows: source rows under them, and what an average counts along z and y.
  using RowKind = std::pair<int64_t, int64_t>;
  bool windows_join() const;
  bool takes_stencil(int64_t source_rows, int64_t valid) const;
  RowOperand operand(const PoolView& view, int64_t cells, int64_t step) const;
  Kernel make(Isa isa, const RowKind& row, const WindowStretch& stretch, bool streaming) const;
  ExprBuilder::Value finished(ExprBuilder b, ExprBuilder::Value value, int64_t counted) const;
  /// Rows of windows of an image, one below the other, that have the same kernels and taps.
  struct Rows {
    int64_t n, z, y, count;
  };
  void run(const RunArgs& args, const Rows& rows, bool streaming) const;
  ForwardPool p_;
  std::vector<WindowStretch> stretches_;
  bool joined_, may_stream_;
  int64_t most_rows_;             ///< that are walked together
  std::vector<Kernels> kernels_;  ///< kind of row by kind of row, of each stretch
  /// Windows along an axis.
  std::vector<PoolGeometry::Taps> z_taps_, y_taps_;
  std::vector<int64_t> alike_until_;  ///< y of the first row behind `y` whose windows have other taps
  std::vector<size_t> kernel_of_;     ///< each row of windows of an image: the first one
};

}  // namespace partita::jit
