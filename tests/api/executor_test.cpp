// SPDX-License-Identifier: Apache-2.0
// Executions on threads of the caller's, with nothing but the public headers.
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>

#include "partita/partita.hpp"
#include "tests/support/thread_per_part.hpp"

namespace partita {
namespace {

using test::ThreadPerPart;

constexpr int64_t kElements = 1 << 20;

/// Compiled for three threads.
compiled_partition squares() {
  const logical_tensor x(0, Dtype::f32, Dims{kElements}), y(1, Dtype::f32, Dims{kElements});
  const auto p = partition::of(op(1, OpKind::Square, {x}, {y}));
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  auto compiled = p->compile(p->input_ports(), p->output_ports(), engine());
  omp_set_num_threads(before);
  EXPECT_TRUE(compiled.ok()) << compiled.status().text();
  return compiled.ok() ? *compiled : compiled_partition();
}

void expect_squares_on(const stream& on, const compiled_partition& c) {
  std::vector<float> x(kElements), y(kElements, -1.0f);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {y.data()};
  const Status s = c.execute_at(on, in, out);
  ASSERT_TRUE(s.ok()) << s.text();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * x[i]) << i;
}

TEST(executor, runs_the_parts_of_an_execution) {
  ThreadPerPart pool(2);
  expect_squares_on(stream(engine(), pool), squares());
  EXPECT_EQ(pool.runs, 1);
  EXPECT_EQ(pool.most_parts, 2);
}

TEST(executor, gets_no_more_parts_than_the_partition_was_compiled_for) {
  ThreadPerPart pool(8);
  expect_squares_on(stream(engine(), pool), squares());
  EXPECT_EQ(pool.most_parts, 3);
}

TEST(executor, of_one_thread_is_not_asked_to_run_anything) {
  ThreadPerPart pool(1);
  expect_squares_on(stream(engine(), pool), squares());
  EXPECT_EQ(pool.runs, 0);
}

}  // namespace
}  // namespace partita
