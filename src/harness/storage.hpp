// SPDX-License-Identifier: Apache-2.0
// Storage: the memory of one tensor of a graph run.
#pragma once

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "partita/tensor.hpp"
#include "src/base/dtype.hpp"

namespace partita {

struct Storage {
  logical_tensor desc;
  size_t bytes = 0;
  std::unique_ptr<void, decltype(&std::free)> data{nullptr, &std::free};

  Storage() = default;
  /// Filled with 0xff: NaN in every floating type, so that elements never written are noticed. Without data where there
  /// is no memory.
  explicit Storage(const logical_tensor& desc) : desc(desc), bytes(desc.size_bytes()) {
    constexpr size_t kAlignment = 64;
    if (bytes > std::numeric_limits<size_t>::max() - kAlignment) return;  // like any other size that there is not
    const size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
    data.reset(std::aligned_alloc(kAlignment, rounded));
    if (data) std::memset(data.get(), 0xff, rounded);
  }
  tensor as_tensor() const { return {desc, data.get()}; }
};

}  // namespace partita
