// SPDX-License-Identifier: Apache-2.0
// Sweeps: writing of their expressions, code, calls. Where a row is folded into one number, a long row is cut into
// stretches that are walked side by side: their elements are folded with each other before they meet the number, so
// that not every element waits for the one before it.
#include <algorithm>
#include <array>

#include "kernels/jit/expand.hpp"
#include "kernels/jit/rows.hpp"
#include "kernels/transplant.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int kStretches = 4;
constexpr int64_t kShortestStretch = 48;  ///< lanes
constexpr int64_t kFarthest = 1 << 20;    ///< bytes
constexpr int64_t kVector = 32;           ///< lanes of the widest vectors

RowView moved(RowView view, int64_t lanes) {
  view.offset += lanes * view.lane;
  return view;
}

bool at_cache_lines(const RowView& view) {
  bool all = view.offset % kAlignment == 0 && view.row % kAlignment == 0 && view.block % kAlignment == 0;
  for (int64_t distance : view.outer) all = all && distance % kAlignment == 0;
  return all;
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kAlignment == 0; }

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

/// An expression in the making: stretches side by side, what they fold into one number each, and its code's operands.
struct Sweep::Stretches {
  Expr expr;
  Code code;
  RowShape shape;
  std::vector<Value> folded;  ///< of each output that folds rows
};

/// The expression over lanes from `first` on. Operands that repeat along a row are shared with the stretch before.
void Sweep::add_stretch(Stretches& s, int64_t first, bool is_first) const {
  Transplant t(expr_.code, s.expr);
  for (const RowView& view : in_) {
    const auto shared = std::find_if(s.code.in.begin(), s.code.in.end(), [&](const RowView& v) {
      return !is_first && !view.steps && v.from == view.from && v.port == view.port && v.offset == view.offset;
    });
    t.in_map.push_back(static_cast<int>(shared - s.code.in.begin()));
    if (shared == s.code.in.end()) s.code.in.push_back(moved(view, first));
  }
  for (size_t k = 0; k < out_.size(); ++k) {
    t.out_map.push_back(folds_row(k) ? -1 : static_cast<int>(s.code.out.size()));
    if (!folds_row(k)) add_output(s, moved(out_[k], first), folds_[k]);
  }
  const std::vector<Value> values = t.run();
  ExprBuilder b(s.expr);
  for (size_t i = 0; i < expr_.code.size(); ++i) {
    const auto output = static_cast<size_t>(expr_.code[i].imm);
    if (!writes(expr_.code[i].op) || !folds_row(output)) continue;
    Value& so_far = s.folded[output];
    so_far = is_first ? values[i] : folds_[output] == Fold::sum ? b.add(so_far, values[i]) : b.max(so_far, values[i]);
  }
}

void Sweep::add_output(Stretches& s, const RowView& view, Fold how) {
  s.code.out.push_back(view);
  s.shape.out.push_back({view.dtype, view.steps, view.row, how});
}

/// `copies` stretches of `length` lanes, from lane `first` on, side by side.
Sweep::Code Sweep::code(Isa isa, int64_t first, int64_t length, int copies, bool streaming) const {
  Stretches s;
  s.folded.resize(out_.size());
  for (int c = 0; c < copies; ++c) add_stretch(s, first + c * length, c == 0);
  for (size_t k = 0; k < out_.size(); ++k) {
    if (!folds_row(k)) continue;
    add_output(s, out_[k], folds_[k]);
    ExprBuilder(s.expr).fold(folds_[k], static_cast<int>(s.code.out.size()) - 1, s.folded[k]);
  }
  Problem types;  // expansion asks for the operands' types alone
  for (const RowView& view : s.code.in) {
    const bool fetched = view.from == RowView::From::in && view.steps && view.row > 0;
    const int64_t ahead = fetched ? view.row * rows_ahead_ : 0;
    s.shape.in.push_back({.dtype = view.dtype,
                          .steps = view.steps,
                          .row_bytes = view.row,
                          .ahead = ahead <= kFarthest ? static_cast<int>(ahead) : 0});
    types.in.push_back({view.dtype, {}, {}, 0});
  }
  for (const RowView& view : s.code.out) types.out.push_back({view.dtype, {}, {}, 0});
  PT_ASSERT(s.code.in.size() <= kMaxOperands && s.code.out.size() <= kMaxOperands);
  const Lanes lanes = expanded(s.expr, types);
  s.shape.length = length;
  s.code.kernel = std::make_shared<const FlatKernel>(isa, lanes, s.shape, 0);
  s.shape.streaming = true;
  if (streaming) s.code.streaming = std::make_shared<const FlatKernel>(isa, lanes, s.shape, 0);
  return std::move(s.code);
}

Sweep::Codes Sweep::codes(Isa isa, int64_t length, bool streaming) const {
  const int64_t stretch = length / kStretches / kVector * kVector;
  const bool fits = in_.size() * kStretches <= kMaxOperands && out_.size() * kStretches <= kMaxOperands;
  bool adds_rows = false;  // to a row of sums: four of them would not stay in registers either
  bool waits = false;
  for (size_t k = 0; k < out_.size(); ++k) {
    adds_rows = adds_rows || (folds_[k] != Fold::none && out_[k].steps);
    waits = waits || folds_row(k);
  }
  if (adds_rows || !waits || stretch < kShortestStretch || !fits) return {code(isa, 0, length, 1, streaming)};
  Codes list{code(isa, 0, stretch, kStretches, streaming)};
  const int64_t done = stretch * kStretches;
  if (done < length) list.push_back(code(isa, done, length - done, 1, streaming));
  return list;
}

void Sweep::fetch_next_tile(const RowPlan& plan) {
  if (plan.space.along_lanes) rows_ahead_ = plan.tiling.tile_rows;
}

void Sweep::make(Isa isa, int64_t length, int64_t rest, bool streaming) {
  length_ = length;
  whole_ = codes(isa, length, streaming);
  if (rest != 0) rest_ = codes(isa, rest, streaming);
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
  for (const Code& code : lanes == length_ ? whole_ : rest_) {
    bool streaming = code.streaming != nullptr;
    for (size_t k = 0; k < code.in.size(); ++k) in[k] = tile.address(code.in[k], block);
    for (size_t k = 0; k < code.out.size(); ++k) {
      out[k] = tile.address(code.out[k], block);
      streaming = streaming && is_aligned(out[k]);
    }
    (*(streaming ? code.streaming : code.kernel))({in.data(), out.data(), nullptr, rows});
  }
}

}  // namespace partita::jit
