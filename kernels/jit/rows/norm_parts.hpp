// SPDX-License-Identifier: Apache-2.0
// What normalisations share: the joining of means and variances, and vectors of gamma and beta.
#pragma once

#include <cstdint>

#include "kernels/jit/rows/rows.hpp"

namespace partita::jit {

/// Mean and sum of squared differences from it of `count` numbers; parts are joined in f64, in a fixed order.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  void add(double other_count, double other_mean, double other_squares) {
    const double all = count + other_count, distance = other_mean - mean;
    mean += distance * other_count / all;
    squares += other_squares + distance * distance * count * other_count / all;
    count = all;
  }
  double variance() const { return squares / count; }
};

/// Whether port `port` has a factor or term for each place (`use_affine`).
bool has_affine(const Problem& problem, int port);
/// Null where the tensor is `count` elements one behind the other, of a type that generated code loads and stores.
const char* refuse_vector(const TensorDesc& desc, int64_t count);
/// It as lanes that all rows share.
RowView vector_view(RowView::From from, int port, const TensorDesc& desc, int64_t block);

}  // namespace partita::jit
