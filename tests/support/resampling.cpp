// SPDX-License-Identifier: Apache-2.0
#include "tests/support/resampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {

Problem resampling(const Resampled& s, const Manner& how) {
  Problem p = how.backward ? problem_for(StepKind::resample_backward, OpKind::InterpolateBackward)
                           : problem_for(StepKind::resample, OpKind::Interpolate);
  p.attrs.set(Attr::data_format, std::string(s.channel_last ? "NXC" : "NCX"));
  p.attrs.set(Attr::mode, how.mode);
  p.attrs.set(Attr::coordinate_transformation_mode, how.coordinates);
  p.attrs.set(Attr::sizes, s.large);
  const TensorDesc from = dense_desc(how.dtype, activation_dims(s.batch, s.channels, s.small, s.channel_last));
  const TensorDesc to = dense_desc(how.dtype, activation_dims(s.batch, s.channels, s.large, s.channel_last));
  p.in = how.backward ? std::vector{from, to} : std::vector{from};
  p.out = {how.backward ? from : to};
  return p;
}

bool expect_operands_of_any_shape(const Problem& plain, Isa isa, Random& random, bool (*takes)(const Problem&, Isa)) {
  Problem p = plain;
  TensorDesc operand = dense_desc(random.pick({Dtype::f32, Dtype::bf16}), p.out[0].dims);
  for (int d = 0; d < operand.dims.size(); ++d)
    if (random.coin()) operand.strides[d] = 0;
  p.in.push_back(operand);
  p.out.push_back(dense_desc(Dtype::f32, p.out[0].dims));
  ExprBuilder b(p.back);
  const auto result = b.skeleton();
  b.store(0, b.max(b.add(result, b.load(static_cast<int>(plain.in.size()))), b.constant(0)));
  b.store(1, result);
  if (!takes(p, isa)) return false;
  SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(p)));
  std::vector<Buffer> in;
  for (const TensorDesc& desc : plain.in) in.push_back(random_buffer(desc, random));
  Problem exact = plain;
  exact.out[0].dtype = Dtype::f32;
  const auto expected = reference_results(exact, in);
  in.push_back(random_buffer(operand, random));
  const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
  EXPECT_EQ(difference(got[1], expected[0], 4 * tolerance_of(Dtype::f32)), "");
  for (int64_t i = 0; i < elements(p.out[0].dims) && !testing::Test::HasFailure(); ++i) {
    const Dims at = coordinates(i, operand.dims);
    int64_t place = operand.offset;
    for (int d = 0; d < at.size(); ++d) place += at[d] * operand.strides[d];
    const double sum = expected[0].get(i) + load_as_double(in.back().data(), operand.dtype, place);
    EXPECT_NEAR(got[0].get(i), std::max(sum, 0.0), 2 * tolerance_of(p.out[0].dtype)) << "element " << i;
  }
  return true;
}

void expect_infinities_where_they_are_read(const Problem& p) {
  Random random(7);
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
  auto* data = reinterpret_cast<float*>(in.back().bytes.data());
  for (int64_t i = 0; i < elements(in.back().desc.dims); i += 37) data[i] = INFINITY;
  const auto expected = reference_results(p, in);
  for (const Isa isa : generated_isas())
    EXPECT_EQ(difference(run_kernel(*generated_row(p.step, isa), p, in, 2)[0], expected[0], 2e-4), "") << text_of(p);
}

}  // namespace partita::test
