// SPDX-License-Identifier: Apache-2.0
// TransposeKernel: machine code that copies tiles with their two axes exchanged.
#pragma once

#include <functional>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Source element (a, b) lies at a * src_row + b * step * bytes, destination element (a, b) at b * dst_row + a * bytes;
/// rows are counted in bytes. Elements are copied as they are.
struct TransposeShape {
  int bytes;     ///< of an element: 1, 2 or 4
  int64_t a, b;  ///< extents, not 0
  int64_t src_row, dst_row;
  /// Whole vectors of 2- and 4-byte elements go past the caches; they start at whole lines, and the caller fences.
  bool streaming = false;
  int step = 1;  ///< not 1: elements have 4 bytes
  /// Destination rows are written in runs, instead of source rows read in runs.
  bool writes_runs = false;
  /// With `writes_runs`: source rows follow each other, and so do tiles; what lies behind the tile is fetched.
  bool fetches_next = false;
  int64_t next_src = 0, next_dst = 0;  ///< bytes from tile to tile of one call
};

class TransposeKernel : private Emitter {
 public:
  /// Rows so far apart cannot be addressed.
  static constexpr int64_t kMaxRow = int64_t{1} << 26;

  /// Throws Xbyak::Error where there is no memory for code.
  TransposeKernel(Isa isa, const TransposeShape& shape);
  /// Reads and writes nothing beside the elements of so many tiles, at least one; source and destination must not
  /// overlap.
  void operator()(const void* src, void* dst, int64_t tiles = 1) const { entry_(src, dst, tiles); }

 private:
  int rows_of_group() const { return shape_.bytes == 2 ? 2 * lanes() : lanes(); }
  void emit_tiles(const std::function<void()>& emit);
  void emit_columns_of_tile();
  void emit_rows_of_tile();
  void emit_all_rows(const std::function<void(int rows)>& emit);
  void emit_all_columns(const Xbyak::Reg64& from, const Xbyak::Reg64& to, const std::function<void(int columns)>& emit);
  void emit_rows(int count);
  void emit_column(int count);
  void fetch(int rows, int columns);
  void emit_block(int a, int b);
  bool interleaves() const;
  bool separates() const;
  void emit_interleaved();
  void load_row(int number, int row, int b);
  void exchange_wide(int a, int b);
  void exchange_narrow(int a, int b);
  void pairs_and_fours(int from, int to, int a, int b);
  Xbyak::Xmm column(int i) const;

  TransposeShape shape_;
  void (*entry_)(const void*, void*, int64_t) = nullptr;
};

}  // namespace partita::jit
