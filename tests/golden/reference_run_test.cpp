// SPDX-License-Identifier: Apache-2.0
// What becomes of tensors inside a partition when its operators run one by one through the references.
#include "src/harness/reference_run.hpp"

#include <gtest/gtest.h>

#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

/// (x * x) - y in bf16.
double square_less(double x, double y, InnerValues inner) {
  const auto partitions = final_graph_of(
                              "%1: bf16[1] = Square(%0: bf16[1])\n"
                              "%3: bf16[1] = Subtract(%1, %2: bf16[1])")
                              .get_partitions();
  EXPECT_EQ(partitions->size(), 1u);
  const partition& p = partitions->front();
  Tensors inputs;
  for (const logical_tensor& port : p.input_ports()) {
    const Storage& made = inputs[port.id] = Storage(port);
    store_from_double(made.data.get(), port.dtype, 0, port.id == 0 ? x : y);
  }
  const auto results = run_reference(*p.form(), {p.input_ports(), p.output_ports(), {}}, inputs, {.inner = inner});
  EXPECT_TRUE(results.ok()) << results.status().text();
  return load_as_double(results->at(3).data.get(), Dtype::bf16, 0);
}

TEST(reference_run, inner_values_are_rounded_to_their_type_or_stay_wide) {
  constexpr double kX = 1 + 0x1p-7, kRounded = 1 + 0x1p-6;  // x^2 = 1 + 2^-6 + 2^-14, which bf16 cannot hold
  EXPECT_EQ(square_less(kX, kRounded, InnerValues::rounded), 0);
  EXPECT_EQ(square_less(kX, kRounded, InnerValues::wide), 0x1p-14);
}

}  // namespace
}  // namespace partita::test
