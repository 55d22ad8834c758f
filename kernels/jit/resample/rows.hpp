// SPDX-License-Identifier: Apache-2.0
// The two steps of a resampling: source rows resampled along x, and their weighted sums over y and z.
#pragma once

#include <array>
#include <memory>

#include "kernels/jit/resample/blocks.hpp"
#include "kernels/jit/resample/columns.hpp"
#include "kernels/jit/taps/stencil.hpp"

namespace partita::jit {

constexpr int kGroupedTaps = 8;            ///< summed in one call of a row kernel
constexpr int64_t kPermutedChannels = 64;  ///< fewer channels may be resampled by permutation

/// What one step works on.
struct ResamplePiece {
  int64_t plane;
  size_t chunk, block;
  int64_t z;
  bool streaming;
};

/// Rows of source plane z stand at slots + z % ResampleBlocks::z_slots * slot_floats; `sums` is scratch memory.
struct Prepared {
  const float* slots;
  int64_t slot_floats;
  float* sums;
};

/// Null where the operands of both expressions have room in a call.
const char* refuse_resample_operands(const Problem& p);

/// Source rows resampled along x. `walk` and `blocks` must live as long as it. Few channels: the row is copied as f32,
/// then permuted. Many: sums of places.
class ResampleRows {
 public:
  ResampleRows(const Problem& p, Isa isa, const PlaneWalk& walk, const ResampleBlocks& blocks);
  /// Prepares the rows of plane `z` of the source that the piece's block needs, one behind the other, at `to`.
  void prepare(const RunArgs& args, const ResamplePiece& piece, int64_t z, float* scratch, float* to) const;
  int64_t scratch_floats() const { return scratch_rows_ * copy_floats_; }
  /// Element operations beside those of the results.
  int64_t work() const { return work_; }

 private:
  using Kernel = std::shared_ptr<const FlatKernel>;
  /// A stretch of places, and the code of those that are means of neighbours.
  struct Places {
    TapStretch taps;
    std::shared_ptr<const Stencil> mean = nullptr;
  };
  bool permutes() const;
  void plan_permutation(Isa isa);
  void plan_places(const Attrs& attrs);
  void make_places(Isa isa);
  Kernel make_place(Isa isa, size_t taps, bool accumulate) const;
  bool are_means(const TapStretch& stretch) const;
  std::shared_ptr<const Stencil> make_mean(Isa isa, size_t taps) const;
  void copy(const RunArgs& args, const ResamplePiece& piece, int64_t z, const RowRun& run, float* to) const;
  void sum_places(const RunArgs& args, const ResamplePiece& piece, int64_t z, int64_t y, float* to) const;
  const std::byte* source(const RunArgs& args, const ResamplePiece& piece, int64_t z, int64_t y, int64_t x,
                          size_t operand) const;

  const PlaneWalk& walk_;
  const ResampleBlocks& blocks_;
  Expr front_;
  std::vector<int> front_in_;
  std::vector<WalkedTensor> in_;
  int64_t scratch_rows_ = 0, copy_floats_ = 0, work_ = 0;
  // by permutation
  int64_t copy_places_ = 0;
  std::vector<int64_t> starts_;  // of each chunk's sources
  Kernel copy_;
  std::vector<ColumnGroup> groups_;
  // by places
  AxisStep x_step_;
  std::vector<std::vector<Places>> stretches_;                  // of each chunk
  std::array<std::array<Kernel, kGroupedTaps + 1>, 2> places_;  // [accumulate][taps]
};

/// Weighted sums of prepared rows over y and z, then the back expression. `walk` and `blocks` must live as long as it.
class ResampleSums {
 public:
  ResampleSums(const Problem& p, Isa isa, const PlaneWalk& walk, const ResampleBlocks& blocks);
  /// Whether the results go past the caches.
  bool streams(const RunArgs& args) const;
  /// Whether results are put together in the caches before they go past them.
  bool stages() const { return stages_; }
  void run(const RunArgs& args, const ResamplePiece& piece, const Prepared& from) const;
  int64_t scratch_floats() const { return scratch_rows_ * blocks_.row_floats + staged_floats_; }

 private:
  using Kernel = std::shared_ptr<const FlatKernel>;
  /// [accumulate][taps]
  using Kernels = std::array<std::array<Kernel, kGroupedTaps + 1>, 2>;

  bool may_stream() const;
  bool may_stage() const;
  void make_kernels(Isa isa, size_t kind, size_t taps);
  ExprBuilder::Value write_sum(RowKernelWriter& w, size_t taps, bool accumulate) const;
  Kernel make_partial(Isa isa, size_t kind, size_t taps, bool accumulate) const;
  Kernel make_final(Isa isa, size_t kind, size_t taps, bool accumulate, bool streaming) const;
  RowOperand partial_rows() const;
  void run_rows(const RunArgs& args, const ResamplePiece& piece, const Prepared& from, const TapStretch& stretch,
                int64_t row, int64_t rows) const;
  /// Where the block's results of an output are put together before they are streamed, in bytes of the staging memory.
  int64_t staged_offset(size_t output) const;
  std::byte* staged(const Prepared& from, size_t output) const {
    return reinterpret_cast<std::byte*>(from.sums + scratch_rows_ * blocks_.row_floats) + staged_offset(output);
  }
  /// Bytes of that output's rows.
  int64_t staged_bytes(size_t output, int64_t rows) const { return rows * out_[output].y; }
  size_t kind_of(size_t chunk) const;
  int64_t length(size_t kind) const;

  const PlaneWalk& walk_;
  const ResampleBlocks& blocks_;
  Expr back_;
  std::vector<int> back_in_;
  std::vector<WalkedTensor> in_, out_;
  bool whole_rows_ = true;  // a row of results is one row of the kernel; else each place is
  bool may_stream_ = false, stages_ = false;
  int64_t staged_floats_ = 0;
  int64_t scratch_rows_ = 0;
  // Of all chunks but the last, and of the last where it is shorter.
  std::array<Kernels, 2> partials_;
  std::array<std::array<Kernels, 2>, 2> finals_;  // [streaming]
};

}  // namespace partita::jit
