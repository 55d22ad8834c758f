// SPDX-License-Identifier: Apache-2.0
// Pooling gradients of channel-last tensors.
#pragma once

#include <map>

#include "kernels/jit/pool/backward/spread.hpp"
#include "kernels/jit/pool/backward/stages.hpp"
#include "kernels/jit/pool/backward/winner.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// One row of cells (of one block of columns) after the other. Rows of windows and of source cells stay in scratch
/// memory until the walk has passed them.
class ChannelLastPool {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  ChannelLastPool(const Problem& problem, const Target& target);
  ChannelLastPool(const ChannelLastPool&) = delete;
  ChannelLastPool& operator=(const ChannelLastPool&) = delete;

  size_t scratch_bytes() const { return scratch_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  struct Block : ColumnBlock {
    std::map<size_t, std::vector<PoolStages::Kernel>> sums;  // by number of rows
    PoolStages::Kernel gradients = nullptr, read = nullptr;
    PoolStages::Back back;                 // maximum: over the cells of the block
    std::vector<PoolStages::Back> phases;  // average: over every stride-th cell, from the first ones on
  };
  /// What the rows of cells need of the pooled side.
  struct CellRow {
    std::vector<RowCover> covers;
    std::vector<int32_t> spread;  // row of the spread's table
    int64_t same_as = 0;          // the first row of cells with these covers
  };
  struct Work;

  void make_rows();
  void make_kernels(bool large_result);
  void make_spread(bool streaming);
  void choose_phases();
  bool rows_aligned() const;
  void choose_touches(SpreadShape& spread, bool streaming);
  std::array<const std::byte*, kMaxTouches> touched(const RunArgs& args, int64_t n, int64_t row,
                                                    const Block& block) const;
  void lay_out();
  void run_rows(const RunArgs& args, Work& work, int64_t begin, int64_t end) const;
  void start_block(Work& work) const;
  void spread_row(const RunArgs& args, Work& work, int64_t n, int64_t row, bool streaming) const;
  void store_phases(const RunArgs& args, Work& work, int64_t n, int64_t row, bool streaming) const;
  void sum_row(const RunArgs& args, Work& work, int64_t n, int64_t row) const;
  void window_row(const RunArgs& args, Work& work, int64_t n, int64_t z, int64_t y) const;
  void source_row(const RunArgs& args, Work& work, int64_t n, int64_t row) const;
  int64_t window_slot(int64_t z, int64_t y) const { return z % slots_z_ * slots_y_ + y % slots_y_; }
  int64_t source_slot(int64_t row) const {
    return row / p_.g.src[1] % p_.span(0) * p_.span(1) + row % p_.g.src[1] % p_.span(1);
  }

  PoolPlan p_;
  PoolStages stages_;
  Isa isa_;
  int threads_;
  std::vector<Block> blocks_;
  std::vector<CellRow> rows_;                      // by row of a plane
  std::vector<std::vector<int64_t>> read_rows_;    // maximum, by row of windows: its rows of source cells
  std::vector<std::vector<int32_t>> winner_rows_;  // maximum, by row of windows: row of the search's table
  std::vector<int32_t> first_taps_, numbers_;
  std::vector<std::vector<int64_t>> phases_;    // average: of each cell of a period the places of the windows over it
  std::unique_ptr<const SpreadKernel> spread_;  // maximum
  std::unique_ptr<const WinnerKernel> winner_;
  bool streams_ = false;
  bool touches_cells_ = false;  // the result's lines, before they are overwritten
  bool join_pooled_, join_source_, join_cells_;
  int64_t pitch_ = 0;                  // bytes of a prepared window or source cell
  int64_t slots_z_ = 1, slots_y_ = 1;  // rows of windows kept
  int64_t window_slots_ = 0, source_slots_ = 0;
  int64_t window_row_bytes_ = 0, source_row_bytes_ = 0, winners_at_ = 0;
  int64_t tags_at_ = 0, windows_at_ = 0, source_at_ = 0, cells_at_ = 0;
  ThreadScratch scratch_;
};

}  // namespace partita::jit
