// SPDX-License-Identifier: Apache-2.0
// Graphs as text and as DOT.
#include "src/io/dot.hpp"

#include <gtest/gtest.h>

namespace partita {
namespace {

graph chain() {
  graph g;
  const logical_tensor x(1, Dtype::f32, {2, 3}, Dims{1, 2}), w(4, Dtype::f32, {3}, Layout::strided, Property::constant);
  const logical_tensor y(2, Dtype::f32, {2, 3}), z(3, Dtype::f32);
  op clamp(5, OpKind::Clamp, {x}, {y}, "say \"hi\"\n\\");
  clamp.set_attr(Attr::min, 0.0f).set_attr(Attr::max, 6.5f);
  EXPECT_TRUE(g.add_op(clamp).ok());
  EXPECT_TRUE(g.add_op(op(6, OpKind::Add, {y, w}, {z})).ok());
  EXPECT_TRUE(g.add_op(op(7, OpKind::End, {z}, {})).ok());
  return g;
}

TEST(graph_text, is_one_line_an_operator) {
  EXPECT_EQ(graph_to_text(chain()),
            "%2 = Clamp(%1: f32[2,3] strides 1,2) {max=6.5, min=0} -> f32[2,3]\n"
            "%3 = Add(%2: f32[2,3], %4: f32[3] constant) -> f32[?]\n"
            "End(%3: f32[?])\n");
  EXPECT_EQ(graph_to_text(graph()), "");
}

TEST(graph_dot, draws_operators_tensors_and_results) {
  EXPECT_EQ(graph_to_dot(chain()), R"(digraph partita {
  node [shape=box, fontname="monospace"];
  edge [fontname="monospace"];
  op0 [label="Clamp  #5\nsay \"hi\"\n\\\nmax=6.5\nmin=0"];
  op1 [label="Add  #6"];
  op2 [label="End  #7"];
  t1 [shape=ellipse, label="%1"];
  t1 -> op0 [label="%1\nf32[2,3] strides 1,2"];
  op0 -> op1 [label="%2\nf32[2,3]"];
  t4 [shape=ellipse, label="%4"];
  t4 -> op1 [label="%4\nf32[3] constant"];
  op1 -> op2 [label="%3\nf32[?]"];
}
)");
  graph g;
  EXPECT_TRUE(g.add_op(op(0, OpKind::ReLU, {logical_tensor(1, Dtype::f32)}, {logical_tensor(2, Dtype::f32)})).ok());
  const std::string dot = graph_to_dot(g);
  EXPECT_NE(dot.find("  t2 [shape=ellipse, label=\"%2\"];\n  op0 -> t2 [label=\"f32[?]\"];\n"), dot.npos) << dot;
}

}  // namespace
}  // namespace partita
