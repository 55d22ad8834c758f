// SPDX-License-Identifier: Apache-2.0
// What the careless client does with tensors.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/c_interface/client.hpp"

namespace partita::test {

constexpr size_t kMostMemory = size_t{1} << 22;

CClient::Tensor CClient::tensor_for(const Lt& t) {
  Tensor made;
  size_t bytes = 0;
  answered(dnnl_graph_logical_tensor_get_mem_size(&t, &bytes));
  void* data = nullptr;
  if (bytes <= kMostMemory) {
    made.memory.reset(std::malloc(std::max<size_t>(bytes, 1)));
    data = made.memory.get();
    std::memset(data, static_cast<int>(random_.pick({0, 1, 3, 0x3f, 0x7f, 0xff})), bytes);
    if (random_.whole(0, 15) == 0) data = DNNL_MEMORY_ALLOCATE;
  }
  if (random_.whole(0, 63) == 0) data = nullptr;
  if (static_cast<int>(t.property) == static_cast<int>(Property::host_scalar) && made.memory)
    answered(dnnl_graph_tensor_create_scalar(&made.handle, &t, data));
  else
    answered(dnnl_graph_tensor_create(&made.handle, &t, engine_of_all(), data));
  return made;
}

dnnl_graph_logical_tensor_t CClient::lt_of(const logical_tensor& from) {
  Lt made;
  const auto type = static_cast<dnnl_data_type_t>(from.dtype);
  int64_t dims[DNNL_MAX_NDIMS] = {}, strides[DNNL_MAX_NDIMS] = {};
  std::ranges::copy(from.dims, dims);
  std::ranges::copy(from.strides, strides);
  const auto property = static_cast<dnnl_graph_tensor_property_t>(random_.whole(0, 7) == 0 ? number(2) : 0);
  const auto status =
      random_.whole(0, 3) == 0
          ? dnnl_graph_logical_tensor_init_with_dims(&made, from.id, type, from.rank(), dims,
                                                     static_cast<dnnl_graph_layout_type_t>(number(random_.whole(0, 2))),
                                                     property)
          : dnnl_graph_logical_tensor_init_with_strides(&made, from.id, type, from.rank(), dims, strides, property);
  if (!answered(status)) return random_lt();
  spoil(made);
  return made;
}

dnnl_graph_logical_tensor_t CClient::random_lt() {
  Lt t = {};
  t.id = static_cast<size_t>(random_.whole(0, 40));
  t.ndims = static_cast<int>(number(random_.whole(-1, 5)));
  int64_t stride = 1;
  for (int d = DNNL_MAX_NDIMS - 1; d >= 0; --d) {
    t.dims[d] = dim();
    t.layout.strides[d] = number(stride);
    if (d < t.ndims && t.dims[d] > 0 && t.dims[d] < 100) stride *= t.dims[d];
  }
  t.data_type =
      static_cast<dnnl_data_type_t>(number(random_.pick<int64_t>({3, 3, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16})));
  t.property = static_cast<dnnl_graph_tensor_property_t>(number(random_.pick<int64_t>({0, 0, 1, 2, 3})));
  t.layout_type = static_cast<dnnl_graph_layout_type_t>(number(random_.pick<int64_t>({2, 2, 2, 1, 0, 3})));
  return t;
}

void CClient::spoil(Lt& t) {
  if (random_.whole(0, 31) != 0) return;
  const auto axis = static_cast<size_t>(random_.whole(0, DNNL_MAX_NDIMS - 1));
  switch (random_.whole(0, 6)) {
    case 0: t.dims[axis % static_cast<size_t>(std::max(t.ndims, 1))] = dim(); break;
    case 1: t.layout.strides[axis % static_cast<size_t>(std::max(t.ndims, 1))] = dim(); break;
    case 2: t.ndims = static_cast<int>(random_.whole(-1, 13)); break;
    case 3: t.data_type = static_cast<dnnl_data_type_t>(random_.whole(-1, 18)); break;
    case 4: t.layout_type = static_cast<dnnl_graph_layout_type_t>(random_.whole(-1, 4)); break;
    case 5: t.property = static_cast<dnnl_graph_tensor_property_t>(random_.whole(-1, 4)); break;
    default: t.id = static_cast<size_t>(random_.whole(0, 200));
  }
}

void CClient::ask_logical_tensor() {
  Lt made, other = random_lt();
  int64_t dims[DNNL_MAX_NDIMS] = {};
  for (int64_t& d : dims) d = dim();
  size_t bytes = 0;
  uint8_t equal = 0;
  const auto type = static_cast<dnnl_data_type_t>(number(3));
  const auto layout = static_cast<dnnl_graph_layout_type_t>(number(2));
  const auto property = static_cast<dnnl_graph_tensor_property_t>(number(0));
  const auto rank = static_cast<int32_t>(number(random_.whole(-1, 12)));
  if (!answered(random_.coin()
                    ? dnnl_graph_logical_tensor_init(&made, 7, type, rank, layout, property)
                    : dnnl_graph_logical_tensor_init_with_dims(&made, 7, type, rank, dims, layout, property)))
    made = random_lt();
  answered(dnnl_graph_logical_tensor_get_mem_size(&made, &bytes));
  if (random_.coin()) std::memcpy(&other, &made, sizeof made);
  answered(dnnl_graph_logical_tensor_is_equal(&made, &other, &equal));
}

void CClient::ask_tensor() {
  if (tensors_.size() < 8) tensors_.push_back(tensor_for(random_lt()));
  Tensor& t = tensors_[static_cast<size_t>(random_.whole(0, static_cast<int64_t>(tensors_.size()) - 1))];
  void* data = nullptr;
  dnnl_engine_t engine = nullptr;
  Lt desc;
  answered(dnnl_graph_tensor_get_data_handle(t.handle, &data));
  answered(dnnl_graph_tensor_get_engine(t.handle, &engine));
  answered(dnnl_graph_tensor_get_logical_tensor(t.handle, &desc));
  answered(dnnl_graph_tensor_set_data_handle(t.handle, random_.coin() ? nullptr : data));
}

}  // namespace partita::test
