// SPDX-License-Identifier: Apache-2.0
// How windows lie over the spatial axes: the arithmetic that convolution and pooling share.
#include "src/ops/windows.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

/// Longer spatial axes would let the arithmetic below leave 64 bits.
constexpr int64_t kLongestAxis = std::numeric_limits<int32_t>::max();

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

Status read_lists(ShapeContext& c, const Dims& kernel, Windows& w) {
  const int n = kernel.size();
  w.kernel = kernel;
  w.strides = c.attrs().dims(Attr::strides);
  w.dilations = c.attrs().has(Attr::dilations) ? c.attrs().dims(Attr::dilations) : Dims(n, 1);
  w.begin = c.attrs().dims(Attr::pads_begin);
  w.end = c.attrs().dims(Attr::pads_end);
  const bool automatic = !c.attrs().is(Attr::auto_pad, "None");  // given lists are not looked at then
  if (automatic || w.begin.empty()) w.begin = Dims(n, 0);
  if (automatic || w.end.empty()) w.end = Dims(n, 0);
  for (int64_t k : kernel) {
    if (k < 1 || k > kLongestAxis) {
      return c.wrong(str("the window must be from 1 to ", kLongestAxis, " cells wide, found [", text_of(kernel), "]"));
    }
  }
  return {};
}

Status check_lengths(const ShapeContext& c, const Dims& spatial) {
  for (int64_t d : spatial) {
    if (d <= kLongestAxis) continue;
    return c.wrong(str("spatial axes must have at most ", kLongestAxis, " cells, found [", text_of(spatial), "]"));
  }
  return {};
}

void write_lists(ShapeContext& c, const Windows& w) {
  const auto list = [](const Dims& d) { return std::vector<int64_t>(d.begin(), d.end()); };
  c.attrs().set(Attr::pads_begin, list(w.begin));
  c.attrs().set(Attr::pads_end, list(w.end));
  c.attrs().set(Attr::auto_pad, std::string("None"));
  if (find_attr(c.def(), Attr::dilations)) c.attrs().set(Attr::dilations, list(w.dilations));
}

/// Sets the pads of one axis to `total` cells, or to none for VALID; keeps them without auto_pad.
void resolve_pads(const Attrs& attrs, Windows& w, int axis, int64_t total) {
  if (attrs.is(Attr::auto_pad, "None")) return;
  if (attrs.is(Attr::auto_pad, "VALID")) total = 0;
  const int64_t begin = attrs.is(Attr::auto_pad, "SAME_LOWER") ? (total + 1) / 2 : total / 2;
  w.begin[axis] = begin;
  w.end[axis] = total - begin;
}

}  // namespace

Result<Windows> resolve_windows(ShapeContext& c, const Dims& kernel, const Dims& slid_over) {
  Windows w;
  PT_TRY(read_lists(c, kernel, w));
  PT_TRY(check_lengths(c, slid_over));
  for (int i = 0; i < kernel.size(); ++i) {
    const int64_t rest = slid_over[i] % w.strides[i];
    resolve_pads(c.attrs(), w, i, std::max<int64_t>(0, w.extent(i) - (rest == 0 ? w.strides[i] : rest)));
  }
  write_lists(c, w);
  return w;
}

Result<Windows> resolve_transposed_windows(ShapeContext& c, const Dims& kernel, const Dims& src) {
  Windows w;
  PT_TRY(read_lists(c, kernel, w));
  PT_TRY(check_lengths(c, src));
  for (int i = 0; i < kernel.size(); ++i) {
    resolve_pads(c.attrs(), w, i, std::max<int64_t>(0, w.extent(i) - w.strides[i]));
  }
  write_lists(c, w);
  return w;
}

Dims window_counts(const Dims& slid_over, const Windows& w, Rounding rounding) {
  Dims counts;
  for (int i = 0; i < slid_over.size(); ++i) {
    const int64_t room = slid_over[i] + w.begin[i] + w.end[i] - w.extent(i);
    const int64_t up = rounding == Rounding::floor ? 0 : w.strides[i] - 1;
    int64_t count = floor_div(room + up, w.strides[i]) + 1;
    if (rounding == Rounding::ceil_inside && (count - 1) * w.strides[i] >= slid_over[i] + w.begin[i]) --count;
    counts.push_back(count);
  }
  return counts;
}

Dims transposed_counts(const Dims& src, const Windows& w, const Dims& output_padding) {
  Dims counts;
  for (int i = 0; i < src.size(); ++i) {
    const int64_t extra = output_padding.empty() ? 0 : output_padding[i];
    counts.push_back(w.strides[i] * (src[i] - 1) + w.extent(i) + extra - w.begin[i] - w.end[i]);
  }
  return counts;
}

Status check_counts(const ShapeContext& c, Dims& counts, const Dims& slid_over, const Windows& w) {
  for (int i = 0; i < counts.size(); ++i) {
    if (counts[i] >= 1) continue;
    if (slid_over[i] > 0) {
      return c.wrong(str("the result's spatial dims must be 1 or more, found [", text_of(counts),
                         "]: ", c.input_text(0), ", window [", text_of(w.kernel), "], strides [", text_of(w.strides),
                         "], dilations [", text_of(w.dilations), "], pads [", text_of(w.begin), "] and [",
                         text_of(w.end), "]"));
    }
    counts[i] = 0;
  }
  return {};
}

bool spatial_rank_fits(const OpView& v) {
  for (const logical_tensor* t : {&v.in(0), &v.out(0)}) {
    if (t->rank_known && (t->rank() < 3 || t->rank() > 5)) return false;
  }
  return true;
}

bool one_entry_an_axis(const OpView& v) {
  const Attrs& attrs = v.attrs();
  const logical_tensor& data = v.in(0).rank_known ? v.in(0) : v.out(0);
  const size_t wanted = data.rank_known ? static_cast<size_t>(data.rank() - 2) : attrs.ints(Attr::strides).size();
  for (Attr attr : {Attr::strides, Attr::dilations, Attr::kernel, Attr::output_padding}) {
    if (attrs.has(attr) && attrs.ints(attr).size() != wanted) return false;
  }
  if (!attrs.is(Attr::auto_pad, "None")) return true;
  for (Attr attr : {Attr::pads_begin, Attr::pads_end}) {
    const size_t found = attrs.ints(attr).size();
    if (found != 0 && found != wanted) return false;
  }
  return true;
}

std::optional<Dims> wanted_shape(const ShapeContext& c, Attr attr) {
  const logical_tensor& given = c.given(0);
  if (c.attrs().has(attr)) return c.attrs().dims(attr);
  if (given.shape_known()) return given.dims;
  return std::nullopt;
}

}  // namespace partita
