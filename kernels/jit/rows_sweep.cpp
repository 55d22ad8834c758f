// SPDX-License-Identifier: Apache-2.0
// Sweeps over tiles, and tiles over threads.
#include <algorithm>
#include <array>

#include "kernels/jit/rows.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kAlignment = 64;

RowOperand operand_of(const RowView& view, Fold how = Fold::none) { return {view.dtype, view.steps, view.row, how}; }

bool at_cache_lines(const RowView& view) {
  bool all = view.offset % kAlignment == 0 && view.row % kAlignment == 0 && view.block % kAlignment == 0;
  for (int64_t distance : view.outer) all = all && distance % kAlignment == 0;
  return all;
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kAlignment == 0; }

int64_t row_tiles(const RowPlan& plan) { return (plan.space.rows + plan.tiling.tile_rows - 1) / plan.tiling.tile_rows; }
int64_t lane_tiles(const RowPlan& plan) {
  return plan.space.along_lanes ? 1 : (plan.space.lanes + plan.tiling.block - 1) / plan.tiling.block;
}
}  // namespace

std::byte* Tile::address(const RowView& view, int64_t block) const {
  int64_t at = view.offset + block * view.block;
  if (view.from == RowView::From::scratch) return scratch + at;
  at += row * view.row + lane * view.lane;
  for (int d = 0; d < view.outer.size(); ++d) at += outer[d] * view.outer[d];
  const auto port = static_cast<size_t>(view.port);
  const void* base = view.from == RowView::From::in ? args.in[port] : args.out[port];
  return static_cast<std::byte*>(const_cast<void*>(base)) + at;
}

Sweep::Value Sweep::load(const RowView& view) {
  in_.push_back(view);
  return writer_.load(operand_of(view));
}

void Sweep::store(const RowView& view, Value value) {
  out_.push_back(view);
  writer_.store(operand_of(view), value);
}

void Sweep::fold(const RowView& view, Fold how, Value value) {
  out_.push_back(view);
  writer_.fold(operand_of(view, how), value);
}

Sweep::Value Sweep::front(const RowPlan& plan) {
  std::vector<RowOperand> operands;
  for (int k : plan.edges.front_in) {
    in_.push_back(plan.in[static_cast<size_t>(k)]);
    operands.push_back(operand_of(in_.back()));
  }
  return writer_.splice(plan.edges.front, plan.edges.front_in, operands);
}

void Sweep::back(const RowPlan& plan, Value value) {
  std::vector<RowOperand> operands, outputs;
  for (int k : plan.edges.back_in) {
    in_.push_back(plan.in[static_cast<size_t>(k)]);
    operands.push_back(operand_of(in_.back()));
  }
  for (int k : plan.edges.back_out) {
    out_.push_back(plan.out[static_cast<size_t>(k)]);
    outputs.push_back(operand_of(out_.back()));
  }
  writer_.splice(plan.edges.back, plan.edges.back_in, operands, outputs, value);
}

void Sweep::make(Isa isa, int64_t length, int64_t rest, bool streaming) {
  PT_ASSERT(in_.size() <= kMaxOperands && out_.size() <= kMaxOperands);
  length_ = length;
  whole_ = writer_.make(isa, length, false);
  if (streaming) streaming_whole_ = writer_.make(isa, length, true);
  if (rest == 0) return;
  rest_ = writer_.make(isa, rest, false);
  if (streaming) streaming_rest_ = writer_.make(isa, rest, true);
}

void Sweep::make(const RowPlan& plan) {
  make(plan.isa, plan.tiling.block, plan.space.lanes % plan.tiling.block, may_stream(plan));
}

/// Only sweeps that write nothing but results: scratch is read again soon.
bool Sweep::may_stream(const RowPlan& plan) const {
  if (!plan.may_stream || plan.edges.back_out.empty()) return false;
  size_t results = 0;
  for (const RowView& view : out_) {
    if (view.from != RowView::From::out) continue;
    ++results;
    if (!at_cache_lines(view)) return false;
  }
  return results == plan.edges.back_out.size();
}

void Sweep::run(const Tile& tile, const RowPlan& plan, int64_t block) const {
  const int64_t left = plan.space.lanes - tile.lane - block * plan.tiling.block;
  run(tile, block, tile.rows, std::min(left, plan.tiling.block));
}

void Sweep::run(const Tile& tile, int64_t block, int64_t rows, int64_t lanes) const {
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  bool streaming = streaming_whole_ != nullptr;
  for (size_t k = 0; k < in_.size(); ++k) in[k] = tile.address(in_[k], block);
  for (size_t k = 0; k < out_.size(); ++k) {
    out[k] = tile.address(out_[k], block);
    streaming = streaming && is_aligned(out[k]);
  }
  const bool whole = lanes == length_;
  const Code& code = streaming ? (whole ? streaming_whole_ : streaming_rest_) : (whole ? whole_ : rest_);
  (*code)({in.data(), out.data(), nullptr, rows});
}

int64_t tile_count(const RowPlan& plan) { return elements(plan.space.outer) * row_tiles(plan) * lane_tiles(plan); }

Tile tile_at(const RowPlan& plan, const RunArgs& args, std::byte* scratch, int64_t index) {
  const int64_t each = row_tiles(plan) * lane_tiles(plan), inside = index % each;
  Tile tile{.args = args, .scratch = scratch, .outer = coordinates(index / each, plan.space.outer)};
  tile.row = inside / lane_tiles(plan) * plan.tiling.tile_rows;
  tile.rows = std::min(plan.tiling.tile_rows, plan.space.rows - tile.row);
  tile.lane = inside % lane_tiles(plan) * plan.tiling.block;
  return tile;
}

int64_t tile_cost(const RowPlan& plan) {
  constexpr int64_t kOperationsAnElement = 3;  // all sweeps together
  return plan.tiling.tile_rows * std::min(plan.space.lanes, plan.tiling.block * plan.tiling.blocks) *
         kOperationsAnElement;
}

size_t tiles_scratch(const RowPlan& plan, size_t scratch_bytes) {
  return scratch_bytes * static_cast<size_t>(std::min<int64_t>(plan.threads, tile_count(plan)));
}

int64_t results_of(const RowPlan& plan, const Tile& tile) {
  return plan.space.along_lanes ? tile.rows : std::min(plan.tiling.block, plan.space.lanes - tile.lane);
}

void fill_results(const RowPlan& plan, const Tile& tile, const RowView& view, float value) {
  const int64_t blocks = view.block != 0 ? plan.tiling.blocks : 1;
  for (int64_t b = 0; b < blocks; ++b) std::fill_n(tile.floats(view, b), plan.results(), value);
}

void fold_blocks(const RowPlan& plan, const Tile& tile, const RowView& view, Fold how) {
  if (plan.tiling.blocks == 1) return;
  for (int64_t i = 0; i < results_of(plan, tile); ++i) {
    double value = tile.floats(view)[i];
    for (int64_t b = 1; b < plan.tiling.blocks; ++b) value = folded(how, value, tile.floats(view, b)[i]);
    tile.floats(view)[i] = static_cast<float>(value);
  }
}

void write_results(const RowPlan& plan, const Tile& tile, const RowView& numbers, const RowView& tensor) {
  std::byte* to = tile.address(tensor, 0);
  const int64_t step = plan.space.along_lanes ? tensor.row : tensor.lane;
  for (int64_t i = 0; i < results_of(plan, tile); ++i) {
    const float value = tile.floats(numbers)[i];
    if (tensor.dtype == Dtype::f32)
      *reinterpret_cast<float*>(to + i * step) = value;
    else
      store_from_double(to + i * step, tensor.dtype, 0, value);
  }
}

void read_results(const RowPlan& plan, const Tile& tile, const RowView& tensor, const RowView& numbers) {
  const std::byte* from = tile.address(tensor, 0);
  const int64_t step = plan.space.along_lanes ? tensor.row : tensor.lane;
  for (int64_t i = 0; i < results_of(plan, tile); ++i) {
    tile.floats(numbers)[i] = tensor.dtype == Dtype::f32
                                  ? *reinterpret_cast<const float*>(from + i * step)
                                  : static_cast<float>(load_as_double(from + i * step, tensor.dtype, 0));
  }
}

}  // namespace partita::jit
