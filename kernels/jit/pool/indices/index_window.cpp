// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of maxima with indices, how its results are stored, and the walk over rows of windows.
#include "kernels/jit/pool/indices/index_window.hpp"

#include <algorithm>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostTaps = 36;
constexpr int64_t kLeastElements = 8;  ///< channels, or windows along x
constexpr size_t kMostStreams = 96;

/// The source is read as it is.
bool plain_front(const PoolPlan& p) {
  return p.front.code.size() == 1 && p.front_in == std::vector<int>{0} && is_plain_float(p.in[0].dtype);
}

/// Results of the back expression.
bool all_maxima(const PoolPlan& p, const auto& holds) {
  for (size_t k = 0; k < p.out.size(); ++k)
    if (k != IndexKernel::kIndices && !holds(p.out[k])) return false;
  return true;
}

/// The vectors' elements are neighbours, and what is reached by immediate numbers lies near enough.
bool fits_operands(const PoolPlan& p) {
  const int64_t far = p.span(2) + p.g.pads_begin[2] + p.g.strides[2];
  const auto neighbours = [&](const PoolOperand& o) {
    return (p.channel_last ? o.c : o.x) == element_bytes(o.dtype) && std::abs(o.x) * far < INT32_MAX / 2;
  };
  const auto repeats = [&](const PoolOperand& o) { return (p.channel_last ? o.c : o.x) == 0; };
  return neighbours(p.in[0]) && std::ranges::all_of(p.out, neighbours) && std::ranges::all_of(p.back_in, [&](int k) {
           const PoolOperand& o = p.in[static_cast<size_t>(k)];
           return repeats(o) || neighbours(o);
         });
}

/// Results but for the indices.
bool maxima_follow(const PoolPlan& p, Isa isa) {
  std::vector<PoolOperand> maxima = p.out;
  maxima.erase(maxima.begin() + IndexKernel::kIndices);
  return rows_follow(isa, maxima, p.g.dst[2], p.g.dst[1], false);
}

/// How large results are stored.
IndexStores stores_of(const PoolPlan& p, Isa isa) {
  IndexStores stores;
  const PoolOperand& indices = p.out[IndexKernel::kIndices];
  if (p.channel_last) {
    const auto streams = [&](const PoolOperand& o) { return PoolPlan::streams_cells(isa, o); };
    if (all_maxima(p, streams)) stores.maxima = kCacheLine;
    if (streams(indices)) stores.indices = kCacheLine;
    return stores;
  }
  stores.indices = p.streamed_piece(indices);
  stores.maxima = kCacheLine;
  all_maxima(p, [&](const PoolOperand& o) {
    stores.maxima = std::min(stores.maxima, p.streamed_piece(o));
    return true;
  });
  stores.joined = stores.maxima < kCacheLine && maxima_follow(p, isa);
  return stores;
}

}  // namespace

bool IndexWindowPool::fits(const Problem& problem, const Target& target) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (!plain_front(p) || !fits_operands(p)) return false;
  for (int i = 0; i < 3; ++i)
    if (!p.windows_have_cells(i)) return false;
  if (elements(g.kernel) > kMostTaps || IndexKernel::streams_of(p) > kMostStreams) return false;
  // Names are differences of indices.
  if (elements(g.src) * pool_index(problem.attrs, g).cell > INT32_MAX / 4) return false;
  if (p.channel_last) return g.channels >= kLeastElements;
  if (g.dst[2] < kLeastElements || g.strides[2] > IndexKernel::kMostStride || g.src[2] > INT32_MAX / 64) return false;
  // What cannot be streamed goes through tiles, which can.
  const IndexStores stores = stores_of(p, target.isa);
  return !exceeds_cache(problem) || stores.joined || stores.maxima > 0;
}

IndexWindowPool::IndexWindowPool(const Problem& problem, const Target& target)
    : IndexWindowPool(problem, target, exceeds_cache(problem)) {}

IndexWindowPool::IndexWindowPool(const Problem& problem, const Target& target, bool large)
    : p_(problem), base_(pool_index(problem.attrs, p_.g)) {
  const PoolGeometry& g = p_.g;
  if (large) stores_ = stores_of(p_, target.isa);
  element_bytes_ = element_bytes(p_.out[0].dtype);
  together_ = JoinedStores::together(target.isa, element_bytes_);
  for (int64_t z = 0; z < g.dst[0]; ++z)
    for (int64_t y = 0; y < g.dst[1]; ++y) {
      const PoolGeometry::Taps tz = g.taps(0, z), ty = g.taps(1, y);
      std::vector<TapRow> rows;
      for (int64_t a = tz.begin; a < tz.end; ++a)
        for (int64_t b = ty.begin; b < ty.end; ++b) rows.push_back({a, b});
      auto known = std::ranges::find(kernels_, rows, &Kernels::rows);
      if (known == kernels_.end()) {
        Kernels made{rows, std::make_shared<const IndexKernel>(target.isa, p_, problem, rows, IndexStores{}), nullptr};
        if (stores_.maxima > 0 || stores_.indices > 0 || stores_.joined)
          made.streaming = std::make_shared<const IndexKernel>(target.isa, p_, problem, rows, stores_);
        kernels_.push_back(std::move(made));
        known = kernels_.end() - 1;
      }
      kernel_of_.push_back(static_cast<size_t>(known - kernels_.begin()));
    }
}

Status IndexWindowPool::operator()(const RunArgs& args) const {
  const PoolGeometry& g = p_.g;
  const bool streaming = kernels_[0].streaming && outputs_aligned(args);
  const int64_t planes = p_.channel_last ? 1 : g.channels, rows = std::ssize(kernel_of_);
  const auto part = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end;) {
      const int64_t at = row % rows, plane = row / rows, y = at % g.dst[1];
      const size_t kernel = kernel_of_[static_cast<size_t>(at)];
      int64_t together = 1;
      if (!p_.channel_last)
        while (row + together < end && y + together < g.dst[1] &&
               kernel_of_[static_cast<size_t>(at + together)] == kernel)
          ++together;
      run(args, kernels_[kernel], streaming, {plane / planes, plane % planes, at / g.dst[1], y, together});
      row += together;
    }
    if (streaming) end_streaming();
  };
  const int64_t work = g.dst[2] * (g.channels / planes) * elements(g.kernel);
  parallel_for(g.batch * planes * rows, work, part);
  return {};
}

void IndexWindowPool::run(const RunArgs& args, const Kernels& kernels, bool streaming, const Place& at) const {
  const PoolGeometry& g = p_.g;
  std::array<const void*, kMostStreams> addresses;
  std::array<void*, JoinedStores::kMostOutputs> joined_out;
  size_t count = 0, results = 0;
  for (const TapRow& row : kernels.rows)
    addresses[count++] = p_.in[0].at(args.in[0], at.n, at.c, g.cell(0, at.z, row.z), g.cell(1, at.y, row.y), 0);
  for (int k : p_.back_in) {
    const auto o = static_cast<size_t>(k);
    addresses[count++] = p_.in[o].at(args.in[o], at.n, at.c, at.z, at.y, 0);
  }
  const bool joins = streaming && stores_.joined;
  for (size_t o = 0; o < p_.out.size(); ++o) {
    const std::byte* to = p_.out[o].at(args.out[o], at.n, at.c, at.z, at.y, 0);
    if (joins && o != IndexKernel::kIndices) joined_out[results++] = const_cast<std::byte*>(to);
    addresses[count++] = to;
  }
  const int64_t corner = (g.cell(0, at.z, 0) * g.src[1] + g.cell(1, at.y, 0)) * g.src[2] - g.pads_begin[2];
  addresses[count++] = reinterpret_cast<const void*>(base_.first(at.n, at.c) + corner * base_.cell);
  IndexCall call{addresses.data(), at.rows, 0};
  if (!joins) return (streaming ? *kernels.streaming : *kernels.plain)(call);
  const JoinedCall joined({joined_out.data(), results}, element_bytes_, together_, at.rows * g.dst[2]);
  for (size_t k = 0; k < results; ++k) {
    const JoinedPlace& place = joined.places()[k];
    for (std::byte* address : {place.current, place.next, place.rest}) addresses[count++] = address;
  }
  call.pending = joined.pending();
  (*kernels.streaming)(call);
  joined.finish();
}

}  // namespace partita::jit
