// SPDX-License-Identifier: Apache-2.0
// Gradients from indices where cells are neighbours along x: rows of cells gather what names them.
#pragma once

#include <memory>

#include "kernels/jit/pool/indices/box.hpp"
#include "kernels/jit/pool/indices/reach.hpp"
#include "kernels/jit/pool/indices/row_gather.hpp"
#include "kernels/jit/pool/names.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// Tiles of rows of a plane: the rows of windows over them become names and gradients, vectors of cells take theirs,
/// and the back expression stores the tile.
class PlaneGather {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  PlaneGather(const Problem& problem, const Target& target);
  size_t scratch_bytes() const { return static_cast<size_t>(tables_bytes_) + scratch_.bytes(); }
  /// True where every index named a cell within `reach`; else the results are not those of the problem. `stores` false:
  /// nothing is stored.
  bool operator()(const RunArgs& args, const IndexReach& reach, bool stores) const;
  bool takes(const IndexReach& reach) const;

 private:
  static constexpr size_t kMaxOperands = 12;
  /// Of a thread.
  struct Work {
    std::byte *windows, *cells;
    int32_t* rows;
  };
  struct Band {
    int64_t n, c, z, y, rows;
  };

  bool dense_rows() const;
  void lay_out();
  void make_kernels(const Problem& problem, Isa isa);
  void make_tables(const RunArgs& args, const IndexReach& reach) const;
  int64_t run(const RunArgs& args, const Work& work, const Band& band, const IndexReach& reach, bool stores,
              bool streaming) const;
  int64_t prepare(const RunArgs& args, const Work& work, const Band& band, const IndexReach& reach) const;

  PoolGeometry g_;
  PoolIndex base_;
  Expr front_, back_;
  std::vector<int> front_in_, back_in_;
  std::vector<PoolView> in_, out_;
  int threads_;
  int64_t lanes_;
  int64_t band_rows_ = 1;
  int64_t vectors_ = 1;                   // of a row of cells
  int64_t slots_ = 1;                     // rows of windows under a tile
  int64_t gradients_at_ = 0, pitch_ = 0;  // bytes of a prepared row
  int64_t row_entries_ = 0;               // of the table of rows
  int64_t orders_at_ = 0, bases_at_ = 0, over_at_ = 0, tables_bytes_ = 0;
  int64_t cells_at_ = 0, rows_at_ = 0;
  ThreadScratch scratch_;  // behind the tables
  std::vector<int32_t> numbers_;
  std::unique_ptr<const NamesKernel> names_;
  std::shared_ptr<const FlatKernel> gradients_;
  std::unique_ptr<const RowGatherKernel> gather_;
  BoxKernel whole_, last_, whole_streaming_, last_streaming_;
  bool may_stream_ = false;
};

}  // namespace partita::jit
