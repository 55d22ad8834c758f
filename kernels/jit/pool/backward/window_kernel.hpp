// SPDX-License-Identifier: Apache-2.0
// WindowKernel: machine code for gradients of poolings whose windows cover every cell exactly once, also from indices.
#pragma once

#include <optional>
#include <vector>

#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/pool/code.hpp"
#include "kernels/jit/pool/held_folds.hpp"

namespace partita::jit {

struct WindowCall {
  /// Addresses at the first window, tap row by tap row where cells are meant: for a maximum the source, or the indices
  /// and the one of the first cell; operands of front; those of back; results; where rows are joined, the results'
  /// JoinedPlaces.
  const void* const* addresses;
  int64_t steps;              ///< along x: rows of windows; else windows of a row
  int32_t* counts = nullptr;  ///< from indices, of each lane: to how many cells' windows this adds
  int64_t pending = 0;        ///< where rows are joined: elements before the first one that share its vector
};

/// How results go past the caches: in pieces of so many bytes (0: they do not), or rows joined. `lines`: some rows of
/// windows at once make whole cache lines (WindowHalvesKernel alone). `large`: cells exceed the caches, also where
/// none are stored.
struct WindowStores {
  int piece = 0;
  bool joined = false, lines = false, large = false;
};

/// Channel-last: a row of windows, vectors of channels. Channel-first and with few channels: rows of windows, vectors
/// along x, whose cells are as many vectors as a window is wide.
class WindowKernel : private PoolCode {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  WindowKernel(Isa isa, const PoolPlan& plan, const Problem& problem, const WindowStores& stores);
  void operator()(const WindowCall& call) const { entry_(&call); }

  /// Addresses that a call of the plan's kernel takes, those of joined results not counted.
  static size_t streams_of(const PoolPlan& plan);
  /// Whether rows of cells can be joined as far as the kernel is concerned: each is made from its first cell to its
  /// last, before the next one.
  static bool joins(Isa isa, const PoolPlan& plan);
  static bool along_x(const PoolPlan& plan) { return !plan.channel_last || plan.g.channels < kLeastChannels; }
  /// Bytes of aligned pieces that all results are stored in past the caches, 0 where they are not. Along x, groups of
  /// cells begin where whole cells make vectors of windows.
  static int streamed_piece(Isa isa, const PoolPlan& plan);
  /// How lines are fetched where results leave the caches: in turns where few rows of the source are read at once.
  static Fetching fetching(const PoolPlan& plan);
  /// Bytes from cells of an operand to what is worth fetching while they are read.
  static int fetched_behind(const PoolPlan& plan, const PoolOperand& o);
  /// Along x: elements beside each other that belong to one cell.
  static int64_t inner_of(const PoolPlan& plan) { return plan.channel_last ? plan.g.channels : 1; }
  /// Along x: elements of a vector of windows.
  static int64_t whole_of(Isa isa, const PoolPlan& plan) { return lanes_of(isa) / inner_of(plan) * inner_of(plan); }

  static constexpr int64_t kLeastChannels = 8;  ///< that vectors of channels pay for

 private:
  int vectors_together() const;
  /// Whether winners and gradients are in the frame: AVX2 has no registers for those of several vectors.
  /// Vectors of numbers of a group that results are folded into.
  int slot_vectors() const { return along_x_ ? 1 : together_; }
  bool keeps() const { return !wide() && together_ > 1; }
  Xbyak::Xmm winner(int vector) const { return vec(winners_ + (keeps() ? 0 : vector)); }
  Xbyak::Xmm gradient(int vector) const { return vec(gradients_ + (keeps() ? 0 : vector)); }
  Xbyak::RegExp kept_winner(int vector) const { return kept_vector(vector); }
  Xbyak::RegExp kept_gradient(int vector) const { return kept_vector(together_ + vector); }
  int64_t elements() const { return along_x_ ? p_.g.dst[2] * inner_ : p_.g.channels; }  ///< along the vectors
  void add_streams();
  void emit_steps(Body& front, Body& back);
  bool cell_by_cell() const;
  void emit_cell_by_cell(Body& front, Body& back);
  void emit_gradients(Body& front, const Group& group);
  HeldFolds::Place slots();
  void emit_cells(Body& back, const Group& group, int64_t row);
  void emit_cell(Body& back, const Group& group, int64_t row, int64_t cell, int vector);
  void spread_winners(const Group& group);
  void find_winner(const Group& group, int vector);
  void keep_window(int vector);
  void load_winner(const Group& group, int vector);
  void load_taps(const Group& group, int64_t row, int vector);
  void pick_tap(const Group& group, int64_t row, int64_t tap, int vector);
  void count_found(const Xbyak::Xmm& equal);
  void select_gradient(const Xbyak::Xmm& dst, int64_t row, int64_t cell, int vector);
  void select_kept(const Xbyak::Xmm& dst, int64_t row, int64_t cell, int vector);
  void load_windows(const Xbyak::Xmm& dst, const PoolOperand& o, size_t stream, const Group& group, int vector);
  void load_cells(const Xbyak::Xmm& dst, const PoolOperand& o, size_t stream, const Group& group, int64_t cell,
                  int vector, bool ahead = true);
  Xbyak::RegExp cells_at(const PoolOperand& o, size_t stream, int64_t cell, int vector);
  int64_t cells_behind(const PoolOperand& o, int64_t cell, int vector) const;
  int cells_of(const Group& group, int64_t cell, int vector) const;
  bool ends_row(const Group& group, int64_t cell, int vector) const;
  int cells_together() const { return static_cast<int>(width()) * together_; }
  std::vector<int32_t> windows_of(int64_t cell) const;
  std::vector<int32_t> taps_of(int64_t row, int64_t cell) const;
  Xbyak::Ymm permutable(const Xbyak::Xmm& v) const;
  bool repeats(const PoolOperand& o) const { return (inner_ > 1 || !along_x_ ? o.c : o.x) == 0; }
  /// Cells of one window in a vector.
  bool interleaved() const { return along_x_ && width() > 1; }
  /// Both source cells of a window are one lane: the first one its lower half.
  bool paired() const { return interleaved() && inner_ == 1 && width() == 2 && p_.in[0].dtype == Dtype::bf16; }
  /// Winners and gradients are spread over their cells once for all rows.
  bool spreads_once() const;
  Xbyak::Xmm spread_register(int kind, int64_t cell, int vector) const;
  int64_t width() const { return p_.g.kernel[2]; }
  int64_t tap_rows() const { return p_.tap_rows(); }
  bool from_indices() const { return p_.indices >= 0; }
  static int64_t source_streams(const PoolPlan& plan) {
    return plan.indices >= 0 ? 2 : plan.maximum ? plan.tap_rows() : 0;
  }
  size_t front_stream(size_t k) const { return static_cast<size_t>(source_streams(p_)) + k; }
  size_t back_stream(int64_t row, size_t k) const {
    return front_stream(p_.front_in.size()) + static_cast<size_t>(row) * p_.back_in.size() + k;
  }
  size_t out_stream(int64_t row, size_t k) const {
    return back_stream(tap_rows(), 0) + static_cast<size_t>(row) * p_.out.size() + k;
  }

  bool streaming_, large_, along_x_;
  int64_t inner_;                    // along x: elements of a cell
  int whole_;                        // elements of a vector: whole cells
  int together_;                     // vectors of a group
  int winners_, gradients_, cells_;  // first registers: numbers of winning taps; gradients; cells, and what is spread
  bool counted_ = false;             // what the cell's vector found
  std::optional<JoinedStores> joined_;
  HeldFolds folds_;  // of a group
  void (*entry_)(const WindowCall*) = nullptr;
};

}  // namespace partita::jit
