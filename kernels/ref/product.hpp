// SPDX-License-Identifier: Apache-2.0
// Product: sums of products, the core of the matmul and convolution references. The operands are given row by row by
// functions, so no operand is ever copied as a whole.
#pragma once

#include <cstdint>
#include <functional>

namespace partita::ref {

/// result(i, j) = sum over k of left(i, k) * right(k, j), for each of `batches` independent products.
/// Sums of up to 128 products are made in f32 and added up in f64, or, where it is `exact`, everything is in f64.
/// Deterministic for every number of threads.
struct Product {
  int64_t batches = 1, rows = 0, columns = 0, depth = 0;
  /// Writes left(i, k .. k + n) to `to`.
  std::function<void(int64_t batch, int64_t i, int64_t k, int64_t n, float* to)> left = {};
  /// Writes right(k, j .. j + n) to `to`.
  std::function<void(int64_t batch, int64_t k, int64_t j, int64_t n, float* to)> right = {};
  /// Takes result(i, j .. j + n), n at most 256; may change the values. Called from several threads.
  std::function<void(int64_t batch, int64_t i, int64_t j, int64_t n, double* sums)> store = {};
  /// False: one thread, for results whose neighbours share a byte.
  bool parallel = true;
  /// For results of f64, which tests measure others by.
  bool exact = false;
};

void multiply_all(const Product& product);

}  // namespace partita::ref
