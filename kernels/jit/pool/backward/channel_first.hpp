// SPDX-License-Identifier: Apache-2.0
// Pooling gradients of channel-first tensors.
#pragma once

#include <map>

#include "kernels/jit/pool/backward/spread.hpp"
#include "kernels/jit/pool/backward/stages.hpp"
#include "kernels/jit/pool/backward/tiles.hpp"
#include "kernels/jit/pool/backward/winner.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// Tiles of rows: some rows of cells (of a block of columns) of one plane, or all rows of several small planes. Each
/// tile prepares the rows of windows it needs, makes its cells in scratch memory and stores them with the back
/// expression.
class ChannelFirstPool {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  ChannelFirstPool(const Problem& problem, const Target& target);
  ChannelFirstPool(const ChannelFirstPool&) = delete;
  ChannelFirstPool& operator=(const ChannelFirstPool&) = delete;

  size_t scratch_bytes() const { return scratch_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  struct Block : ColumnBlock {
    std::map<size_t, std::vector<PoolStages::Kernel>> sums;  // by number of rows
    PoolStages::Kernel gradients = nullptr, read = nullptr;
    PoolStages::Back whole, last;  // of a block of rows; joined: by its number of rows
  };
  struct Work {
    std::byte *windows, *source, *cells;
    const Block* block;
  };

  void make_tiles();
  void choose_steps();
  int64_t steps(const Block& block) const;
  void lay_out();
  void make_tables();
  void make_kernels(bool large_result);
  bool tiles_aligned() const;
  void choose_touches(SpreadShape& spread, bool streaming);
  std::array<const std::byte*, kMaxTouches> touched(const RunArgs& args, const PoolRowBlock& rows, const Spot& at,
                                                    int64_t planes) const;
  bool touches_operand(int k) const;
  void start_block(Work& work) const;
  void run_tile(const RunArgs& args, Work& work, const PoolRowBlock& rows, const Spot& at, int64_t planes) const;
  void sum_rows(const RunArgs& args, Work& work, const PoolRowBlock& rows, const Spot& at, int64_t planes) const;
  void window_rows(const RunArgs& args, Work& work, const PoolRowBlock& rows, const Spot& at, int64_t planes) const;
  void store_cells(const RunArgs& args, const Work& work, const PoolRowBlock& rows, const Spot& at,
                   int64_t planes) const;
  template <class Run>
  void each_call(const PoolRows& rows, const Spot& at, int64_t planes, int64_t row_bytes, int64_t plane_bytes,
                 Run run) const;

  PoolPlan p_;
  PoolStages stages_;
  Isa isa_;
  int threads_;
  int64_t lanes_;
  std::vector<Block> blocks_;
  std::vector<PoolRowBlock> row_blocks_;
  std::vector<int32_t> first_taps_, numbers_;
  std::unique_ptr<const SpreadKernel> spread_;
  std::unique_ptr<const WinnerKernel> winner_;
  bool join_cells_;
  int64_t step_vectors_ = 1;      // of cells that the spread makes in one step
  bool touches_cells_ = false;    // the result's lines, before they are overwritten
  int64_t planes_ = 1;            // of a tile
  bool planes_are_rows_ = false;  // a call takes one row of each plane instead of many rows of one plane
  int64_t window_row_bytes_ = 0, source_row_bytes_ = 0, winners_at_ = 0;
  int64_t window_plane_bytes_ = 0, source_plane_bytes_ = 0;
  int64_t source_slots_ = 0;
  int64_t source_at_ = 0, cells_at_ = 0;
  ThreadScratch scratch_;
};

}  // namespace partita::jit
