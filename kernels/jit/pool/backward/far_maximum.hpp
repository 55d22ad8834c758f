// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima over windows that reach far over each other, as those of spatial pyramids do.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/jit/flat/transpose.hpp"
#include "kernels/jit/pool/backward/far_maximum_kernel.hpp"
#include "kernels/jit/pool/backward/stages.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// Where each cell would have to look at all windows over it, and each window at all its cells, the search goes along
/// x first, once for each row of cells, then over what was found in the rows that a window reaches; its gradient is
/// added to that of the cell. That takes as many steps as a window has rows and columns, not cells. As many channels as
/// a vector has lanes go together, row of windows by row of windows; rows of cells that these read, and those whose
/// gradients are not complete, are kept in scratch memory. Channel-first rows are transposed on the way in and out.
class FarMaximumPool {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  FarMaximumPool(const Problem& problem, const Target& target);
  FarMaximumPool(const FarMaximumPool&) = delete;
  FarMaximumPool& operator=(const FarMaximumPool&) = delete;

  size_t scratch_bytes() const { return scratch_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  /// What a row of windows needs and leaves, by numbers of rows of cells.
  struct WindowRow {
    std::vector<int64_t> reached;  ///< in ascending order; then where their maxima are kept
    int64_t read_end = 0;          ///< those before are read when it is its turn
    int64_t finished_end = 0;      ///< those before are complete behind it
  };
  /// Scratch memory of one group of channels, in bytes from its start. Places are vectors.
  struct Layout {
    Layout(const PoolPlan& plan, Isa isa, int64_t slots);

    int64_t place, cells_row;          ///< bytes of a place; of a row of cells with what lies beside the source
    int64_t maxima_row, gradient_row;  ///< the same of windows, and of cells alone
    int64_t maxima, names, windows, gradients, transposed, bytes;
  };
  /// Row kernels for so many channels.
  struct Group {
    int64_t channels = 0;
    PoolStages::Kernel source = nullptr, windows = nullptr;
    PoolStages::Back back = {};
  };

  static std::vector<WindowRow> window_rows(const PoolPlan& plan);
  static int64_t slots_for(const std::vector<WindowRow>& rows);
  Group group(int64_t channels);
  int64_t slot(int64_t row) const { return row % slots_; }
  void search_row(const RunArgs& args, const Group& of, const Spot& at, std::byte* scratch) const;
  void add_windows(const RunArgs& args, const Group& of, const Spot& at, std::byte* scratch) const;
  void finish_row(const RunArgs& args, const Group& of, const Spot& at, std::byte* scratch) const;
  void make_channels(const RunArgs& args, int64_t n, int64_t c, std::byte* scratch) const;

  PoolPlan p_;
  std::vector<WindowRow> rows_;
  int64_t slots_;  ///< rows of cells that are kept
  Layout layout_;
  PoolStages stages_;
  int threads_;
  int64_t lanes_;
  Group whole_, rest_;               ///< of a vector of channels, and of those that are left
  std::vector<int32_t> first_taps_;  ///< of each window: bytes from its first tap to the first one inside the source
  RowMaximaKernel maxima_;
  WindowSumsKernel sums_;
  /// Channel-first: rows of cells, of windows, and of gradients of cells, exchanged with channels.
  std::unique_ptr<const TransposeKernel> cells_in_, windows_in_, cells_out_;
  ThreadScratch scratch_;
};

}  // namespace partita::jit
