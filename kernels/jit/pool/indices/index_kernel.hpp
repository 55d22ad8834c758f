// SPDX-License-Identifier: Apache-2.0
// IndexKernel: machine code for maxima with indices: windows are read straight from the source, and their maxima and
// indices stored at once, with vectors across channels (channel-last) or along x (channel-first).
#pragma once

#include <optional>
#include <vector>

#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/pool/code.hpp"

namespace partita::jit {

/// A row of taps inside the source, by its place in the window.
struct TapRow {
  int64_t z, y;
  friend bool operator==(const TapRow&, const TapRow&) = default;
};

struct IndexCall {
  /// Of the first window: addresses of column 0 of its rows of taps; of operands of back, of its results and of the
  /// indices; the index of its first tap (whether in the source or not); where results are joined, their places.
  const void* const* addresses;
  int64_t rows;     ///< channel-first: of windows; each starts a stride below the one before
  int64_t pending;  ///< of JoinedStores
};

/// How results go past the caches: in pieces of so many bytes (0: they do not), or rows joined.
struct IndexStores {
  int maxima = 0, indices = 0;
  bool joined = false;  ///< of maxima
};

/// A row of windows (channel-last), or some of one plane.
class IndexKernel : private PoolCode {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  IndexKernel(Isa isa, const PoolPlan& plan, const Problem& problem, std::vector<TapRow> rows,
              const IndexStores& stores);
  void operator()(const IndexCall& call) const { entry_(&call); }

  static size_t streams_of(const PoolPlan& plan);
  static constexpr size_t kIndices = 1;  ///< their output's number; the others are results of back
  using PoolCode::kMostStride;

 private:
  bool along_x() const { return !p_.channel_last; }
  void add_streams();
  void emit_windows(Body& back);
  void emit_window(Body& back, const PoolGeometry::Taps& taps);
  void emit_vector(Body& back, const Group& group, int vector, const PoolGeometry::Taps& taps);
  Xbyak::RegExp place_of_tap(int64_t row, int64_t tap, int vector);
  bool fits_halves(const Group& group, int vector) const;
  void emit_halves(Body& back, const Group& group, int vector, const PoolGeometry::Taps& taps);
  void name_winner(const Xbyak::Xmm& winner);
  void emit_rows(Body& back);
  void emit_row(Body& back);
  void emit_row_vector(Body& back, int64_t vector);
  bool alike(int64_t vector) const;
  std::vector<int32_t> names(int64_t row, int64_t tap) const;
  void store_maxima(Body& back, const Group& group, int vector, int64_t number);
  void store_indices(const Group& group, int vector);
  void load_first_index(const Xbyak::Xmm& first, int vector);
  Xbyak::RegExp place(const PoolOperand& o, size_t stream, int vector);
  const PoolOperand& indices() const { return p_.out[kIndices]; }
  size_t back_stream(size_t k) const { return rows_.size() + k; }
  size_t out_stream(size_t k) const { return back_stream(p_.back_in.size()) + k; }
  size_t first_stream() const { return out_stream(p_.out.size()); }

  std::vector<TapRow> rows_;
  IndexStores stores_;
  PoolIndex base_;
  int together_;  // vectors of channels
  bool stores_as_they_are_;
  int winners_;  // first register
  std::optional<JoinedStores> joined_;
  void (*entry_)(const IndexCall*) = nullptr;
};

}  // namespace partita::jit
