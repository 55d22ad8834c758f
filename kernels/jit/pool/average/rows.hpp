// SPDX-License-Identifier: Apache-2.0
// Gradients of average poolings, channel-first, in planes of narrow rows: each row of windows is spread over the cells
// of a row in registers, where it stays until no row of cells needs it any more. AVX-512 alone.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/pool/average/plan.hpp"
#include "kernels/jit/pool/code.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/jit/pool/held_folds.hpp"
#include "kernels/jit/pool/staged_planes.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// How a row of windows becomes a row of cells.
struct RowSpread {
  static constexpr int kLanes = lanes_of(Isa::avx512);
  static int64_t vectors_of(const AveragePlan& plan) { return (plan.g.src[2] + kLanes - 1) / kLanes; }
  /// Null where it is not possible.
  static std::optional<RowSpread> of(const AveragePlan& plan);

  /// For each lane, which of the windows read is over the cell; lanes without one name a lane of zeros.
  using Order = std::array<int32_t, kLanes>;
  struct Vector {
    int64_t first = 0;          ///< of the windows read
    std::vector<Order> orders;  ///< of windows over each cell; what they name is added up
  };
  std::vector<Vector> vectors;  ///< of cells
  int windows = 0;              ///< read for each vector
};

enum class AverageRowsStores : uint8_t {
  plain,
  streaming,  ///< rows of results are whole cache lines
  staged,     ///< results are made in scratch memory, a plane behind the other and a vector's room behind the last one
};

struct AverageRowsCall {
  const void* const* streams;
  const float* weights;  ///< of all windows of a plane, where they differ
  int64_t planes;
};

class AverageRowsKernel : private PoolCode {
 public:
  using PoolCode::line_streams;
  /// Throws Xbyak::Error where there is no memory for code.
  AverageRowsKernel(const AveragePlan& plan, const RowSpread& spread, const Problem& problem, AverageRowsStores stores);
  void operator()(const AverageRowsCall& call) const { entry_(&call); }

  /// Whether registers have room for the rows of windows over a row of cells.
  static bool has_room(const AveragePlan& plan) { return plan.reach(1) * RowSpread::vectors_of(plan) <= kMostVectors; }
  static size_t streams_of(const AveragePlan& plan);
  /// Whether all stores are whole cache lines, where results begin at one.
  static bool stores_lines(const AveragePlan& plan);
  /// Floats of a row of weights.
  static int64_t weights_of_row(const AveragePlan& plan) { return plan.g.dst[2] + RowSpread::kLanes; }
  /// How many of `lines` of a result leave in a call of so many planes.
  int64_t lines_sent(size_t result, int64_t lines, int64_t planes) const;

 private:
  static constexpr int64_t kMostVectors = 14;
  /// A row of windows, and the rows of cells under it and none behind it.
  struct Step {
    int64_t first_row = 0;
    std::vector<std::vector<int64_t>> over;  ///< of each row, the windows over it, by how many steps back they are
    bool starts_inside = false;              ///< the first row begins in the middle of a line
    bool goes_on_as(const Step& next) const {
      return next.over == over && next.first_row == first_row + std::ssize(over) && next.starts_inside == starts_inside;
    }
  };
  static std::vector<Step> steps_of(const AveragePlan& plan);
  void emit_planes(Body& front, Body& back);
  void emit_step(Body& front, Body& back, int64_t window);
  void emit_windows(Body& front, int64_t row);
  void spread(const RowSpread::Vector& vector, const Xbyak::Xmm& to);
  void emit_cells(Body& back, const std::vector<int64_t>& backs, int64_t row);
  void emit_vector(Body& back, const Xbyak::Xmm& sum, int64_t row, size_t vector);
  Xbyak::Xmm sum(const Xbyak::Xmm& to, const std::vector<int64_t>& backs, size_t vector);
  void emit_lines();
  void go_on(int64_t windows, int64_t rows);
  void advance_to(int64_t window, int64_t row);
  void next_plane();
  static bool packs(const AveragePlan& plan);
  static bool joins_halves(const AveragePlan& plan);
  static bool starts_inside(const AveragePlan& plan, int64_t row) { return row * RowSpread::vectors_of(plan) % 2 != 0; }
  bool is_staged() const { return stores_ == AverageRowsStores::staged; }
  bool is_streaming() const { return stores_ == AverageRowsStores::streaming; }
  bool weighs() const { return !p_.same_along_x || !p_.same_along_rows; }
  /// Bytes from where the stream is to a cell's vector.
  int behind(const PoolOperand& o, int64_t row, size_t vector) const;
  bool begins_row_line(const PoolOperand& o, int64_t row) const;
  int cells_of(size_t vector) const;
  /// What is stored behind the row's end becomes the next row's.
  int stored(size_t vector) const { return is_staged() ? lanes() : cells_of(vector); }
  /// Register of a vector of the row of windows `back` rows before the latest one.
  int row_of(int64_t back, size_t vector) const {
    return static_cast<int>(order_[static_cast<size_t>(back)] * spread_.vectors.size() + vector);
  }
  int rows_end() const { return static_cast<int>(order_.size() * spread_.vectors.size()); }
  int windows_at() const { return rows_end(); }
  int sum_at() const { return rows_end() + 1; }
  int pending_at() const { return rows_end() + 3; }
  int orders_at() const { return rows_end() + 3 + (joins_halves_ ? 1 : 0); }
  size_t front_stream(size_t k) const { return k; }
  size_t back_stream(size_t k) const { return p_.front_in.size() + k; }
  size_t out_stream(size_t k) const { return back_stream(p_.back_in.size()) + k; }
  size_t lines_stream(size_t k) const { return out_stream(p_.out.size()) + kLineStreams * k; }

  const AveragePlan& plan_;
  const RowSpread& spread_;
  AverageRowsStores stores_;
  bool joins_halves_;                   // of lines: a row's last one with the next row's first one
  std::vector<Step> steps_;             // of each row of windows
  HeldFolds folds_;                     // of a call, which is a plane
  std::vector<RowSpread::Order> held_;  // in registers
  std::vector<int64_t> lines_of_step_;  // of each result, where they are staged
  std::vector<size_t> order_;           // of rows of windows, the latest first
  int64_t window_ = 0, row_ = 0;        // where streams are
  void (*entry_)(const AverageRowsCall*) = nullptr;
};

class AverageRowsPool {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  AverageRowsPool(const Problem& problem, const Target& target);
  AverageRowsPool(const AverageRowsPool&) = delete;
  AverageRowsPool& operator=(const AverageRowsPool&) = delete;

  size_t scratch_bytes() const { return std::max(staged_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const;

 private:
  struct Planes {
    int64_t image, first, count;
  };
  void run(const RunArgs& args, const AverageRowsKernel& kernel, const Planes& planes,
           StagedPlanes::Part& staged) const;

  AveragePlan p_;
  RowSpread spread_;
  int threads_;
  bool is_staged_;                             // by kernel_
  int64_t planes_;                             // of a call
  std::vector<int64_t> in_apart_, out_apart_;  // bytes from plane to plane
  std::vector<float> weights_;                 // of windows, where they differ
  StagedPlanes staged_;
  PoolFolds folds_;
  AverageRowsKernel kernel_;
  std::unique_ptr<const AverageRowsKernel> streaming_;
};

}  // namespace partita::jit
