// SPDX-License-Identifier: Apache-2.0
// Forward poolings tile by tile: fold, take apart, combine (plan.hpp says what these are).
#include "kernels/jit/pool/forward/forward.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/channel_last.hpp"
#include "kernels/jit/pool/average/plane.hpp"
#include "kernels/jit/pool/forward/global.hpp"
#include "kernels/jit/pool/forward/kernels.hpp"
#include "kernels/jit/pool/forward/taps.hpp"
#include "kernels/jit/pool/indices/indices.hpp"
#include "kernels/jit/pool/picked.hpp"
#include "kernels/jit/pool/turned.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 128;

/// Rows [row, row + rows) of planes [plane, plane + planes) of a batch item.
struct Tile {
  int64_t n, plane, planes, row, rows;
};

class PoolForward {
 public:
  PoolForward(const Problem& problem, const Target& target)
      : plan_(problem),
        kernels_(plan_, target.isa),
        threads_(std::max(1, target.threads)),
        scratch_(threads_, plan_.scratch_floats() * static_cast<int64_t>(sizeof(float))),
        identity_(plan_.p.g.maximum ? -std::numeric_limits<float>::infinity() : 0.0f) {}
  PoolForward(const PoolForward&) = delete;
  PoolForward& operator=(const PoolForward&) = delete;

  size_t scratch_bytes() const { return scratch_.bytes(); }

  Status operator()(const RunArgs& args) const {
    const bool streaming = plan_.may_stream && outputs_aligned(args);
    const int64_t units = plan_.units();
    const auto part = [&](int64_t begin, int64_t end, int number) {
      const Work work{args, scratch_.share<float>(args.scratch, number), streaming};
      std::fill_n(work.folded, plan_.folded_floats, identity_);
      for (int64_t unit = begin; unit < end; ++unit) run(work, tile(unit));
      if (streaming) end_streaming();
    };
    parallel_for(units, plan_.source_elements / units, part, threads_);
    return {};
  }

 private:
  struct Work {
    const RunArgs& args;
    float* folded;
    bool streaming;
  };
  using FoldWalk = ForwardPlan::FoldWalk;

  Tile tile(int64_t unit) const {
    const int64_t row = unit % plan_.row_blocks * plan_.tile_rows;
    const int64_t plane = unit / plan_.row_blocks % plan_.plane_blocks * plan_.tile_planes;
    return {unit / plan_.row_blocks / plan_.plane_blocks, plane, std::min(plan_.tile_planes, plan_.planes - plane), row,
            std::min(plan_.tile_rows, plan_.rows - row)};
  }

  void run(const Work& work, const Tile& t) const {
    if (plan_.fold_walk == FoldWalk::planes)
      for (int64_t row = 0; row < t.rows; ++row) fold(work, t.n, t.plane, t.row + row, t.planes, folded(work, 0, row));
    else
      for (int64_t plane = 0; plane < t.planes; ++plane) fold_plane(work, t, plane);
    if (plan_.p.g.channel_last) {
      for (int64_t row = 0; row < t.rows; ++row)
        combine(work, folded(work, 0, row), t.n, 0, t.row + row, plan_.p.g.dst[2]);
      return;
    }
    float* places = work.folded;
    if (plan_.apart) {
      const int64_t floats = ((t.planes - 1) * plan_.tile_rows + t.rows) * plan_.row_floats;
      places += plan_.folded_floats;
      (*kernels_.take_apart)(work.folded, places, (floats + kernels_.apart_length - 1) / kernels_.apart_length);
    }
    if (plan_.rows_join) return combine(work, places, t.n, t.plane, t.row, t.planes * t.rows);
    for (int64_t plane = 0; plane < t.planes; ++plane)
      for (int64_t row = 0, count = 0; row < t.rows; row += count) {
        const int64_t y = (t.row + row) % plan_.p.g.dst[1];
        count = std::min(plan_.p.g.dst[1] - y, t.rows - row);
        combine(work, places + (plane * plan_.tile_rows + row) * plan_.combined_row_floats, t.n, t.plane + plane,
                t.row + row, count);
      }
  }

  float* folded(const Work& work, int64_t plane, int64_t row) const {
    return work.folded + (plane * plan_.tile_rows + row) * plan_.row_floats;
  }

  void fold_plane(const Work& work, const Tile& t, int64_t plane) const {
    for (int64_t row = 0, count = 0; row < t.rows; row += count) {
      const int64_t y = (t.row + row) % plan_.p.g.dst[1];
      count = std::min(plan_.alike_until[static_cast<size_t>(y)] - y, t.rows - row);
      if (plan_.fold_walk == FoldWalk::cells) count = 1;
      fold(work, t.n, t.plane + plane, t.row + row, count, folded(work, plane, row));
    }
  }

  /// Folds the source rows under row `row` of the result and under `count` - 1 rows or planes behind it.
  void fold(const Work& work, int64_t n, int64_t plane, int64_t row, int64_t count, float* to) const {
    const PoolGeometry& g = plan_.p.g;
    const int64_t z = row / g.dst[1], y = row % g.dst[1];
    const PoolGeometry::Taps tz = plan_.z_taps[static_cast<size_t>(z)], ty = plan_.y_taps[static_cast<size_t>(y)];
    int64_t left = plan_.source_rows(z, y);
    if (left == 0) return clear(count, to);
    if (plan_.fold_walk == FoldWalk::sources) return fold_sources(work, n, to);
    void* out = to + plan_.first_place * plan_.cell;
    if (plan_.fold_walk == FoldWalk::cells) count = g.src[2];
    std::array<const void*, kMaxOperands> in;
    size_t k = 0;
    int64_t held = 0;
    bool first = true;
    for (int64_t a = tz.begin; a < tz.end; ++a)
      for (int64_t b = ty.begin; b < ty.end; ++b) {
        for (int operand : plan_.p.front_in)
          in[k++] = plan_.p.in[static_cast<size_t>(operand)].at(work.args.in[static_cast<size_t>(operand)], n, plane,
                                                                g.cell(0, z, a), g.cell(1, y, b), 0);
        --left;
        if (++held < plan_.fold_rows && left > 0) continue;
        const auto& kernel = (first ? kernels_.fold_first : kernels_.fold_further)[static_cast<size_t>(held)];
        (*kernel)({in.data(), &out, nullptr, count});
        k = 0;
        held = 0;
        first = false;
      }
  }

  /// One window over all source rows.
  void fold_sources(const Work& work, int64_t n, float* to) const {
    clear(1, to);
    void* out = to;
    const int64_t rows = plan_.p.g.src[1], blocks = rows / plan_.fold_rows;
    const auto call = [&](int64_t source_rows, int64_t from, int64_t count) {
      std::array<const void*, kMaxOperands> in;
      size_t k = 0;
      for (int64_t row = from; row < from + source_rows; ++row)
        for (int operand : plan_.p.front_in)
          in[k++] =
              plan_.p.in[static_cast<size_t>(operand)].at(work.args.in[static_cast<size_t>(operand)], n, 0, 0, row, 0);
      (*kernels_.fold_further[static_cast<size_t>(source_rows)])({in.data(), &out, nullptr, count});
    };
    call(plan_.fold_rows, 0, blocks);
    if (rows % plan_.fold_rows > 0) call(rows % plan_.fold_rows, blocks * plan_.fold_rows, 1);
  }

  /// Windows without cells along z or y.
  void clear(int64_t count, float* to) const {
    const int64_t step = plan_.row_floats * (plan_.fold_walk == FoldWalk::planes ? plan_.tile_rows : 1);
    for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * step, plan_.row_floats, identity_);
  }

  /// Makes `count` rows of the combination's results from folded rows, or from their phases, at `places`.
  void combine(const Work& work, const float* places, int64_t n, int64_t plane, int64_t row, int64_t count) const {
    const ForwardPool& p = plan_.p;
    const int64_t z = row / p.g.dst[1], y = row % p.g.dst[1];
    std::array<const void*, kMaxOperands> in;
    std::array<void*, kMaxOperands> out;
    size_t k = 0;
    for (int operand : p.back_in)
      in[k++] = p.in[static_cast<size_t>(operand)].at(work.args.in[static_cast<size_t>(operand)], n, plane, z, y, 0);
    if (plan_.numbers == ForwardPlan::Numbers::each) {
      in[k++] = plan_.x_numbers.data();
      in[k++] = plan_.row_numbers.data() + row;
    }
    for (size_t o = 0; o < p.out.size(); ++o)
      out[o] = const_cast<std::byte*>(p.out[o].at(work.args.out[o], n, plane, z, y, 0));
    const void* source = places;
    (work.streaming ? *kernels_.combine_streaming : *kernels_.combine)({&source, in.data(), out.data(), count});
  }

  ForwardPlan plan_;
  ForwardKernels kernels_;
  int threads_;
  ThreadScratch scratch_;
  float identity_;
};

/// Windows that move by one cell over narrow rows: of volumes, whose rows are folded most often, of images of one row,
/// and of planes where these are narrower still. Apart, windows are few beside the cells that would be turned; without
/// the kernels that pick theirs, rows of no more than one vector of windows take still longer as they lie.
bool is_turned(const ForwardPool& p, Isa isa) {
  const PoolGeometry& g = p.g;
  if (g.channel_last) return false;
  if (isa != Isa::avx512 && g.strides[2] > 1 && g.strides[2] <= g.kernel[2] && g.dst[2] <= lanes_of(isa)) return true;
  if (g.strides != Dims({1, 1, 1})) return false;
  const int64_t least_width = g.kernel[0] > 1 || g.src[1] == 1 ? 32 : g.maximum ? 8 : 16;
  return g.dst[2] < least_width;
}

}  // namespace

const char* refuse_pool_forward(const Problem& problem, const Target&) {
  return has_indices(problem) ? refuse_pool_indices(problem) : refuse_forward_plan(problem);
}

std::optional<Problem> turned_forward_group(const Problem& problem, Isa isa) {
  if (!is_turned(forward_pool(problem), isa)) return std::nullopt;
  auto group = TurnedPool::of_group(problem);
  return group && refuse_forward_plan(*group) == nullptr ? std::move(group) : std::nullopt;
}

Result<Run> make_pool_forward(const Problem& problem, const Target& target) {
  if (has_indices(problem)) return make_pool_indices(problem, target);
  const ForwardPool pool = forward_pool(problem);
  if (GlobalPool::fits(pool)) return run_of<GlobalPool>(problem, target);
  if (AveragePlanePool::fits(problem)) return run_of<AveragePlanePool>(problem, target);
  if (PickedPool::fits(problem, target.isa)) return run_of<PickedPool>(problem, target);
  if (AverageLastPool::fits(problem)) return run_of<AverageLastPool>(problem, target);
  if (TapPool::fits(pool)) return run_of<TapPool>(problem, target);
  if (const auto group = turned_forward_group(problem, target.isa))
    return make_turned(problem, *group, target, make_pool_forward);
  return run_of<PoolForward>(problem, target);
}

}  // namespace partita::jit
