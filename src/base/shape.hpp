// SPDX-License-Identifier: Apache-2.0
// Arithmetic on dims and strides, with checks for overflow.
#pragma once

#include <optional>

#include "partita/types.hpp"

namespace partita {

/// Absent where a dim is negative or the product leaves int64.
std::optional<int64_t> checked_elements(const Dims& dims);
/// Product of known, valid dims.
int64_t elements(const Dims& dims);
bool all_known(const Dims& dims);
/// Row-major without gaps (dims of 1 do not matter).
bool is_dense(const Dims& dims, const Dims& strides);
/// Distance in elements from the first to one past the last element; 0 where a dim is 0.
int64_t span_of(const Dims& dims, const Dims& strides);
/// Right-aligned numpy broadcast; absent where two dims differ and none is 1. Unknown dims stay unknown.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);
/// `a[order[0]], a[order[1]], ..`
Dims permuted(const Dims& a, const Dims& order);
/// Axes from the largest stride to the smallest; those with the same one in their own order.
Dims axes_in_memory_order(const Dims& strides);
/// Takes the entry at `from` out and puts it back so that it is the one at `to`.
void move_axis(Dims& list, int from, int to);
/// Coordinates of item `index` of the box `dims`, row-major.
Dims coordinates(int64_t index, const Dims& dims);
/// axis + rank where axis is negative; absent where out of [-rank, rank).
std::optional<int> normal_axis(int64_t axis, int rank);

}  // namespace partita
