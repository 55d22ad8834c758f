// SPDX-License-Identifier: Apache-2.0
// Tensors, allocators and engines through the C interface.
#include <atomic>
#include <cstdlib>

#include "tests/compat/dnnl_graph/handles.hpp"

namespace partita::test {
namespace {

constexpr auto kHostScalar = static_cast<dnnl_graph_tensor_property_t>(3);

std::atomic<int> taken = 0, given_back = 0;
void* counting_malloc(size_t size, size_t alignment) {
  ++taken;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void counting_free(void* p) {
  ++given_back;
  std::free(p);
}
void* no_memory(size_t, size_t) { return nullptr; }
void never_called(void*) { std::abort(); }

Lt host_scalar(dnnl_data_type_t type = dnnl_f32) {
  return lt(1, {}, type, dnnl_graph_layout_type_strided, kHostScalar);
}

void* data_of(const Tensor& t) {
  void* data = nullptr;
  EXPECT_EQ(dnnl_graph_tensor_get_data_handle(t.get(), &data), dnnl_success);
  return data;
}

TEST(dnnl_graph_allocator, is_made_and_destroyed) {
  dnnl_graph_allocator_t allocator = nullptr;
  ASSERT_EQ(dnnl_graph_allocator_create(&allocator, nullptr, nullptr), dnnl_success);
  EXPECT_EQ(dnnl_graph_allocator_destroy(allocator), dnnl_success);
  EXPECT_STATUS(dnnl_graph_allocator_destroy(nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_allocator_create(nullptr, nullptr, nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_allocator, with_one_function_missing_is_the_built_in_one) {
  const Allocator allocator = make_allocator(no_memory, nullptr);
  const Engine engine = make_engine(allocator);
  EXPECT_NE(data_of(make_tensor(lt(1, {4}), engine, DNNL_MEMORY_ALLOCATE)), nullptr);
}

TEST(dnnl_graph_engine, with_allocator_refuses) {
  const Allocator allocator = make_allocator(nullptr, nullptr);
  dnnl_engine_t engine = nullptr;
  EXPECT_STATUS(dnnl_graph_make_engine_with_allocator(nullptr, dnnl_cpu, 0, allocator.get()), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, nullptr), dnnl_invalid_arguments);
  // What libdnnl answers is passed on.
  EXPECT_NE(dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 99, allocator.get()), dnnl_success);
  EXPECT_EQ(engine, nullptr);
}

TEST(dnnl_graph_tensor, takes_the_callers_memory) {
  const Engine engine = make_engine();
  float numbers[6] = {};
  const Tensor t = make_tensor(lt(3, {2, 3}), engine, numbers);
  EXPECT_EQ(data_of(t), numbers);
  EXPECT_EQ(dnnl_graph_tensor_set_data_handle(t.get(), nullptr), dnnl_success);
  EXPECT_EQ(data_of(t), nullptr);
  dnnl_engine_t of = nullptr;
  EXPECT_EQ(dnnl_graph_tensor_get_engine(t.get(), &of), dnnl_success);
  EXPECT_EQ(of, engine.get());
  Lt desc;
  EXPECT_EQ(dnnl_graph_tensor_get_logical_tensor(t.get(), &desc), dnnl_success);
  EXPECT_EQ(desc.id, 3u);
  EXPECT_EQ(desc.dims[1], 3);
}

TEST(dnnl_graph_tensor, takes_the_librarys_memory_from_the_allocator) {
  taken = given_back = 0;
  {
    const Allocator allocator = make_allocator(counting_malloc, counting_free);
    const Engine engine = make_engine(allocator);
    const Tensor t = make_tensor(lt(3, {2, 3}), engine, DNNL_MEMORY_ALLOCATE);
    EXPECT_EQ(taken, 1);
    ASSERT_NE(data_of(t), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data_of(t)) % 64, 0u);
    std::memset(data_of(t), 1, 24);
    float own = 0;
    EXPECT_EQ(dnnl_graph_tensor_set_data_handle(t.get(), &own), dnnl_success);  // the buffer is still given back
  }
  EXPECT_EQ(given_back, 1);
}

TEST(dnnl_graph_tensor, create_refuses) {
  const Engine engine = make_engine();
  const Lt desc = lt(1, {4}), open = unknown_lt(1), scalar = host_scalar();
  const Lt foreign = lt(1, {4}, dnnl_f32, dnnl_graph_layout_type_opaque);
  dnnl_graph_tensor_t t = nullptr;
  void* data = nullptr;
  EXPECT_STATUS(dnnl_graph_tensor_create(nullptr, &desc, engine.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create(&t, nullptr, engine.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create(&t, &desc, nullptr, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create(&t, &scalar, engine.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create(&t, &foreign, engine.get(), &data), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create(&t, &open, engine.get(), DNNL_MEMORY_ALLOCATE), dnnl_invalid_arguments);
  const Allocator empty = make_allocator(no_memory, never_called);
  const Engine poor = make_engine(empty);
  EXPECT_STATUS(dnnl_graph_tensor_create(&t, &desc, poor.get(), DNNL_MEMORY_ALLOCATE), dnnl_out_of_memory);
  EXPECT_EQ(t, nullptr);
  EXPECT_STATUS(dnnl_graph_tensor_destroy(nullptr), dnnl_success);

  const Tensor made = make_tensor(desc, engine, nullptr);
  dnnl_engine_t of = nullptr;
  Lt got;
  EXPECT_STATUS(dnnl_graph_tensor_get_data_handle(nullptr, &data), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_get_data_handle(made.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_set_data_handle(nullptr, &data), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_get_engine(nullptr, &of), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_get_engine(made.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_get_logical_tensor(nullptr, &got), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_get_logical_tensor(made.get(), nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_tensor, host_scalars_hide_their_value) {
  const Lt desc = host_scalar(), plain = lt(1, {});
  float value = 3;
  dnnl_graph_tensor_t raw = nullptr;
  ASSERT_EQ(dnnl_graph_tensor_create_scalar(&raw, &desc, &value), dnnl_success);
  const Tensor t(raw);
  EXPECT_EQ(data_of(t), nullptr);
  dnnl_engine_t of = reinterpret_cast<dnnl_engine_t>(&value);
  EXPECT_EQ(dnnl_graph_tensor_get_engine(t.get(), &of), dnnl_success);
  EXPECT_EQ(of, nullptr);
  EXPECT_STATUS(dnnl_graph_tensor_set_data_handle(t.get(), &value), dnnl_invalid_arguments);

  for (const auto layout : {dnnl_graph_layout_type_undef, dnnl_graph_layout_type_any}) {
    Lt open = desc;
    open.layout_type = layout;
    ASSERT_EQ(dnnl_graph_tensor_create_scalar(&raw, &open, &value), dnnl_success);
    const Tensor made(raw);
  }

  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(nullptr, &desc, &value), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&raw, nullptr, &value), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&raw, &plain, &value), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&raw, &desc, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&raw, &desc, DNNL_MEMORY_ALLOCATE), dnnl_invalid_arguments);
  Lt many = desc;
  many.ndims = DNNL_MAX_NDIMS + 1;
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&raw, &many, &value), dnnl_invalid_arguments);
}

}  // namespace
}  // namespace partita::test
