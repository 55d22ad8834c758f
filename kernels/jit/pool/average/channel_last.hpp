// SPDX-License-Identifier: Apache-2.0
// Gradients of average poolings, channel-last, and averages themselves without strides: cell after cell of a row, with
// the sums of the columns of windows over it made on the way.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/pool/average/plan.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// A cell under adaptive windows that are not more than cells: inside one of them, its first cell, or its first one and
/// the last one of the window before.
enum class AdaptiveCell : uint8_t { inside, first, shared };

/// An average without strides is a gradient whose windows are the source's cells and whose cells are the results, with
/// the padding of the other side; but its weights are those of the results, and multiply them when they are summed.
struct AverageColumns : AveragePlan {
  explicit AverageColumns(const Problem& problem);

  bool backward;
  /// Average: of results along x, for each kind of row. Empty where that is `weight` for all.
  std::vector<float> weights;
  std::vector<int64_t> row_weights;  ///< where those of each row of results begin
  bool weighs_columns() const { return backward && (!same_along_x || weight != 1); }
  bool weighs_cells() const { return !backward && (!weights.empty() || weight != 1); }

 private:
  void add_weights();
};

/// Rows of windows over a row of cells.
struct AverageLastWindows {
  const void* const* at;  ///< of each: operands of front at the first column made
  const float* weights;   ///< of each
  int64_t count;
};

/// A row of cells. Behind it lie the addresses of its first cell: operands of back, then results.
struct AverageLastRow {
  AverageLastWindows windows;  ///< that no other row of the call has
  std::byte* columns;          ///< scratch memory: the sums of the columns over a cell
  const float* weights;        ///< average: of the cells, where they differ
};

struct AverageLastCall {
  const AverageLastRow* rows;  ///< of the same columns
  int64_t row_count;
  AverageLastWindows shared;    ///< over all these rows
  const float* column_weights;  ///< of the first column made
  int64_t column;               ///< number of the first column over the first cell; may lie outside the windows
  int64_t cell_count;           ///< of a row
  const AdaptiveCell* cells;    ///< adaptive windows: of each cell
  int64_t columns_before;       ///< the same: columns that are made before the first cell
};

/// Some rows of cells, side by side: so windows over all of them are read and summed once, and memory has several
/// streams to read.
class AverageLastKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  AverageLastKernel(Isa isa, const AverageColumns& plan, const Problem& problem, int64_t rows, bool streaming);
  void operator()(const AverageLastCall& call) const { entry_(&call); }

  static int64_t column_bytes(Isa isa, const AverageColumns& plan);
  static int64_t row_bytes(const AverageColumns& plan);
  /// The columns' sums of a row of cells; those of a call's rows follow each other.
  static int64_t column_scratch_bytes(Isa isa, const AverageColumns& plan);

 private:
  enum class Sum : uint8_t { first, more, behind_shared };
  static constexpr int kEachRow = -1;
  void emit_slots();
  template <class Start, class Row>
  void emit_rows(const Start& start, const Row& row);
  template <class Row>
  void emit_rows(const Row& row) {
    emit_rows([](int, int) {}, row);
  }
  template <class Row>
  void emit_summed_rows(Body& front, const Row& row);
  void emit_cells(Body& front, Body& back);
  void emit_adaptive_cells(Body& front, Body& back);
  void emit_adaptive_cell(Body& front, Body& back, AdaptiveCell kind);
  void next_cell();
  template <class There, class Absent>
  void emit_column(const There& there, const Absent& absent);
  void emit_windows(Body& front, int sums, int vectors, int last);
  bool packs() const;
  bool pairs_up() const;
  void go_unless_pair(Xbyak::Label& elsewhere);
  void emit_pairs(Body& front, Body& back);
  void load_pair();
  void broadcast_weight(const Xbyak::RegExp& windows, int64_t w);
  void add_windows(Body& front, const Xbyak::RegExp& from, Sum sum, int sums, int vectors, int last);
  void store_sums(int vectors);
  void prefetch_pair(const Xbyak::Reg64& window, int vectors);
  void prefetch_windows(size_t k, const Xbyak::Reg64& from, int vectors);
  Fetching fetching() const;
  Xbyak::RegExp row_at() const;
  void load_windows(const Xbyak::RegExp& from);
  void to_windows(size_t k, int back);
  void emit_shared(Body& front, int vectors, int last);
  void emit_sums(Body& front, int vectors, int last);
  void emit_zeros();
  void emit_cell(Body& back, const std::vector<int64_t>& columns, int vectors, int last, bool made);
  Xbyak::RegExp column_at(int64_t back);
  void to_cell(size_t k);
  void emit_prefetches(int vectors);
  void load_at(const Xbyak::Xmm& dst, const PoolOperand& o, const Xbyak::RegExp& at, int vector, int count);
  std::vector<int64_t> columns_over(int64_t phase) const;
  const PoolOperand& operand(int k) const { return p_.in[static_cast<size_t>(k)]; }
  Xbyak::Address slot(size_t k) { return qword[rsp + 8 * static_cast<int>(k)]; }
  size_t front_slot(size_t k) const { return p_.back_in.size() + p_.out.size() + k; }
  size_t column_slot(int64_t back) const { return front_slot(p_.front_in.size()) + static_cast<size_t>(back); }
  size_t weight_slot() const { return column_slot(p_.reach(2)); }
  size_t rows_slot() const { return weight_slot() + 1; }
  int row_weight() const { return sums_ + together_; }
  int column_weight() const { return row_weight() + 1; }
  int cell_weight() const { return column_weight(); }  // a kernel has either

  const AverageColumns& p_;
  bool streaming_;
  int together_;  // vectors of channels
  int sums_;      // register of a row's first sums; those of the windows over all rows begin at 0
  bool packs_;
  int row_ = kEachRow;  // of two, where both are emitted
  int64_t column_bytes_;
  void (*entry_)(const AverageLastCall*) = nullptr;
};

class AverageLastPool {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  AverageLastPool(const Problem& problem, const Target& target);
  AverageLastPool(const AverageLastPool&) = delete;
  AverageLastPool& operator=(const AverageLastPool&) = delete;

  size_t scratch_bytes() const { return std::max(scratch_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const;

 private:
  struct Windows {
    std::vector<RowCover> covers;
    std::vector<float> weights;
    void push_back(const RowCover& cover) {
      covers.push_back(cover);
      weights.push_back(cover.weight);
    }
  };
  /// The rows of windows over rows of cells that one call makes: over all of them, and those of each alone.
  struct Over {
    Windows shared;
    std::array<Windows, 2> own;
    size_t count() const { return shared.covers.size() + own[0].covers.size() + own[1].covers.size(); }
  };
  static Over over_both(const Windows& first, const Windows& second, bool one_image);
  int64_t calls() const { return (p_.g.batch * p_.rows() + together_ - 1) / together_; }  ///< of a block
  void run(const RunArgs& args, const AverageLastKernel& kernel, const ColumnBlock& block, int64_t first, int64_t count,
           std::byte* scratch) const;
  const float* weights_of(int64_t row, const ColumnBlock& block) const;
  void place_cells(const RunArgs& args, const ColumnBlock& block, int64_t row, const void** to) const;

  AverageColumns p_;
  int threads_;
  std::vector<ColumnBlock> blocks_;
  std::vector<AdaptiveCell> cells_;  // adaptive windows: of a row
  std::vector<Over> alone_, pairs_;  // of each row of an image, and of it and the next one
  std::vector<float> column_weights_;
  int64_t together_ = 1;  // rows of a call
  int64_t record_bytes_ = 0, table_bytes_ = 0, column_bytes_ = 0;
  ThreadScratch scratch_;
  PoolFolds folds_;
  std::unique_ptr<const AverageLastKernel> kernel_, streaming_;
};

}  // namespace partita::jit
