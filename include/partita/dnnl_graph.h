/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of oneDNN Graph as libpartita_dnnl_graph.so offers it: for clients on machines whose oneDNN headers
 * lack the graph part, and with what Partita adds. Names, numbers and layouts are those of oneDNN 3.x. May be included
 * after oneDNN's own headers; then it declares only what those do not have.
 *
 * How each function differs from oneDNN's: docs/dnnl_graph.md. A handle may be read by several threads at once and
 * changed by one; everything else is thread-safe.
 */
#ifndef PARTITA_DNNL_GRAPH_H
#define PARTITA_DNNL_GRAPH_H

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN */
#ifdef __cplusplus
extern "C" {
#endif

#ifndef ONEAPI_DNNL_DNNL_COMMON_TYPES_H
typedef enum {
  dnnl_success = 0, dnnl_out_of_memory = 1, dnnl_invalid_arguments = 2, dnnl_unimplemented = 3,
  dnnl_last_impl_reached = 4, dnnl_runtime_error = 5, dnnl_not_required = 6, dnnl_invalid_graph = 7,
  dnnl_invalid_graph_op = 8, dnnl_invalid_shape = 9, dnnl_invalid_data_type = 10
} dnnl_status_t;

typedef enum {
  dnnl_data_type_undef = 0, dnnl_f16 = 1, dnnl_bf16 = 2, dnnl_f32 = 3, dnnl_s32 = 4, dnnl_s8 = 5, dnnl_u8 = 6,
  dnnl_f64 = 7, dnnl_boolean = 8, dnnl_f8_e5m2 = 9, dnnl_f8_e4m3 = 10, dnnl_s4 = 11, dnnl_u4 = 12, dnnl_e8m0 = 13,
  dnnl_f4_e2m1 = 14, dnnl_f4_e3m0 = 15, dnnl_s64 = 16
} dnnl_data_type_t;

typedef enum {
  dnnl_fpmath_mode_strict, dnnl_fpmath_mode_bf16, dnnl_fpmath_mode_f16, dnnl_fpmath_mode_any, dnnl_fpmath_mode_tf32
} dnnl_fpmath_mode_t;

typedef enum { dnnl_any_engine, dnnl_cpu, dnnl_gpu } dnnl_engine_kind_t;

#define DNNL_MAX_NDIMS 12
typedef int64_t dnnl_dim_t;
typedef dnnl_dim_t dnnl_dims_t[DNNL_MAX_NDIMS];

/* Made and destroyed by libdnnl. */
typedef struct dnnl_engine* dnnl_engine_t;
typedef struct dnnl_stream* dnnl_stream_t;

#define DNNL_MEMORY_NONE (NULL)
#define DNNL_MEMORY_ALLOCATE ((void*)(size_t)-1)
#endif /* common types */

#ifndef ONEAPI_DNNL_DNNL_GRAPH_TYPES_H
#define DNNL_GRAPH_UNKNOWN_NDIMS -1
#define DNNL_GRAPH_UNKNOWN_DIM INT64_MIN

typedef enum {
  dnnl_graph_layout_type_undef = 0, dnnl_graph_layout_type_any = 1, dnnl_graph_layout_type_strided = 2,
  dnnl_graph_layout_type_opaque = 3
} dnnl_graph_layout_type_t;

typedef enum {
  dnnl_graph_tensor_property_undef = 0, dnnl_graph_tensor_property_variable = 1,
  dnnl_graph_tensor_property_constant = 2, dnnl_graph_tensor_property_host_scalar = 3
} dnnl_graph_tensor_property_t;

/* Strides are counted in elements. ndims is -1 where the rank is unknown and 0 for a scalar. */
typedef struct {
  size_t id;
  int ndims;
  dnnl_dims_t dims;
  dnnl_data_type_t data_type;
  dnnl_graph_tensor_property_t property;
  dnnl_graph_layout_type_t layout_type;
  union {
    dnnl_dims_t strides;
    size_t layout_id;
  } layout;
} dnnl_graph_logical_tensor_t;

typedef enum { dnnl_graph_partition_policy_fusion = 1, dnnl_graph_partition_policy_debug = 2 } dnnl_graph_partition_policy_t;

typedef enum {
  dnnl_graph_op_abs = 0, dnnl_graph_op_abs_backward = 1, dnnl_graph_op_add = 2, dnnl_graph_op_avg_pool = 3,
  dnnl_graph_op_avg_pool_backward = 4, dnnl_graph_op_batch_norm_backward = 5,
  dnnl_graph_op_batch_norm_forward_training = 6, dnnl_graph_op_batch_norm_inference = 7, dnnl_graph_op_bias_add = 8,
  dnnl_graph_op_bias_add_backward = 9, dnnl_graph_op_clamp = 10, dnnl_graph_op_clamp_backward = 11,
  dnnl_graph_op_concat = 12, dnnl_graph_op_convolution = 13, dnnl_graph_op_convolution_backward_data = 14,
  dnnl_graph_op_convolution_backward_weights = 15, dnnl_graph_op_conv_transpose = 16,
  dnnl_graph_op_conv_transpose_backward_data = 17, dnnl_graph_op_conv_transpose_backward_weights = 18,
  dnnl_graph_op_dequantize = 19, dnnl_graph_op_divide = 20, dnnl_graph_op_dynamic_dequantize = 21,
  dnnl_graph_op_dynamic_quantize = 22, dnnl_graph_op_elu = 23, dnnl_graph_op_elu_backward = 24,
  dnnl_graph_op_end = 25, dnnl_graph_op_exp = 26, dnnl_graph_op_gelu = 27, dnnl_graph_op_gelu_backward = 28,
  dnnl_graph_op_hard_swish = 29, dnnl_graph_op_hard_swish_backward = 30, dnnl_graph_op_interpolate = 31,
  dnnl_graph_op_interpolate_backward = 32, dnnl_graph_op_layer_norm = 33, dnnl_graph_op_layer_norm_backward = 34,
  dnnl_graph_op_leaky_relu = 35, dnnl_graph_op_log = 36, dnnl_graph_op_log_softmax = 37,
  dnnl_graph_op_log_softmax_backward = 38, dnnl_graph_op_matmul = 39, dnnl_graph_op_maximum = 40,
  dnnl_graph_op_max_pool = 41, dnnl_graph_op_max_pool_backward = 42, dnnl_graph_op_minimum = 43,
  dnnl_graph_op_mish = 44, dnnl_graph_op_mish_backward = 45, dnnl_graph_op_multiply = 46, dnnl_graph_op_prelu = 47,
  dnnl_graph_op_prelu_backward = 48, dnnl_graph_op_quantize = 49, dnnl_graph_op_reciprocal = 50,
  dnnl_graph_op_reduce_l1 = 51, dnnl_graph_op_reduce_l2 = 52, dnnl_graph_op_reduce_max = 53,
  dnnl_graph_op_reduce_mean = 54, dnnl_graph_op_reduce_min = 55, dnnl_graph_op_reduce_prod = 56,
  dnnl_graph_op_reduce_sum = 57, dnnl_graph_op_relu = 58, dnnl_graph_op_relu_backward = 59,
  dnnl_graph_op_reorder = 60, dnnl_graph_op_round = 61, dnnl_graph_op_sigmoid = 62,
  dnnl_graph_op_sigmoid_backward = 63, dnnl_graph_op_softmax = 64, dnnl_graph_op_softmax_backward = 65,
  dnnl_graph_op_softplus = 66, dnnl_graph_op_softplus_backward = 67, dnnl_graph_op_sqrt = 68,
  dnnl_graph_op_sqrt_backward = 69, dnnl_graph_op_square = 70, dnnl_graph_op_squared_difference = 71,
  dnnl_graph_op_static_reshape = 72, dnnl_graph_op_static_transpose = 73, dnnl_graph_op_subtract = 74,
  dnnl_graph_op_tanh = 75, dnnl_graph_op_tanh_backward = 76, dnnl_graph_op_type_cast = 77,
  dnnl_graph_op_wildcard = 78, dnnl_graph_op_hard_sigmoid = 79, dnnl_graph_op_hard_sigmoid_backward = 80,
  dnnl_graph_op_select = 81, dnnl_graph_op_pow = 82, dnnl_graph_op_group_norm = 83, dnnl_graph_op_gen_index = 84,
  dnnl_graph_op_greater_equal = 85, dnnl_graph_op_rms_norm = 86, dnnl_graph_op_dropout = 87,
  dnnl_graph_op_last_symbol = 88
} dnnl_graph_op_kind_t;

typedef enum {
  dnnl_graph_op_attr_undef = 0x0, dnnl_graph_op_attr_alpha = 0x1, dnnl_graph_op_attr_beta = 0x2,
  dnnl_graph_op_attr_epsilon = 0x3, dnnl_graph_op_attr_max = 0x4, dnnl_graph_op_attr_min = 0x5,
  dnnl_graph_op_attr_momentum = 0x6, dnnl_graph_op_attr_scales = 0x20, dnnl_graph_op_attr_axis = 0x30,
  dnnl_graph_op_attr_begin_norm_axis = 0x31, dnnl_graph_op_attr_groups = 0x32, dnnl_graph_op_attr_mask = 0x33,
  dnnl_graph_op_attr_axes = 0x40, dnnl_graph_op_attr_dilations = 0x41, dnnl_graph_op_attr_dst_shape = 0x42,
  dnnl_graph_op_attr_kernel = 0x43, dnnl_graph_op_attr_order = 0x44, dnnl_graph_op_attr_output_padding = 0x45,
  dnnl_graph_op_attr_pads_begin = 0x46, dnnl_graph_op_attr_pads_end = 0x47, dnnl_graph_op_attr_shape = 0x48,
  dnnl_graph_op_attr_sizes = 0x49, dnnl_graph_op_attr_src_shape = 0x4a, dnnl_graph_op_attr_strides = 0x4b,
  dnnl_graph_op_attr_weights_shape = 0x4c, dnnl_graph_op_attr_zps = 0x4d, dnnl_graph_op_attr_group_shape = 0x4e,
  dnnl_graph_op_attr_exclude_pad = 0x60, dnnl_graph_op_attr_keep_dims = 0x61, dnnl_graph_op_attr_keep_stats = 0x62,
  dnnl_graph_op_attr_per_channel_broadcast = 0x63, dnnl_graph_op_attr_special_zero = 0x64,
  dnnl_graph_op_attr_transpose_a = 0x65, dnnl_graph_op_attr_transpose_b = 0x66, dnnl_graph_op_attr_use_affine = 0x67,
  dnnl_graph_op_attr_use_dst = 0x68, dnnl_graph_op_attr_auto_broadcast = 0x80, dnnl_graph_op_attr_auto_pad = 0x81,
  dnnl_graph_op_attr_coordinate_transformation_mode = 0x82, dnnl_graph_op_attr_data_format = 0x83,
  dnnl_graph_op_attr_mode = 0x84, dnnl_graph_op_attr_qtype = 0x85, dnnl_graph_op_attr_rounding_type = 0x86,
  dnnl_graph_op_attr_weights_format = 0x87, dnnl_graph_op_attr_accumulation_mode = 0x88,
  dnnl_graph_op_attr_end = 0xff
} dnnl_graph_op_attr_t;

typedef void* (*dnnl_graph_host_allocate_f)(size_t size, size_t alignment);
typedef void (*dnnl_graph_host_deallocate_f)(void*);

/* At execution the two tensors may share their memory. */
typedef struct {
  size_t input_id;
  size_t output_id;
} dnnl_graph_inplace_pair_t;

typedef struct dnnl_graph_allocator* dnnl_graph_allocator_t;
typedef const struct dnnl_graph_allocator* const_dnnl_graph_allocator_t;
typedef struct dnnl_graph_op* dnnl_graph_op_t;
typedef const struct dnnl_graph_op* const_dnnl_graph_op_t;
typedef struct dnnl_graph_graph* dnnl_graph_graph_t;
typedef const struct dnnl_graph_graph* const_dnnl_graph_graph_t;
typedef struct dnnl_graph_partition* dnnl_graph_partition_t;
typedef const struct dnnl_graph_partition* const_dnnl_graph_partition_t;
typedef struct dnnl_graph_compiled_partition* dnnl_graph_compiled_partition_t;
typedef const struct dnnl_graph_compiled_partition* const_dnnl_graph_compiled_partition_t;
typedef struct dnnl_graph_tensor* dnnl_graph_tensor_t;
typedef const struct dnnl_graph_tensor* const_dnnl_graph_tensor_t;
#endif /* graph types */

/* Older headers of oneDNN have the other graph types, but not this one. */
#if !defined(ONEAPI_DNNL_DNNL_GRAPH_TYPES_H) || defined(PARTITA_DNNL_GRAPH_LACKS_DUMP_MODE)
typedef enum {
  dnnl_graph_dump_mode_none = 0, dnnl_graph_dump_mode_subgraph = 1, dnnl_graph_dump_mode_graph = 2
} dnnl_graph_dump_mode_t;
#endif

#ifndef DNNL_API
#define DNNL_API __attribute__((visibility("default")))
#endif

/* Allocators and engines. An allocator must outlive its engines. */
dnnl_status_t DNNL_API dnnl_graph_allocator_create(dnnl_graph_allocator_t* allocator,
                                                   dnnl_graph_host_allocate_f host_malloc,
                                                   dnnl_graph_host_deallocate_f host_free);
dnnl_status_t DNNL_API dnnl_graph_allocator_destroy(dnnl_graph_allocator_t allocator);
dnnl_status_t DNNL_API dnnl_graph_make_engine_with_allocator(dnnl_engine_t* engine, dnnl_engine_kind_t kind,
                                                             size_t index, const_dnnl_graph_allocator_t alloc);

/* Logical tensors. */
dnnl_status_t DNNL_API dnnl_graph_logical_tensor_init(dnnl_graph_logical_tensor_t* logical_tensor, size_t tid,
                                                      dnnl_data_type_t dtype, int32_t ndims,
                                                      dnnl_graph_layout_type_t ltype,
                                                      dnnl_graph_tensor_property_t ptype);
dnnl_status_t DNNL_API dnnl_graph_logical_tensor_init_with_dims(dnnl_graph_logical_tensor_t* logical_tensor, size_t tid,
                                                                dnnl_data_type_t dtype, int32_t ndims,
                                                                const dnnl_dims_t dims, dnnl_graph_layout_type_t ltype,
                                                                dnnl_graph_tensor_property_t ptype);
dnnl_status_t DNNL_API dnnl_graph_logical_tensor_init_with_strides(dnnl_graph_logical_tensor_t* logical_tensor,
                                                                   size_t tid, dnnl_data_type_t dtype, int32_t ndims,
                                                                   const dnnl_dims_t dims, const dnnl_dims_t strides,
                                                                   dnnl_graph_tensor_property_t ptype);
/* In bytes. */
dnnl_status_t DNNL_API dnnl_graph_logical_tensor_get_mem_size(const dnnl_graph_logical_tensor_t* logical_tensor,
                                                              size_t* size);
dnnl_status_t DNNL_API dnnl_graph_logical_tensor_is_equal(const dnnl_graph_logical_tensor_t* lt1,
                                                          const dnnl_graph_logical_tensor_t* lt2, uint8_t* is_equal);

/* Tensors. */
dnnl_status_t DNNL_API dnnl_graph_tensor_create(dnnl_graph_tensor_t* tensor,
                                                const dnnl_graph_logical_tensor_t* logical_tensor, dnnl_engine_t engine,
                                                void* handle);
dnnl_status_t DNNL_API dnnl_graph_tensor_create_scalar(dnnl_graph_tensor_t* tensor,
                                                       const dnnl_graph_logical_tensor_t* logical_tensor, void* scalar);
dnnl_status_t DNNL_API dnnl_graph_tensor_destroy(dnnl_graph_tensor_t tensor);
dnnl_status_t DNNL_API dnnl_graph_tensor_get_data_handle(const_dnnl_graph_tensor_t tensor, void** handle);
dnnl_status_t DNNL_API dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor_t tensor, void* handle);
dnnl_status_t DNNL_API dnnl_graph_tensor_get_engine(const_dnnl_graph_tensor_t tensor, dnnl_engine_t* engine);
dnnl_status_t DNNL_API dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor,
                                                            dnnl_graph_logical_tensor_t* logical_tensor);

/* Operators. */
dnnl_status_t DNNL_API dnnl_graph_op_create(dnnl_graph_op_t* op, size_t id, dnnl_graph_op_kind_t kind,
                                            const char* verbose_name);
dnnl_status_t DNNL_API dnnl_graph_op_destroy(dnnl_graph_op_t op);
dnnl_status_t DNNL_API dnnl_graph_op_add_input(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t* input);
dnnl_status_t DNNL_API dnnl_graph_op_add_output(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t* output);
dnnl_status_t DNNL_API dnnl_graph_op_set_attr_f32(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const float* value,
                                                  size_t value_len);
dnnl_status_t DNNL_API dnnl_graph_op_set_attr_bool(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const uint8_t* value,
                                                   size_t value_len);
dnnl_status_t DNNL_API dnnl_graph_op_set_attr_s64(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const int64_t* value,
                                                  size_t value_len);
dnnl_status_t DNNL_API dnnl_graph_op_set_attr_str(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const char* value,
                                                  size_t value_len);
dnnl_status_t DNNL_API dnnl_graph_op_get_id(const_dnnl_graph_op_t op, size_t* id);
dnnl_status_t DNNL_API dnnl_graph_op_get_kind(const_dnnl_graph_op_t op, dnnl_graph_op_kind_t* kind);

/* Graphs. */
dnnl_status_t DNNL_API dnnl_graph_graph_create(dnnl_graph_graph_t* graph, dnnl_engine_kind_t engine_kind);
dnnl_status_t DNNL_API dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph_t* graph,
                                                                dnnl_engine_kind_t engine_kind,
                                                                dnnl_fpmath_mode_t mode);
dnnl_status_t DNNL_API dnnl_graph_graph_destroy(dnnl_graph_graph_t graph);
dnnl_status_t DNNL_API dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t mode,
                                                        int apply_to_int);
dnnl_status_t DNNL_API dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t* mode,
                                                        int* apply_to_int);
dnnl_status_t DNNL_API dnnl_graph_add_op(dnnl_graph_graph_t graph, dnnl_graph_op_t op);
dnnl_status_t DNNL_API dnnl_graph_graph_finalize(dnnl_graph_graph_t graph);
dnnl_status_t DNNL_API dnnl_graph_graph_is_finalized(dnnl_graph_graph_t graph, uint8_t* finalized);
dnnl_status_t DNNL_API dnnl_graph_graph_filter(dnnl_graph_graph_t graph, dnnl_graph_partition_policy_t policy);
dnnl_status_t DNNL_API dnnl_graph_graph_get_partition_num(const_dnnl_graph_graph_t graph, size_t* num);
dnnl_status_t DNNL_API dnnl_graph_graph_get_partitions(dnnl_graph_graph_t graph, size_t num,
                                                       dnnl_graph_partition_t* partitions);

/* Partitions. */
dnnl_status_t DNNL_API dnnl_graph_partition_create_with_op(dnnl_graph_partition_t* partition, const_dnnl_graph_op_t op,
                                                           dnnl_engine_kind_t ekind);
dnnl_status_t DNNL_API dnnl_graph_partition_destroy(dnnl_graph_partition_t partition);
dnnl_status_t DNNL_API dnnl_graph_partition_get_op_num(const_dnnl_graph_partition_t partition, size_t* num);
dnnl_status_t DNNL_API dnnl_graph_partition_get_ops(dnnl_graph_partition_t partition, size_t num, size_t* ids);
dnnl_status_t DNNL_API dnnl_graph_partition_get_id(const_dnnl_graph_partition_t partition, size_t* id);
/* In oneDNN exported and in no header; Partita answers 0, the kind that says nothing. */
dnnl_status_t DNNL_API dnnl_graph_partition_get_kind(const_dnnl_graph_partition_t partition, int* kind);
dnnl_status_t DNNL_API dnnl_graph_partition_compile(dnnl_graph_partition_t partition,
                                                    dnnl_graph_compiled_partition_t compiled_partition, size_t in_num,
                                                    const dnnl_graph_logical_tensor_t** inputs, size_t out_num,
                                                    const dnnl_graph_logical_tensor_t** outputs, dnnl_engine_t engine);
dnnl_status_t DNNL_API dnnl_graph_partition_get_input_ports_num(const_dnnl_graph_partition_t partition, size_t* num);
dnnl_status_t DNNL_API dnnl_graph_partition_get_input_ports(const_dnnl_graph_partition_t partition, size_t num,
                                                            dnnl_graph_logical_tensor_t* inputs);
dnnl_status_t DNNL_API dnnl_graph_partition_get_output_ports_num(const_dnnl_graph_partition_t partition, size_t* num);
dnnl_status_t DNNL_API dnnl_graph_partition_get_output_ports(const_dnnl_graph_partition_t partition, size_t num,
                                                             dnnl_graph_logical_tensor_t* outputs);
dnnl_status_t DNNL_API dnnl_graph_partition_is_supported(const_dnnl_graph_partition_t partition, uint8_t* is_supported);
dnnl_status_t DNNL_API dnnl_graph_partition_get_engine_kind(const_dnnl_graph_partition_t partition,
                                                            dnnl_engine_kind_t* kind);

/* Compiled partitions. Tensors are given in the order of the logical tensors that were given to compile. */
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_create(dnnl_graph_compiled_partition_t* compiled_partition,
                                                            dnnl_graph_partition_t partition);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_execute(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                             dnnl_stream_t stream, size_t num_inputs,
                                                             const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
                                                             const_dnnl_graph_tensor_t* outputs);
/* scratchpad: of the size that get_scratchpad_logical_tensor tells, or null: taken from the engine's allocator. */
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_execute_v2(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_stream_t stream, size_t num_inputs,
    const_dnnl_graph_tensor_t* inputs, size_t num_outputs, const_dnnl_graph_tensor_t* outputs,
    const_dnnl_graph_tensor_t scratchpad);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_destroy(dnnl_graph_compiled_partition_t compiled_partition);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_query_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, size_t tid, dnnl_graph_logical_tensor_t* lt);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_get_inplace_ports(
    const_dnnl_graph_compiled_partition_t compiled_partition, size_t* num_inplace_pairs,
    const dnnl_graph_inplace_pair_t** inplace_pairs);
dnnl_status_t DNNL_API dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_graph_logical_tensor_t* lt);

/* Caches and dumps. Capacities of constant tensors are counted in megabytes. */
dnnl_status_t DNNL_API dnnl_graph_get_compiled_partition_cache_capacity(int* capacity);
dnnl_status_t DNNL_API dnnl_graph_set_compiled_partition_cache_capacity(int capacity);
dnnl_status_t DNNL_API dnnl_graph_set_constant_tensor_cache(int flag);
dnnl_status_t DNNL_API dnnl_graph_get_constant_tensor_cache(int* flag);
dnnl_status_t DNNL_API dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t size);
dnnl_status_t DNNL_API dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t* size);
dnnl_status_t DNNL_API dnnl_graph_set_dump_mode(dnnl_graph_dump_mode_t mode);

/* What Partita adds. The text of this thread's last failure ("" before the first), valid until its next one. */
const char DNNL_API* partita_last_error(void);
/* "0.1.0" */
const char DNNL_API* partita_version(void);

#ifdef __cplusplus
}
#endif
/* NOLINTEND */

#endif
