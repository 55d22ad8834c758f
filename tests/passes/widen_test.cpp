// SPDX-License-Identifier: Apache-2.0
// Temporaries that products would copy to f32 are made in f32: which ones, and that no bit changes.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

/// On processors with products of this type nothing is copied.
bool copies(const CompiledGraph& g) {
  return std::ranges::any_of(g.executable->program.steps, [](const Step& s) { return s.picked.kernel->in_floats; });
}

/// Whether any temporary has the type.
bool holds(const CompiledGraph& g, Dtype dtype) {
  return std::ranges::any_of(g.executable->program.buffers, [&](const partita::Buffer& b) {
    return b.role == partita::Buffer::Role::temporary && b.desc.dtype == dtype;
  });
}

TEST(widen, what_products_copy_is_made_in_f32_and_rounded) {
  const std::string product = "%3: f16 = MatMul(%2: f16[40,24], %1: f16[24,32])";
  const std::string loop = "%2 = Exp(%0: f16[40,24])";
  const CompiledGraph together = compiled_graph(str(loop, "; ", product), 2);
  if (!copies(together)) GTEST_SKIP() << "oneDNN multiplies f16 on this machine";
  EXPECT_FALSE(holds(together, Dtype::f16)) << together.steps();
  const Tensors results = together.run();
  EXPECT_EQ(together.difference(results), "") << together.steps();
  // the same to the bit as one after the other; inputs are the same by their numbers
  CompiledGraph second = compiled_graph(product, 2);
  second.inputs.at(2) = std::move(compiled_graph(loop, 2).run().at(2));
  EXPECT_EQ(bit_difference(second.run(), results), "") << together.steps();
}

TEST(widen, skeletons_and_several_readers) {
  if (!generates_code()) GTEST_SKIP() << "without generated code softmax is oneDNN's, on copies as well";
  const CompiledGraph softmax = compiled_graph(
      "%2 = SoftMax(%0: f16[40,24]) {axis=-1}; %3: f16 = MatMul(%2, %1: f16[24,32]); %4: f16 = MatMul(%2, %5: "
      "f16[24,8])",
      2);
  if (!copies(softmax)) GTEST_SKIP() << "oneDNN multiplies f16 on this machine";
  EXPECT_FALSE(holds(softmax, Dtype::f16)) << softmax.steps();
  EXPECT_EQ(softmax.difference(softmax.run()), "") << softmax.steps();
}

TEST(widen, not_what_others_see) {
  if (!generates_code()) GTEST_SKIP() << "without generated code softmax is oneDNN's, on copies as well";
  // a result of the partition, and what a skeleton reads
  const CompiledGraph output = compiled_graph(
      "%2 = Exp(%0: f16[40,24]); %3: f16 = MatMul(%2, %1: f16[24,32]); %4: f16 = SoftMax(%2) {axis=-1}", 2);
  EXPECT_EQ(output.difference(output.run()), "") << output.steps();
  EXPECT_TRUE(holds(output, Dtype::f16)) << output.steps();
  const CompiledGraph f32 = compiled_graph("%2 = Exp(%0: f32[40,24]); %3 = MatMul(%2, %1: f32[24,32])", 2);
  EXPECT_FALSE(holds(f32, Dtype::f16));
}

}  // namespace
}  // namespace partita::test
