// SPDX-License-Identifier: Apache-2.0
// Resampling along the innermost axis of f32 rows: each vector of results picks its sources from a few neighbouring
// vectors by permutation, or gathers them where they lie far apart. Which ones is read from tables.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/resample/axes.hpp"

namespace partita::jit {

/// What a kernel does for one group of taps; the same for all vectors of all tables.
struct ColumnShape {
  int taps = 1;
  int windows = 1;                       ///< vectors that a tap's sources span: 1, 2 or 4; 0: gathered
  bool gaps = false;                     ///< some results have fewer taps
  bool accumulate = false;               ///< adds to what earlier groups left
  int64_t from_bytes = 0, to_bytes = 0;  ///< from row to row
};

/// For each vector of results: byte offset of each tap's first source vector; then for each tap the sources' numbers
/// in it and their weights, zero where there is no source.
struct ColumnTable {
  std::vector<int32_t> bases;
  std::vector<int32_t> numbers;
  int64_t vectors = 0;
};

struct ColumnCall {
  const float* from;
  float* to;
  const int32_t* bases;
  const int32_t* numbers;
  int64_t vectors, rows;
};

/// Reads whole vectors: behind the last source of a row, kMargin more vectors must be readable. Writes whole
/// vectors.
class ColumnKernel : private Emitter {
 public:
  static constexpr int kMaxTaps = 4;
  static constexpr int kMargin = 4;

  ColumnKernel(Isa isa, const ColumnShape& shape);
  void operator()(const ColumnCall& call) const { entry_(&call); }

 private:
  void emit_row();
  void pick(int tap);
  void pick_wide(int tap);
  void gather(int tap);
  Xbyak::Ymm reg(int i) const { return wide() ? Xbyak::Ymm(Xbyak::Zmm(i)) : Xbyak::Ymm(i); }
  Xbyak::Ymm numbers(int tap) const { return reg(4 + tap); }
  Xbyak::Ymm weights(int tap) const { return reg(8 + tap); }
  Xbyak::RegExp source(int tap, int window) const;

  ColumnShape shape_;
  void (*entry_)(const ColumnCall*) = nullptr;
};

/// Whether kernels pick all sources of `map` from neighbouring vectors; else they gather them.
bool picks_by_permutation(Isa isa, const AxisMap& map);

/// One group of taps of a whole axis: a kernel and, for each chunk of results, its table.
class ColumnGroup {
 public:
  /// Results [begin, end) along the axis read sources from `start` on, all with `channels` elements side by side.
  struct Chunk {
    int64_t begin, end, start;
  };
  /// Taps [first_tap, first_tap + kMaxTaps) of each result.
  ColumnGroup(Isa isa, const AxisMap& map, int64_t channels, const std::vector<Chunk>& chunks, int first_tap,
              int64_t from_bytes, int64_t to_bytes);
  void run(size_t chunk, const float* from, float* to, int64_t rows) const;

 private:
  void add_table(const AxisMap& map, int64_t channels, const Chunk& chunk, int first_tap);
  void add_vector(const std::vector<int64_t>& sources, const std::vector<float>& weights, ColumnTable& table);

  int lanes_;
  ColumnShape shape_;
  int64_t reach_ = 0;
  std::vector<ColumnTable> tables_;
  std::shared_ptr<const ColumnKernel> kernel_;
};

}  // namespace partita::jit
