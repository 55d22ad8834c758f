// SPDX-License-Identifier: Apache-2.0
// Dims, strides and attributes near the ends of 64 bits: every operator refuses them or infers dims that are counts.
// Arithmetic that leaves 64 bits is found where it wraps to a negative dim, and everywhere by sanitized builds.
#include <gtest/gtest.h>

#include "passes/specialize.hpp"
#include "src/base/addressable.hpp"
#include "src/base/text.hpp"
#include "src/ir/shape_context.hpp"
#include "src/ir/verify_op.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/sample.hpp"

namespace partita::test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t huge(Random& random) {
  return random.pick<int64_t>({int64_t{1} << 62, (int64_t{1} << 62) - 1, kMost, kMost - 1, int64_t{1} << 47,
                               (int64_t{1} << 47) - 1, int64_t{1} << 32, (int64_t{1} << 31) - 1, int64_t{1} << 31, 0});
}

void enlarge(std::vector<logical_tensor>& tensors, Random& random) {
  for (logical_tensor& t : tensors) {
    for (int64_t& d : t.dims)
      if (random.whole(0, 3) == 0) d = huge(random);
    for (int64_t& s : t.strides)
      if (random.whole(0, 7) == 0) s = huge(random);
  }
}

op enlarged(op o, Random& random) {
  enlarge(o.inputs, random);
  if (random.coin()) enlarge(o.outputs, random);
  const auto attrs = o.attrs();
  for (const auto& [key, value] : attrs) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      std::vector<int64_t> numbers = *list;
      for (int64_t& n : numbers)
        if (random.whole(0, 3) == 0) n = huge(random);
      o.set_attr(key, numbers);
    }
    if (std::holds_alternative<int64_t>(value) && random.whole(0, 3) == 0) o.set_attr(key, huge(random));
  }
  return o;
}

void expect_counts(const op& o) {
  Result<Attrs> attrs = verify_op(o);
  if (!attrs.ok()) return;
  std::vector<logical_tensor> out = o.outputs;
  for (logical_tensor& t : out) t.rank_known = false, t.dims = {};
  const Status status = infer_shapes(op_def(o.kind), *attrs, o.inputs, out);
  if (!status.ok()) {
    EXPECT_NE(status.text(), "");
    return;
  }
  for (const logical_tensor& t : out)
    for (int64_t d : t.dims) EXPECT_TRUE(d >= 0 || d == kUnknownDim) << place_of(o) << " makes " << t.text();
}

/// What compilation takes on can be addressed, inner tensors too.
void expect_addressable(const op& o) {
  graph g;
  if (!g.add_op(o).ok() || !g.finalize().ok()) return;
  const Partition p = one_partition(g);
  const auto made = specialize(p, ports_of(p).given());
  if (!made.ok()) return;
  for (const SubValue& v : made->graph.values) {
    if (!v.desc.shape_known()) continue;
    EXPECT_TRUE(addressable(v.desc.dims, v.desc.strides)) << place_of(o) << " has " << v.desc.text();
  }
}

TEST(huge_shapes, are_refused_or_inferred_without_overflow) {
  for (const patterns::Pattern& pattern : sampled_patterns())
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(str(pattern.name, " seed ", seed));
      Random random(seed);
      for (const op& o : sample(pattern, random)) {
        const op large = enlarged(o, random);
        expect_counts(large);
        expect_addressable(large);
      }
      if (HasFailure()) return;
    }
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    for (const op& o : random_graph(random, 12).ops) {
      const op large = enlarged(o, random);
      expect_counts(large);
      expect_addressable(large);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace partita::test
