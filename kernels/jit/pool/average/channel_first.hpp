// SPDX-License-Identifier: Apache-2.0
// Gradients of average poolings, channel-first: row after row of cells from the sums of the rows of windows over them.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/pool/average/plan.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/jit/pool/held_folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

struct AverageFirstCall {
  /// For each stretch of rows of cells under the same rows of windows: {rows of cells, rows of windows, then for each
  /// of these byte distances from the plane of the operands of front, and its weight as f32}.
  const int64_t* stretches;
  int64_t stretch_count;
  const void* const* windows;   ///< operands of front at the first plane's first window
  const void* const* cells;     ///< operands of back, then results, at the first cell
  const JoinedPlace* joined;    ///< where rows are joined: of each result
  int64_t pending;              ///< the same: lanes before the first cell that share its vector
  const float* column_weights;  ///< of the windows along x
  int64_t planes;
  std::byte* sums;  ///< scratch memory: rows of sums, with zeros around
};

enum class AverageFirstStores : uint8_t { plain, streaming, joined };

class AverageFirstKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  AverageFirstKernel(Isa isa, const AveragePlan& plan, const Problem& problem, AverageFirstStores stores);
  void operator()(const AverageFirstCall& call) const { entry_(&call); }

  static int64_t rows_of_sums(const AveragePlan& plan);
  /// Bytes of a row of sums, behind which lies for how many rows of cells it is.
  static int64_t sums_bytes(Isa isa, const AveragePlan& plan);

 private:
  /// Whether sums are stored as they are, in elements of 16 bits, of which two vectors make a whole cache line: then
  /// these are stored at once. Rows that begin inside lines, but with vectors, are as fast vector by vector.
  bool packs() const;
  void emit_start();
  void start_bodies(std::initializer_list<Body*> bodies);
  void emit_planes(Body& front, Body& back);
  void emit_sums(Body& front);
  void start_plane();
  void next_sums(const Xbyak::Reg64& sums);
  void emit_sums_of(Body& front, int vectors, int last);
  void emit_row(Body& back);
  void emit_vectors(Body& back, int64_t vectors, int last);
  void emit_packed(int64_t vectors, int last);
  void sum_period(int64_t cell, int64_t vector, const Xbyak::Xmm& sum);
  void sum_lanes(int64_t vector, const Xbyak::Xmm& sum);
  void sum_cells(int64_t vector, const Xbyak::Xmm& sum);
  void sum_adaptive(int64_t vector, const Xbyak::Xmm& sum);
  void emit_adaptive_table();
  void interleave(const Xbyak::Xmm& even, const Xbyak::Xmm& odd);
  void emit_cells(Body& back, int64_t vector, bool last, int count);
  /// Of cell `cell` of a period of the row, which may start inside a period of the windows.
  int64_t tap_of(int64_t cell, int64_t back) const { return p_.tap_of(2, (p_.lead() + cell) % step(), back); }
  int64_t window_of(int64_t cell) const { return (p_.lead() + cell) / p_.g.strides[2]; }
  /// Of the sums a vector of windows reads.
  Xbyak::Address window_at(int64_t window) { return ptr[r10 + rbx + static_cast<int>(window * 4)]; }
  int64_t step() const { return p_.g.strides[2]; }
  /// Even and odd cells are summed apart.
  bool in_pairs() const { return !p_.adaptive && step() == 2; }
  const PoolOperand& operand(int k) const { return p_.in[static_cast<size_t>(k)]; }
  const PoolOperand& cell_operand(size_t k) const {
    return k < p_.back_in.size() ? operand(p_.back_in[k]) : p_.out[k - p_.back_in.size()];
  }
  size_t cell_operands() const { return p_.back_in.size() + p_.out.size(); }
  HeldFolds::Place fold_slots() {
    return [this](size_t k, int) {
      mov(rdx, slot(p_.back_in.size() + k));
      return Xbyak::RegExp(rdx);
    };
  }
  Xbyak::Address slot(size_t k) { return qword[rsp + 8 * static_cast<int>(k)]; }
  size_t plane_slot(size_t k) const { return cell_operands() + k; }
  size_t front_slot(size_t k) const { return 2 * cell_operands() + k; }
  size_t joined_slot() const { return front_slot(p_.front_in.size()); }
  size_t stretches_slot() const { return joined_slot() + 3 * p_.out.size(); }
  size_t planes_slot() const { return stretches_slot() + 1; }
  size_t slots() const { return planes_slot() + 1; }
  /// Adaptive windows: bytes of a vector of cells in the table of which windows lie over them.
  int entry_bytes() { return static_cast<int>(p_.reach(2) + 1) * vector_bytes(); }
  int count_at() const { return static_cast<int>(sums_bytes_ - kCacheLine) - 8; }
  int row_weight() const { return together_; }
  int column_weight() const { return together_ + 1; }

  const AveragePlan& p_;
  ColumnBlock block_;  // all cells
  AverageFirstStores stores_;
  bool packs_;
  int together_;  // vectors of windows, or of cells
  int64_t sums_bytes_;
  std::optional<JoinedStores> joined_;
  std::optional<HeldFolds> folds_;  // of a call
  Xbyak::Label table_;
  void (*entry_)(const AverageFirstCall*) = nullptr;
};

class AverageFirstPool {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  AverageFirstPool(const Problem& problem, const Target& target);
  AverageFirstPool(const AverageFirstPool&) = delete;
  AverageFirstPool& operator=(const AverageFirstPool&) = delete;

  size_t scratch_bytes() const { return std::max(sums_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const;

 private:
  /// Some rows of a plane.
  struct Rows {
    int64_t first, count, stretches;
    std::vector<int64_t> table;
  };
  void make_rows();
  bool aligned_rows() const;
  void run(const RunArgs& args, const Rows& rows, int64_t n, int64_t c, int64_t planes, bool streaming,
           std::byte* sums) const;

  AveragePlan p_;
  int threads_;
  ColumnBlock block_;           // all cells
  int64_t lanes_, sums_bytes_;  // the latter for all rows of sums
  ThreadScratch sums_;
  PoolFolds folds_;
  int64_t planes_ = 1;  // of a call
  std::vector<Rows> rows_;
  std::vector<float> column_weights_;
  std::unique_ptr<const AverageFirstKernel> kernel_, streaming_;
  bool joined_ = false;                       // how streaming_ stores
  int64_t element_bytes_ = 0, together_ = 0;  // where rows are joined: of all results; elements at once
};

}  // namespace partita::jit
