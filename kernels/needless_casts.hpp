// SPDX-License-Identifier: Apache-2.0
// Roundings that change nothing.
#pragma once

#include "kernels/problem.hpp"

namespace partita {

/// The expression of a problem (its front or back) without casts of values that have the type's precision already, or
/// that are only chosen from (also the larger or the lesser one), negated or stored before they are rounded to that
/// type anyway. Its results are the same to the bit, but for the sign of a zero that is the larger or the lesser of
/// two. `bf16_drops_denormals`: rounding to bf16 makes zeros of them, also of those that are bf16.
/// `skeleton_is_rounded`: where what the skeleton brings has a type's precision, it was rounded to that type before.
Expr without_needless_casts(const Expr& expr, const Problem& problem, bool bf16_drops_denormals,
                            bool skeleton_is_rounded = false);

}  // namespace partita
