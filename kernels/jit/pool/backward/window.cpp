// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of whole windows, and the walk over rows of windows.
#include "kernels/jit/pool/backward/window.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/backward/window_halves.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostTaps = 64;        ///< that a kernel spells out
constexpr int64_t kMostInterleaved = 6;  ///< cells of a window along x, where vectors go along x
constexpr int64_t kLeastElements = 8;    ///< of a row, where vectors go along x
constexpr int64_t kLeastPlanes = 16;     ///< each of which makes sums of its own
constexpr size_t kMostStreams = 64;
constexpr size_t kJoinedStreams = 3 * JoinedStores::kMostOutputs;

/// Every cell belongs to exactly one window, and windows weigh the same.
bool covers_once(const PoolPlan& p) {
  return p.g.tiles_source() && (p.maximum || (p.same_along_x && p.same_along_rows));
}

/// Elements along x are next to each other, or all of them are the same one.
bool joined(const PoolPlan& p, const PoolOperand& o) {
  const int64_t each = element_bytes(o.dtype), inner = WindowKernel::inner_of(p);
  if (inner == 1) return o.x == each || o.x == 0;
  return (o.c == each && o.x == each * inner) || (o.c == 0 && o.x == 0);
}

/// Vectors of sums are those of one channel each.
bool folds_fit(const PoolPlan& p) {
  if (!p.has_folds() || !WindowKernel::along_x(p)) return true;
  return WindowKernel::inner_of(p) == 1 && p.g.batch * p.g.channels * p.g.dst[0] >= kLeastPlanes;
}

/// Rows of cells that are no whole cache lines are joined where that can be. Of 16 bits it costs more than pieces do.
bool joins_rows(const PoolPlan& p, Isa isa) {
  const int piece = WindowKernel::streamed_piece(isa, p), least = bits_of(p.out[0].dtype) == 16 ? 16 : kCacheLine;
  return piece < least && WindowKernel::joins(isa, p) && rows_follow(isa, p.out, p.g.src[2], p.g.src[1], false);
}

/// Whether cells come from memory: of what is only summed up, what is read tells.
bool cells_exceed_cache(const PoolPlan& p, const Problem& problem) {
  return exceeds_cache(problem) || std::ranges::any_of(p.back_in, [&](int k) {
           return leaves_the_caches(bytes_of_places(problem.in[static_cast<size_t>(k)]));
         });
}

/// Past the caches, those that are stored in lines wherever rows begin; else 0.
int64_t rows_in_lines(const PoolPlan& p, const Problem& problem, const Target& target) {
  if (!exceeds_cache(problem) || !WindowHalvesKernel::fits(p, problem, target.isa)) return 0;
  return WindowHalvesKernel::rows_together(p);
}

bool fits_along_x(const PoolPlan& p, const Problem& problem, const Target& target) {
  if (p.g.dst[2] * WindowKernel::inner_of(p) < kLeastElements || p.g.kernel[2] > kMostInterleaved) return false;
  // Rows that cannot be streamed go through tiles, which can.
  if (exceeds_cache(problem) && WindowKernel::streamed_piece(target.isa, p) == 0 && !joins_rows(p, target.isa) &&
      rows_in_lines(p, problem, target) == 0)
    return false;
  const auto fits = [&](int k) { return joined(p, p.in[static_cast<size_t>(k)]); };
  return (!p.maximum || fits(0)) && std::ranges::all_of(p.front_in, fits) && std::ranges::all_of(p.back_in, fits) &&
         std::ranges::all_of(p.out,
                             [&](const PoolOperand& o) { return joined(p, o) && (o.x != 0 || o.fold != Fold::none); });
}

}  // namespace

bool WindowPool::fits(const Problem& problem, const Target& target) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (!covers_once(p) || p.tap_rows() * g.kernel[2] > kMostTaps || WindowKernel::streams_of(p) > kMostStreams)
    return false;
  if (p.indices >= 0 && !p.fits_indices()) return false;
  if (!folds_fit(p) || (WindowKernel::along_x(p) && !fits_along_x(p, problem, target))) return false;
  // Cells of a window are reached by immediate numbers.
  const auto near = [&](const PoolOperand& o) { return std::abs(o.x) * g.kernel[2] < INT32_MAX / 2; };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near);
}

bool WindowPool::fits_halves(const Problem& problem, const Target& target) {
  return fits(problem, target) && WindowHalvesKernel::fits(PoolPlan(problem), problem, target.isa);
}

WindowPool::WindowPool(const Problem& problem, const Target& target)
    : p_(problem),
      threads_(std::max(1, target.threads)),
      folds_(problem, p_, target, p_.g.batch * planes() * p_.g.dst[0] * (WindowKernel::along_x(p_) ? 1 : p_.g.dst[1]),
             0) {
  const bool halves = WindowHalvesKernel::fits(p_, problem, target.isa);
  const auto kernel = [&](const WindowStores& stores) -> std::function<void(const WindowCall&)> {
    if (halves)
      return
          [made = std::make_shared<const WindowHalvesKernel>(p_, problem, stores)](const WindowCall& c) { (*made)(c); };
    return [made = std::make_shared<const WindowKernel>(target.isa, p_, problem, stores)](const WindowCall& c) {
      (*made)(c);
    };
  };
  const int64_t in_lines = rows_in_lines(p_, problem, target);
  const bool lines = in_lines > 0, large = cells_exceed_cache(p_, problem);
  rows_together_ = std::max<int64_t>(1, in_lines);
  kernel_ = kernel({.lines = lines, .large = large});
  if (!exceeds_cache(problem)) return;
  element_bytes_ = element_bytes(p_.out[0].dtype);
  together_ = JoinedStores::together(target.isa, element_bytes_);
  joined_ = WindowKernel::along_x(p_) && joins_rows(p_, target.isa);
  const int piece = lines ? kCacheLine : WindowKernel::streamed_piece(target.isa, p_);
  const WindowStores stores{.piece = joined_ ? 0 : piece, .joined = joined_, .lines = lines, .large = true};
  if (joined_ || piece > 0) streaming_ = kernel(stores);
}

bool WindowPool::from_indices(const RunArgs& args) const {
  std::atomic<int64_t> found = 0;
  run_all(args, &found);
  return found == p_.g.batch * p_.g.channels * elements(p_.g.dst);
}

void WindowPool::run_all(const RunArgs& args, std::atomic<int64_t>* found) const {
  const PoolGeometry& g = p_.g;
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t together = WindowKernel::along_x(p_) ? g.dst[1] : 1;
  // What is folded of a plane is one number.
  const int64_t unit = folds_.any() ? together : rows_together_,
                units = g.batch * planes() * g.dst[0] * g.dst[1] / unit;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::array<int32_t, kMostLanes> counts{};
    for (int64_t row = begin * unit; row < end * unit;) {
      const int64_t y = row % g.dst[1], z = row / g.dst[1] % g.dst[0], c = row / g.dst[1] / g.dst[0] % planes();
      const int64_t rows = std::min({end * unit - row, g.dst[1] - y, together});
      const Place at{row / g.dst[1] / g.dst[0] / planes(), c, z, y, rows};
      folds.unit(row / unit, [&](const RunArgs& to) { run(to, streaming, at, counts.data()); });
      row += rows;
    }
    if (found != nullptr) *found += std::accumulate(counts.begin(), counts.end(), int64_t{0});
    if (streaming) end_streaming();
  };
  parallel_for(units, unit * g.src[2] * (g.channels / planes()) * p_.tap_rows(), part, threads_);
  folds_.finish(args);
}

void WindowPool::run(const RunArgs& args, bool streaming, const Place& at, int32_t* counts) const {
  const PoolGeometry& g = p_.g;
  const auto& kernel = streaming ? streaming_ : kernel_;
  std::array<const void*, kMostStreams + kJoinedStreams> addresses;
  size_t count = 0;
  const auto each_row = [&](auto add) {
    for (int64_t a = 0; a < g.kernel[0]; ++a)
      for (int64_t b = 0; b < g.kernel[1]; ++b) add(at.z * g.strides[0] + a, at.y * g.strides[1] + b);
  };
  if (p_.indices >= 0) {
    const auto o = static_cast<size_t>(p_.indices);
    const int64_t cell = (at.z * g.strides[0] * g.src[1] + at.y * g.strides[1]) * g.src[2];
    addresses[count++] = p_.in[o].at(args.in[o], at.n, at.c, at.z, at.y, 0);
    addresses[count++] = reinterpret_cast<const void*>(p_.base.first(at.n, at.c) + cell * p_.base.cell);
  } else if (p_.maximum) {
    each_row([&](int64_t z, int64_t y) { addresses[count++] = p_.in[0].at(args.in[0], at.n, at.c, z, y, 0); });
  }
  for (int k : p_.front_in) {
    const auto o = static_cast<size_t>(k);
    addresses[count++] = p_.in[o].at(args.in[o], at.n, at.c, at.z, at.y, 0);
  }
  each_row([&](int64_t z, int64_t y) {
    for (int k : p_.back_in) {
      const auto o = static_cast<size_t>(k);
      addresses[count++] = p_.in[o].at(args.in[o], at.n, at.c, z, y, 0);
    }
  });
  each_row([&](int64_t z, int64_t y) {
    for (size_t o = 0; o < p_.out.size(); ++o) addresses[count++] = p_.out[o].at(args.out[o], at.n, at.c, z, y, 0);
  });
  WindowCall call{addresses.data(), WindowKernel::along_x(p_) ? at.rows / rows_together_ : g.dst[2], counts};
  if (!joined_ || !streaming) return kernel(call);
  std::array<void*, JoinedStores::kMostOutputs> out;
  for (size_t o = 0; o < p_.out.size(); ++o)
    out[o] = const_cast<std::byte*>(p_.out[o].at(args.out[o], at.n, at.c, at.z * g.strides[0], at.y * g.strides[1], 0));
  const JoinedCall rows({out.data(), p_.out.size()}, element_bytes_, together_, at.rows * g.strides[1] * g.src[2]);
  for (size_t o = 0; o < p_.out.size(); ++o) {
    const JoinedPlace& place = rows.places()[o];
    for (std::byte* address : {place.current, place.next, place.rest}) addresses[count++] = address;
  }
  call.pending = rows.pending();
  kernel(call);
  rows.finish();
}

}  // namespace partita::jit
