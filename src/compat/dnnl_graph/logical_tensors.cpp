// SPDX-License-Identifier: Apache-2.0
// Logical tensors: conversion, construction, size and equality.
#include "src/compat/dnnl_graph/logical_tensors.hpp"

#include <algorithm>
#include <span>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"

namespace partita::abi {
namespace {

using Raw = dnnl_graph_logical_tensor_t;

std::span<const int64_t> dims_of(const Raw& t) { return {t.dims, static_cast<size_t>(std::max(t.ndims, 0))}; }
std::span<const int64_t> strides_of(const Raw& t) {
  return {t.layout.strides, static_cast<size_t>(std::max(t.ndims, 0))};
}

/// Types by number: oneDNN's headers before 3.8 lack some of these names.
constexpr int kE8m0 = 13, kF4E2m1 = 14, kF4E3m0 = 15, kS64 = 16;

/// 0 for types without size.
size_t bits_of(dnnl_data_type_t type) {
  switch (static_cast<int>(type)) {
    case dnnl_f64:
    case kS64: return 64;
    case dnnl_f32:
    case dnnl_s32: return 32;
    case dnnl_f16:
    case dnnl_bf16: return 16;
    case dnnl_s8:
    case dnnl_u8:
    case dnnl_boolean:
    case dnnl_f8_e5m2:
    case dnnl_f8_e4m3:
    case kE8m0: return 8;
    case dnnl_s4:
    case dnnl_u4:
    case kF4E2m1:
    case kF4E3m0: return 4;
    default: return 0;
  }
}

Status check_host_scalar(dnnl_data_type_t type, int ndims, dnnl_graph_tensor_property_t property) {
  if (static_cast<int>(property) != static_cast<int>(Property::host_scalar)) return {};
  if (ndims != 0) return fail(Code::invalid_arguments, str("a host scalar has rank 0, found ", ndims));
  const auto t = static_cast<Dtype>(type);
  if (t == Dtype::s32 || t == Dtype::f32 || t == Dtype::s64) return {};
  return fail(Code::invalid_arguments, str("a host scalar is of type s32, f32 or s64, found ", name_of(t)));
}

Status check_known_rank(int ndims) {
  if (ndims >= 0 && ndims <= DNNL_MAX_NDIMS) return {};
  return fail(Code::invalid_arguments, str("`ndims` must be in [0, ", DNNL_MAX_NDIMS, "], found ", ndims));
}

/// Dims and strides unknown.
Raw made(size_t id, dnnl_data_type_t type, int ndims, dnnl_graph_layout_type_t layout,
         dnnl_graph_tensor_property_t property) {
  Raw t{};
  t.id = id;
  t.ndims = ndims;
  t.data_type = type;
  t.layout_type = layout;
  t.property = property;
  std::ranges::fill(t.dims, DNNL_GRAPH_UNKNOWN_DIM);
  if (layout == dnnl_graph_layout_type_opaque)
    t.layout.layout_id = 0;
  else
    std::ranges::fill(t.layout.strides, DNNL_GRAPH_UNKNOWN_DIM);
  if (ndims == 0) {
    t.dims[0] = 0;
    if (layout == dnnl_graph_layout_type_strided) t.layout.strides[0] = 0;
  }
  return t;
}

bool equal(const Raw& a, const Raw& b) {
  if (a.id != b.id || a.data_type != b.data_type || a.ndims != b.ndims || a.property != b.property) return false;
  if (!std::ranges::equal(dims_of(a), dims_of(b)) || a.layout_type != b.layout_type) return false;
  if (a.layout_type == dnnl_graph_layout_type_strided) return std::ranges::equal(strides_of(a), strides_of(b));
  return a.layout_type != dnnl_graph_layout_type_opaque || a.layout.layout_id == b.layout.layout_id;
}

}  // namespace

Status check_rank(const Raw& t) {
  if (t.ndims <= DNNL_MAX_NDIMS) return {};
  return fail(Code::invalid_arguments,
              str("logical tensor ", t.id, ": the rank is at most ", DNNL_MAX_NDIMS, ", found ", t.ndims));
}

logical_tensor from_c(const Raw& t) {
  logical_tensor made(t.id, static_cast<Dtype>(t.data_type), static_cast<Layout>(t.layout_type));
  made.property = static_cast<Property>(t.property);
  made.rank_known = t.ndims >= 0;
  made.dims = Dims(dims_of(t));
  if (made.layout == Layout::strided) made.strides = Dims(strides_of(t));
  if (made.layout == Layout::opaque) made.layout_id = t.layout.layout_id;
  return made;
}

Raw to_c(const logical_tensor& t) {
  Raw made =
      abi::made(t.id, static_cast<dnnl_data_type_t>(t.dtype), t.rank_known ? t.rank() : DNNL_GRAPH_UNKNOWN_NDIMS,
                static_cast<dnnl_graph_layout_type_t>(t.layout), static_cast<dnnl_graph_tensor_property_t>(t.property));
  std::ranges::copy(t.dims, made.dims);
  if (t.layout == Layout::strided) std::ranges::copy(t.strides, made.layout.strides);
  if (t.layout == Layout::opaque) made.layout.layout_id = t.layout_id;
  return made;
}

Raw blank_c() {
  return made(kNoId, dnnl_data_type_undef, DNNL_GRAPH_UNKNOWN_NDIMS, dnnl_graph_layout_type_any,
              dnnl_graph_tensor_property_undef);
}

bool is_host_scalar(const Raw& t) { return static_cast<int>(t.property) == static_cast<int>(Property::host_scalar); }

Status check_layout(const Raw& t) {
  if (t.layout_type != dnnl_graph_layout_type_opaque) return {};
  return fail(Code::invalid_arguments, str("layout id ", t.layout.layout_id, " was not made by Partita"));
}

size_t bytes_of(const Raw& t) {
  if (t.layout_type != dnnl_graph_layout_type_strided || t.ndims < 0) return kUnknownSize;
  size_t count = 1, span = 1;  // up to the last element, which lies farther where axes reach over each other
  for (int d = 0; d < t.ndims; ++d)
    if (t.dims[d] == 0) return 0;
  for (int d = 0; d < t.ndims; ++d) {
    const int64_t stride = t.dims[d] == 1 ? 1 : t.layout.strides[d];
    size_t reach = 0;
    if (t.dims[d] < 0 || stride < 0 ||
        __builtin_mul_overflow(static_cast<size_t>(t.dims[d]), static_cast<size_t>(stride), &reach) ||
        __builtin_add_overflow(span, reach - static_cast<size_t>(stride), &span))
      return kUnknownSize;
    count = std::max(count, reach);
  }
  count = std::max(count, span);
  size_t bits = 0;
  if (__builtin_mul_overflow(count, bits_of(t.data_type), &bits) || bits > kUnknownSize - 7) return kUnknownSize;
  return (bits + 7) / 8;
}

}  // namespace partita::abi

using namespace partita;
using namespace partita::abi;

dnnl_status_t dnnl_graph_logical_tensor_init(dnnl_graph_logical_tensor_t* t, size_t tid, dnnl_data_type_t dtype,
                                             int32_t ndims, dnnl_graph_layout_type_t ltype,
                                             dnnl_graph_tensor_property_t ptype) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"logical_tensor", t}}));
    if (ndims > DNNL_MAX_NDIMS) return check_known_rank(ndims);
    PT_TRY(check_host_scalar(dtype, ndims, ptype));
    *t = made(tid, dtype, ndims, ltype, ptype);
    return {};
  });
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_dims(dnnl_graph_logical_tensor_t* t, size_t tid,
                                                       dnnl_data_type_t dtype, int32_t ndims, const dnnl_dims_t dims,
                                                       dnnl_graph_layout_type_t ltype,
                                                       dnnl_graph_tensor_property_t ptype) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"logical_tensor", t}}));
    PT_TRY(check_known_rank(ndims));
    if (ndims > 0) PT_TRY(need({{"dims", dims}}));
    PT_TRY(check_host_scalar(dtype, ndims, ptype));
    Raw filled = made(tid, dtype, ndims, ltype, ptype);
    std::copy_n(dims, ndims, filled.dims);
    const bool known = std::ranges::all_of(dims_of(filled), [](int64_t d) { return d >= 0; });
    if (ltype == dnnl_graph_layout_type_strided && known)
      std::ranges::copy(dense_strides(Dims(dims_of(filled))), filled.layout.strides);
    *t = filled;
    return {};
  });
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_strides(dnnl_graph_logical_tensor_t* t, size_t tid,
                                                          dnnl_data_type_t dtype, int32_t ndims, const dnnl_dims_t dims,
                                                          const dnnl_dims_t strides,
                                                          dnnl_graph_tensor_property_t ptype) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"logical_tensor", t}}));
    PT_TRY(check_known_rank(ndims));
    if (ndims > 0) PT_TRY(need({{"dims", dims}, {"strides", strides}}));
    PT_TRY(check_host_scalar(dtype, ndims, ptype));
    Raw filled = made(tid, dtype, ndims, dnnl_graph_layout_type_strided, ptype);
    std::copy_n(dims, ndims, filled.dims);
    std::copy_n(strides, ndims, filled.layout.strides);
    *t = filled;
    return {};
  });
}

dnnl_status_t dnnl_graph_logical_tensor_get_mem_size(const dnnl_graph_logical_tensor_t* t, size_t* size) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"logical_tensor", t}, {"size", size}}));
    PT_TRY(check_rank(*t));
    PT_TRY(check_layout(*t));
    *size = bytes_of(*t);
    return {};
  });
}

dnnl_status_t dnnl_graph_logical_tensor_is_equal(const dnnl_graph_logical_tensor_t* lt1,
                                                 const dnnl_graph_logical_tensor_t* lt2, uint8_t* is_equal) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"lt1", lt1}, {"lt2", lt2}, {"is_equal", is_equal}}));
    PT_TRY(check_rank(*lt1));
    PT_TRY(check_rank(*lt2));
    *is_equal = equal(*lt1, *lt2);
    return {};
  });
}
