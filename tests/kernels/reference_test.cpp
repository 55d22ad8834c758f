// SPDX-License-Identifier: Apache-2.0
// The table of references, and what all references share: layouts, offsets, types, packing.
#include "src/base/threads.hpp"
#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

TEST(reference, exists_for_every_operator_that_computes_something) {
  for (int i = 0; i < kOpKinds; ++i) {
    const OpKind kind = op_kind_at(i);
    const bool computes = kind != OpKind::End && kind != OpKind::Wildcard;
    EXPECT_EQ(reference_of(kind) != nullptr, computes) << name_of(kind);
  }
}

TEST(reference, honours_strides_and_offsets) {
  const Sample src =
      f32({2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  const Numbers dense = run(OpKind::Square, {}, {src}, {f32({2, 3, 4})})[0];
  EXPECT_EQ(dense[23], 529);
  EXPECT_EQ(run(OpKind::Square, {}, {scattered(src)}, {f32({2, 3, 4})})[0], dense);
  EXPECT_EQ(run(OpKind::Square, {}, {src}, {scattered(f32({2, 3, 4}))})[0], dense);
}

TEST(reference, leaves_the_gaps_between_elements_alone) {
  float memory[7] = {-9, -9, -9, -9, -9, -9, -9};
  const float source[3] = {1, 2, 3};
  Problem problem;
  problem.in = {{Dtype::f32, {3}, {1}, 0}};
  problem.out = {{Dtype::f32, {3}, {2}, 1}};
  const void* in[] = {source};
  void* out[] = {memory};
  ASSERT_TRUE(reference_of(OpKind::Reorder)(problem, {in, out}).ok());
  const float expected[7] = {-9, 1, -9, 2, -9, 3, -9};
  EXPECT_TRUE(std::equal(memory, memory + 7, expected));
}

TEST(reference, walks_rows_longer_than_a_block) {
  Numbers values(3000);
  std::iota(values.begin(), values.end(), 0);
  Numbers twice = values;
  for (double& x : twice) x *= 2;
  EXPECT_EQ(run(OpKind::Add, {}, {f32({3000}, values), scattered(f32({3000}, values))}, {f32({3000})})[0], twice);
  EXPECT_EQ(run(OpKind::Add, {}, {f32({2, 1500}, values), f32({2, 1500}, values)}, {scattered(f32({2, 1500}))})[0],
            twice);
}

TEST(reference, accepts_tensors_without_elements) {
  EXPECT_TRUE(run(OpKind::ReLU, {}, {f32({0, 3})}, {f32({0, 3})})[0].empty());
  EXPECT_TRUE(run(OpKind::MatMul, {}, {f32({0, 3}), f32({3, 2}, {1, 2, 3, 4, 5, 6})}, {f32({0, 2})})[0].empty());
}

TEST(reference, gives_the_same_bits_for_every_number_of_threads) {
  Random random(1);
  SCOPED_TRACE(random.seed());
  const Sample a = random_f32({70, 300}, random), b = random_f32({300, 270}, random);
  const AttrList rows{{Attr::axes, Int64s{0}}, {Attr::keep_dims, false}};
  const auto results = [&](int threads) {
    const ThreadScope scope(threads);
    return std::vector{run(OpKind::MatMul, {}, {a, b}, {f32({70, 270})})[0],
                       run(OpKind::ReduceSum, rows, {a}, {f32({300})})[0]};
  };
  EXPECT_EQ(results(1), results(3));
}

TEST(reference, rounds_to_nearest_even_in_every_small_type) {
  // 1 + 2^-8 lies halfway between two bf16 numbers, 1 + 2^-11 between two f16 numbers.
  EXPECT_EQ(run(OpKind::TypeCast, {}, {f32({2}, {1.00390625, 1.01171875})}, {sample(Dtype::bf16, {2})})[0],
            (Numbers{1, 1.015625}));
  EXPECT_EQ(run(OpKind::TypeCast, {}, {f32({2}, {1.00048828125, 1.00146484375})}, {sample(Dtype::f16, {2})})[0],
            (Numbers{1, 1.001953125}));
}

TEST(reference, packs_two_four_bit_numbers_a_byte) {
  const Sample src = f32({5}, {-8, 7, 3, -1, 9});
  EXPECT_EQ(run(OpKind::Reorder, {}, {src}, {sample(Dtype::s4, {5}, {0, 0, 0, 0, 0})})[0], (Numbers{-8, 7, 3, -1, 7}));
  EXPECT_EQ(run(OpKind::Reorder, {}, {src}, {sample(Dtype::u4, {5}, {0, 0, 0, 0, 0})})[0], (Numbers{0, 7, 3, 0, 9}));
  EXPECT_EQ(run(OpKind::Reorder, {}, {sample(Dtype::s4, {3}, {-2, 5, -8})}, {f32({3})})[0], (Numbers{-2, 5, -8}));
}

}  // namespace
}  // namespace partita::test
