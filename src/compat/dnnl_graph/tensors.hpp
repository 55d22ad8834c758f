// SPDX-License-Identifier: Apache-2.0
// The tensor handle.
#pragma once

#include <functional>

#include "src/compat/dnnl_graph/abi.hpp"

struct dnnl_graph_tensor {
  dnnl_graph_logical_tensor_t desc{};
  dnnl_engine_t engine = nullptr;
  void* data = nullptr;
  size_t bytes = 0;                         ///< of the memory as `desc` tells it; kUnknownSize where it does not
  alignas(8) unsigned char scalar[8] = {};  ///< the value of a host scalar, which `data` points to
  std::function<void(void*)> free;          ///< empty: the memory is the caller's
  void* owned = nullptr;

  dnnl_graph_tensor() = default;
  dnnl_graph_tensor(const dnnl_graph_tensor&) = delete;
  dnnl_graph_tensor& operator=(const dnnl_graph_tensor&) = delete;
  ~dnnl_graph_tensor() {
    if (owned) free(owned);
  }
};
