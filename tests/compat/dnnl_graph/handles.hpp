// SPDX-License-Identifier: Apache-2.0
// The handles of the C interface for C++ tests, in the manner of dnnl_graph.hpp: owned, and filled by constructors.
#pragma once

#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl_common.h>

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/dnnl_graph.h"

namespace partita::test {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    EXPECT_EQ(Destroy(handle), dnnl_success);
  }
};
template <class T, auto Destroy>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroyer<Destroy>>;

using Allocator = Handle<dnnl_graph_allocator_t, dnnl_graph_allocator_destroy>;
using Engine = Handle<dnnl_engine_t, dnnl_engine_destroy>;
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;
using Op = Handle<dnnl_graph_op_t, dnnl_graph_op_destroy>;
using Graph = Handle<dnnl_graph_graph_t, dnnl_graph_graph_destroy>;
using PartitionHandle = Handle<dnnl_graph_partition_t, dnnl_graph_partition_destroy>;
using Compiled = Handle<dnnl_graph_compiled_partition_t, dnnl_graph_compiled_partition_destroy>;
using Tensor = Handle<dnnl_graph_tensor_t, dnnl_graph_tensor_destroy>;
using Lt = dnnl_graph_logical_tensor_t;
using Sizes = std::vector<int64_t>;

inline Engine make_engine() {
  dnnl_engine_t engine = nullptr;
  EXPECT_EQ(dnnl_engine_create(&engine, dnnl_cpu, 0), dnnl_success);
  return Engine(engine);
}

inline Stream make_stream(const Engine& engine) {
  dnnl_stream_t stream = nullptr;
  EXPECT_EQ(dnnl_stream_create(&stream, engine.get(), dnnl_stream_default_flags), dnnl_success);
  return Stream(stream);
}

inline Allocator make_allocator(dnnl_graph_host_allocate_f allocate, dnnl_graph_host_deallocate_f deallocate) {
  dnnl_graph_allocator_t made = nullptr;
  EXPECT_EQ(dnnl_graph_allocator_create(&made, allocate, deallocate), dnnl_success);
  return Allocator(made);
}

inline Engine make_engine(const Allocator& allocator) {
  dnnl_engine_t engine = nullptr;
  EXPECT_EQ(dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, allocator.get()), dnnl_success);
  return Engine(engine);
}

/// Strided and dense.
inline Lt lt(size_t id, const Sizes& dims, dnnl_data_type_t type = dnnl_f32,
             dnnl_graph_layout_type_t layout = dnnl_graph_layout_type_strided,
             dnnl_graph_tensor_property_t property = dnnl_graph_tensor_property_undef) {
  Lt made;
  EXPECT_EQ(dnnl_graph_logical_tensor_init_with_dims(&made, id, type, static_cast<int32_t>(dims.size()), dims.data(),
                                                     layout, property),
            dnnl_success);
  return made;
}

/// Rank unknown.
inline Lt unknown_lt(size_t id, dnnl_data_type_t type = dnnl_f32,
                     dnnl_graph_layout_type_t layout = dnnl_graph_layout_type_any) {
  Lt made;
  EXPECT_EQ(dnnl_graph_logical_tensor_init(&made, id, type, DNNL_GRAPH_UNKNOWN_NDIMS, layout,
                                           dnnl_graph_tensor_property_undef),
            dnnl_success);
  return made;
}

inline Op make_op(size_t id, dnnl_graph_op_kind_t kind, const std::vector<Lt>& inputs, const std::vector<Lt>& outputs,
                  const char* name = "") {
  dnnl_graph_op_t op = nullptr;
  EXPECT_EQ(dnnl_graph_op_create(&op, id, kind, name), dnnl_success);
  for (const Lt& t : inputs) EXPECT_EQ(dnnl_graph_op_add_input(op, &t), dnnl_success);
  for (const Lt& t : outputs) EXPECT_EQ(dnnl_graph_op_add_output(op, &t), dnnl_success);
  return Op(op);
}

inline Graph make_graph(dnnl_engine_kind_t kind = dnnl_cpu) {
  dnnl_graph_graph_t graph = nullptr;
  EXPECT_EQ(dnnl_graph_graph_create(&graph, kind), dnnl_success);
  return Graph(graph);
}

inline dnnl_status_t add(const Graph& graph, const Op& op) { return dnnl_graph_add_op(graph.get(), op.get()); }

/// Finalizes and partitions.
inline std::vector<PartitionHandle> partitions_of(
    const Graph& graph, dnnl_graph_partition_policy_t policy = dnnl_graph_partition_policy_fusion) {
  EXPECT_EQ(dnnl_graph_graph_finalize(graph.get()), dnnl_success) << partita_last_error();
  EXPECT_EQ(dnnl_graph_graph_filter(graph.get(), policy), dnnl_success) << partita_last_error();
  size_t count = 0;
  EXPECT_EQ(dnnl_graph_graph_get_partition_num(graph.get(), &count), dnnl_success);
  std::vector<dnnl_graph_partition_t> raw(count);
  if (count > 0) {
    EXPECT_EQ(dnnl_graph_graph_get_partitions(graph.get(), count, raw.data()), dnnl_success);
  }
  std::vector<PartitionHandle> made;
  for (dnnl_graph_partition_t p : raw) made.emplace_back(p);
  return made;
}

inline PartitionHandle partition_of(const Op& op) {
  dnnl_graph_partition_t made = nullptr;
  EXPECT_EQ(dnnl_graph_partition_create_with_op(&made, op.get(), dnnl_cpu), dnnl_success) << partita_last_error();
  return PartitionHandle(made);
}

inline Compiled make_compiled(const PartitionHandle& partition) {
  dnnl_graph_compiled_partition_t made = nullptr;
  EXPECT_EQ(dnnl_graph_compiled_partition_create(&made, partition.get()), dnnl_success);
  return Compiled(made);
}

inline dnnl_status_t compile(const PartitionHandle& partition, const Compiled& into, const std::vector<Lt>& inputs,
                             const std::vector<Lt>& outputs, const Engine& engine) {
  std::vector<const Lt*> in, out;
  for (const Lt& t : inputs) in.push_back(&t);
  for (const Lt& t : outputs) out.push_back(&t);
  return dnnl_graph_partition_compile(partition.get(), into.get(), in.size(), in.data(), out.size(), out.data(),
                                      engine.get());
}

inline Tensor make_tensor(const Lt& t, const Engine& engine, void* data) {
  dnnl_graph_tensor_t made = nullptr;
  EXPECT_EQ(dnnl_graph_tensor_create(&made, &t, engine.get(), data), dnnl_success) << partita_last_error();
  return Tensor(made);
}

inline dnnl_status_t execute(const Compiled& compiled, const Stream& stream, const std::vector<const Tensor*>& inputs,
                             const std::vector<const Tensor*>& outputs, const Tensor* scratchpad = nullptr) {
  std::vector<const_dnnl_graph_tensor_t> in, out;
  for (const Tensor* t : inputs) in.push_back(t->get());
  for (const Tensor* t : outputs) out.push_back(t->get());
  if (!scratchpad)
    return dnnl_graph_compiled_partition_execute(compiled.get(), stream.get(), in.size(), in.data(), out.size(),
                                                 out.data());
  return dnnl_graph_compiled_partition_execute_v2(compiled.get(), stream.get(), in.size(), in.data(), out.size(),
                                                  out.data(), scratchpad->get());
}

/// "status (text)", so that a failing comparison shows both.
#define EXPECT_STATUS(call, wanted) EXPECT_EQ(static_cast<int>(call), static_cast<int>(wanted)) << partita_last_error()
#define ASSERT_STATUS(call, wanted) ASSERT_EQ(static_cast<int>(call), static_cast<int>(wanted)) << partita_last_error()

}  // namespace partita::test
