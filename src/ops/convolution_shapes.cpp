// SPDX-License-Identifier: Apache-2.0
// Shapes of the six convolution operators.
#include "src/ops/convolution_shapes.hpp"

#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ops/windows.hpp"

namespace partita {
namespace {

/// A tensor in its part, with how messages speak of it.
struct Part {
  Dims dims;
  std::string text;
};

Part input_part(const ShapeContext& c, int i) { return {c.in(i), c.input_text(i)}; }

Dims kernel_of(const ShapeContext& c, const Dims& filter) {
  const FilterAxes axes = filter_axes(c.attrs(), filter.size());
  Dims kernel;
  for (int i = 0; i < filter.size() - 2; ++i) kernel.push_back(filter[axes.spatial + i]);
  return kernel;
}

Status check_rank(const ShapeContext& c, const Part& data, const Part& filter) {
  if (filter.dims.size() == data.dims.size()) return {};
  return c.wrong(str("the filter must have rank ", data.dims.size(), ": ", data.text, ", ", filter.text));
}

/// Compares the channels of one side with what the filter has for it.
Status check_side(const ShapeContext& c, const Part& data, const Part& filter, int64_t in_filter, bool per_group) {
  const int64_t channels = data.dims[channel_axis(c.attrs(), data.dims.size())];
  const int64_t groups = c.attrs().i64(Attr::groups);
  if (channels % groups != 0) {
    return c.wrong(str("`groups` must divide the channels (", channels, "): groups=", groups, ", ", data.text));
  }
  const int64_t wanted = per_group ? channels / groups : channels;
  if (in_filter == wanted) return {};
  return c.wrong(str("the filter must have ", wanted, " channels", per_group ? " a group" : "",
                     " for this tensor, found ", in_filter, ": ", data.text, ", ", filter.text, ", groups=", groups,
                     ", ", c.attrs().text(Attr::weights_format)));
}

Status check_channels(const ShapeContext& c, const Part& wide, const Part& narrow, const Part& filter) {
  PT_TRY(check_rank(c, wide, filter));
  PT_TRY(check_rank(c, narrow, filter));
  const FilterAxes axes = filter_axes(c.attrs(), filter.dims.size());
  PT_TRY(check_side(c, narrow, filter, filter.dims[axes.narrow], false));
  PT_TRY(check_side(c, wide, filter, filter.dims[axes.wide], true));
  if (wide.dims[0] == narrow.dims[0]) return {};
  return c.wrong(str("the batch must be the same: ", wide.text, ", ", narrow.text));
}

/// Both sides are there: the narrow one must be what windows over the wide one make.
Status check_sides(ShapeContext& c, const Part& wide, const Part& narrow, const Part& filter) {
  PT_TRY(check_channels(c, wide, narrow, filter));
  const Dims slid_over = spatial_dims(c.attrs(), wide.dims);
  PT_ASSIGN(const Windows w, resolve_windows(c, kernel_of(c, filter.dims), slid_over));
  Dims counts = window_counts(slid_over, w, Rounding::floor);
  PT_TRY(check_counts(c, counts, slid_over, w));
  if (counts == spatial_dims(c.attrs(), narrow.dims)) return {};
  return c.wrong(str(narrow.text, ", windows over ", wide.text, " make spatial dims [", text_of(counts), "]"));
}

Status check_bias(const ShapeContext& c, int64_t channels) {
  if (c.inputs() < 3 || c.in(2) == Dims{channels}) return {};
  return c.wrong(str("`bias` must be 1-D with ", channels, " entries: ", c.input_text(2)));
}

Status filter_wanted(ShapeContext& c, int wide, int narrow) {
  const std::optional<Dims> filter = wanted_shape(c, Attr::weights_shape);
  if (!filter) return c.set(0, Dims(c.rank(0), kUnknownDim));
  const Part part{*filter, str("`weights_shape` is [", text_of(*filter), "]")};
  PT_TRY(check_sides(c, input_part(c, wide), input_part(c, narrow), part));
  return c.set(0, *filter);
}

}  // namespace

Status narrow_from_wide(ShapeContext& c) {
  const Part wide = input_part(c, 0), filter = input_part(c, 1);
  PT_TRY(check_rank(c, wide, filter));
  const Dims slid_over = spatial_dims(c.attrs(), wide.dims);
  PT_ASSIGN(const Windows w, resolve_windows(c, kernel_of(c, filter.dims), slid_over));
  Dims counts = window_counts(slid_over, w, Rounding::floor);
  PT_TRY(check_counts(c, counts, slid_over, w));
  const int64_t channels = filter.dims[filter_axes(c.attrs(), filter.dims.size()).narrow];
  const Dims narrow = data_dims(c.attrs(), wide.dims[0], channels, counts);
  PT_TRY(check_channels(c, wide, {narrow, str("the result is [", text_of(narrow), "]")}, filter));
  PT_TRY(check_bias(c, channels));
  return c.set(0, narrow);
}

Status wide_from_narrow(ShapeContext& c) {
  const Part narrow = input_part(c, 0), filter = input_part(c, 1);
  PT_TRY(check_rank(c, narrow, filter));
  const Dims src = spatial_dims(c.attrs(), narrow.dims);
  PT_ASSIGN(const Windows w, resolve_transposed_windows(c, kernel_of(c, filter.dims), src));
  Dims counts = transposed_counts(src, w, c.attrs().dims(Attr::output_padding));
  PT_TRY(check_counts(c, counts, src, w));
  const int64_t in_group = filter.dims[filter_axes(c.attrs(), filter.dims.size()).wide];
  int64_t channels = 0;
  if (__builtin_mul_overflow(in_group, c.attrs().i64(Attr::groups), &channels)) {
    return c.wrong(str("`groups` times the channels of `weights` is too large: ", filter.text));
  }
  const Dims wide = data_dims(c.attrs(), narrow.dims[0], channels, counts);
  PT_TRY(check_channels(c, {wide, str("the result is [", text_of(wide), "]")}, narrow, filter));
  PT_TRY(check_bias(c, channels));
  return c.set(0, wide);
}

Status wide_as_wanted(ShapeContext& c) {
  const Part narrow = input_part(c, 0), filter = input_part(c, 1);
  PT_TRY(check_rank(c, narrow, filter));
  if (const std::optional<Dims> wide = wanted_shape(c, Attr::dst_shape)) {
    PT_TRY(check_sides(c, {*wide, str("`dst_shape` is [", text_of(*wide), "]")}, narrow, filter));
    return c.set(0, *wide);
  }
  // The shape arrives at execution; batch and channels are known before.
  const int64_t in_group = filter.dims[filter_axes(c.attrs(), filter.dims.size()).wide];
  int64_t channels = 0;
  if (__builtin_mul_overflow(in_group, c.attrs().i64(Attr::groups), &channels)) channels = kUnknownDim;
  return c.set(0, data_dims(c.attrs(), narrow.dims[0], channels, Dims(narrow.dims.size() - 2, kUnknownDim)));
}

Status filter_as_wanted(ShapeContext& c) { return filter_wanted(c, 0, 1); }
Status transposed_filter_as_wanted(ShapeContext& c) { return filter_wanted(c, 1, 0); }

}  // namespace partita
