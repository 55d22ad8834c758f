// SPDX-License-Identifier: Apache-2.0
// Which gradients fit, and the walks over planes.
#include "kernels/jit/pool/backward/whole_plane.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/jit/pool/view.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kGradientPort = 1;
constexpr int64_t kMostNumbers = 1 << 16;  ///< of cells that integers of the elements' size count

/// Bytes from cell to cell; absent where cells do not follow each other evenly.
std::optional<int64_t> cell_step(const PoolPlan& p, const TensorDesc& desc) {
  return even_distance(pool_view(desc, p.channel_last), p.g.src);
}

/// Channel-first: planes of `cells` cells follow each other, of all examples.
bool has_even_planes(const PoolPlan& p, const PoolOperand& o, int64_t cells) {
  const int64_t plane = cells * element_bytes(p.in[0].dtype);
  return (p.g.channels == 1 || o.c == plane) && (p.g.batch == 1 || o.n == p.g.channels * plane);
}

}  // namespace

bool WholePlanePool::fits(const Problem& problem, const Target& target) {
  if (target.isa != Isa::avx512 || !problem.front.empty() || !problem.back.empty()) return false;
  const PoolPlan p(problem);
  const Dtype dtype = p.in[0].dtype;
  if (!RankCode::ranks(dtype) || p.in[kGradientPort].dtype != dtype || p.out[0].dtype != dtype) return false;
  const PoolOperand &src = p.in[0], &gradient = p.in[kGradientPort], &dst = p.out[0];
  const int64_t cells = elements(p.g.src), each = element_bytes(dtype);
  if (p.channel_last) {
    const auto has_even_channels = [&](const PoolOperand& o) { return p.g.channels == 1 || o.c == each; };
    return cells <= kMostNumbers && has_even_channels(src) && has_even_channels(gradient) && has_even_channels(dst) &&
           cell_step(p, problem.in[0]) && cell_step(p, problem.out[0]);
  }
  const auto has_even_cells = [&](const TensorDesc& desc) { return cells == 1 || cell_step(p, desc) == each; };
  return cells <= PlaneRowsKernel::kMostCells && has_even_cells(problem.in[0]) && has_even_cells(problem.out[0]) &&
         has_even_planes(p, src, cells) && has_even_planes(p, dst, cells) && has_even_planes(p, gradient, 1);
}

WholePlanePool::WholePlanePool(const Problem& problem, const Target& target)
    : p_(problem), threads_(std::max(1, target.threads)) {
  const Dtype dtype = p_.in[0].dtype;
  const PoolOperand& dst = p_.out[0];
  const bool large = exceeds_cache(problem);
  const int64_t cells = elements(p_.g.src);
  if (!p_.channel_last) {
    rows_ = std::make_shared<const PlaneRowsKernel>(dtype, cells, false);
    if (!large || !on_lines({dst.offset})) return;
    streamed_rows_ = std::make_shared<const PlaneRowsKernel>(dtype, cells, true);
    scratch_ = {threads_, static_cast<int64_t>(streamed_rows_->scratch_bytes())};
    return;
  }
  scratch_ = {threads_, PlaneColumnsKernel::kVectors * kCacheLine};
  const int64_t src_step = cell_step(p_, problem.in[0]).value(), dst_step = cell_step(p_, problem.out[0]).value();
  const int64_t together = PlaneColumnsKernel::kVectors * kCacheLine / element_bytes(p_.in[0].dtype);
  const auto lines = on_lines({dst.offset, dst.n, dst_step, p_.g.channels * element_bytes(p_.in[0].dtype)});
  const auto make = [&](int64_t channels, bool streaming) {
    return channels == 0 ? nullptr
                         : std::make_shared<const PlaneColumnsKernel>(
                               dtype, PlaneColumnsKernel::Shape{.cells = cells,
                                                                .src_step = src_step,
                                                                .dst_step = dst_step,
                                                                .channels = static_cast<int>(channels),
                                                                .streaming = streaming});
  };
  for (const bool streaming : {false, true}) {
    if (streaming && !(large && lines)) continue;
    columns_[streaming] = make(p_.g.channels < together ? 0 : together, streaming);
    last_columns_[streaming] = make(p_.g.channels % together, streaming);
  }
}

Status WholePlanePool::operator()(const RunArgs& args) const {
  p_.channel_last ? run_columns(args) : run_rows(args);
  return {};
}

void WholePlanePool::run_rows(const RunArgs& args) const {
  const int64_t planes = p_.g.batch * p_.g.channels, cells = elements(p_.g.src), each = element_bytes(p_.in[0].dtype);
  const auto call_from = [&](int64_t plane, int64_t repetitions, std::byte* lines) {
    return PlaneRowsKernel::Call{p_.in[0].at(args.in[0], 0, 0, 0, 0, 0) + plane * cells * each,
                                 p_.in[kGradientPort].at(args.in[kGradientPort], 0, 0, 0, 0, 0) + plane * each,
                                 static_cast<std::byte*>(args.out[0]) + p_.out[0].offset + plane * cells * each, lines,
                                 repetitions};
  };
  int64_t done = 0;
  if (streamed_rows_ && outputs_aligned(args)) {
    const int64_t together = streamed_rows_->together();
    const auto part = [&](int64_t begin, int64_t end, int number) {
      auto* lines = scratch_.share(args.scratch, number);
      std::memset(lines, 0, streamed_rows_->scratch_bytes());
      (*streamed_rows_)(call_from(begin * together, end - begin, lines));
      end_streaming();
    };
    parallel_for(planes / together, together * cells, part, threads_);
    done = planes / together * together;
  }
  const auto part = [&](int64_t begin, int64_t end) {
    const PlaneRowsKernel::Call call = call_from(done + begin, end - begin, nullptr);
    std::memset(call.dst, 0, static_cast<size_t>((end - begin) * cells * each));
    (*rows_)(call);
  };
  if (done < planes) parallel_for(planes - done, cells, part, threads_);
}

/// Results of a group of channels are stored while the next group is searched.
void WholePlanePool::run_columns(const RunArgs& args) const {
  const bool streaming = (columns_[1] || last_columns_[1]) && outputs_aligned(args);
  const int64_t together = PlaneColumnsKernel::kVectors * kCacheLine / element_bytes(p_.in[0].dtype);
  const int64_t groups = ceil_div(p_.g.channels, together);
  const auto kernel = [&](int64_t unit) -> const PlaneColumnsKernel& {
    return (unit % groups + 1) * together > p_.g.channels ? *last_columns_[streaming] : *columns_[streaming];
  };
  const auto at = [&](const PoolOperand& o, const void* base, int64_t unit) {
    return o.at(base, unit / groups, unit % groups * together, 0, 0, 0);
  };
  const auto part = [&](int64_t begin, int64_t end, int number) {
    PlaneColumnsKernel::Call call{.places = scratch_.share(args.scratch, number)};
    const auto search = [&](int64_t unit) {
      call.src = at(p_.in[0], args.in[0], unit);
      call.ahead = at(p_.in[0], args.in[0], std::min(unit + 1, end - 1));
    };
    const auto store = [&](int64_t unit) {
      call.dst = const_cast<std::byte*>(at(p_.out[0], args.out[0], unit));
      call.gradients = at(p_.in[kGradientPort], args.in[kGradientPort], unit);
    };
    search(begin);
    kernel(begin)(call);
    for (int64_t unit = begin + 1; unit < end; ++unit) {
      search(unit);
      store(unit - 1);
      if (&kernel(unit) == &kernel(unit - 1)) {
        kernel(unit)(call);
        continue;
      }
      const void* src = std::exchange(call.src, nullptr);
      kernel(unit - 1)(call);
      call.src = src;
      call.dst = nullptr;
      kernel(unit)(call);
    }
    call.src = nullptr;
    store(end - 1);
    kernel(end - 1)(call);
    if (streaming) end_streaming();
  };
  parallel_for(p_.g.batch * groups, elements(p_.g.src) * std::min(p_.g.channels, together), part, threads_);
}

}  // namespace partita::jit
