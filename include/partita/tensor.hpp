// SPDX-License-Identifier: Apache-2.0
// tensor: a logical tensor with data.
#pragma once

#include "partita/logical_tensor.hpp"

namespace partita {

/// A logical tensor and the address of its first element. Does not own the data; the caller keeps it alive and
/// large enough (logical_tensor::size_bytes) while it is used.
struct tensor {
  logical_tensor desc;
  void* data = nullptr;

  tensor() = default;
  tensor(const logical_tensor& desc, void* data) : desc(desc), data(data) {}
};

}  // namespace partita
