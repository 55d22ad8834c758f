// SPDX-License-Identifier: Apache-2.0
// How windows lie over the spatial axes: the arithmetic that convolution and pooling share.
#pragma once

#include <algorithm>
#include <optional>

#include "src/ir/shape_context.hpp"
#include "src/ops/rules.hpp"

namespace partita {

/// One entry a spatial axis in every list.
struct Windows {
  Dims kernel, strides, dilations, begin, end;
  /// Cells from a window's first to its last tap.
  int64_t extent(int axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

/// What becomes of a last window that does not fit: dropped; kept; kept unless it starts behind the source (PyTorch).
enum class Rounding : uint8_t { floor, ceil, ceil_inside };

/// Reads strides, dilations and pads. Makes what is left open explicit in the attributes: empty pads become zeros,
/// absent dilations ones, auto_pad is resolved over the spatial dims the windows slide over.
Result<Windows> resolve_windows(ShapeContext& c, const Dims& kernel, const Dims& slid_over);
/// The same where the side that is slid over is the result (forward transposed convolution): SAME then means that the
/// result is `strides` times the source.
Result<Windows> resolve_transposed_windows(ShapeContext& c, const Dims& kernel, const Dims& src);

/// Number of windows along each spatial axis; 0 or less where none fits.
Dims window_counts(const Dims& slid_over, const Windows& w, Rounding rounding);
/// The forward result of a transposed convolution.
Dims transposed_counts(const Dims& src, const Windows& w, const Dims& output_padding);
/// Fails where a window does not fit although the axis is not empty; negative counts of empty axes become 0.
Status check_counts(const ShapeContext& c, Dims& counts, const Dims& slid_over, const Windows& w);

// Checks for the families; absent attributes and unknown ranks hold.
bool spatial_rank_fits(const OpView& v);
inline constexpr CheckDef kSrcRank = {
    "spatial_rank", "`src` must have rank 3, 4 or 5: batch, channels and 1 to 3 spatial axes", spatial_rank_fits};
inline constexpr CheckDef kDiffDstRank = {
    "spatial_rank", "`diff_dst` must have rank 3, 4 or 5: batch, channels and 1 to 3 spatial axes", spatial_rank_fits};
inline constexpr CheckDef kPadsSign = {"pads_sign",
                                       "`pads_begin` and `pads_end` must hold numbers from 0 to 2147483647",
                                       not_negative<Attr::pads_begin, Attr::pads_end>};
/// strides, dilations, kernel, output_padding and (without auto_pad) pads.
bool one_entry_an_axis(const OpView& v);
/// src_shape, dst_shape: as many entries as input 0 has axes.
template <Attr attr>
bool shape_entries_fit(const OpView& v) {
  if (!v.attrs().has(attr)) return true;
  const std::vector<int64_t>& shape = v.attrs().ints(attr);
  const bool rank_fits = !v.in(0).rank_known || static_cast<int>(shape.size()) == v.in(0).rank();
  return rank_fits && std::ranges::all_of(shape, [](int64_t d) { return d >= 0; });
}
/// The shape is an attribute, an input (`inputs` are there), or the output's known dims.
template <Attr attr, int inputs>
bool shape_is_given(const OpView& v) {
  return v.attrs().has(attr) || v.inputs() >= inputs || v.out(0).shape_known();
}
inline constexpr CheckDef kSrcShapeEntries = {"src_shape_entries",
                                              "`src_shape` must have one entry, not negative, an axis of `diff_dst`",
                                              shape_entries_fit<Attr::src_shape>};
/// `inputs` where the shape is one of them.
template <int inputs>
inline constexpr CheckDef kSrcShapeGiven = {
    "src_shape_given", "`src_shape` must be given as attribute or input, or `diff_src` must have a known shape",
    shape_is_given<Attr::src_shape, inputs>};
/// The wanted dims of output 0: by attribute, else as given; absent where they arrive only at execution.
std::optional<Dims> wanted_shape(const ShapeContext& c, Attr attr);

}  // namespace partita
