// SPDX-License-Identifier: Apache-2.0
// Sizes of tiles: what a tile makes and reads again stays in the second-level cache of its processor, or, where tiles
// add to sums, in its share of the last-level cache.
#include "passes/tile/tiling.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "kernels/loop/fold_plan.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita {
namespace {

constexpr int64_t kWorthTiles = 256 << 10;  ///< bytes of values alive at once that stay in the caches anyhow
constexpr int64_t kWantedTiles = 16;        ///< so that threads share them evenly
constexpr int64_t kRows = 32;               ///< products of fewer rows are slow
constexpr int64_t kSummedRows = 128;        ///< products that sum over fewer, and add to what others summed, are slow
constexpr int64_t kTooLarge = 64;           ///< so many times the weights, and what is between is not held as a whole

constexpr int64_t kLine = 64, kLeastRun = 2048;  ///< bytes that follow each other, of tensors that tiles cut
constexpr int64_t kManyTiles = 64;               ///< of work that is not computed twice in any case

/// Of a processor: a quarter of the last-level cache is for what other threads and programs have there.
int64_t cache_share() {
  return static_cast<int64_t>(std::max(second_level_cache_bytes(), last_level_cache_share() / 4 * 3));
}

int64_t cache_bytes() { return static_cast<int64_t>(second_level_cache_bytes()); }

class Sizes {
 public:
  Sizes(const Program& p, const Region& r) : p_(p), r_(r) {}

  int64_t tiles(const std::vector<int64_t>& extents) const {
    int64_t n = 1;
    for (size_t c = 0; c < extents.size(); ++c) n *= ceil_div(r_.axes[c].extent, extents[c]);
    return n;
  }

  /// Bytes of the pieces that are alive at once: what the hungriest step reads and writes of them, two products' worth
  /// at most once loops are fused.
  int64_t alive(const std::vector<int64_t>& extents) const {
    int64_t most = 0;
    for (size_t s : r_.steps) {
      int64_t sum = 0;
      std::set<int> seen;
      for (const auto* side : {&p_.steps[s].in, &p_.steps[s].out})
        for (int b : *side)
          if (seen.insert(b).second)
            if (const Region::Local* local = r_.local_of(b)) sum += piece(*local, extents);
      most = std::max(most, sum);
    }
    return most;
  }

  /// How far tiles may reach along `axis` for their pieces to have `budget` bytes. Pieces without the axis (dequantized
  /// keys) count once; alive() is convex along it, so the line between its ends is above it.
  int64_t reach(std::vector<int64_t> extents, size_t axis, int64_t budget) const {
    const int64_t extent = r_.axes[axis].extent, least = alive(extents);
    extents[axis] = extent;
    const int64_t each = std::max<int64_t>(1, (alive(extents) - least) / std::max<int64_t>(1, extent - 1));
    return 1 + std::max<int64_t>(0, budget - least) / each;
  }

  /// Bytes of all pieces of all tiles.
  int64_t local_bytes() const {
    int64_t sum = 0;
    for (const Region::Local& l : r_.local)
      sum += static_cast<int64_t>(p_.buffers[static_cast<size_t>(l.buffer)].desc.size_bytes());
    return sum;
  }

  /// Bytes of inputs that tiles read again: that every tile reads all of, or every tile along the last axis.
  enum class Tiles : uint8_t { all, of_last_axis };
  int64_t repeated(Tiles by) const {
    const int last = static_cast<int>(r_.axes.size()) - 1;
    std::set<int> seen;
    int64_t sum = 0;
    for (size_t i = 0; i < r_.steps.size(); ++i) {
      const Step& step = p_.steps[r_.steps[i]];
      for (size_t k = 0; k < step.in.size(); ++k) {
        const int b = step.in[k];
        if (b == Step::kNoBuffer || r_.local_of(b) || !seen.insert(b).second) continue;
        const TensorDesc& desc = step.problem.in[k];
        int64_t elements = 1;
        bool moves = false;
        for (int d = 0; d < desc.dims.size(); ++d) {
          if (desc.strides[d] == 0) continue;
          const int at = r_.walks[i].in[k][static_cast<size_t>(d)];
          const int axis = at < 0 ? -1 : r_.tiled[i][static_cast<size_t>(at)].axis;
          moves = moves || (by == Tiles::all ? axis >= 0 : axis == last);
          elements *= desc.dims[d];
        }
        if (!moves) sum += static_cast<int64_t>(bytes_for(desc.dtype, elements));
      }
    }
    return sum;
  }

 private:
  int64_t piece(const Region::Local& local, const std::vector<int64_t>& extents) const {
    const logical_tensor& desc = p_.buffers[static_cast<size_t>(local.buffer)].desc;
    int64_t n = 1;
    for (int d = 0; d < desc.rank(); ++d) n *= local.tiled[static_cast<size_t>(d)].of(desc.dims[d], extents);
    return static_cast<int64_t>(bytes_for(desc.dtype, n));
  }

  const Program& p_;
  const Region& r_;
};

/// As many rows as fit, in parts of one size where that costs few rows, otherwise of nearly one size.
int64_t rows_of(int64_t extent, int64_t most) {
  for (int64_t rows = most / 16 * 16; rows >= std::max(kRows, most / 2); rows -= 16)
    if (extent % rows == 0) return rows;
  const int64_t parts = ceil_div(extent, std::max(most, kRows));
  return std::min(extent, ceil_div(ceil_div(extent, parts), 16) * 16);
}

/// Whether the tile axis cuts matrices, rather than telling them apart.
bool is_matrix_axis(const Program& program, const Region& region, int axis) {
  for (size_t i = 0; i < region.steps.size(); ++i) {
    const Problem& p = program.steps[region.steps[i]].problem;
    if (p.step != StepKind::matmul) continue;
    const auto rank = static_cast<size_t>(p.out[0].dims.size());
    if (region.tiled[i][rank - 2].axis == axis || region.tiled[i][rank - 1].axis == axis) return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<int64_t>> tiling_of(const Program& program, const Region& region) {
  const Sizes sizes(program, region);
  std::vector<int64_t> whole;
  for (const auto& axis : region.axes) whole.push_back(axis.extent);
  if (sizes.alive(whole) < kWorthTiles) return std::nullopt;
  const size_t last = region.axes.size() - 1;
  std::vector<int64_t> extents(region.axes.size(), 1);
  const bool accumulates = region.accumulates(program);
  const int64_t budget = accumulates ? cache_share() / 4 : cache_bytes() / 2, extent = region.axes[last].extent;
  const bool rows = is_matrix_axis(program, region, static_cast<int>(last));
  if (rows) {
    const int64_t others = sizes.tiles(extents) / extent;
    int64_t most = sizes.reach(extents, last, budget);
    if (!accumulates)
      most = std::min(most, ceil_div(extent * others, kWantedTiles));
    else if (others > 1)
      most = std::min(extent, std::max(most, kSummedRows));
    else  // one thread would have all tiles
      most = extent;
    extents[last] = rows_of(extent, most);
  }
  // small matrices: several of them in one tile; of a matrix cut along both axes, some rows
  for (size_t c = region.axes.size(); c-- > 0;) {
    if (rows && (c == last || extents[last] < extent)) continue;
    const bool cuts = is_matrix_axis(program, region, static_cast<int>(c));
    for (int64_t n = region.axes[c].extent; n > (cuts ? kRows - 1 : 1); --n) {
      if (region.axes[c].extent % n != 0) continue;
      std::vector<int64_t> larger = extents;
      larger[c] = n;
      if (sizes.alive(larger) > budget / 2 || sizes.tiles(larger) < kWantedTiles) continue;
      extents = larger;
      break;
    }
    if (cuts && extents[c] < std::min(kRows, region.axes[c].extent)) return std::nullopt;
    if (extents[c] < region.axes[c].extent) break;  // so that a tile is a run of elements where axes are in order
  }
  if (sizes.tiles(extents) < 2) return std::nullopt;
  // Keys and values of a head are read again by each of its tiles, which is little beside multiplying many rows with
  // them.
  const int64_t parts = ceil_div(extent, extents[last]), between = sizes.local_bytes();
  if (extents[last] < kRows && sizes.repeated(Sizes::Tiles::of_last_axis) * (parts - 1) > between) return std::nullopt;
  // Weights that do not stay in the cache are read again by all tiles; a whole product packs them once.
  const int64_t weights = sizes.repeated(Sizes::Tiles::all);
  if (weights > cache_bytes() && weights * (parts - 1) > between && between < kTooLarge * weights) return std::nullopt;
  return extents;
}

namespace {

/// What the steps of a region around sums read and write, of tensors that are cut with the tiles.
class Traffic {
 public:
  Traffic(const Program& p, const Region& r) : r_(r) {
    std::map<int, bool> waits;  // of what is read, whether more than one step does or it waits for sums
    for (size_t i = 0; i < r.steps.size(); ++i) {
      const Step& step = p.steps[r.steps[i]];
      const bool behind = waits_for_sums(step);
      for (int b : step.in) {
        const auto [known, first] = waits.emplace(b, behind);
        if (!first) known->second = true;
      }
      for (size_t k = 0; k < step.out.size(); ++k)
        if (behind || fold_of_output(step.problem.back, k) != Fold::none) sums_.insert(step.out[k]);
    }
    for (size_t i = 0; i < r.steps.size(); ++i) {
      const Step& step = p.steps[r.steps[i]];
      const auto joins = [&](int b) { return r.local_of(b) && !waits.at(b); };  // never in memory
      for (size_t k = 0; k < step.in.size(); ++k)
        if (!joins(step.in[k]))
          kept_bytes_ += add(step.in[k], step.problem.in[k], r.walks[i].in[k], r.tiled[i], waits_for_sums(step));
      for (size_t k = 0; k < step.out.size(); ++k) {
        if (joins(step.out[k])) continue;
        const int64_t made = add(step.out[k], step.problem.out[k], r.walks[i].out[k], r.tiled[i], false);
        if (waits.count(step.out[k])) kept_bytes_ += made;
      }
    }
  }

  /// Of all tiles.
  int64_t bytes() const { return bytes_; }
  /// The same without results that nobody here reads: they go past the caches.
  int64_t kept_bytes() const { return kept_bytes_; }
  /// The shortest run of bytes that belongs to one index of the tile axis.
  int64_t run() const { return run_; }
  /// Whether some large tensor is read before there are sums and, by what waits for them, again.
  bool reads_again() const { return reads_again_; }

 private:
  /// Bytes that were not known before.
  int64_t add(int buffer, const TensorDesc& desc, const std::vector<int>& walked, const std::vector<TileCut>& tiled,
              bool behind) {
    if (buffer == Step::kNoBuffer) return 0;
    int64_t places = 1, stride = 0;
    for (int d = 0; d < desc.dims.size(); ++d) {
      if (desc.strides[d] == 0) continue;
      places *= desc.dims[d];
      const int at = walked[static_cast<size_t>(d)];
      if (at >= 0 && tiled[static_cast<size_t>(at)].axis >= 0) stride = desc.strides[d];
    }
    if (places <= r_.axes[0].extent) return 0;  // a number for each index
    if (!seen_.insert(buffer).second) {
      reads_again_ = reads_again_ || behind;
      return 0;
    }
    const auto bytes = static_cast<int64_t>(bytes_for(desc.dtype, places));
    bytes_ += bytes;
    run_ = std::min(run_, static_cast<int64_t>(bytes_for(desc.dtype, stride)));
    return bytes;
  }

  bool waits_for_sums(const Step& step) const {
    return std::any_of(step.in.begin(), step.in.end(), [&](int b) { return sums_.count(b) > 0; });
  }

  const Region& r_;
  std::set<int> seen_, sums_;  // buffers: large ones; sums, and what is made of them
  int64_t bytes_ = 0, kept_bytes_ = 0, run_ = INT64_MAX;
  bool reads_again_ = false;
};

}  // namespace

std::optional<std::vector<int64_t>> tiling_of_sums(const Program& program, const Region& region) {
  if (region.axes.size() != 1) return std::nullopt;
  const Traffic traffic(program, region);
  const int64_t extent = region.axes[0].extent, each = traffic.kept_bytes() / extent;
  if (!traffic.reads_again() || !leaves_the_caches(traffic.bytes()) || each == 0) return std::nullopt;
  // Streaming stores want tiles of whole cache lines.
  int64_t together = 1;
  while (together * traffic.run() % kLine != 0) ++together;
  const int64_t most = std::min(cache_share() / each, std::max(extent / kManyTiles, together));
  for (int64_t n = most / together * together; n > 0; n -= together)
    if (extent % n == 0 && extent / n >= kWantedTiles && n * traffic.run() >= kLeastRun) return std::vector<int64_t>{n};
  return std::nullopt;
}

}  // namespace partita
