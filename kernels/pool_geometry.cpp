// SPDX-License-Identifier: Apache-2.0
// Windows of pooling: the one place where the divisor of an average is computed.
#include "kernels/pool_geometry.hpp"

#include <algorithm>

#include "src/base/axes.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {

bool lacks_batch_axis(const Problem& problem) {
  return !problem.out.empty() && !pool_axes(problem.attrs, problem.out[0].dims.size()).batch;
}

TensorDesc with_batch_axis(TensorDesc desc) {
  desc.strides.insert(0, desc.dims[0] * desc.strides[0]);
  desc.dims.insert(0, 1);
  return desc;
}

Problem with_batch_axis(Problem problem) {
  if (!lacks_batch_axis(problem)) return problem;
  const int rank = problem.out[0].dims.size();
  for (auto* side : {&problem.in, &problem.out})
    for (TensorDesc& desc : *side)  // some inputs stand for an attribute
      if (desc.dims.size() == rank) desc = with_batch_axis(std::move(desc));
  return problem;
}

PoolGeometry::Taps PoolGeometry::taps(int i, int64_t o) const {
  const int64_t start = o * strides[i] - pads_begin[i], d = dilations[i];
  const int64_t begin = start < 0 ? (-start + d - 1) / d : 0;
  const int64_t end = start >= src[i] ? 0 : std::min(kernel[i], (src[i] - start + d - 1) / d);
  return {begin, std::max(begin, end)};
}

bool PoolGeometry::covers_all() const {
  for (int i = 0; i < axes(); ++i) {
    if (dst[i] != 1) return false;
    if (const Taps t = taps(i, 0); t.end - t.begin != src[i]) return false;
  }
  return true;
}

bool PoolGeometry::tiles_source() const {
  for (int i = 0; i < axes(); ++i)
    if (kernel[i] != strides[i] || (dilations[i] != 1 && kernel[i] > 1) || pads_begin[i] != 0 ||
        src[i] != dst[i] * strides[i])
      return false;
  return true;
}

int64_t PoolGeometry::counted(int i, int64_t o) const {
  const Taps t = taps(i, o);
  if (t.begin == t.end) return 0;
  switch (divides_by) {
    case PoolDivisor::valid: return t.end - t.begin;
    case PoolDivisor::padded_box: return std::min(kernel[i], src[i] + pads_end[i] - cell(i, o, 0));
    case PoolDivisor::kernel: return kernel[i];
    case PoolDivisor::fixed: return 1;
  }
  return 0;
}

double PoolGeometry::divisor_of(int64_t counted) const {
  return static_cast<double>(counted > 0 && divides_by == PoolDivisor::fixed ? divisor_override : counted);
}

double PoolGeometry::divisor(const Dims& o) const {
  int64_t cells = 1;
  for (int i = 0; i < axes(); ++i) cells *= counted(i, o[i]);
  return divisor_of(cells);
}

PoolGeometry pool_geometry(const Problem& problem, const Dims& source_like, const Dims& pooled_like) {
  PoolGeometry g;
  const Attrs& a = problem.attrs;
  g.channel_last = channels_last(a);
  g.maximum = problem.op == OpKind::MaxPool || problem.op == OpKind::MaxPoolBackward ||
              problem.op == OpKind::MaxPoolIndicesBackward;
  g.divisor_override = a.i64_or(Attr::divisor_override, 0);
  // Adaptive windows have valid cells alone, and no attribute that says so.
  g.divides_by = g.maximum || a.flag_or(Attr::exclude_pad, true) ? PoolDivisor::valid
                 : a.flag_or(Attr::exclude_overhang, false)      ? PoolDivisor::padded_box
                                                                 : PoolDivisor::kernel;
  if (g.divisor_override != 0) g.divides_by = PoolDivisor::fixed;
  const int axes = source_like.size() - 2;
  const auto list = [&](Attr attr, int64_t absent) {
    const Dims given = a.has(attr) ? a.dims(attr) : Dims();
    return given.empty() ? Dims(axes, absent) : given;
  };
  g.kernel = list(Attr::kernel, 1);
  g.strides = list(Attr::strides, 1);
  g.pads_begin = list(Attr::pads_begin, 0);
  g.pads_end = list(Attr::pads_end, 0);
  g.dilations = list(Attr::dilations, 1);
  g.batch = source_like[0];
  g.channels = source_like[g.channel_last ? axes + 1 : 1];
  for (int i = 0; i < axes; ++i) {
    g.src.push_back(source_like[g.tensor_axis(i)]);
    g.dst.push_back(pooled_like[g.tensor_axis(i)]);
    // How far apart windows lie says nothing where there is one.
    if (g.dst[i] == 1) g.strides[i] = std::max(g.strides[i], (g.kernel[i] - 1) * g.dilations[i] + 1);
  }
  return g;
}

void set_adjacent_windows(Attrs& attrs, const std::vector<int64_t>& kernel) {
  const std::vector<int64_t> none(kernel.size(), 0);
  for (Attr attr : {Attr::kernel, Attr::strides}) attrs.set(attr, kernel);
  for (Attr attr : {Attr::pads_begin, Attr::pads_end}) attrs.set(attr, none);
  attrs.set(Attr::exclude_pad, true);
}

bool has_indices(const Problem& problem) {
  if (problem.op != OpKind::MaxPool || problem.out_ports() < 2) return false;
  return problem.out[1].dtype == Dtype::s32 || problem.out[1].dtype == Dtype::s64;
}

PoolIndex pool_index(const Attrs& attrs, const PoolGeometry& g) {
  if (!attrs.is(Attr::index_base, "tensor")) return {0, 0, 1};
  const int64_t cells = elements(g.src);
  return g.channel_last ? PoolIndex{cells * g.channels, 1, g.channels} : PoolIndex{g.channels * cells, cells, 1};
}

Status bad_pool_index(const Attrs& attrs, const PoolGeometry& g, int64_t plane, int64_t window, int64_t index) {
  const int64_t n = plane / g.channels, c = plane % g.channels;
  const PoolIndex base = pool_index(attrs, g);
  const int64_t first = base.first(n, c), last = first + (elements(g.src) - 1) * base.cell;
  return fail(Code::invalid_arguments,
              str("`indices` of window [", text_of(coordinates(window, g.dst)), "] of batch item ", n, ", channel ", c,
                  " is ", index, ", cells of its plane have ", first, " to ", last,
                  base.cell == 1 ? "" : str(" in steps of ", base.cell), ", a window without cells has -1"));
}

}  // namespace partita
