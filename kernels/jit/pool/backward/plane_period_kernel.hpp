// SPDX-License-Identifier: Apache-2.0
// PlanePeriodKernel: machine code for gradients of maximum poolings whose windows may overlap, channel-first: a plane,
// one row of periods after the other (period_kernel.hpp). A row of windows is searched straight from the source
// with vectors along x, or has indices; then the rows of cells that it completes are stored.
#pragma once

#include <limits>

#include "kernels/jit/pool/backward/choices.hpp"
#include "kernels/jit/pool/backward/period_rows.hpp"
#include "kernels/jit/pool/code.hpp"
#include "kernels/jit/pool/held_folds.hpp"

namespace partita::jit {

/// Where results go, and of how many planes.
struct PlaneStores {
  int side_by_side = 1;    ///< planes
  int piece = 0;           ///< bytes that streamed stores write at once; 0: nothing is streamed
  bool is_staged = false;  ///< planes of results follow each other in the caches, from where they go to memory
};

struct PlanePeriodCall {
  /// Addresses of the plane's, or of the first plane's, first elements: source, or indices and the index of the first
  /// window's first tap; operands of front; those of back; results; then the rows that keep what is found, which are
  /// those of the first window; then as many rows as are shared; then, of each result, line_streams of what leaves
  /// meanwhile.
  const void* const* addresses;
  int32_t* counts = nullptr;  ///< from indices, of each lane: to how many cells' windows this adds
};

/// A row keeps the winners' tap numbers, or names: how far their indices are from those of the windows' first taps;
/// `gradients_at` bytes behind them lie the gradients. Margins of windows that do not exist have winners of -1 before
/// the call, and stay so.
class PlanePeriodKernel : private PoolCode {
 public:
  using PoolCode::line_streams;
  /// Throws Xbyak::Error where there is no memory for code.
  PlanePeriodKernel(Isa isa, const PoolPlan& plan, const Problem& problem, const PlaneStores& stores);
  void operator()(const PlanePeriodCall& call) const { entry_(&call); }

  int planes() const { return planes_; }  ///< of a call
  /// How many of so many lines of a staged result leave in a call.
  int64_t lines_sent(const PoolOperand& o, int64_t lines) const;
  static size_t streams_of(const PoolPlan& plan, Isa isa);
  /// Of windows whose cells are not stored yet, and of those that are searched.
  static int64_t kept_rows(const PoolPlan& plan) { return plan.reach(1) + 1; }
  /// AVX-512, f32 and elements of 16 bits that are searched as words: source rows of a window that the next one below
  /// has, too. What is found along x in such a row is kept, from the first window on.
  static int64_t shared_rows(const PoolPlan& plan, Isa isa);
  static int64_t shared_row_bytes(const PoolPlan& plan, Isa isa);
  /// Windows that a row keeps before the first one, and all of them; multiples of a vector.
  static int64_t windows_before(const PoolPlan& plan, Isa isa);
  static int64_t windows_of_row(const PoolPlan& plan, Isa isa);

  /// Rows of few windows: of how many planes a vector has them, those of each from a lane of its own on. 1: only of
  /// one.
  static int side_by_side(const PoolPlan& plan, Isa isa);

  using PoolCode::kMostStride;
  static constexpr int64_t kMostStrideFromIndices = kMostStride - 1;  ///< a register counts

 private:
  void add_streams();
  /// A row of periods: what is searched of it, and which cells of the row before are stored.
  struct Step {
    PeriodPart search, cells;
    bool shares = false;         ///< there are windows above, which may have some of the rows, too
    bool search_beside = false;  ///< whole loads of rows of planes side by side read nothing of other planes
    friend bool operator==(const Step&, const Step&) = default;
  };
  Step step_of(int64_t i) const;
  bool reads_beside(const PeriodPart& rows, int64_t window) const;
  void hold_masks();
  void emit_planes(Body& front, Body& back);
  int64_t steps() const { return periods_of(p_, 1) + 1; }
  void emit_lines();
  int64_t lines_of_step(const PoolOperand& o) const;
  void rotate(size_t first, int64_t count, int64_t by);
  void emit_step(Body& front, Body& back, const Step& step);
  void search_group(Body& front, const Step& step, int64_t first);
  void search_floats(const Step& step, int64_t first, int behind, int count, bool has_nan);
  void search_planes(const Step& step, int behind, bool has_nan, const SharedRows* shared);
  void load_tap_of_planes(int64_t row, int64_t tap, int behind, bool ahead, bool beside);
  void load_gradients_of_planes(const Xbyak::Xmm& to, const PoolOperand& o, const Xbyak::Reg64& windows, int behind);
  /// Of `count` planes from `first` on, as many of a vector's lanes each.
  struct PlaneLanes {
    int first, count, lanes;
  };
  std::vector<Piece> pieces_of(const PoolOperand& o, const Xbyak::RegExp& row, int64_t begin, int64_t width,
                               const PlaneLanes& of) const;
  void fetch_planes(const PoolOperand& o, const Xbyak::RegExp& from, int first, int count);
  void load_words_of_planes(const std::vector<Xbyak::Xmm>& to, int64_t row, int64_t tap, bool beside);
  void load_beside(const std::vector<Xbyak::Xmm>& to, const Xbyak::RegExp& from, int first, int planes);
  std::vector<bool> outside_planes(int64_t tap, int each, int lanes) const;
  int32_t lowest_bits() const;
  /// Bytes from plane to plane.
  int64_t operand_apart(const PoolOperand& o) const { return planes_ == 1 ? 0 : *o.planes_apart(p_.g); }
  int64_t result_apart(const PoolOperand& o) const {
    return staged_ ? p_.g.src[1] * p_.g.src[2] * element_bytes(o.dtype) : operand_apart(o);
  }
  std::vector<bool> no_windows(int behind, int count) const;
  void prepare_words();
  bool takes_turns() const { return in_words_ && stride() == 2; }
  size_t word_of(int window) const;
  void name_none(int count);
  void widen_numbers(const Xbyak::Zmm& part, int behind);
  void search_words(const Step& step, int64_t first, int count);
  /// Some rows of a step, from one on.
  struct WordRows {
    int64_t row, rows;
    bool beside;
  };
  void search_words_along(const WordRows& of, int64_t first, int count);
  void compete_words(int64_t i, int64_t row, bool first);
  void order_words(const std::vector<Xbyak::Zmm>& elements);
  void exclude_words(int64_t tap, int64_t rows, const std::vector<bool>& outside);
  bool next_window_has(int64_t tap) const;
  void load_word_tap(const Xbyak::Zmm& to, int64_t row, int64_t tap, int64_t first, bool beside);
  void load_source_words(const Xbyak::Zmm& words, int64_t row, int64_t cell, int64_t first, bool ahead);
  int64_t source_row(int64_t row) const;
  void keep_winners(const Xbyak::Xmm& winner, int behind, int count);
  void store_winners(const Xbyak::Xmm& winner, int behind);
  void keep_gradients(Body& front, int behind, int count);
  void load_winners(const Xbyak::Xmm& winner, int count);
  std::vector<int32_t> names(int64_t y, int64_t x, int64_t phase, int64_t cells, int64_t behind) const;
  std::vector<int32_t> names_of_planes(int64_t tap, int64_t behind) const;
  /// Cells of some rows, `behind` cells behind r9, or of planes side by side: what as many planes would be.
  struct CellGroup {
    int64_t row, end_row, behind, cells;
  };
  /// The part of a group that is of one plane, and the lane of its first period.
  struct PlanePart {
    int plane, lane;
    int64_t cell, cells;
  };
  std::vector<PlanePart> parts_of(const CellGroup& group) const;
  void emit_cells(Body& back, const PeriodPart& rows, int64_t cells);
  void emit_group(Body& back, const PeriodPart& rows, const CellGroup& group);
  void add_windows(int64_t back_y, const CellGroup& group, std::vector<bool>& any);
  void pack_sums(int sums);
  void store_chosen(int sums, int64_t row, const PlanePart& part);
  void emit_vector(Body& back, int sums, int64_t row, const PlanePart& part, int64_t vector);
  Xbyak::RegExp cell_at(const PoolOperand& o, const Xbyak::Reg64& cells, int64_t row, int64_t cell,
                        int64_t behind) const;
  /// Of planes side by side: a vector's, and the lanes of each; words: of a vector of them.
  int windows_together() const { return in_words_ ? kWords : lanes(); }
  int planes_of_vector() const { return in_words_ ? planes_ / 2 : planes_; }
  int lanes_of_plane() const { return lanes() / planes_of_vector(); }
  int words_of_plane() const { return kWords / planes_; }
  int64_t stride() const { return p_.g.strides[2]; }
  /// Rows of cells whose sums registers hold.
  int64_t rows_at_once() const { return wide() ? std::max<int64_t>(1, kMostStride / stride()) : 1; }
  bool keeps_words() const;
  bool from_indices() const { return p_.indices >= 0; }
  Xbyak::Xmm counts() const { return vec(counts_); }
  size_t front_stream(size_t k) const { return (from_indices() ? 2 : 1) + k; }
  size_t back_stream(size_t k) const { return front_stream(p_.front_in.size()) + k; }
  size_t out_stream(size_t k) const { return back_stream(p_.back_in.size()) + k; }
  size_t kept_stream(int64_t back) const { return out_stream(p_.out.size()) + static_cast<size_t>(back); }
  size_t lines_stream(size_t result) const { return shared_stream(shared_) + kLineStreams * result; }
  size_t shared_stream(int64_t row) const { return kept_stream(kept_rows(p_)) + static_cast<size_t>(row); }
  /// Vectors that the search uses and, while cells are stored, what is kept of windows.
  int taken() const { return in_words_ ? kWordRegisters : search_registers() + 1 + row_tap_registers(); }
  static bool searches_words(const PoolPlan& plan, Isa isa);
  static constexpr int kWordRegisters = 10;  ///< of search_words

  static constexpr int32_t kNoWinner = std::numeric_limits<int32_t>::min();  ///< no winner is called so

  bool streaming_, staged_;
  int planes_;     // side by side
  bool in_words_;  // elements of 16 bits are compared as integers
  int64_t shared_;
  int64_t gradients_at_;
  int counts_;                                      // from indices, a register
  HeldFolds folds_;                                 // of a call
  std::optional<std::vector<PoolChoice>> choices_;  // of results that are chosen as elements of 16 bits
  void (*entry_)(const PlanePeriodCall*) = nullptr;
};

}  // namespace partita::jit
