// SPDX-License-Identifier: Apache-2.0
// Nothing recurses with a graph's depth: chains of very many operators are read, finalized, partitioned and written on
// a thread with a small stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>

#include "partita/graph.hpp"
#include "partita/json.hpp"
#include "src/io/dot.hpp"
#include "tests/support/sound.hpp"

namespace partita::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = size_t{1} << 20;  // frames of sanitized code are larger
#else
constexpr size_t kStackBytes = size_t{256} << 10;
#endif
constexpr uint64_t kDepth = 100000, kSmallerDepth = 20000;

/// Runs `work` on a thread with a small stack; its failures count for the test.
void on_small_stack(void (*work)()) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto start = [](void* function) -> void* {
    reinterpret_cast<void (*)()>(function)();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, reinterpret_cast<void*>(work)), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

/// Operator i reads the result of operator i - 1; a product also reads a tensor of its own.
std::vector<op> chain(uint64_t depth, OpKind (*kind_of)(uint64_t)) {
  const Dims dims{4, 4};
  std::vector<op> ops;
  for (uint64_t i = 1; i <= depth; ++i) {
    op made(i, kind_of(i));
    made.add_input(logical_tensor(i - 1, Dtype::f32, dims)).add_output(logical_tensor(i, Dtype::f32, dims));
    if (made.kind == OpKind::MatMul || made.kind == OpKind::Add)
      made.add_input(logical_tensor(2 * depth + i, Dtype::f32, dims));
    ops.push_back(std::move(made));
  }
  return ops;
}

graph graph_of(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops) EXPECT_TRUE(g.add_op(o).ok());
  return g;
}

void expect_sound(graph g) {
  const Status finalized = g.finalize();
  ASSERT_TRUE(finalized.ok()) << finalized.text();
  std::vector<PatternNote> notes;
  EXPECT_EQ(unsoundness(*g.form(), partition_graph(*g.form(), {}, &notes)), "");
}

OpKind one_kind(uint64_t) { return OpKind::ReLU; }
/// What patterns begin with, and then what they take any number of.
OpKind after_a_product(uint64_t i) { return i == 1 ? OpKind::MatMul : i % 2 ? OpKind::Add : OpKind::ReLU; }
/// The same seen from the other end.
OpKind before_a_product(uint64_t i) { return i == kSmallerDepth ? OpKind::MatMul : i % 2 ? OpKind::Add : OpKind::ReLU; }
OpKind layers(uint64_t i) { return i % 4 == 0 ? OpKind::MatMul : i % 4 == 1 ? OpKind::Add : OpKind::SoftMax; }

TEST(deep_graphs, are_partitioned_on_a_small_stack) {
  on_small_stack([] { expect_sound(graph_of(chain(kSmallerDepth, one_kind))); });
  on_small_stack([] { expect_sound(graph_of(chain(kSmallerDepth, after_a_product))); });
  on_small_stack([] { expect_sound(graph_of(chain(kSmallerDepth, before_a_product))); });
  on_small_stack([] { expect_sound(graph_of(chain(kDepth, layers))); });
}

TEST(deep_graphs, may_be_given_in_any_order) {
  on_small_stack([] {
    std::vector<op> ops = chain(kSmallerDepth, layers);
    std::reverse(ops.begin(), ops.end());
    expect_sound(graph_of(ops));
  });
}

TEST(deep_graphs, are_read_and_written_on_a_small_stack) {
  on_small_stack([] {
    const graph g = graph_of(chain(kSmallerDepth, layers));
    const std::string text = graph_to_json(g);
    const Result<graph> again = graph_from_json(text);
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(again->ops().size(), kSmallerDepth);
    EXPECT_GT(graph_to_dot(g).size(), kSmallerDepth);
    EXPECT_GT(graph_to_text(g).size(), kSmallerDepth);
  });
}

TEST(deep_graphs, that_are_circles_are_refused_on_a_small_stack) {
  on_small_stack([] {
    std::vector<op> ops = chain(kDepth, one_kind);
    ops.back().outputs[0].id = 0;
    graph g = graph_of(ops);
    const Status finalized = g.finalize();
    EXPECT_EQ(finalized.code(), Code::invalid_graph);
    EXPECT_LT(finalized.text().size(), 1000u);
  });
}

}  // namespace
}  // namespace partita::test
