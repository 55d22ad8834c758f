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
constexpr int64_t kVector = 16;           ///< lanes of the widest vectors

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

bool Sweep::folds_rows() const {
  for (size_t k = 0; k < out_.size(); ++k)
    if (folds_[k] != Fold::none && !out_[k].steps) return true;
  return false;
}

/// `copies` stretches of `length` lanes, from lane `first` on, side by side.
Sweep::Code Sweep::code(Isa isa, int64_t first, int64_t length, int copies, bool streaming) const {
  Code made;
  Expr expr;
  ExprBuilder b(expr);
  std::vector<Value> folded(out_.size());
  RowShape shape{length, {}, {}, false};
  for (int c = 0; c < copies; ++c) {
    Transplant t(expr_.code, expr);
    for (const RowView& view : in_) {
      const auto shared = std::find_if(made.in.begin(), made.in.end(), [&](const RowView& v) {
        return c > 0 && !view.steps && v.from == view.from && v.port == view.port && v.offset == view.offset;
      });
      t.in_map.push_back(static_cast<int>(shared - made.in.begin()));
      if (shared == made.in.end()) made.in.push_back(moved(view, first + c * length));
    }
    for (size_t k = 0; k < out_.size(); ++k) {
      const bool row_fold = folds_[k] != Fold::none && !out_[k].steps;
      t.out_map.push_back(row_fold ? -1 : static_cast<int>(made.out.size()));
      if (row_fold) continue;
      made.out.push_back(moved(out_[k], first + c * length));
      shape.out.push_back({out_[k].dtype, out_[k].steps, out_[k].row, folds_[k]});
    }
    const std::vector<Value> values = t.run();
    for (size_t i = 0; i < expr_.code.size(); ++i) {
      const Instr& in = expr_.code[i];
      const Fold how = fold_of(in.op);
      if (how == Fold::none || out_[static_cast<size_t>(in.imm)].steps) continue;
      Value& so_far = folded[static_cast<size_t>(in.imm)];
      so_far = c == 0 ? values[i] : how == Fold::sum ? b.add(so_far, values[i]) : b.max(so_far, values[i]);
    }
  }
  for (const RowView& view : made.in) shape.in.push_back({view.dtype, view.steps, view.row});
  for (size_t k = 0; k < out_.size(); ++k) {
    if (folds_[k] == Fold::none || out_[k].steps) continue;
    b.fold(folds_[k], static_cast<int>(made.out.size()), folded[k]);
    made.out.push_back(out_[k]);
    shape.out.push_back({Dtype::f32, false, out_[k].row, folds_[k]});
  }
  Problem types;  // expansion asks for the operands' types alone
  for (const RowView& view : made.in) types.in.push_back({view.dtype, {}, {}, 0});
  for (const RowView& view : made.out) types.out.push_back({view.dtype, {}, {}, 0});
  PT_ASSERT(made.in.size() <= kMaxOperands && made.out.size() <= kMaxOperands);
  const Lanes lanes = expanded(expr, types);
  made.kernel = std::make_shared<const FlatKernel>(isa, lanes, shape, 0);
  if (!streaming) return made;
  shape.streaming = true;
  made.streaming = std::make_shared<const FlatKernel>(isa, lanes, shape, 0);
  return made;
}

Sweep::Codes Sweep::codes(Isa isa, int64_t length, bool streaming) const {
  const int64_t stretch = length / kStretches / kVector * kVector;
  const bool fits = in_.size() * kStretches <= kMaxOperands && out_.size() * kStretches <= kMaxOperands;
  if (!folds_rows() || stretch < kShortestStretch || !fits) return {code(isa, 0, length, 1, streaming)};
  Codes list{code(isa, 0, stretch, kStretches, streaming)};
  const int64_t done = stretch * kStretches;
  if (done < length) list.push_back(code(isa, done, length - done, 1, streaming));
  return list;
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
