// SPDX-License-Identifier: Apache-2.0
// Building and finalizing graphs, partitions and their ports.
#include <gtest/gtest.h>

#include "partita/partita.hpp"
#include "tests/support/graph_text.hpp"

namespace partita {
namespace {

using test::final_graph_of;
using test::ops_of;

/// The error of adding the operators and finalizing.
std::string error_of(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops)
    if (const Status s = g.add_op(o); !s.ok()) return s.text();
  return g.finalize().text();
}

std::string error_of(std::string_view text) { return error_of(ops_of(text)); }

TEST(graph, refuses_a_repeated_operator_id) {
  graph g;
  op relu = ops_of("%1 = ReLU(%0: f32[2])")[0];
  ASSERT_TRUE(g.add_op(relu).ok());
  const Status s = g.add_op(relu);
  EXPECT_EQ(s.code(), Code::invalid_graph_op);
  EXPECT_EQ(s.text(), "op 1 (ReLU): another operator has the id 1");
}

TEST(graph, takes_an_operator_again_after_it_was_refused) {
  graph g;
  op relu = ops_of("%1 = ReLU(%0: f32[2])")[0];
  op broken = relu;
  broken.inputs.clear();
  EXPECT_FALSE(g.add_op(broken).ok());
  EXPECT_TRUE(g.add_op(relu).ok());
}

TEST(graph, refuses_operators_once_finalized) {
  graph g = final_graph_of("%1 = ReLU(%0: f32[2])");
  EXPECT_EQ(g.add_op(ops_of("%1 = ReLU(%0: f32[2])")[0]).code(), Code::invalid_graph);
  EXPECT_EQ(g.set_fpmath_mode(FpMath::bf16).code(), Code::invalid_graph);
  EXPECT_TRUE(g.finalize().ok());
}

TEST(graph, refuses_tensors_with_more_dims_or_strides_than_there_are) {
  const std::string as_text =
      "(tensor 0, f32[2,2,2,2,2,2,2,2,2,2,2,2,..]): a tensor has at most 12 dims, more were given";
  op many = ops_of("%1: f32[2] = ReLU(%0: f32[2])")[0];
  many.inputs[0] = logical_tensor(0, Dtype::f32, Dims(13, 2));
  EXPECT_EQ(error_of({many}), "op 1 (ReLU): `src` " + as_text);
  many.inputs[0] = logical_tensor(0, Dtype::f32, Dims(12, 1), Dims(13, 1));
  EXPECT_EQ(
      error_of({many}),
      "op 1 (ReLU): `src` (tensor 0, f32[1,1,1,1,1,1,1,1,1,1,1,1]): a tensor has at most 12 strides, more were given");
  many = ops_of("%1: f32[2] = ReLU(%0: f32[2])")[0];
  many.outputs[0] = logical_tensor(1, Dtype::f32, Dims(13, 2), Layout::any);
  EXPECT_NE(error_of({many}).find("at most 12 dims"), std::string::npos);
}

TEST(graph, needs_to_be_finalized_before_it_is_partitioned) {
  EXPECT_EQ(graph().get_partitions().status().code(), Code::invalid_graph);
}

TEST(graph, an_empty_graph_has_no_partitions) {
  graph g;
  ASSERT_TRUE(g.finalize().ok());
  EXPECT_TRUE(g.get_partitions()->empty());
}

TEST(graph, one_id_with_two_shapes_is_an_error_with_both_places) {
  EXPECT_EQ(error_of("%1: f32[2,3] = ReLU(%0: f32[2,3]); %2 = Abs(%1: f32[3,2])"),
            "op 2 (Abs): tensor 1 has a different shape here (f32[3,2]) than in op 1 (ReLU) (f32[2,3])");
}

TEST(graph, one_id_with_two_types_is_an_error) {
  EXPECT_EQ(error_of("%1: f32[2] = ReLU(%0: f32[2]); %2 = Abs(%1: bf16[2])"),
            "op 2 (Abs): tensor 1 has a different data type here (bf16[2]) than in op 1 (ReLU) (f32[2])");
}

TEST(graph, one_id_with_two_ranks_strides_or_properties_is_an_error_with_both) {
  EXPECT_EQ(error_of("%1: f32[2,3] = ReLU(%0: f32[2,3]); %2 = Abs(%1: f32[6])"),
            "op 2 (Abs): tensor 1 has a different rank here (f32[6]) than in op 1 (ReLU) (f32[2,3])");
  std::vector<op> ops = ops_of("%1: f32[2,3] = ReLU(%0: f32[2,3]); %2: f32[2,3] = Abs(%1)");
  ops[1].inputs[0].strides = {1, 2};
  EXPECT_EQ(error_of(ops), "op 2 (Abs): tensor 1 has different strides here ([1,2]) than in op 1 (ReLU) ([3,1])");
  ops[1].inputs[0] = ops[0].outputs[0];
  ops[0].outputs[0].property = Property::constant;
  ops[1].inputs[0].property = Property::variable;
  EXPECT_EQ(error_of(ops),
            "op 2 (Abs): tensor 1 has a different property here (variable) than in op 1 (ReLU) (constant)");
}

TEST(graph, unknown_shapes_agree_with_known_ones) {
  const graph g = final_graph_of("%1: f32 = ReLU(%0: f32[2,3]); %2 = Abs(%1: f32[2,3])");
  EXPECT_EQ((*g.get_partitions())[0].output_ports()[0].text(), "f32[?]");
}

TEST(graph, two_producers_of_one_tensor_are_an_error) {
  EXPECT_EQ(error_of("%1: f32[2] = ReLU(%0: f32[2]); %1: f32[2] = Abs(%0)"),
            "op 2 (Abs): tensor 1 is produced a second time, the first producer is op 1 (ReLU)");
}

TEST(graph, a_cycle_is_an_error_that_names_it) {
  EXPECT_EQ(error_of("%1: f32[2] = ReLU(%2: f32[2]); %2: f32[2] = Abs(%1)"),
            "the graph has a cycle: op 2 (Abs) -> op 1 (ReLU)");
}

TEST(graph, a_self_loop_is_a_cycle) {
  EXPECT_EQ(error_of("%1: f32[2] = ReLU(%1: f32[2])"), "the graph has a cycle: op 1 (ReLU)");
}

TEST(partition, ports_are_uses_from_outside_and_results_used_outside) {
  const graph g = final_graph_of("%1: f32[2] = ReLU(%0: f32[2]); %2: f32[2] = Add(%1, %0); %3: f32[2] = Wildcard(%1)");
  const auto partitions = *g.get_partitions();
  ASSERT_EQ(partitions.size(), 2u);
  const partition& fused = partitions[0];
  EXPECT_EQ(fused.ops(), (std::vector<uint64_t>{1, 2}));
  ASSERT_EQ(fused.input_ports().size(), 2u);
  EXPECT_EQ(fused.input_ports()[0].id, 0u);
  EXPECT_EQ(fused.input_ports()[1].id, 0u);
  ASSERT_EQ(fused.output_ports().size(), 2u);
  EXPECT_EQ(fused.output_ports()[0].id, 1u);
  EXPECT_EQ(fused.output_ports()[1].id, 2u);
}

TEST(partition, ids_are_unique_and_each_operator_is_in_one) {
  const graph g = final_graph_of("%1: f32[2] = ReLU(%0: f32[2]); %2: f32[2] = Reorder(%1); %3: f32[2] = Abs(%2)");
  const auto first = *g.get_partitions(Policy::debug), second = *g.get_partitions(Policy::debug);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].ops(), std::vector<uint64_t>{1});
  EXPECT_NE(first[0].id(), second[0].id());
  EXPECT_NE(first[0].id(), first[1].id());
}

TEST(partition, an_operator_of_two_uses_of_one_tensor_has_two_input_ports) {
  const graph g = final_graph_of("%1: f32[2] = Add(%0: f32[2], %0)");
  const auto p = (*g.get_partitions())[0];
  EXPECT_EQ(p.input_ports().size(), 2u);
  EXPECT_EQ(p.output_ports().size(), 1u);
}

TEST(partition, wildcard_and_end_are_not_supported_and_say_so) {
  graph g;
  op wildcard(1, OpKind::Wildcard);
  wildcard.add_output(logical_tensor(0, Dtype::f32, Dims{2}));
  op end(2, OpKind::End);
  end.add_input(logical_tensor(0, Dtype::f32, Dims{2}));
  ASSERT_TRUE(g.add_op(wildcard).ok());
  ASSERT_TRUE(g.add_op(end).ok());
  ASSERT_TRUE(g.finalize().ok());
  for (const partition& p : *g.get_partitions()) {
    EXPECT_FALSE(p.supported());
    EXPECT_NE(p.reason().find("computes nothing"), std::string::npos);
    EXPECT_EQ(p.compile(p.input_ports(), p.output_ports(), engine()).status().code(), Code::invalid_arguments);
  }
}

TEST(partition, an_end_keeps_its_tensor_visible_outside) {
  EXPECT_EQ(test::partition_text("%1: f32[2] = ReLU(%0: f32[2]); %2: f32[2] = Abs(%1)"),
            "[elementwise_neighbourhood: 1,2]");
  const graph g = final_graph_of("%1: f32[2] = ReLU(%0: f32[2]); %2: f32[2] = Abs(%1); = End(%1)");
  const auto partitions = *g.get_partitions();
  ASSERT_EQ(partitions.size(), 1u);
  EXPECT_EQ(partitions[0].output_ports().size(), 2u);
}

TEST(partition, made_by_default_is_empty) {
  const partition empty;
  EXPECT_EQ(empty.id(), 0u);
  EXPECT_TRUE(empty.ops().empty());
  EXPECT_EQ(empty.pattern(), "");
  EXPECT_FALSE(empty.supported());
  EXPECT_EQ(empty.reason(), "the partition is empty");
  EXPECT_TRUE(empty.input_ports().empty());
  EXPECT_TRUE(empty.output_ports().empty());
  EXPECT_EQ(empty.engine_kind(), EngineKind::any);
  EXPECT_EQ(empty.form(), nullptr);
  EXPECT_EQ(empty.compile({}, {}, engine()).status().text(), "the partition is empty");
}

TEST(partition, of_one_operator_is_checked_like_in_a_graph) {
  EXPECT_TRUE(partition::of(ops_of("%1: f32[2] = ReLU(%0: f32[2])")[0]).ok());
  EXPECT_EQ(partition::of(ops_of("%1: f32[2] = ReLU()")[0]).status().code(), Code::invalid_graph_op);
}

}  // namespace
}  // namespace partita
