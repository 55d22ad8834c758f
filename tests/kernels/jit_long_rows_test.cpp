// SPDX-License-Identifier: Apache-2.0
// Rows that stay in the caches are computed by one piece of code, those that leave them by one with other stores or in
// tiles; which of them does it shows in no bit.
#include <gtest/gtest.h>

#include "kernels/expr.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/streams_alone.hpp"

namespace partita::test {
namespace {

struct Case {
  StepKind step;
  OpKind op;
  int inputs;          ///< as large as the result
  bool numbers;        ///< a mean and a variance a row
  bool vectors;        ///< gamma, and beta where it is LayerNorm's
  bool expects_exact;  ///< of all results; else of the first
};

constexpr Case kCases[] = {
    {StepKind::softmax, OpKind::SoftMax, 1, false, false, true},
    {StepKind::softmax, OpKind::LogSoftmax, 1, false, false, true},
    {StepKind::softmax_backward, OpKind::SoftMaxBackward, 2, false, false, true},
    {StepKind::softmax_backward, OpKind::LogSoftmaxBackward, 2, false, false, true},
    {StepKind::layer_norm, OpKind::LayerNorm, 1, false, true, true},
    {StepKind::layer_norm, OpKind::RMSNorm, 1, false, true, true},
    // Tiles add rows to the gradients of gamma and beta in pairs.
    {StepKind::layer_norm_backward, OpKind::LayerNormBackward, 2, true, true, false},
};

Problem problem_of(const Case& c, Dtype dtype, const Dims& dims) {
  Problem p = problem_for(c.step, c.op);
  p.in.insert(p.in.end(), static_cast<size_t>(c.inputs), dense_desc(dtype, dims));
  p.out = {dense_desc(dtype, dims)};
  const TensorDesc vector = dense_desc(Dtype::f32, {dims.back()}), numbers = dense_desc(Dtype::f32, {dims[0]});
  if (c.step == StepKind::softmax || c.step == StepKind::softmax_backward) {
    p.attrs.set(Attr::axis, int64_t{-1});
    return p;
  }
  p.attrs.set(Attr::epsilon, 0.01f);
  p.attrs.set(Attr::begin_norm_axis, int64_t{-1});
  if (c.numbers) p.in.insert(p.in.end(), 2, numbers);
  p.in.push_back(vector);
  if (c.op == OpKind::RMSNorm) return p;
  p.attrs.set(Attr::use_affine, true);
  p.in.push_back(vector);
  if (c.op == OpKind::LayerNormBackward) p.out.insert(p.out.end(), 2, vector);
  if (c.op != OpKind::LayerNorm) return p;
  p.attrs.set(Attr::keep_stats, true);
  p.out.insert(p.out.end(), 2, numbers);
  return p;
}

/// With x + 0.5 before and y y behind, so that what is computed before is kept.
void fuse_around(Problem& p) {
  ExprBuilder front(p.front), back(p.back);
  p.front.result = front.add(front.load(p.op == OpKind::LayerNormBackward ? 1 : 0), front.constant(0.5f));
  const auto y = back.skeleton();
  back.store(0, back.mul(y, y));
}

TEST(jit_long_rows, rows_in_the_caches_have_the_bits_of_tiles) {
  Random random(11);
  for (const Isa isa : generated_isas())
    for (const Case& c : kCases)
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
        for (const int64_t length : {260, 545, 1040, 4099, 8192})
          for (const bool fused : {false, true}) {
            Problem p = problem_of(c, dtype, {5, length});
            if (fused) fuse_around(p);
            SCOPED_TRACE(str(name_of(isa), fused ? " fused, " : ", ", text_of(p)));
            std::vector<Buffer> in;
            for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {0.1, 1}));
            const Kernel& row = *generated_row(p.step, isa);
            const Target target{.isa = isa, .threads = 3};
            ASSERT_EQ(row.refuse(p, target), nullptr);
            for (const bool alone : {false, true}) {
              const StreamsAlone assumed(alone);
              p.result_bytes = 0;
              auto near = run_kernel(row, p, in, target);
              p.result_bytes = int64_t{1} << 40;
              auto far = run_kernel(row, p, in, target);
              for (; !c.expects_exact && near.size() > 1; near.pop_back(), far.pop_back())
                EXPECT_EQ(difference(near.back(), far.back(), 1e-6), "") << "output " << near.size() - 1;
              EXPECT_EQ(byte_difference(near, far), "") << (alone ? "streams alone" : "streams with help");
            }
          }
}

}  // namespace
}  // namespace partita::test
