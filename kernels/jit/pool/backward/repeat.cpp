// SPDX-License-Identifier: Apache-2.0
// What is repeated, and how it is cut: windows and cells that follow each other in memory make units of whole cache
// lines.
#include "kernels/jit/pool/backward/repeat.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kEnoughVectors = 32;  ///< of a unit's cells: gradients are kept for so many at least
constexpr size_t kMostOperands = 16;

/// Windows of a row, or of all rows of a volume's slice where cells of one window lie in several slices.
int64_t least_windows(const PoolGeometry& g) { return g.dst[2] * (g.kernel[0] > 1 ? g.dst[1] : 1); }

int64_t all_windows(const PoolGeometry& g) { return g.batch * g.channels * elements(g.dst); }

/// The window of each cell of `windows` windows.
std::vector<int32_t> windows_of_cells(const PoolGeometry& g, int64_t windows) {
  const int64_t rows = g.kernel[0] > 1 ? g.dst[1] : 1;  // below each other in a slice
  const int64_t width = g.dst[2] * g.kernel[2], height = rows * g.kernel[1];
  std::vector<int32_t> cells;
  for (int64_t slice = 0; slice < windows / (rows * g.dst[2]) * g.kernel[0]; ++slice)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        cells.push_back(
            static_cast<int32_t>((slice / g.kernel[0] * rows + y / g.kernel[1]) * g.dst[2] + x / g.kernel[2]));
  return cells;
}

/// Windows of a unit: its cells are whole cache lines, as long as there are enough.
int64_t unit_windows(const PoolGeometry& g, Dtype dtype) {
  const int64_t least = least_windows(g), together = RepeatKernel::together(dtype);
  const int64_t cells = least * elements(g.kernel);
  const int64_t whole = together / std::gcd(cells, together), vectors = whole * cells / together;
  const int64_t units = whole * std::max<int64_t>(1, kEnoughVectors / vectors);
  return least * std::min(units, all_windows(g) / least);
}

/// Whether nothing is computed behind: results are the gradients, or zero where elements of their type are not
/// positive.
bool chooses(const PoolPlan& p, const Problem& problem) {
  if (p.stores_alone()) return true;
  if (p.out.size() != 1) return false;
  const auto is_like_result = [&](int k) {
    const TensorDesc& in = problem.in[static_cast<size_t>(k)];
    return in.dtype == p.out[0].dtype && in.dims == problem.out[0].dims && is_dense(in.dims, in.strides);
  };
  const bool of_one_type = problem.in[static_cast<size_t>(front_port(problem.step))].dtype == p.out[0].dtype;
  return of_one_type && std::ranges::all_of(p.back_in, is_like_result) && choices_of(p, problem).has_value();
}

}  // namespace

bool RepeatPool::fits(const Problem& problem, const Target& target) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (target.isa != Isa::avx512 || p.maximum || p.channel_last || p.has_folds()) return false;
  // One number for a whole plane is as fast elsewhere.
  if (!g.tiles_source() || g.covers_all() || !p.same_along_x || !p.same_along_rows || !chooses(p, problem))
    return false;
  const Dtype dtype = p.out[0].dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::bf16 && dtype != Dtype::f16) return false;
  const auto in_order = [&](int k) {
    const TensorDesc& in = problem.in[static_cast<size_t>(k)];
    return elements(in.dims) == all_windows(g) && is_dense(in.dims, in.strides);
  };
  if (p.front_in.size() + p.back_in.size() > kMostOperands || !std::ranges::all_of(p.front_in, in_order)) return false;
  if (!is_dense(problem.out[0].dims, problem.out[0].strides)) return false;
  const int64_t windows = unit_windows(g, dtype);
  if (windows == 0 || windows > RepeatKernel::kMostWindows ||
      windows * elements(g.kernel) > RepeatKernel::kMostVectors * RepeatKernel::together(dtype))
    return false;
  return RepeatKernel::fits(windows_of_cells(g, windows), dtype);
}

RepeatPool::RepeatPool(const Problem& problem, const Target& target)
    : p_(problem), threads_(std::max(1, target.threads)), windows_(unit_windows(p_.g, p_.out[0].dtype)) {
  const int64_t all = all_windows(p_.g), rest = all % windows_;
  units_ = all / windows_;
  const std::vector<int32_t> cells = windows_of_cells(p_.g, windows_);
  const auto kernel = [&](int64_t windows, bool streaming) {
    RepeatUnit unit{windows, cells, streaming};
    unit.cells.resize(static_cast<size_t>(windows * elements(p_.g.kernel)));
    return std::make_unique<const RepeatKernel>(p_, problem, unit);
  };
  const bool whole = std::ssize(cells) % RepeatKernel::together(p_.out[0].dtype) == 0;
  plain_ = kernel(windows_, false);
  if (whole && exceeds_cache(problem) && p_.out[0].offset % kCacheLine == 0) streaming_ = kernel(windows_, true);
  if (rest > 0) rest_ = kernel(rest, false);
}

Status RepeatPool::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const RepeatKernel& kernel = streaming ? *streaming_ : *plain_;
  const auto part = [&](int64_t begin, int64_t end) {
    run(args, kernel, begin * windows_, end - begin);
    if (streaming) end_streaming();
  };
  parallel_for(units_, windows_ * elements(p_.g.kernel), part, threads_);
  if (rest_) run(args, *rest_, units_ * windows_, 1);
  return {};
}

/// `units` units from window `first` on.
void RepeatPool::run(const RunArgs& args, const RepeatKernel& kernel, int64_t first, int64_t units) const {
  std::array<const void*, kMostOperands + 1> addresses;
  size_t count = 0;
  const auto add = [&](const PoolOperand& o, const void* base, int64_t element) {
    addresses[count++] = o.at(base, 0, 0, 0, 0, 0) + element * element_bytes(o.dtype);
  };
  for (int k : p_.front_in) add(p_.in[static_cast<size_t>(k)], args.in[static_cast<size_t>(k)], first);
  add(p_.out[0], args.out[0], first * elements(p_.g.kernel));
  for (int k : p_.back_in)
    add(p_.in[static_cast<size_t>(k)], args.in[static_cast<size_t>(k)], first * elements(p_.g.kernel));
  kernel({addresses.data(), units});
}

}  // namespace partita::jit
