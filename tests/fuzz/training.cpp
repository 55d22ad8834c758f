// SPDX-License-Identifier: Apache-2.0
// Random valid graphs of training operators: what is summed over rows, channels and images, and all that stands around
// it, computes what the references do, operator by operator and in partitions, and the interpreter gives fused and
// unfused programs the same bits. (Generated sums are rounded otherwise in other kernels.)
#include "tests/fuzz/drawn_graph.hpp"
#include "tests/support/op_by_op.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/random_graph.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita::test;
  prepare_target();
  Random random(std::span(data, size));
  const RandomGraph sketch = random_training_graph(random, static_cast<int>(random.whole(1, 14)));
  const auto g = drawn_graph(sketch.ops);
  if (!g) return 0;
  expect_fusion_keeps_bits(*g, sketch.kept, random.seed());
  stop_unless_empty(run_difference(*g, random.seed(), Against::references));
  return 0;
}
