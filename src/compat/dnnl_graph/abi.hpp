// SPDX-License-Identifier: Apache-2.0
// The C interface's declarations: from the installed oneDNN where its headers have the graph part, completed by our own
// header, which has them all. Layouts and numbers are checked here, whichever they come from.
#pragma once

#if __has_include(<oneapi/dnnl/dnnl_graph.h>)
#include <oneapi/dnnl/dnnl_graph.h>
#endif

#include <cstddef>

#include "partita/dnnl_graph.h"
#include "partita/op.hpp"
#include "partita/status.hpp"

namespace partita::abi {

static_assert(sizeof(size_t) == 8 && sizeof(int) == 4 && sizeof(dnnl_data_type_t) == 4);
static_assert(sizeof(dnnl_graph_logical_tensor_t) == 224 && alignof(dnnl_graph_logical_tensor_t) == 8);
static_assert(offsetof(dnnl_graph_logical_tensor_t, id) == 0);
static_assert(offsetof(dnnl_graph_logical_tensor_t, ndims) == 8);
static_assert(offsetof(dnnl_graph_logical_tensor_t, dims) == 16);
static_assert(offsetof(dnnl_graph_logical_tensor_t, data_type) == 112);
static_assert(offsetof(dnnl_graph_logical_tensor_t, property) == 116);
static_assert(offsetof(dnnl_graph_logical_tensor_t, layout_type) == 120);
static_assert(offsetof(dnnl_graph_logical_tensor_t, layout) == 128);
static_assert(sizeof(dnnl_graph_inplace_pair_t) == 16 && offsetof(dnnl_graph_inplace_pair_t, output_id) == 8);

static_assert(DNNL_MAX_NDIMS == kMaxRank && DNNL_GRAPH_UNKNOWN_DIM == kUnknownDim);
static_assert(dnnl_success == static_cast<int>(Code::success));
static_assert(dnnl_invalid_data_type == static_cast<int>(Code::invalid_data_type));
static_assert(dnnl_u4 == 12 && dnnl_boolean == static_cast<int>(Dtype::boolean));
static_assert(dnnl_graph_op_select == static_cast<int>(OpKind::Select));
static_assert(dnnl_graph_op_attr_rounding_type == static_cast<int>(Attr::rounding_type));
static_assert(dnnl_graph_layout_type_opaque == static_cast<int>(Layout::opaque));
static_assert(dnnl_fpmath_mode_tf32 == static_cast<int>(FpMath::tf32));

}  // namespace partita::abi
