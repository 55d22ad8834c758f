// SPDX-License-Identifier: Apache-2.0
// Logical tensors between the C structure and Partita's value.
#pragma once

#include <limits>

#include "partita/logical_tensor.hpp"
#include "src/compat/dnnl_graph/abi.hpp"

namespace partita::abi {

inline constexpr size_t kUnknownSize = std::numeric_limits<size_t>::max();
inline constexpr size_t kNoId = std::numeric_limits<size_t>::max();

/// A rank above the limit is invalid_arguments: the structure was filled by hand.
Status check_rank(const dnnl_graph_logical_tensor_t& t);
/// Opaque layouts are other libraries': invalid_arguments, for the size of their memory is not known.
Status check_layout(const dnnl_graph_logical_tensor_t& t);
/// Only after check_rank.
logical_tensor from_c(const dnnl_graph_logical_tensor_t& t);
/// What is unknown, and what lies behind the rank, gets the markers of the C interface.
dnnl_graph_logical_tensor_t to_c(const logical_tensor& t);
/// Id kNoId, rank unknown, layout any.
dnnl_graph_logical_tensor_t blank_c();

bool is_host_scalar(const dnnl_graph_logical_tensor_t& t);
/// Bytes of its memory; kUnknownSize where layout, dims or strides are not known.
size_t bytes_of(const dnnl_graph_logical_tensor_t& t);

}  // namespace partita::abi
