/* SPDX-License-Identifier: Apache-2.0
 *
 * A client written in C: the whole way from operators to a result, and the address of every function. Prints the first
 * thing that is wrong and answers 1.
 */
#include <oneapi/dnnl/dnnl_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partita/dnnl_graph.h"

#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, partita_last_error()); \
      return 1;                                                                         \
    }                                                                                   \
  } while (0)
#define OK(call) CHECK((call) == dnnl_success)

static int allocations;
static void* take(size_t size, size_t alignment) {
  ++allocations;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
static void give_back(void* memory) { free(memory); }

typedef void (*any_function)(void);
#define ADDRESS(name) (any_function) dnnl_graph_##name
static const any_function functions[] = {ADDRESS(allocator_create),
                                         ADDRESS(allocator_destroy),
                                         ADDRESS(make_engine_with_allocator),
                                         ADDRESS(logical_tensor_init),
                                         ADDRESS(logical_tensor_init_with_dims),
                                         ADDRESS(logical_tensor_init_with_strides),
                                         ADDRESS(logical_tensor_get_mem_size),
                                         ADDRESS(logical_tensor_is_equal),
                                         ADDRESS(tensor_create),
                                         ADDRESS(tensor_create_scalar),
                                         ADDRESS(tensor_destroy),
                                         ADDRESS(tensor_get_data_handle),
                                         ADDRESS(tensor_set_data_handle),
                                         ADDRESS(tensor_get_engine),
                                         ADDRESS(tensor_get_logical_tensor),
                                         ADDRESS(op_create),
                                         ADDRESS(op_destroy),
                                         ADDRESS(op_add_input),
                                         ADDRESS(op_add_output),
                                         ADDRESS(op_set_attr_f32),
                                         ADDRESS(op_set_attr_bool),
                                         ADDRESS(op_set_attr_s64),
                                         ADDRESS(op_set_attr_str),
                                         ADDRESS(op_get_id),
                                         ADDRESS(op_get_kind),
                                         ADDRESS(graph_create),
                                         ADDRESS(graph_create_with_fpmath_mode),
                                         ADDRESS(graph_destroy),
                                         ADDRESS(graph_set_fpmath_mode),
                                         ADDRESS(graph_get_fpmath_mode),
                                         ADDRESS(add_op),
                                         ADDRESS(graph_finalize),
                                         ADDRESS(graph_is_finalized),
                                         ADDRESS(graph_filter),
                                         ADDRESS(graph_get_partition_num),
                                         ADDRESS(graph_get_partitions),
                                         ADDRESS(partition_create_with_op),
                                         ADDRESS(partition_destroy),
                                         ADDRESS(partition_get_op_num),
                                         ADDRESS(partition_get_ops),
                                         ADDRESS(partition_get_id),
                                         ADDRESS(partition_get_kind),
                                         ADDRESS(partition_compile),
                                         ADDRESS(partition_get_input_ports_num),
                                         ADDRESS(partition_get_input_ports),
                                         ADDRESS(partition_get_output_ports_num),
                                         ADDRESS(partition_get_output_ports),
                                         ADDRESS(partition_is_supported),
                                         ADDRESS(partition_get_engine_kind),
                                         ADDRESS(compiled_partition_create),
                                         ADDRESS(compiled_partition_execute),
                                         ADDRESS(compiled_partition_execute_v2),
                                         ADDRESS(compiled_partition_destroy),
                                         ADDRESS(compiled_partition_query_logical_tensor),
                                         ADDRESS(compiled_partition_get_inplace_ports),
                                         ADDRESS(compiled_partition_get_scratchpad_logical_tensor),
                                         ADDRESS(get_compiled_partition_cache_capacity),
                                         ADDRESS(set_compiled_partition_cache_capacity),
                                         ADDRESS(set_constant_tensor_cache),
                                         ADDRESS(get_constant_tensor_cache),
                                         ADDRESS(set_constant_tensor_cache_capacity),
                                         ADDRESS(get_constant_tensor_cache_capacity),
                                         ADDRESS(set_dump_mode)};

/* y = relu(x + x) * scale */
int main(void) {
  const int64_t dims[DNNL_MAX_NDIMS] = {2, 2};
  const float x[4] = {-1, 2, -3, 4}, scale[4] = {1, 2, 3, 4};
  float y[4] = {0};
  size_t i, count = 0;

  for (i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) CHECK(functions[i] != NULL);
  CHECK(strlen(partita_version()) > 0 && strlen(partita_last_error()) == 0);

  dnnl_graph_allocator_t allocator = NULL;
  dnnl_engine_t engine = NULL;
  dnnl_stream_t stream = NULL;
  OK(dnnl_graph_allocator_create(&allocator, take, give_back));
  OK(dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, allocator));
  OK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));

  dnnl_graph_logical_tensor_t t[5];
  for (i = 0; i < 5; ++i)
    OK(dnnl_graph_logical_tensor_init_with_dims(&t[i], i, dnnl_f32, 2, dims, dnnl_graph_layout_type_strided,
                                                dnnl_graph_tensor_property_undef));
  dnnl_graph_graph_t graph = NULL;
  dnnl_graph_op_t op[3] = {NULL, NULL, NULL};
  OK(dnnl_graph_graph_create(&graph, dnnl_cpu));
  OK(dnnl_graph_op_create(&op[0], 0, dnnl_graph_op_add, "sum"));
  OK(dnnl_graph_op_add_input(op[0], &t[0]));
  OK(dnnl_graph_op_add_input(op[0], &t[0]));
  OK(dnnl_graph_op_add_output(op[0], &t[1]));
  OK(dnnl_graph_op_create(&op[1], 1, dnnl_graph_op_relu, "relu"));
  OK(dnnl_graph_op_add_input(op[1], &t[1]));
  OK(dnnl_graph_op_add_output(op[1], &t[2]));
  OK(dnnl_graph_op_create(&op[2], 2, dnnl_graph_op_multiply, "product"));
  OK(dnnl_graph_op_add_input(op[2], &t[2]));
  OK(dnnl_graph_op_add_input(op[2], &t[3]));
  OK(dnnl_graph_op_add_output(op[2], &t[4]));
  for (i = 0; i < 3; ++i) {
    OK(dnnl_graph_add_op(graph, op[i]));
    OK(dnnl_graph_op_destroy(op[i]));
  }
  OK(dnnl_graph_graph_finalize(graph));
  OK(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion));
  OK(dnnl_graph_graph_get_partition_num(graph, &count));
  CHECK(count == 1);

  dnnl_graph_partition_t partition = NULL;
  dnnl_graph_compiled_partition_t compiled = NULL;
  const dnnl_graph_logical_tensor_t *inputs[2] = {&t[3], &t[0]}, *outputs[1] = {&t[4]};
  OK(dnnl_graph_graph_get_partitions(graph, 1, &partition));
  OK(dnnl_graph_graph_destroy(graph));
  OK(dnnl_graph_compiled_partition_create(&compiled, partition));
  OK(dnnl_graph_partition_compile(partition, compiled, 2, inputs, 1, outputs, engine));

  dnnl_graph_tensor_t in[2] = {NULL, NULL}, out = NULL;
  OK(dnnl_graph_tensor_create(&in[0], &t[3], engine, (void*)scale));
  OK(dnnl_graph_tensor_create(&in[1], &t[0], engine, (void*)x));
  OK(dnnl_graph_tensor_create(&out, &t[4], engine, DNNL_MEMORY_ALLOCATE));
  CHECK(allocations >= 1);
  const_dnnl_graph_tensor_t const_in[2] = {in[0], in[1]}, const_out[1] = {out};
  OK(dnnl_graph_compiled_partition_execute(compiled, stream, 2, const_in, 1, const_out));
  OK(dnnl_stream_wait(stream));
  void* result = NULL;
  OK(dnnl_graph_tensor_get_data_handle(out, &result));
  memcpy(y, result, sizeof(y));
  CHECK(y[0] == 0 && y[1] == 8 && y[2] == 0 && y[3] == 32);

  CHECK(dnnl_graph_compiled_partition_execute(compiled, NULL, 2, const_in, 1, const_out) == dnnl_invalid_arguments);
  CHECK(strcmp(partita_last_error(), "`stream` is null") == 0);

  for (i = 0; i < 2; ++i) OK(dnnl_graph_tensor_destroy(in[i]));
  OK(dnnl_graph_tensor_destroy(out));
  OK(dnnl_graph_compiled_partition_destroy(compiled));
  OK(dnnl_graph_partition_destroy(partition));
  OK(dnnl_stream_destroy(stream));
  OK(dnnl_engine_destroy(engine));
  OK(dnnl_graph_allocator_destroy(allocator));
  return 0;
}
