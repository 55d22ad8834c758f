// SPDX-License-Identifier: Apache-2.0
// Choice and calls of row code.
#include "kernels/jit/rows/short_rows.hpp"

#include <algorithm>
#include <array>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kVectorsTogether = 24;  ///< of all rows that are computed at once
constexpr int64_t kMostCode = 1024;
constexpr int64_t kLeastJoined = 4096;  ///< elements of a call
constexpr int64_t kOwnOperands = 6;     ///< tensors that sweeps read and write themselves, at the most

/// Code grows with its rows: no more of it than is compiled in a millisecond, and no more operands than there are
/// places.
bool is_small(const RowPlan& plan, int64_t rows) {
  const Edges& e = plan.edges;
  const auto instructions = static_cast<int64_t>(e.front.code.size() + e.back.code.size());
  const auto operands = static_cast<int64_t>(e.front_in.size() + e.back_in.size() + e.back_out.size()) + kOwnOperands;
  return rows * RowCode::vectors(plan) * std::max(instructions, operands) <= kMostCode;
}

}  // namespace

bool ShortRows::fit(const RowPlan& plan, int64_t most_vectors) {
  return plan.space.along_lanes && RowCode::vectors(plan) <= most_vectors && is_small(plan, 1);
}

ShortRows::ShortRows(const RowPlan& plan, const WriteRow& write) : WholeRows(plan, 0) {
  int rows = RowCode::kMostRows;
  while (rows > 1 &&
         (rows * RowCode::vectors(plan) > kVectorsTogether || rows > plan.space.rows || !is_small(plan, rows)))
    rows /= 2;
  if (rows > 1) {
    RowCode several(plan_, rows);
    write(several);
    if (several.works()) add(several, rows, plan.may_stream);
  }
  RowCode single(plan_, 1);
  write(single);
  if (pieces_.empty()) add(single, 1, plan.may_stream);
  if (pieces_.front().rows > 1 || pieces_.front().streams || pieces_.front().joins) add(single, 1, false);
}

void ShortRows::add(const RowCode& code, int rows, bool streams) {
  PT_ASSERT(std::max(code.in().operands.size(), code.out().operands.size()) <= kMostOperands);
  const std::vector<size_t> results = code.results();
  const bool at_lines =
      std::ranges::all_of(results, [&](size_t k) { return at_cache_lines(code.out().tensors.views[k]); });
  std::shared_ptr<const FlatKernel> joining;
  if (streams && !at_lines && plan_.space.rows * plan_.space.lanes >= kLeastJoined) joining = code.make_joined();
  if (joining) pieces_.push_back({rows, results, false, true, code.in().tensors, code.out().tensors, joining});
  streams = streams && at_lines;
  // Joined rows leave others to rows one by one.
  if (!joining || rows > 1)
    pieces_.push_back({rows, results, streams, false, code.in().tensors, code.out().tensors, code.make(streams)});
}

/// False where results lie too oddly to go past the caches.
bool ShortRows::run(const Piece& piece, const Tile& tile) const {
  std::array<const void*, kMostOperands> in;
  std::array<void*, kMostOperands> out;
  piece.in.put_addresses(tile, in.data());
  piece.out.put_addresses(tile, out.data());
  const auto result = [&](size_t k) { return out[static_cast<size_t>(piece.out.first[k])]; };
  if (piece.streams && !std::ranges::all_of(piece.results, [&](size_t k) { return is_at_cache_line(result(k)); }))
    return false;
  const RowCall call{in.data(), out.data(), nullptr, tile.rows / piece.rows};
  if (piece.joins) return run_joined(piece, call, tile);
  (*piece.kernel)(call);
  return true;
}

/// False also where results lie differently to cache lines, or what calls share with their neighbours is too much.
bool ShortRows::run_joined(const Piece& piece, RowCall call, const Tile& tile) const {
  const int64_t elements = tile.rows * plan_.space.lanes;
  if (elements < kLeastJoined) return false;
  std::array<void*, JoinedStores::kMostOutputs> results;
  size_t count = 0;
  for (size_t k : piece.results) results[count++] = call.out[piece.out.first[k]];
  const int64_t each = element_bytes(piece.out.views[piece.results[0]].dtype);
  const int64_t together = JoinedStores::together(plan_.isa, each), vector = together * each;
  const auto place = [&](size_t k) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(results[k])) % vector; };
  for (size_t k = 0; k < count; ++k)
    if (place(k) != place(0) || place(k) % each != 0) return false;
  const JoinedCall joined({results.data(), count}, each, together, elements);
  call.joined = joined.places();
  call.pending = joined.pending();
  (*piece.kernel)(call);
  joined.finish();
  return true;
}

void ShortRows::run(const RunArgs& args, std::byte*, int64_t begin, int64_t end) const {
  each_tile(args, nullptr, begin, end, [&](Tile tile) {
    int64_t left = tile.rows;
    for (const Piece& piece : pieces_) {
      tile.rows = left / piece.rows * piece.rows;
      if (tile.rows == 0 || !run(piece, tile)) continue;
      tile.row += tile.rows;
      left -= tile.rows;
    }
  });
}

}  // namespace partita::jit
