// SPDX-License-Identifier: Apache-2.0
// Operators, graphs and partitions through the C interface.
#include <set>
#include <thread>

#include "tests/compat/dnnl_graph/handles.hpp"

namespace partita::test {
namespace {

constexpr auto kRelu = dnnl_graph_op_relu;

/// ReLU from tensor `from` to tensor `to`.
Op relu(size_t id, size_t from, size_t to) { return make_op(id, kRelu, {lt(from, {4})}, {lt(to, {4})}); }

/// A matrix multiplication, an addition and a ReLU: one partition with all of them.
Graph chain() {
  Graph g = make_graph();
  EXPECT_EQ(add(g, make_op(1, dnnl_graph_op_matmul, {lt(0, {2, 3}), lt(1, {3, 4})}, {lt(2, {2, 4})})), dnnl_success);
  EXPECT_EQ(add(g, make_op(2, dnnl_graph_op_add, {lt(2, {2, 4}), lt(3, {2, 4})}, {lt(4, {2, 4})})), dnnl_success);
  EXPECT_EQ(add(g, make_op(3, kRelu, {lt(4, {2, 4})}, {lt(5, {2, 4})})), dnnl_success);
  return g;
}

TEST(dnnl_graph_op, tells_its_id_and_kind) {
  const Op op = make_op(42, dnnl_graph_op_matmul, {}, {});
  size_t id = 0;
  dnnl_graph_op_kind_t kind = dnnl_graph_op_abs;
  EXPECT_EQ(dnnl_graph_op_get_id(op.get(), &id), dnnl_success);
  EXPECT_EQ(dnnl_graph_op_get_kind(op.get(), &kind), dnnl_success);
  EXPECT_EQ(id, 42u);
  EXPECT_EQ(kind, dnnl_graph_op_matmul);
  EXPECT_STATUS(dnnl_graph_op_get_id(nullptr, &id), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_get_id(op.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_get_kind(nullptr, &kind), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_get_kind(op.get(), nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_op, refuses_null) {
  dnnl_graph_op_t op = nullptr;
  EXPECT_STATUS(dnnl_graph_op_create(nullptr, 1, kRelu, "x"), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_create(&op, 1, kRelu, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_destroy(nullptr), dnnl_success);
  const Op made = make_op(1, kRelu, {}, {});
  const Lt t = lt(1, {4});
  Lt broken = t;
  broken.ndims = 13;
  EXPECT_STATUS(dnnl_graph_op_add_input(nullptr, &t), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_add_input(made.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_add_input(made.get(), &broken), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_add_output(nullptr, &t), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_add_output(made.get(), nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_op, attributes_refuse) {
  const Op op = make_op(1, kRelu, {}, {});
  const float f = 1;
  const uint8_t b = 1;
  const int64_t i = 1;
  EXPECT_STATUS(dnnl_graph_op_set_attr_f32(nullptr, dnnl_graph_op_attr_alpha, &f, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_f32(op.get(), dnnl_graph_op_attr_alpha, nullptr, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_bool(nullptr, dnnl_graph_op_attr_keep_dims, &b, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_bool(op.get(), dnnl_graph_op_attr_keep_dims, nullptr, 1),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_bool(op.get(), dnnl_graph_op_attr_keep_dims, &b, 2), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(nullptr, dnnl_graph_op_attr_axis, &i, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(op.get(), dnnl_graph_op_attr_axis, nullptr, 0), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_str(nullptr, dnnl_graph_op_attr_mode, "x", 1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_mode, nullptr, 1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_op_set_attr_str(op.get(), dnnl_graph_op_attr_mode, "x", 0), dnnl_invalid_arguments);
}

/// The four setters, each with a value and (where there is one) with a list; the operator takes all of them.
TEST(dnnl_graph_op, attributes_reach_the_operator) {
  const Op clamp = make_op(1, dnnl_graph_op_clamp, {lt(0, {4})}, {lt(1, {4})});
  const float low = -1, high = 1;
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(clamp.get(), dnnl_graph_op_attr_min, &low, 7), dnnl_success);
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(clamp.get(), dnnl_graph_op_attr_max, &high, 0), dnnl_success);
  EXPECT_EQ(add(make_graph(), clamp), dnnl_success) << partita_last_error();

  const Op pool = make_op(2, dnnl_graph_op_max_pool, {lt(0, {1, 3, 4, 4})}, {lt(1, {1, 3, 2, 2})});
  const int64_t two[] = {2, 2}, zero[] = {0, 0};
  for (auto attr : {dnnl_graph_op_attr_kernel, dnnl_graph_op_attr_strides})
    EXPECT_EQ(dnnl_graph_op_set_attr_s64(pool.get(), attr, two, 2), dnnl_success);
  for (auto attr : {dnnl_graph_op_attr_pads_begin, dnnl_graph_op_attr_pads_end})
    EXPECT_EQ(dnnl_graph_op_set_attr_s64(pool.get(), attr, zero, 2), dnnl_success);
  // The length says nothing: the text is read to its zero.
  EXPECT_EQ(dnnl_graph_op_set_attr_str(pool.get(), dnnl_graph_op_attr_data_format, "NCX", 1), dnnl_success);
  EXPECT_EQ(add(make_graph(), pool), dnnl_success) << partita_last_error();

  const Op sum = make_op(3, dnnl_graph_op_reduce_sum, {lt(0, {2, 3})}, {lt(1, {2, 1})});
  const int64_t axis = 1;
  const uint8_t keep = 1;
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(sum.get(), dnnl_graph_op_attr_axes, &axis, 1), dnnl_success);
  EXPECT_EQ(dnnl_graph_op_set_attr_bool(sum.get(), dnnl_graph_op_attr_keep_dims, &keep, 1), dnnl_success);
  EXPECT_EQ(add(make_graph(), sum), dnnl_success) << partita_last_error();

  const Op quantize = make_op(4, dnnl_graph_op_quantize, {lt(0, {2, 3})}, {lt(1, {2, 3}, dnnl_u8)});
  const float scale = 0.5;
  const int64_t zero_point = 3;
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(quantize.get(), dnnl_graph_op_attr_scales, &scale, 1), dnnl_success);
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(quantize.get(), dnnl_graph_op_attr_zps, &zero_point, 1), dnnl_success);
  EXPECT_EQ(add(make_graph(), quantize), dnnl_success) << partita_last_error();

  // A later value replaces an earlier one; what does not fit is found when the operator is added.
  const Op softmax = make_op(5, dnnl_graph_op_softmax, {lt(0, {2, 3})}, {lt(1, {2, 3})});
  const float wrong = 1;
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(softmax.get(), dnnl_graph_op_attr_axis, &wrong, 1), dnnl_success);
  EXPECT_STATUS(add(make_graph(), softmax), dnnl_invalid_graph_op);
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(softmax.get(), dnnl_graph_op_attr_axis, &axis, 1), dnnl_success);
  EXPECT_EQ(add(make_graph(), softmax), dnnl_success) << partita_last_error();
}

TEST(dnnl_graph_graph, math_mode_is_set_and_read_before_finalize) {
  dnnl_graph_graph_t raw = nullptr;
  ASSERT_EQ(dnnl_graph_graph_create_with_fpmath_mode(&raw, dnnl_cpu, dnnl_fpmath_mode_bf16), dnnl_success);
  const Graph g(raw);
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_any;
  int to_int = -1;
  EXPECT_EQ(dnnl_graph_graph_get_fpmath_mode(g.get(), &mode, &to_int), dnnl_success);
  EXPECT_EQ(mode, dnnl_fpmath_mode_bf16);
  EXPECT_EQ(to_int, 0);
  EXPECT_EQ(dnnl_graph_graph_set_fpmath_mode(g.get(), dnnl_fpmath_mode_f16, 1), dnnl_success);
  EXPECT_EQ(dnnl_graph_graph_get_fpmath_mode(g.get(), nullptr, &to_int), dnnl_success);
  EXPECT_EQ(dnnl_graph_graph_get_fpmath_mode(g.get(), &mode, nullptr), dnnl_success);
  EXPECT_EQ(mode, dnnl_fpmath_mode_f16);
  EXPECT_EQ(to_int, 1);
  EXPECT_EQ(dnnl_graph_graph_finalize(g.get()), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_set_fpmath_mode(g.get(), dnnl_fpmath_mode_f16, 0), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_fpmath_mode(g.get(), &mode, &to_int), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_set_fpmath_mode(nullptr, dnnl_fpmath_mode_f16, 0), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_get_fpmath_mode(nullptr, &mode, &to_int), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_create_with_fpmath_mode(nullptr, dnnl_cpu, mode), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_create(nullptr, dnnl_cpu), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_destroy(nullptr), dnnl_success);
}

TEST(dnnl_graph_graph, starts_with_the_librarys_math_mode) {
  dnnl_fpmath_mode_t before = dnnl_fpmath_mode_strict, mode = dnnl_fpmath_mode_strict;
  ASSERT_EQ(dnnl_get_default_fpmath_mode(&before), dnnl_success);
  ASSERT_EQ(dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_bf16), dnnl_success);
  EXPECT_EQ(dnnl_graph_graph_get_fpmath_mode(make_graph().get(), &mode, nullptr), dnnl_success);
  EXPECT_EQ(mode, dnnl_fpmath_mode_bf16);
  ASSERT_EQ(dnnl_set_default_fpmath_mode(before), dnnl_success);
}

TEST(dnnl_graph_graph, checks_operators_when_they_are_added) {
  const Graph g = make_graph();
  EXPECT_STATUS(dnnl_graph_add_op(nullptr, relu(1, 0, 1).get()), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_add_op(g.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(add(g, make_op(1, kRelu, {}, {lt(1, {4})})), dnnl_invalid_graph_op);
  EXPECT_NE(std::string(partita_last_error()).find("ReLU must have 1 input"), std::string::npos);
  EXPECT_STATUS(add(g, relu(1, 0, 1)), dnnl_success);
  EXPECT_STATUS(add(g, relu(1, 5, 6)), dnnl_success) << "an id that is there already is no failure";
  EXPECT_EQ(dnnl_graph_graph_finalize(g.get()), dnnl_success);
  EXPECT_STATUS(add(g, relu(2, 1, 2)), dnnl_invalid_graph);
  EXPECT_EQ(partitions_of(g).size(), 1u);
}

TEST(dnnl_graph_graph, an_unknown_kind_stands_alone) {
  const Graph g = make_graph();
  const auto unknown = static_cast<dnnl_graph_op_kind_t>(4711);
  const Op op = make_op(1, unknown, {lt(0, {4})}, {lt(1, {4})});
  dnnl_graph_op_kind_t kind = dnnl_graph_op_abs;
  EXPECT_EQ(dnnl_graph_op_get_kind(op.get(), &kind), dnnl_success);
  EXPECT_EQ(kind, unknown);
  EXPECT_EQ(add(g, op), dnnl_success);
  EXPECT_EQ(add(g, relu(2, 1, 2)), dnnl_success);
  const auto partitions = partitions_of(g);
  ASSERT_EQ(partitions.size(), 2u);
  uint8_t supported = 2;
  EXPECT_EQ(dnnl_graph_partition_is_supported(partitions[0].get(), &supported), dnnl_success);
  EXPECT_EQ(supported, 0);
}

TEST(dnnl_graph_graph, finalize_finds_disagreement_and_cycles) {
  uint8_t final = 2;
  const Graph twice = make_graph();
  EXPECT_EQ(add(twice, relu(1, 0, 1)), dnnl_success);
  EXPECT_EQ(dnnl_graph_graph_is_finalized(twice.get(), &final), dnnl_success);
  EXPECT_EQ(final, 0);
  EXPECT_EQ(dnnl_graph_graph_finalize(twice.get()), dnnl_success);
  EXPECT_EQ(dnnl_graph_graph_finalize(twice.get()), dnnl_success);
  EXPECT_EQ(dnnl_graph_graph_is_finalized(twice.get(), &final), dnnl_success);
  EXPECT_EQ(final, 1);

  const Graph disagree = make_graph();
  EXPECT_EQ(add(disagree, relu(1, 0, 1)), dnnl_success);
  EXPECT_EQ(add(disagree, make_op(2, kRelu, {lt(1, {5})}, {lt(2, {5})})), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_finalize(disagree.get()), dnnl_invalid_graph);

  const Graph loop = make_graph(), self = make_graph();
  EXPECT_EQ(add(loop, relu(1, 0, 1)), dnnl_success);
  EXPECT_EQ(add(loop, relu(2, 1, 0)), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_finalize(loop.get()), dnnl_invalid_graph);
  EXPECT_EQ(add(self, relu(1, 0, 0)), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_finalize(self.get()), dnnl_invalid_graph);

  EXPECT_STATUS(dnnl_graph_graph_finalize(nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_is_finalized(nullptr, &final), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_is_finalized(loop.get(), nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_graph, filter_wants_a_finalized_graph) {
  const Graph g = chain();
  size_t count = 7;
  dnnl_graph_partition_t one = nullptr;
  EXPECT_STATUS(dnnl_graph_graph_filter(nullptr, dnnl_graph_partition_policy_fusion), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_filter(g.get(), dnnl_graph_partition_policy_fusion), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partition_num(g.get(), &count), dnnl_success);
  EXPECT_EQ(count, 0u);
  EXPECT_STATUS(dnnl_graph_graph_get_partition_num(nullptr, &count), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partition_num(g.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(partitions_of(g).size(), 1u);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(nullptr, 1, &one), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(g.get(), 1, nullptr), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(g.get(), 0, &one), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(g.get(), 2, &one), dnnl_invalid_arguments);
}

TEST(dnnl_graph_graph, is_partitioned_anew_by_each_filter) {
  const Graph g = chain();
  EXPECT_EQ(partitions_of(g).size(), 1u);
  EXPECT_EQ(partitions_of(g, dnnl_graph_partition_policy_debug).size(), 3u);
  EXPECT_EQ(partitions_of(g).size(), 1u);
}

TEST(dnnl_graph_graph, may_end_before_its_partitions) {
  std::vector<PartitionHandle> partitions;
  {
    const Graph g = chain();
    partitions = partitions_of(g);
  }
  size_t count = 0;
  EXPECT_EQ(dnnl_graph_partition_get_op_num(partitions.at(0).get(), &count), dnnl_success);
  EXPECT_EQ(count, 3u);
}

TEST(dnnl_graph_partition, tells_its_operators_and_ports) {
  const Graph g = chain();
  const auto partitions = partitions_of(g);
  ASSERT_EQ(partitions.size(), 1u);
  const auto p = partitions[0].get();
  size_t id = 0, ids[3] = {}, inputs = 0, outputs = 0;
  dnnl_engine_kind_t kind = dnnl_any_engine;
  int number = -1;
  uint8_t supported = 0;
  EXPECT_EQ(dnnl_graph_partition_get_id(p, &id), dnnl_success);
  EXPECT_GT(id, 100000u);
  EXPECT_EQ(dnnl_graph_partition_get_ops(p, 3, ids), dnnl_success);
  EXPECT_EQ(std::vector<size_t>(ids, ids + 3), (std::vector<size_t>{1, 2, 3}));
  EXPECT_EQ(dnnl_graph_partition_is_supported(p, &supported), dnnl_success);
  EXPECT_EQ(supported, 1);
  EXPECT_EQ(dnnl_graph_partition_get_engine_kind(p, &kind), dnnl_success);
  EXPECT_EQ(kind, dnnl_cpu);
  EXPECT_EQ(dnnl_graph_partition_get_kind(p, &number), dnnl_success);
  EXPECT_EQ(number, 0);
  EXPECT_EQ(dnnl_graph_partition_get_input_ports_num(p, &inputs), dnnl_success);
  EXPECT_EQ(dnnl_graph_partition_get_output_ports_num(p, &outputs), dnnl_success);
  ASSERT_EQ(inputs, 3u);
  ASSERT_EQ(outputs, 1u);
  Lt in[3], out[1];
  EXPECT_EQ(dnnl_graph_partition_get_input_ports(p, 3, in), dnnl_success);
  EXPECT_EQ(dnnl_graph_partition_get_output_ports(p, 1, out), dnnl_success);
  EXPECT_EQ(std::set<size_t>({in[0].id, in[1].id, in[2].id}), (std::set<size_t>{0, 1, 3}));
  EXPECT_EQ(out[0].id, 5u);
  EXPECT_EQ(out[0].dims[1], 4);

  EXPECT_STATUS(dnnl_graph_partition_get_ops(p, 2, ids), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_ops(p, 3, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_ops(nullptr, 3, ids), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_op_num(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_op_num(nullptr, &id), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_id(nullptr, &id), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_id(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_kind(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_kind(nullptr, &number), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_is_supported(nullptr, &supported), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_is_supported(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_engine_kind(nullptr, &kind), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_engine_kind(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports_num(nullptr, &id), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports_num(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports_num(nullptr, &id), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports_num(p, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports(nullptr, 3, in), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports(p, 3, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports(p, 2, in), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports(nullptr, 1, out), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports(p, 1, nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports(p, 0, out), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_destroy(nullptr), dnnl_success);
}

TEST(dnnl_graph_partition, one_tensor_used_twice_is_two_ports) {
  const Graph g = make_graph();
  EXPECT_EQ(add(g, make_op(1, dnnl_graph_op_multiply, {lt(0, {4}), lt(0, {4})}, {lt(1, {4})})), dnnl_success);
  size_t inputs = 0;
  EXPECT_EQ(dnnl_graph_partition_get_input_ports_num(partitions_of(g).at(0).get(), &inputs), dnnl_success);
  EXPECT_EQ(inputs, 2u);
}

TEST(dnnl_graph_partition, of_one_operator) {
  const PartitionHandle p = partition_of(relu(9, 0, 1));
  size_t id = 0;
  EXPECT_EQ(dnnl_graph_partition_get_ops(p.get(), 1, &id), dnnl_success);
  EXPECT_EQ(id, 9u);

  dnnl_graph_partition_t made = nullptr;
  const Op good = relu(1, 0, 1), bad = make_op(1, kRelu, {}, {}), end = make_op(1, dnnl_graph_op_end, {lt(0, {4})}, {});
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(nullptr, good.get(), dnnl_cpu), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(&made, nullptr, dnnl_cpu), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(&made, bad.get(), dnnl_cpu), dnnl_invalid_graph_op);
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(&made, end.get(), dnnl_cpu), dnnl_invalid_graph);
  Lt in = lt(0, {4}, dnnl_f32, dnnl_graph_layout_type_opaque),
     out = lt(1, {4}, dnnl_f32, dnnl_graph_layout_type_opaque);
  in.layout.layout_id = 0x11, out.layout.layout_id = 0x12;
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(&made, make_op(1, kRelu, {in}, {out}).get(), dnnl_cpu),
                dnnl_unimplemented);
  EXPECT_EQ(made, nullptr);
}

TEST(partita_last_error, belongs_to_the_thread) {
  EXPECT_STATUS(dnnl_graph_op_destroy(nullptr), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_finalize(nullptr), dnnl_invalid_arguments);
  EXPECT_STREQ(partita_last_error(), "`graph` is null");
  std::thread([] { EXPECT_STREQ(partita_last_error(), ""); }).join();
  EXPECT_STATUS(dnnl_graph_op_destroy(nullptr), dnnl_success);
  EXPECT_STREQ(partita_last_error(), "`graph` is null");
  EXPECT_STREQ(partita_version(), PARTITA_VERSION);
}

}  // namespace
}  // namespace partita::test
