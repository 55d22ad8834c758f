// SPDX-License-Identifier: Apache-2.0
// Sweeps: writing of their expressions, code, calls. Where a row is folded into one number, some vectors side by side
// are folded with each other before they meet the number, so that not every element waits for the one before it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "kernels/jit/rows/rows.hpp"
#include "kernels/transplant.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr int kUnrolled = 4;            ///< vectors side by side
constexpr int64_t kLeastUnrolled = 3;   ///< times so many in a row
constexpr int64_t kFarthest = 1 << 20;  ///< bytes
constexpr int64_t kFetchedRow = 8192;   ///< bytes; three such rows stay in the nearest cache

/// Whether the operations of several vectors take turns: the processor looks only so far ahead. Around exponentials
/// that was no faster, and log-softmax of bf16 slower by a twentieth; AVX2 has too few registers.
bool takes_turns(Isa isa, const Lanes& lanes) {
  return isa == Isa::avx512 &&
         std::ranges::none_of(lanes.code, [](const Lane& lane) { return lane.op == LaneOp::scale; });
}

RowView moved(RowView view, int64_t lanes) {
  view.offset += lanes * view.lane;
  return view;
}

}  // namespace

bool at_cache_lines(const RowView& view) {
  bool all = view.offset % kCacheLine == 0 && view.row % kCacheLine == 0 && view.block % kCacheLine == 0;
  for (int64_t distance : view.outer) all = all && distance % kCacheLine == 0;
  return all;
}

std::byte* Tile::address(const RowView& view, int64_t block) const {
  int64_t at = view.offset + block * view.block;
  if (view.from == RowView::From::scratch) return scratch + at;
  at += row * view.row + lane * view.lane;
  for (int d = 0; d < view.outer.size(); ++d) at += outer[d] * view.outer[d];
  const auto port = static_cast<size_t>(view.port);
  const void* base = view.from == RowView::From::kernel ? view.table
                     : view.from == RowView::From::in   ? args.in[port]
                                                        : args.out[port];
  return static_cast<std::byte*>(const_cast<void*>(base)) + at;
}

Sweep::Value Sweep::load(const RowView& view) {
  in_.push_back(view);
  return builder().load(static_cast<int>(in_.size()) - 1);
}

void Sweep::store(const RowView& view, Value value) { fold(view, Fold::none, value); }

void Sweep::fold(const RowView& view, Fold how, Value value) {
  out_.push_back(view);
  folds_.push_back(how);
  builder().fold(how, static_cast<int>(out_.size()) - 1, value);
}

Sweep::Value Sweep::front(const RowPlan& plan) {
  Transplant t(plan.edges.front.code, expr_);
  t.in_map.assign(plan.in.size(), -1);
  for (int k : plan.edges.front_in) {
    t.in_map[static_cast<size_t>(k)] = static_cast<int>(in_.size());
    in_.push_back(plan.in[static_cast<size_t>(k)]);
  }
  return t.run()[plan.edges.front.result];
}

void Sweep::back(const RowPlan& plan, Value value) {
  Transplant t(plan.edges.back.code, expr_);
  t.skeleton = value;
  t.in_map.assign(plan.in.size(), -1);
  for (int k : plan.edges.back_in) {
    t.in_map[static_cast<size_t>(k)] = static_cast<int>(in_.size());
    in_.push_back(plan.in[static_cast<size_t>(k)]);
  }
  for (int k : plan.edges.back_out) {
    t.out_map.push_back(static_cast<int>(out_.size()));
    out_.push_back(plan.out[static_cast<size_t>(k)]);
    folds_.push_back(Fold::none);
  }
  t.run();
}

bool Sweep::folds_row(size_t output) const { return folds_[output] != Fold::none && !out_[output].steps; }

/// Bytes; of an operand of both tiles the previous one's has been read before.
int64_t Sweep::fetched_ahead(const RowView& view) const {
  if (view.from != RowView::From::in || !view.steps || view.row <= 0) return 0;
  if (view.previous && std::ranges::any_of(in_, [&](const RowView& v) {
        return !v.previous && v.from == view.from && v.port == view.port;
      }))
    return 0;
  const int64_t bytes = view.row * rows_ahead_;
  return bytes <= kFarthest ? bytes : 0;
}

/// Of each input, whether it may be read in any order, if all inputs like it are read in the same one: it has bf16
/// elements, whatever is computed of it is folded into the row's numbers, and nothing else along the row goes there.
std::vector<bool> Sweep::in_any_order() const {
  std::vector<bool> free;
  for (const RowView& view : in_) free.push_back(view.steps && view.dtype == Dtype::bf16);
  const auto in_order = [&](size_t k) { return in_[k].steps && !free[k]; };
  std::vector<std::vector<size_t>> read(expr_.code.size());  // by each value
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < expr_.code.size(); ++i) {
      const Instr& in = expr_.code[i];
      read[i].clear();
      if (in.op == ExprOp::load) read[i].push_back(static_cast<size_t>(in.imm));
      const std::array operands = {in.a, in.b, in.c};
      for (size_t k = 0; k < static_cast<size_t>(operand_count(in.op)); ++k)
        read[i].insert(read[i].end(), read[operands[k]].begin(), read[operands[k]].end());
      if (!writes(in.op)) continue;
      if (folds_row(static_cast<size_t>(in.imm)) && std::ranges::none_of(read[i], in_order)) continue;
      for (size_t k : read[i]) {
        changed = changed || free[k];
        free[k] = false;
      }
    }
  }
  return free;
}

RowShape Sweep::row_shape(int64_t length, int vectors) const {
  RowShape shape{.length = length, .vectors = vectors};
  const std::vector<bool> free = vectors % 2 == 0 ? in_any_order() : std::vector<bool>(in_.size(), false);
  for (size_t k = 0; k < in_.size(); ++k) {
    const RowView& view = in_[k];
    const auto ahead = static_cast<int>(fetched_ahead(view));
    shape.in.push_back({.dtype = view.dtype,
                        .steps = view.steps,
                        .row_bytes = view.row,
                        .fetching = ahead == 0          ? Fetching{}
                                    : fetches_in_turns_ ? Fetching::in_turns(ahead)
                                                        : Fetching::near(ahead),
                        .every_other = free[k] ? EveryOther::even : EveryOther::no});
  }
  for (size_t k = 0; k < out_.size(); ++k)
    shape.out.push_back({.dtype = out_[k].dtype,
                         .steps = out_[k].steps,
                         .row_bytes = out_[k].row,
                         .fold = folds_[k],
                         .kept = !is_result(out_[k], folds_[k])});
  PT_ASSERT(std::max(in_.size(), out_.size()) <= kMaxOperands);
  return shape;
}

/// `length` lanes from lane `first` on, `vectors` vectors at once.
RowPass Sweep::pass(Isa isa, int64_t first, int64_t length, int vectors) const {
  RowPass pass;
  pass.shape = row_shape(length, vectors);
  for (const RowView& view : in_) pass.in.push_back(moved(view, first));
  for (const RowView& view : out_) pass.out.push_back(moved(view, first));
  pass.lanes = vectors_at_once(expr_, pass.shape, vectors, isa);
  if (vectors > 1 && takes_turns(isa, pass.lanes)) pass.lanes = by_level(pass.lanes);
  return pass;
}

Sweep::Code Sweep::code(Isa isa, int64_t first, int64_t length, int vectors, bool streaming) const {
  RowPass pass = this->pass(isa, first, length, vectors);
  Code code;
  code.in = std::move(pass.in);
  code.out = std::move(pass.out);
  // Rows of sums are read and written once for both. What leaves the caches waits for memory, not for them.
  if (vectors == 1 && !streaming && pairs_rows()) code.pairs = RowsAtOnce(isa, expr_, row_shape(length, 1), 2);
  code.kernel = std::make_shared<const FlatKernel>(isa, pass.lanes, pass.shape, 0);
  pass.shape.streaming = true;
  pass.shape.fenced = fenced_;
  if (streaming) code.streaming = std::make_shared<const FlatKernel>(isa, pass.lanes, pass.shape, 0);
  return code;
}

/// Where a number waits for each element; not where rows of sums are added to, for several of them would not stay in
/// registers either.
bool Sweep::is_unrolled() const {
  if (unrolled_as_) return *unrolled_as_;
  bool waits = false;
  for (size_t k = 0; k < out_.size(); ++k) waits = waits || folds_row(k);
  return waits && !adds_rows();
}

bool Sweep::adds_rows(size_t output) const { return folds_[output] != Fold::none && out_[output].steps; }

bool Sweep::adds_rows() const {
  for (size_t k = 0; k < out_.size(); ++k)
    if (adds_rows(k)) return true;
  return false;
}

/// Where vectors of bf16 elements are loaded in pairs.
bool Sweep::goes_in_pairs(Isa isa) const {
  const auto is_bf16 = [](const RowView& view) { return view.steps && view.dtype == Dtype::bf16; };
  return isa == Isa::avx512 && !unrolled_as_ && !adds_rows() && std::ranges::any_of(in_, is_bf16);
}

bool Sweep::pairs_rows() const {
  const auto near = [](const RowView& view) { return std::abs(view.row) <= INT32_MAX / 2; };
  if (!adds_rows() || !std::ranges::all_of(in_, near) || !std::ranges::all_of(out_, near)) return false;
  for (size_t k = 0; k < out_.size(); ++k)
    if (!adds_rows(k) && out_[k].row == 0) return false;
  return true;
}

template <class F>
auto Sweep::covering(Isa isa, int64_t length, F make) const {
  const int vectors = is_unrolled() ? kUnrolled : goes_in_pairs(isa) ? 2 : 1;
  const int64_t unit = int64_t{vectors} * lanes_of(isa), done = length / unit * unit;
  std::vector<decltype(make(0, length, 1))> list;
  if (vectors == 1 || done < (is_unrolled() ? kLeastUnrolled : 1) * unit) {
    list.push_back(make(0, length, 1));
    return list;
  }
  list.push_back(make(0, done, vectors));
  if (done < length) list.push_back(make(done, length - done, 1));
  return list;
}

/// Beside a single result; two rows that are read would not stay in the nearest cache with those that they follow.
bool Sweep::fetches_next_row() const {
  int64_t in = 0, out = 0, longest = 0;
  const auto count = [&](const RowView& view, int64_t& n) {
    if (!view.steps || view.row <= 0 || view.from == RowView::From::scratch) return;
    ++n;
    longest = std::max(longest, view.row);
  };
  for (const RowView& view : in_) count(view, in);
  for (size_t k = 0; k < out_.size(); ++k)
    if (is_result(out_[k], folds_[k])) count(out_[k], out);
  return in == 1 && out == 1 && longest <= kFetchedRow;
}

std::vector<RowPass> Sweep::passes(Isa isa, int64_t length, bool streaming) const {
  Sweep sweep = *this;
  if (streaming)
    sweep.unrolled_as_ = true;  // whole cache lines of all types
  else
    sweep.rows_ahead_ = fetches_next_row() ? 1 : 0;
  return sweep.covering(isa, length, [&](int64_t first, int64_t count, int vectors) {
    RowPass pass = sweep.pass(isa, first, count, vectors);
    pass.shape.streaming = streaming;
    return pass;
  });
}

bool Sweep::join(const Sweep& last) {
  Sweep both = *this;
  both.unrolled_as_ = is_unrolled();
  Transplant t(last.expr_.code, both.expr_);
  for (RowView view : last.in_) {
    view.previous = true;
    t.in_map.push_back(static_cast<int>(both.in_.size()));
    both.in_.push_back(view);
  }
  for (RowView view : last.out_) {
    view.previous = true;
    t.out_map.push_back(static_cast<int>(both.out_.size()));
    both.out_.push_back(view);
  }
  both.folds_.insert(both.folds_.end(), last.folds_.begin(), last.folds_.end());
  t.run();
  if (std::max(both.in_.size(), both.out_.size()) > kMaxOperands) return false;
  *this = std::move(both);
  return true;
}

void Sweep::fetch_next_tile(const RowPlan& plan) {
  if (plan.space.along_lanes) rows_ahead_ = plan.tiling.tile_rows;
  // Tiles of whole rows are one stream.
  if (!plan.space.along_lanes && plan.tiling.block == plan.space.lanes && !reads_streams_alone()) rows_ahead_ = 1;
  fetches_in_turns_ = plan.may_stream;
}

void Sweep::make(Isa isa, int64_t length, int64_t rest, bool streaming) {
  const auto make = [&](int64_t first, int64_t count, int vectors) {
    return code(isa, first, count, vectors, streaming);
  };
  length_ = length;
  whole_ = covering(isa, length, make);
  if (rest != 0) rest_ = covering(isa, rest, make);
}

void Sweep::make(const RowPlan& plan) {
  // The same thread goes on to sweep the last tile alone, and fences then.
  fenced_ = !unrolled_as_ || plan.tiling.blocks > 1;
  make(plan.isa, plan.tiling.block, plan.space.lanes % plan.tiling.block, may_stream(plan));
}

/// What else is written (scratch, sums) is read again soon and kept.
bool Sweep::may_stream(const RowPlan& plan) const {
  if (!plan.may_stream) return false;
  bool any = false;
  for (size_t k = 0; k < out_.size(); ++k) {
    if (!is_result(out_[k], folds_[k])) continue;
    any = true;
    if (!at_cache_lines(out_[k])) return false;
  }
  return any;
}

int64_t Sweep::block_lanes(const Tile& tile, const RowPlan& plan, int64_t block) {
  return std::min(plan.space.lanes - tile.lane - block * plan.tiling.block, plan.tiling.block);
}

void Sweep::run(const Tile& tile, const RowPlan& plan, int64_t block) const {
  run(tile, block, tile.rows, block_lanes(tile, plan, block));
}

void Sweep::run(const Tile& tile, const Tile& previous, const RowPlan& plan, int64_t block) const {
  run(tile, previous, block, tile.rows, block_lanes(tile, plan, block));
}

void Sweep::run(const Tile& tile, int64_t block, int64_t rows, int64_t lanes) const {
  run(tile, tile, block, rows, lanes);
}

void Sweep::run(const Tile& tile, const Tile& previous, int64_t block, int64_t rows, int64_t lanes) const {
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto address = [&](const RowView& view) { return (view.previous ? previous : tile).address(view, block); };
  for (const Code& code : lanes == length_ ? whole_ : rest_) {
    bool streaming = code.streaming != nullptr;
    for (size_t k = 0; k < code.in.size(); ++k) in[k] = address(code.in[k]);
    for (size_t k = 0; k < code.out.size(); ++k) {
      out[k] = address(code.out[k]);
      streaming = streaming && (code.out[k].from != RowView::From::out || is_at_cache_line(out[k]));
    }
    RowCall call{in.data(), out.data(), nullptr, rows};
    code.pairs.run(call, {in.data(), code.in.size()}, {out.data(), code.out.size()});
    if (call.rows > 0) (*(streaming ? code.streaming : code.kernel))(call);
  }
}

void LastSweeps::make(const RowPlan& plan) {
  const bool shared = tile_count(plan) < plan.threads && plan.tiling.blocks > 1;
  if (plan.may_stream && !shared) {
    joined = inner;
    joins = joined.join(last);
  }
  if (joins) {
    joined.fetch_next_tile(plan);
    joined.make(plan);
  } else {
    last.fetch_next_tile(plan);
  }
  inner.make(plan);
  last.make(plan);
}

}  // namespace partita::jit
