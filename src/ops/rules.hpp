// SPDX-License-Identifier: Apache-2.0
// Checks and shape rules that several families share.
#pragma once

#include <limits>

#include "src/ir/op_def.hpp"
#include "src/ir/shape_context.hpp"

namespace partita {

/// Rank of input i, or -1 where it is unknown or the input is not there.
int known_rank(const OpView& v, int i);
/// Every entry of an integer or integer list attribute is in [least, 2^31); holds where the attribute is absent.
bool entries_at_least(const OpView& v, Attr attr, int64_t least);
/// An attribute that must be in [-rank, rank) of input 0.
bool axis_fits(const OpView& v, Attr attr);
/// True where input i is 1-D of `length` elements, or that cannot be told yet.
bool is_vector(const OpView& v, int i, int64_t length);
/// True where two shapes are equal as far as they are known.
bool may_agree(const logical_tensor& a, const logical_tensor& b);
/// The channels of input 0 by data_format, or kUnknownDim.
int64_t known_channels(const OpView& v);

template <Attr... attrs>
bool not_negative(const OpView& v) {
  return (entries_at_least(v, attrs, 0) && ...);
}
template <Attr... attrs>
bool positive(const OpView& v) {
  return (entries_at_least(v, attrs, 1) && ...);
}
template <Attr attr>
bool real_not_negative(const OpView& v) {
  return !v.attrs().has(attr) || v.attrs().f32(attr) >= 0;
}
template <Attr attr>
bool axis_in_range(const OpView& v) {
  return axis_fits(v, attr);
}

inline constexpr CheckDef kEpsilonSign = {"epsilon_sign", "`epsilon` must not be negative",
                                          real_not_negative<Attr::epsilon>};
inline constexpr CheckDef kAlphaSign = {"alpha_sign", "`alpha` must not be negative", real_not_negative<Attr::alpha>};
/// Written so that a NaN fails.
inline bool min_up_to_max(const OpView& v) { return v.attrs().f32(Attr::min) <= v.attrs().f32(Attr::max); }
inline constexpr CheckDef kMinUpToMax = {"min_up_to_max", "`min` must not be greater than `max`", min_up_to_max};
inline constexpr CheckDef kAxisOfSrc = {"axis_in_range", "`axis` must be in [-rank, rank) of `src`",
                                        axis_in_range<Attr::axis>};
inline constexpr CheckDef kAxisOfDiffDst = {"axis_in_range", "`axis` must be in [-rank, rank) of `diff_dst`",
                                            axis_in_range<Attr::axis>};
/// Statistics and affine tensors (input 2 or 1, else output 1) may be bf16 only where input 0 is.
bool statistics_type_fits(const OpView& v);

/// Every output has the dims of input 0.
Status same_shape(ShapeContext& c);
/// The numpy broadcast of inputs 0 and 1, or equal shapes where auto_broadcast is none.
Status broadcast_shapes(ShapeContext& c);
/// "`src_0` is f32[2,3], `src_1` is f32[4]"
std::string both_texts(const ShapeContext& c, int a, int b);
/// Fails where input i does not broadcast to `dims` without changing them.
Status broadcasts_into(const ShapeContext& c, int i, const Dims& dims, std::string_view what);

}  // namespace partita
