// SPDX-License-Identifier: Apache-2.0
// Memory of a case: allocated when the case starts, freed when it ends, filled with repeatable numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/bench/shape.hpp"

namespace partita::bench {

/// Bytes at the begin of a page, so that every contender finds its tensors aligned alike.
class Memory {
 public:
  Memory() = default;
  /// Throws std::bad_alloc.
  explicit Memory(size_t bytes);
  void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
  std::unique_ptr<void, decltype(&std::free)> data_{nullptr, &std::free};
};

/// The interval that an input's numbers are drawn from.
struct Range {
  float low = -1;
  float high = 1;
};

/// Elements [low, high) that depend on `seed` and their position only.
void fill(void* data, const Shape& shape, Range range, uint64_t seed);
/// NaN in every floating type, so that elements that are never written are noticed.
void fill_with_nan(const Memory& memory);
/// Elements of `from` as f32.
void widen(const void* from, Dtype dtype, int64_t elements, float* to);

/// Empty where each element of `got` is within `tolerance` * max(|expected|, root mean square of what is expected);
/// else how many are not, and the first of them. `expected` may be of another floating type.
std::string difference(const void* got, Dtype got_dtype, const void* expected, Dtype expected_dtype, int64_t elements,
                       double tolerance);

}  // namespace partita::bench
