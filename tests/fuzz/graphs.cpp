// SPDX-License-Identifier: Apache-2.0
// Random valid graphs: every operator computes what its reference does, partitions compute what their operators do one
// by one, and the interpreter gives fused and unfused programs the same bits.
#include "tests/fuzz/drawn_graph.hpp"
#include "tests/support/op_by_op.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/sample.hpp"

namespace partita::test {
namespace {

/// Products are rounded otherwise where they are fused (docs/numerics.md), so samples of patterns are measured by the
/// references.
void check_sample(Random& random) {
  const auto g = drawn_graph(sample(random.one_of(sampled_patterns()), random));
  if (g) stop_unless_empty(run_difference(*g, random.seed(), Against::references));
}

void check_graph(Random& random) {
  const RandomGraph sketch = random_graph(random, static_cast<int>(random.whole(2, 14)));
  const auto g = drawn_graph(sketch.ops);
  if (!g) return;
  expect_fusion_keeps_bits(*g, sketch.kept, random.seed());
  stop_unless_empty(run_difference(*g, random.seed(), Against::single_ops));
}

}  // namespace
}  // namespace partita::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita::test;
  prepare_target();
  Random random(std::span(data, size));
  if (random.whole(0, 3) == 0)
    check_sample(random);
  else
    check_graph(random);
  return 0;
}
