// SPDX-License-Identifier: Apache-2.0
// Pieces of columns, and their calls.
#include "kernels/jit/rows/short_columns.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kPiece = 1024;  ///< lanes of a piece
/// What sweeps hand on stays in registers, or near them; and rows of all inputs are so few streams.
constexpr int64_t kMostRows = 24, kMostStreams = 32;
constexpr int64_t kMostCode = 512;
constexpr size_t kMostOperands = 1024;

}  // namespace

bool ShortColumns::fit(const RowPlan& plan) {
  const Edges& e = plan.edges;
  const size_t most =
      std::max(e.front.code.size() + e.back.code.size(), e.front_in.size() + e.back_in.size() + e.back_out.size());
  const auto near = [&](const RowView& view) { return view.row * plan.space.rows <= RowCode::kFarthest; };
  // What has one number for each result (statistics) may lie in any order, others are runs along lanes already.
  const auto run = [&](const RowView& view) {
    return plan.space.lanes == 1 || !view.steps || view.lane == element_bytes(view.dtype);
  };
  const auto streams = std::ranges::count_if(plan.space.views, [](const RowView& view) {
    return view.from == RowView::From::in && view.row != 0 && view.lane != 0;
  });
  return !plan.space.along_lanes && plan.space.rows <= kMostRows && plan.space.rows * streams <= kMostStreams &&
         plan.space.rows * static_cast<int64_t>(most) <= kMostCode && std::ranges::all_of(plan.space.views, near) &&
         std::ranges::all_of(plan.space.views, run);
}

ShortColumns::ShortColumns(const RowPlan& plan, const WriteRow& write) : WholeRows(plan, 0) {
  const int64_t lanes = plan.space.lanes, rest = lanes % kPiece;
  if (lanes >= kPiece) pieces_.push_back(piece(write, kPiece));
  if (rest > 0) pieces_.push_back(piece(write, rest));
}

ShortColumns::Piece ShortColumns::piece(const WriteRow& write, int64_t lanes) const {
  RowCode code = RowCode::of_columns(plan_, lanes);
  write(code);
  PT_ASSERT(code.works() && std::max(code.in().operands.size(), code.out().operands.size()) <= kMostOperands);
  Piece piece{code.in().tensors, code.out().tensors, code.results(), code.make(false), nullptr};
  // Whole lines at once: parts of lines of many rows do not stay together on their way to memory.
  const bool whole_lines = std::ranges::all_of(piece.results, [&](size_t k) {
    const RowView& view = piece.out.views[k];
    return at_cache_lines(view) && lanes_of(plan_.isa) * element_bytes(view.dtype) == kCacheLine;
  });
  if (plan_.may_stream && whole_lines) piece.streaming = code.make(true);
  return piece;
}

int64_t ShortColumns::units() const {
  return elements(plan_.space.outer) * ((plan_.space.lanes + kPiece - 1) / kPiece);
}

int64_t ShortColumns::elements_of_unit() const { return plan_.space.rows * std::min(plan_.space.lanes, kPiece); }

void ShortColumns::run(const Piece& piece, const Tile& tile, int64_t pieces) const {
  std::array<const void*, kMostOperands> in;
  std::array<void*, kMostOperands> out;
  piece.in.put_addresses(tile, in.data());
  piece.out.put_addresses(tile, out.data());
  const bool streams = piece.streaming && std::ranges::all_of(piece.results, [&](size_t k) {
                         return is_at_cache_line(out[static_cast<size_t>(piece.out.first[k])]);
                       });
  (*(streams ? piece.streaming : piece.kernel))({in.data(), out.data(), nullptr, pieces});
}

void ShortColumns::run(const RunArgs& args, std::byte*, int64_t begin, int64_t end) const {
  const int64_t whole = plan_.space.lanes / kPiece, each = (plan_.space.lanes + kPiece - 1) / kPiece;
  while (begin < end) {
    Tile tile{.args = args, .scratch = nullptr, .outer = coordinates(begin / each, plan_.space.outer)};
    const int64_t at = begin % each, pieces = std::clamp<int64_t>(whole - at, 0, end - begin);
    tile.lane = at * kPiece;
    if (pieces > 0) run(pieces_.front(), tile, pieces);
    begin += pieces;
    if (begin == end || at + pieces == each) continue;
    tile.lane += pieces * kPiece;
    run(pieces_.back(), tile, 1);
    ++begin;
  }
}

}  // namespace partita::jit
