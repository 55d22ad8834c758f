// SPDX-License-Identifier: Apache-2.0
// What the shape rules of poolings share: their tensors may lack the batch axis.
#pragma once

#include "src/base/axes.hpp"
#include "src/base/pool_axes.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/windows.hpp"

namespace partita {

/// The spatial dims of a pooling's tensor.
Dims pool_spatial(const Attrs& attrs, const Dims& dims);
/// Dims with other spatial ones.
Dims with_pool_spatial(const Attrs& attrs, const Dims& like, const Dims& spatial);
/// src_shape may be missing while it arrives only at execution: then the spatial dims of output 0 are unknown. Else
/// `fits` is asked whether input 0 (diff_dst) fits.
Status gradient_shape(ShapeContext& c, Status (*fits)(ShapeContext&, const Dims& src));

/// Input 0 and output 0, as far as they are known: 2 to 5 axes.
bool pool_rank_fits(const OpView& v);
/// kernel, strides, dilations and (without auto_pad) pads: one entry each of 1 to 3 axes, and the tensors have those
/// and one or two more.
bool pool_lists_fit(const OpView& v);
/// spatial_axes (or the entries of sizes) fit the rank of input 0.
bool spatial_axes_fit(const OpView& v);

inline constexpr CheckDef kPoolSrcRank = {
    "spatial_rank", "`src` must have rank 2 to 5: batch (it may be absent), channels and 1 to 3 spatial axes",
    pool_rank_fits};
inline constexpr CheckDef kPoolDiffDstRank = {
    "spatial_rank", "`diff_dst` must have rank 2 to 5: batch (it may be absent), channels and 1 to 3 spatial axes",
    pool_rank_fits};
inline constexpr CheckDef kSpatialAxesOfDiffDst = {
    "spatial_axes_fit", "`spatial_axes` must be from 1 to 3, and one or two less than the rank of `diff_dst`",
    spatial_axes_fit};

inline constexpr AttrDef kSpatialAxes =
    extension(optional(Attr::spatial_axes, AttrType::s64,
                       "number of spatial axes; absent means all but two, one less means that there is no batch"));

}  // namespace partita
