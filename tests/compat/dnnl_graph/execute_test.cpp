// SPDX-License-Identifier: Apache-2.0
// Compiling and executing through the C interface: results, positions of tensors, scratchpads, refusals.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tests/compat/dnnl_graph/handles.hpp"

namespace partita::test {
namespace {

constexpr auto kAny = dnnl_graph_layout_type_any;

/// out = softmax(a) - b over 4 x 8: an order of inputs that matters, and scratch memory for the threads.
struct Difference {
  Difference() {
    Graph g = make_graph();
    const Op softmax = make_op(1, dnnl_graph_op_softmax, {a_desc}, {lt(2, {4, 8})});
    const int64_t axis = 1;
    EXPECT_EQ(dnnl_graph_op_set_attr_s64(softmax.get(), dnnl_graph_op_attr_axis, &axis, 1), dnnl_success);
    EXPECT_EQ(add(g, softmax), dnnl_success);
    EXPECT_EQ(add(g, make_op(2, dnnl_graph_op_subtract, {lt(2, {4, 8}), b_desc}, {out_desc})), dnnl_success);
    partitions = partitions_of(g);
    EXPECT_EQ(partitions.size(), 1u);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5), b[i] = static_cast<float>(i) / 100;
  }

  std::vector<float> wanted() const {
    std::vector<float> r(32);
    for (size_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (size_t k = 0; k < 8; ++k) sum += std::exp(a[row * 8 + k]);
      for (size_t k = 0; k < 8; ++k)
        r[row * 8 + k] = static_cast<float>(std::exp(a[row * 8 + k]) / sum) - b[row * 8 + k];
    }
    return r;
  }
  void expect_result() const {
    const std::vector<float> w = wanted();
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(out[i], w[i], 1e-6) << i;
  }
  const PartitionHandle& partition() const { return partitions[0]; }

  const Lt a_desc = lt(10, {4, 8}), b_desc = lt(11, {4, 8}), out_desc = lt(12, {4, 8});
  std::vector<PartitionHandle> partitions;
  std::vector<float> a = std::vector<float>(32), b = std::vector<float>(32), out = std::vector<float>(32, -7);
};

TEST(dnnl_graph_execute, tensors_are_matched_by_position) {
  for (const bool swapped : {false, true}) {
    Difference d;
    const Engine engine = make_engine();
    const Stream stream = make_stream(engine);
    const Compiled c = make_compiled(d.partition());
    const std::vector<Lt> given = swapped ? std::vector{d.b_desc, d.a_desc} : std::vector{d.a_desc, d.b_desc};
    ASSERT_STATUS(compile(d.partition(), c, given, {d.out_desc}, engine), dnnl_success);
    // The ids of the tensors are not looked at.
    const Lt nameless = lt(999, {4, 8});
    const Tensor a = make_tensor(nameless, engine, d.a.data()), b = make_tensor(nameless, engine, d.b.data());
    const Tensor out = make_tensor(nameless, engine, d.out.data());
    EXPECT_STATUS(swapped ? execute(c, stream, {&b, &a}, {&out}) : execute(c, stream, {&a, &b}, {&out}), dnnl_success);
    EXPECT_EQ(dnnl_stream_wait(stream.get()), dnnl_success);
    d.expect_result();
  }
}

TEST(dnnl_graph_execute, surplus_tensors_are_ignored_and_ports_may_repeat) {
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const Graph g = make_graph();
  ASSERT_EQ(add(g, make_op(1, dnnl_graph_op_multiply, {lt(0, {4}), lt(0, {4})}, {lt(1, {4})})), dnnl_success);
  const auto partitions = partitions_of(g);
  const Compiled c = make_compiled(partitions[0]);
  ASSERT_STATUS(compile(partitions[0], c, {lt(50, {2}), lt(0, {4}), lt(0, {4})}, {lt(1, {4})}, engine), dnnl_success);
  float numbers[4] = {1, 2, 3, 4}, result[4] = {}, other[2] = {};
  const Tensor x = make_tensor(lt(0, {4}), engine, numbers), surplus = make_tensor(lt(50, {2}), engine, other);
  const Tensor y = make_tensor(lt(1, {4}), engine, result);
  EXPECT_STATUS(execute(c, stream, {&surplus, &x, &x}, {&y}), dnnl_success);
  EXPECT_EQ(result[3], 16);
  EXPECT_STATUS(execute(c, stream, {&surplus, &x}, {&y}), dnnl_invalid_arguments);
}

TEST(dnnl_graph_compile, tells_open_shapes_and_layouts) {
  Difference d;
  const Engine engine = make_engine();
  const Compiled c = make_compiled(d.partition());
  Lt got;
  EXPECT_EQ(dnnl_graph_compiled_partition_query_logical_tensor(c.get(), 12, &got), dnnl_success);
  EXPECT_EQ(got.id, SIZE_MAX) << "nothing is compiled yet";
  ASSERT_STATUS(compile(d.partition(), c, {d.a_desc, d.b_desc}, {unknown_lt(12)}, engine), dnnl_success);
  EXPECT_EQ(dnnl_graph_compiled_partition_query_logical_tensor(c.get(), 12, &got), dnnl_success);
  EXPECT_EQ(got.id, 12u);
  EXPECT_EQ(got.ndims, 2);
  EXPECT_EQ(got.dims[1], 8);
  EXPECT_EQ(got.layout_type, dnnl_graph_layout_type_strided);
  EXPECT_EQ(got.layout.strides[0], 8);
  EXPECT_EQ(dnnl_graph_compiled_partition_query_logical_tensor(c.get(), 4711, &got), dnnl_success);
  EXPECT_EQ(got.id, SIZE_MAX);
  EXPECT_EQ(got.ndims, DNNL_GRAPH_UNKNOWN_NDIMS);
  EXPECT_EQ(got.layout_type, kAny);
  EXPECT_STATUS(dnnl_graph_compiled_partition_query_logical_tensor(nullptr, 12, &got), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_query_logical_tensor(c.get(), 12, nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_compile, refuses) {
  Difference d;
  const Engine engine = make_engine();
  const Compiled c = make_compiled(d.partition());
  const auto status = [&](const Lt& a, const Lt& b, const Lt& out) {
    return compile(d.partition(), c, {a, b}, {out}, engine);
  };
  const auto p = d.partition().get();
  const Lt* in[] = {&d.a_desc, &d.b_desc};
  const Lt* out[] = {&d.out_desc};
  const Lt* hole[] = {&d.a_desc, nullptr};
  const auto raw = [&](auto part, auto into, auto inputs, auto outputs, auto on) {
    return dnnl_graph_partition_compile(part, into, 2, inputs, 1, outputs, on);
  };
  const dnnl_graph_partition_t no_partition = nullptr;
  const dnnl_graph_compiled_partition_t nothing = nullptr;
  const Lt** none = nullptr;
  const dnnl_engine_t no_engine = nullptr;
  EXPECT_STATUS(raw(no_partition, c.get(), in, out, engine.get()), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(p, nothing, in, out, engine.get()), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(p, c.get(), none, out, engine.get()), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(p, c.get(), in, none, engine.get()), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(p, c.get(), hole, out, engine.get()), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(p, c.get(), in, out, no_engine), dnnl_invalid_arguments);

  EXPECT_STATUS(compile(d.partition(), c, {d.a_desc}, {d.out_desc}, engine), dnnl_invalid_arguments) << "missing id";
  EXPECT_STATUS(status(d.a_desc, lt(11, {4, 8}, dnnl_data_type_undef), d.out_desc), dnnl_invalid_arguments);
  EXPECT_STATUS(status(d.a_desc, lt(11, {4, 8}, dnnl_f32, dnnl_graph_layout_type_undef), d.out_desc),
                dnnl_invalid_arguments);
  EXPECT_STATUS(status(d.a_desc, unknown_lt(11), d.out_desc), dnnl_invalid_arguments);
  EXPECT_STATUS(status(d.a_desc, lt(11, {4, DNNL_GRAPH_UNKNOWN_DIM}), d.out_desc), dnnl_invalid_arguments);
  EXPECT_STATUS(status(d.a_desc, lt(11, {4, 8}, dnnl_f32, dnnl_graph_layout_type_opaque), d.out_desc),
                dnnl_invalid_arguments);
  EXPECT_STATUS(status(d.a_desc, lt(11, {4, 9}), d.out_desc), dnnl_invalid_shape);
  EXPECT_STATUS(status(d.a_desc, d.b_desc, lt(12, {4, 9})), dnnl_invalid_shape);
  Lt broken = d.a_desc;
  broken.ndims = 13;
  EXPECT_STATUS(status(broken, d.b_desc, d.out_desc), dnnl_invalid_arguments);

  const Graph blocked = make_graph();
  ASSERT_EQ(add(blocked, make_op(1, dnnl_graph_op_wildcard, {lt(0, {4})}, {lt(1, {4})})), dnnl_success);
  const auto unsupported = partitions_of(blocked);
  EXPECT_STATUS(compile(unsupported[0], c, {lt(0, {4})}, {lt(1, {4})}, engine), dnnl_invalid_arguments);

  const Graph for_gpu = make_graph(dnnl_gpu);
  ASSERT_EQ(add(for_gpu, make_op(1, dnnl_graph_op_relu, {lt(0, {4})}, {lt(1, {4})})), dnnl_success);
  const auto gpu = partitions_of(for_gpu);
  EXPECT_STATUS(compile(gpu[0], c, {lt(0, {4})}, {lt(1, {4})}, engine), dnnl_invalid_arguments);

  dnnl_graph_compiled_partition_t made = nullptr;
  EXPECT_STATUS(dnnl_graph_compiled_partition_create(nullptr, p), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_create(&made, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_destroy(nullptr), dnnl_success);
}

TEST(dnnl_graph_execute, refuses) {
  Difference d;
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const Compiled c = make_compiled(d.partition());
  const Tensor a = make_tensor(d.a_desc, engine, d.a.data()), b = make_tensor(d.b_desc, engine, d.b.data());
  const Tensor out = make_tensor(d.out_desc, engine, d.out.data());
  EXPECT_STATUS(execute(c, stream, {&a, &b}, {&out}), dnnl_invalid_arguments) << "not compiled";
  ASSERT_STATUS(compile(d.partition(), c, {d.a_desc, d.b_desc}, {d.out_desc}, engine), dnnl_success);
  const_dnnl_graph_tensor_t in[] = {a.get(), b.get()}, results[] = {out.get()}, hole[] = {a.get(), nullptr};
  const auto raw = [&](auto what, auto on, auto inputs, size_t n, auto outputs, size_t m) {
    return dnnl_graph_compiled_partition_execute(what, on, n, inputs, m, outputs);
  };
  const const_dnnl_graph_compiled_partition_t nothing = nullptr;
  const dnnl_stream_t no_stream = nullptr;
  const_dnnl_graph_tensor_t* none = nullptr;
  EXPECT_STATUS(raw(nothing, stream.get(), in, 2, results, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(c.get(), no_stream, in, 2, results, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(c.get(), stream.get(), none, 2, results, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(c.get(), stream.get(), in, 2, none, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(c.get(), stream.get(), in, 1, results, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(c.get(), stream.get(), in, 2, results, 0), dnnl_invalid_arguments);
  EXPECT_STATUS(raw(c.get(), stream.get(), hole, 2, results, 1), dnnl_invalid_arguments);
  const Tensor no_data = make_tensor(d.b_desc, engine, nullptr),
               small = make_tensor(lt(11, {4, 7}), engine, d.b.data());
  EXPECT_STATUS(execute(c, stream, {&a, &no_data}, {&out}), dnnl_invalid_arguments);
  EXPECT_STATUS(execute(c, stream, {&a, &small}, {&out}), dnnl_invalid_arguments);
  EXPECT_EQ(d.out[0], -7);
}

/// Partita's copy of oneDNN generates code, too; nothing of it may be mixed up with Partita's or with the libdnnl
/// beside.
TEST(dnnl_graph_execute, runs_primitives_of_its_own_onednn) {
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const Lt x_desc = lt(0, {2, 3, 32, 32}), w_desc = lt(1, {16, 3, 3, 3}), y_desc = lt(2, {2, 16, 32, 32});
  const Op op = make_op(1, dnnl_graph_op_convolution, {x_desc, w_desc}, {y_desc});
  const int64_t ones[] = {1, 1};
  for (auto attr : {dnnl_graph_op_attr_strides, dnnl_graph_op_attr_dilations, dnnl_graph_op_attr_pads_begin,
                    dnnl_graph_op_attr_pads_end})
    ASSERT_EQ(dnnl_graph_op_set_attr_s64(op.get(), attr, ones, 2), dnnl_success);
  ASSERT_EQ(dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_data_format, "NCX", 1), dnnl_success);
  ASSERT_EQ(dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_weights_format, "OIX", 1), dnnl_success);
  const PartitionHandle p = partition_of(op);
  const Compiled c = make_compiled(p);
  ASSERT_STATUS(compile(p, c, {x_desc, w_desc}, {y_desc}, engine), dnnl_success);
  std::vector<float> x(2 * 3 * 32 * 32, 1), w(16 * 27, 1), y(2 * 16 * 32 * 32);
  const Tensor from = make_tensor(x_desc, engine, x.data()), weights = make_tensor(w_desc, engine, w.data());
  const Tensor to = make_tensor(y_desc, engine, y.data());
  ASSERT_STATUS(execute(c, stream, {&from, &weights}, {&to}), dnnl_success);
  EXPECT_EQ(y[0], 12) << "a corner";
  EXPECT_EQ(y[33], 27);
}

std::atomic<int> taken = 0, given_back = 0;
std::atomic<bool> memory_is_left = true;
void* counting_malloc(size_t size, size_t alignment) {
  if (!memory_is_left) return nullptr;
  ++taken;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void counting_free(void* p) {
  ++given_back;
  std::free(p);
}

/// The gradient of a maximum over volumes, which spreads its windows through scratch memory. All cells are equal, so
/// that the first one of each window gets the gradient, 1/4; the last cells along an axis are no window's first.
struct WithTemporary {
  WithTemporary() {
    const Op op = make_op(1, dnnl_graph_op_max_pool_backward, in, {result});
    const int64_t two[] = {2, 2, 2}, one[] = {1, 1, 1}, zero[] = {0, 0, 0};
    EXPECT_EQ(dnnl_graph_op_set_attr_s64(op.get(), dnnl_graph_op_attr_kernel, two, 3), dnnl_success);
    EXPECT_EQ(dnnl_graph_op_set_attr_s64(op.get(), dnnl_graph_op_attr_strides, one, 3), dnnl_success);
    for (auto attr : {dnnl_graph_op_attr_pads_begin, dnnl_graph_op_attr_pads_end})
      EXPECT_EQ(dnnl_graph_op_set_attr_s64(op.get(), attr, zero, 3), dnnl_success);
    partition = partition_of(op);
  }
  std::vector<Lt> in = {lt(0, {1, 8, 16, 16, 8}), lt(1, {1, 7, 15, 15, 8})};
  Lt result = lt(3, {1, 8, 16, 16, 8});
  PartitionHandle partition;
  std::vector<float> ones = std::vector<float>(8 * 16 * 16 * 8, 1), gradients = std::vector<float>(ones.size(), 0.25f),
                     out = std::vector<float>(ones.size());
};

TEST(dnnl_graph_execute, takes_temporaries_from_the_engines_allocator_or_the_scratchpad) {
  const Allocator allocator = make_allocator(counting_malloc, counting_free);
  const Engine engine = make_engine(allocator);
  const Stream stream = make_stream(engine);
  WithTemporary w;
  const Compiled c = make_compiled(w.partition);
  ASSERT_STATUS(compile(w.partition, c, w.in, {w.result}, engine), dnnl_success);
  const Tensor x = make_tensor(w.in[0], engine, w.ones.data()), dy = make_tensor(w.in[1], engine, w.gradients.data()),
               out = make_tensor(w.result, engine, w.out.data());
  taken = given_back = 0;
  ASSERT_STATUS(execute(c, stream, {&x, &dy}, {&out}), dnnl_success);
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(given_back, 1);
  EXPECT_FLOAT_EQ(w.out[5], 0.25f);

  Lt scratch;
  ASSERT_EQ(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(c.get(), &scratch), dnnl_success);
  EXPECT_EQ(scratch.id, SIZE_MAX);
  EXPECT_EQ(scratch.ndims, 1);
  EXPECT_EQ(scratch.data_type, dnnl_u8);
  EXPECT_EQ(scratch.layout_type, dnnl_graph_layout_type_strided);
  EXPECT_EQ(scratch.property, dnnl_graph_tensor_property_variable);
  ASSERT_GT(scratch.dims[0], 0);
  // No alignment is asked of the caller.
  std::vector<uint8_t> bytes(static_cast<size_t>(scratch.dims[0]) + 1);
  const Tensor own = make_tensor(scratch, engine, bytes.data() + 1);
  std::fill(w.out.begin(), w.out.end(), 0.f);
  taken = 0;
  EXPECT_STATUS(execute(c, stream, {&x, &dy}, {&out}, &own), dnnl_success);
  EXPECT_EQ(taken, 0);
  EXPECT_FLOAT_EQ(w.out[5], 0.25f);

  const Tensor small = make_tensor(lt(1, {8}, dnnl_u8), engine, bytes.data()),
               empty = make_tensor(scratch, engine, nullptr);
  EXPECT_STATUS(execute(c, stream, {&x, &dy}, {&out}, &small), dnnl_invalid_arguments);
  EXPECT_STATUS(execute(c, stream, {&x, &dy}, {&out}, &empty), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(nullptr, &scratch), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(c.get(), nullptr), dnnl_invalid_arguments);

  memory_is_left = false;
  EXPECT_STATUS(execute(c, stream, {&x, &dy}, {&out}), dnnl_out_of_memory);
  memory_is_left = true;
}

TEST(dnnl_graph_execute, tells_which_tensors_may_share_memory) {
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const PartitionHandle p = partition_of(make_op(1, dnnl_graph_op_relu, {lt(0, {4})}, {lt(1, {4})}));
  const Compiled c = make_compiled(p);
  ASSERT_STATUS(compile(p, c, {lt(0, {4})}, {lt(1, {4})}, engine), dnnl_success);
  size_t count = 0;
  const dnnl_graph_inplace_pair_t* pairs = nullptr;
  ASSERT_EQ(dnnl_graph_compiled_partition_get_inplace_ports(c.get(), &count, &pairs), dnnl_success);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(pairs[0].input_id, 0u);
  EXPECT_EQ(pairs[0].output_id, 1u);
  float numbers[4] = {-1, 2, -3, 4};
  const Tensor t = make_tensor(lt(0, {4}), engine, numbers);
  EXPECT_STATUS(execute(c, stream, {&t}, {&t}), dnnl_success);
  EXPECT_EQ(numbers[2], 0);
  EXPECT_EQ(numbers[3], 4);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_inplace_ports(nullptr, &count, &pairs), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_inplace_ports(c.get(), nullptr, &pairs), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_inplace_ports(c.get(), &count, nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_execute, an_empty_output_needs_no_data) {
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const PartitionHandle p = partition_of(make_op(1, dnnl_graph_op_relu, {lt(0, {0, 4})}, {lt(1, {0, 4})}));
  const Compiled c = make_compiled(p);
  ASSERT_STATUS(compile(p, c, {lt(0, {0, 4})}, {lt(1, {0, 4})}, engine), dnnl_success);
  const Tensor in = make_tensor(lt(0, {0, 4}), engine, nullptr), out = make_tensor(lt(1, {0, 4}), engine, nullptr);
  EXPECT_STATUS(execute(c, stream, {&in}, {&out}), dnnl_success);
}

TEST(dnnl_graph_execute, scales_go_along_the_axes_of_a_mask) {
  const Engine engine = make_engine();
  const Op op =
      make_op(1, dnnl_graph_op_dynamic_dequantize, {lt(0, {2, 1, 2}, dnnl_s8), lt(1, {2, 1})}, {unknown_lt(2)});
  const int64_t mask = 3;
  ASSERT_EQ(dnnl_graph_op_set_attr_s64(op.get(), dnnl_graph_op_attr_mask, &mask, 1), dnnl_success);
  const PartitionHandle p = partition_of(op);
  const Compiled c = make_compiled(p);
  ASSERT_STATUS(compile(p, c, {lt(0, {2, 1, 2}, dnnl_s8), lt(1, {2, 1})}, {unknown_lt(2)}, engine), dnnl_success);
  int8_t quantized[4] = {1, -2, 3, -4};
  float scales[2] = {1, 10}, result[4] = {};
  const Tensor src = make_tensor(lt(0, {2, 1, 2}, dnnl_s8), engine, quantized),
               by = make_tensor(lt(1, {2, 1}), engine, scales), out = make_tensor(lt(2, {2, 1, 2}), engine, result);
  EXPECT_STATUS(execute(c, make_stream(engine), {&src, &by}, {&out}), dnnl_success);
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{1, -2, 30, -40}));
}

/// The shape of the result is the content of an input, known only now.
TEST(dnnl_graph_execute, shape_inputs_may_arrive_with_execution) {
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const Op op =
      make_op(1, dnnl_graph_op_avg_pool_backward, {lt(0, {1, 1, 2, 2}), lt(1, {4}, dnnl_s32)}, {unknown_lt(2)});
  const int64_t two[] = {2, 2}, zero[] = {0, 0};
  const uint8_t exclude = 0;
  for (auto attr : {dnnl_graph_op_attr_kernel, dnnl_graph_op_attr_strides})
    ASSERT_EQ(dnnl_graph_op_set_attr_s64(op.get(), attr, two, 2), dnnl_success);
  for (auto attr : {dnnl_graph_op_attr_pads_begin, dnnl_graph_op_attr_pads_end})
    ASSERT_EQ(dnnl_graph_op_set_attr_s64(op.get(), attr, zero, 2), dnnl_success);
  ASSERT_EQ(dnnl_graph_op_set_attr_bool(op.get(), dnnl_graph_op_attr_exclude_pad, &exclude, 1), dnnl_success);
  ASSERT_EQ(dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_data_format, "NCX", 3), dnnl_success);
  const PartitionHandle p = partition_of(op);
  const Compiled c = make_compiled(p);
  ASSERT_STATUS(compile(p, c, {lt(0, {1, 1, 2, 2}), lt(1, {4}, dnnl_s32)}, {unknown_lt(2)}, engine), dnnl_success);
  float gradient[4] = {4, 8, 12, 16}, result[16] = {};
  int32_t shape[4] = {1, 1, 4, 4};
  const Tensor diff = make_tensor(lt(0, {1, 1, 2, 2}), engine, gradient),
               dims = make_tensor(lt(1, {4}, dnnl_s32), engine, shape);
  const Tensor out = make_tensor(lt(2, {1, 1, 4, 4}), engine, result);
  EXPECT_STATUS(execute(c, stream, {&diff, &dims}, {&out}), dnnl_success);
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(result[15], 4);

  const Tensor bytes = make_tensor(lt(2, {1, 1, 4, 4}, dnnl_u8), engine, result);
  EXPECT_STATUS(execute(c, stream, {&diff, &dims}, {&bytes}), dnnl_invalid_arguments);
  EXPECT_NE(std::string_view(partita_last_error()).find("has 16 bytes, 64 are needed"), std::string_view::npos);
}

TEST(dnnl_graph_execute, many_threads_share_a_compiled_partition) {
  const Engine engine = make_engine();
  WithTemporary w;
  const Compiled c = make_compiled(w.partition);
  ASSERT_STATUS(compile(w.partition, c, w.in, {w.result}, engine), dnnl_success);
  const Tensor x = make_tensor(w.in[0], engine, w.ones.data()), dy = make_tensor(w.in[1], engine, w.gradients.data()),
               alone = make_tensor(w.result, engine, w.out.data());
  EXPECT_STATUS(execute(c, make_stream(engine), {&x, &dy}, {&alone}), dnnl_success);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      const Stream stream = make_stream(engine);
      std::vector<float> result(w.out.size());
      const Tensor out = make_tensor(w.result, engine, result.data());
      for (int r = 0; r < 20; ++r) EXPECT_STATUS(execute(c, stream, {&x, &dy}, {&out}), dnnl_success);
      EXPECT_EQ(result, w.out);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace partita::test
