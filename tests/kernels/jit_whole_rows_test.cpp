// SPDX-License-Identifier: Apache-2.0
// Rows in one piece: several at once give what each gives alone, wherever their numbers lie, and past the caches, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/jit/rows/short_rows.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

/// (x - mean) / max|x|, and both numbers' sum: all that a row can do to elements and numbers.
class Rows {
 public:
  Rows(Isa isa, Dtype dtype, int64_t rows, int64_t length, int64_t apart, bool streaming) {
    Problem p = problem_for(StepKind::softmax, OpKind::SoftMax);
    p.in = {dense_desc(dtype, {rows, length})};
    p.out = {p.in[0], {Dtype::f32, {rows, 1}, {apart, 1}, 0}};
    EXPECT_EQ(jit::plan_rows(p, {.isa = isa, .threads = 1}, {false, true},
                             {.in = {}, .in_result = {}, .out_result = {1}, .runs = true}, plan_),
              nullptr);
    plan_.may_stream = streaming;
    jit::ScratchPlan scratch;
    const jit::RowView sum = scratch.results(plan_), most = scratch.results(plan_), both = scratch.results(plan_);
    jit::Sweep folds, finish, map;
    const auto x = folds.front(plan_);
    folds.fold(sum, Fold::sum, x);
    folds.fold(most, Fold::max, folds.builder().apply(ExprOp::abs, x));
    ExprBuilder b = finish.builder();
    const auto mean = b.div(finish.load(jit::as_row(sum)), b.constant(static_cast<float>(length)));
    const auto inverse = b.apply(ExprOp::reciprocal, finish.load(jit::as_row(most)));
    finish.store(jit::as_row(both), b.add(mean, b.apply(ExprOp::exp, finish.load(jit::as_row(most)))));
    finish.store(jit::as_row(sum), mean);
    finish.store(jit::as_row(most), inverse);
    ExprBuilder m = map.builder();
    map.back(plan_, m.mul(m.sub(map.front(plan_), map.load(sum)), map.load(most)));
    rows_.emplace(plan_, [&](jit::RowWriter& row) {
      row.begin(sum, 0);
      row.begin(most, 0.25f);
      row.elements(folds);
      row.numbers(finish);
      row.elements(map);
      row.write(both, plan_.out[1]);
    });
  }

  const jit::ShortRows& operator*() const { return *rows_; }

 private:
  jit::RowPlan plan_;
  std::optional<jit::ShortRows> rows_;
};

struct Results {
  std::vector<std::byte> dst;
  std::vector<float> numbers;
  friend bool operator==(const Results& a, const Results& b) {
    return a.dst == b.dst && std::memcmp(a.numbers.data(), b.numbers.data(), a.numbers.size() * sizeof(float)) == 0;
  }
};

TEST(jit_whole_rows, rows_give_the_same_together_and_alone) {
  constexpr int64_t kRows = 47;  // the results of rows that follow each other are joined where they are many
  Random random(5);
  for (const Isa isa : generated_isas())
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const int64_t length : {1, 7, 16, 28, 33, 64, 96, 100, 190, 300}) {
        SCOPED_TRACE(str(name_of(isa), " ", name_of(dtype), " length ", length));
        const Buffer src = random_buffer(dense_desc(dtype, {kRows, length}), random);
        const size_t bytes = static_cast<size_t>(kRows * length) * static_cast<size_t>(element_bytes(dtype));
        const auto results = [&](int64_t apart, bool streaming, bool alone, int64_t elements_before = 0) {
          const int64_t before = elements_before * element_bytes(dtype);
          Results r{std::vector<std::byte>(bytes + 128, std::byte{0x5a}), std::vector<float>(kRows)};
          std::byte* dst = r.dst.data() + (64 - reinterpret_cast<uintptr_t>(r.dst.data()) % 64) % 64 + before;
          std::vector<float> numbers(static_cast<size_t>(kRows * apart));
          const void* in[] = {src.data()};
          void* out[] = {dst, numbers.data()};
          const Rows rows(isa, dtype, kRows, length, apart, streaming);
          for (int64_t row = 0; row < kRows; row += alone ? 1 : kRows)
            (*rows).run({in, out, nullptr}, nullptr, row, alone ? row + 1 : kRows);
          const auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
          EXPECT_TRUE(std::all_of(r.dst.data(), dst, untouched));
          EXPECT_TRUE(std::all_of(dst + bytes, r.dst.data() + r.dst.size(), untouched));
          std::memmove(r.dst.data(), dst, bytes);
          r.dst.resize(bytes);
          for (int64_t row = 0; row < kRows; ++row)
            r.numbers[static_cast<size_t>(row)] = numbers[static_cast<size_t>(row * apart)];
          return r;
        };
        const Results alone = results(1, false, true);
        EXPECT_TRUE(results(1, false, false) == alone) << "together";
        EXPECT_TRUE(results(1, true, false) == alone) << "past the caches";
        EXPECT_TRUE(results(1, true, false, 3) == alone) << "past the caches, from inside a line";
        EXPECT_TRUE(results(3, false, false) == alone) << "numbers apart";
      }
}

/// a = x - sum, where y lay; then b = y sum.
TEST(jit_whole_rows, an_output_may_lie_over_an_input_that_is_read_behind_it) {
  constexpr int64_t kRows = 7, kLength = 40;
  for (const Isa isa : generated_isas()) {
    Problem p = problem_for(StepKind::softmax, OpKind::SoftMax);
    const TensorDesc desc = dense_desc(Dtype::f32, {kRows, kLength});
    p.in = p.out = {desc, desc};
    p.ports_in = p.ports_out = 1;
    ExprBuilder back(p.back);
    const auto skeleton = back.skeleton();
    back.store(0, skeleton);
    back.store(1, back.mul(back.load(1), skeleton));
    jit::RowPlan plan;
    ASSERT_EQ(jit::plan_rows(p, {.isa = isa, .threads = 1}, {false, true}, {}, plan), nullptr);
    jit::ScratchPlan scratch;
    const jit::RowView sum = scratch.results(plan);
    jit::Sweep folds, map;
    folds.fold(sum, Fold::sum, folds.front(plan));
    map.back(plan, map.builder().sub(map.front(plan), map.load(sum)));
    const jit::ShortRows rows(plan, [&](jit::RowWriter& row) {
      row.begin(sum, 0);
      row.elements(folds);
      row.elements(map);
    });
    Random random(3);
    const Buffer x = random_buffer(desc, random), y = random_buffer(desc, random);
    const auto results = [&](bool in_place) {
      std::vector<float> a(kRows * kLength), b(kRows * kLength);
      std::memcpy(a.data(), y.data(), a.size() * sizeof(float));
      const void* in[] = {x.data(), in_place ? static_cast<const void*>(a.data()) : y.data()};
      void* out[] = {a.data(), b.data()};
      EXPECT_TRUE(rows.run({in, out, nullptr}).ok());
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    EXPECT_EQ(results(true), results(false));
  }
}

}  // namespace
}  // namespace partita::test
