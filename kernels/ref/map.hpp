// SPDX-License-Identifier: Apache-2.0
// map: computes each element of a destination from the elements of one to five operands at the same place.
#pragma once

#include <utility>

#include "kernels/ref/runs.hpp"
#include "kernels/ref/view.hpp"

namespace partita::ref {

/// result[i] = f(values[0][i], values[1][i], ..)
template <class F, size_t operands, size_t... k>
void compute(F& f, int64_t n, double* result, const double (&values)[operands][kBlock], std::index_sequence<k...>) {
  for (int64_t i = 0; i < n; ++i) {
    result[i] = f(values[k][i]...);  // cppcheck-suppress constStatement ; no such thing: it does not know packs
  }
}

/// dst = f(operands ..), computed in f64; every operand has the destination's dims (see broadcast_to).
/// `cost` is the rough work of one f in element operations.
template <class F, class... Operands>
void map(int64_t cost, F f, const View& dst, const Operands&... operands) {
  constexpr size_t kOperands = sizeof...(Operands);
  const View views[] = {operands...};
  const Runs runs(dst.dims, {dst.strides, operands.strides...}, Order::memory);
  runs.each_in_parallel(
      cost,
      [&](const Positions& at, int64_t, int64_t n) {
        double values[kOperands][kBlock], result[kBlock];
        for (size_t k = 0; k < kOperands; ++k) {
          views[k].read(at[k + 1], runs.stride(static_cast<int>(k) + 1), n, values[k]);
        }
        compute(f, n, result, values, std::make_index_sequence<kOperands>{});
        dst.write(at[0], runs.stride(0), n, result);
      },
      !dst.packed());
}

}  // namespace partita::ref
