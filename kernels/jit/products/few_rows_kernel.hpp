// SPDX-License-Identifier: Apache-2.0
// FewRowsKernel: rows of a matrix, read once, times a few vectors.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// How the matrix lies, what it is multiplied with, and where results go.
struct FewRowsShape {
  /// dots: each row times each vector is one number. sums: rows are added to each other, times the vectors' numbers.
  enum class Form : uint8_t { dots, sums };
  Form form = Form::dots;
  Dtype dtype = Dtype::f32;  ///< of the matrix; vectors and results are f32
  int64_t columns = 0;       ///< elements of a row, side by side
  int64_t row_bytes = 0;     ///< from row to row
  int vectors = 1;           ///< at most kMostVectors
  int64_t vector_bytes = 0;  ///< from vector to vector; dots read whole registers of a vector
  int64_t result_bytes = 0;  ///< from a vector's results to the next one's
};

/// With AVX-512.
class FewRowsKernel : private Emitter {
 public:
  static constexpr int kMostVectors = 8;
  /// Columns of sums that fit registers, for so many vectors.
  static int64_t most_columns(int vectors);

  /// Throws Xbyak::Error where there is no memory for code.
  explicit FewRowsKernel(const FewRowsShape& shape);

  /// Adds to the results: dots, one number for each of `rows` rows, side by side; sums, one for each column.
  void operator()(const void* matrix, const float* vectors, float* results, int64_t rows) const {
    entry_(matrix, vectors, results, rows);
  }

 private:
  Xbyak::Xmm sum(int number) const { return vec(number); }
  void emit_dots();
  void emit_rows(int rows);
  void emit_sums();
  Fetching later(int rows) const;
  void load_row(Xbyak::Xmm to, const Xbyak::RegExp& at, int64_t column);

  FewRowsShape shape_;
  int bytes_;  // of an element
  void (*entry_)(const void*, const float*, float*, int64_t) = nullptr;
};

}  // namespace partita::jit
