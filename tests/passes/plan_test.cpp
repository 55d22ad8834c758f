// SPDX-License-Identifier: Apache-2.0
// The memory plan: temporaries that live at one time lie apart, in-place pairs may really share memory.
#include "passes/plan.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "passes/optimize/fuse_loops.hpp"
#include "passes/select.hpp"
#include "src/base/text.hpp"
#include "src/ir/verify_op.hpp"
#include "src/run/executable.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/random_graph.hpp"

namespace partita::test {
namespace {

graph random_final_graph(uint64_t seed, std::vector<uint64_t>& kept) {
  Random random(seed);
  RandomGraph sketch = random_graph(random, static_cast<int>(random.whole(2, 14)));
  auto g = finalized(sketch.ops);
  EXPECT_TRUE(g.ok()) << g.status().text();
  kept = std::move(sketch.kept);
  return g.ok() ? std::move(g).value() : graph();
}

/// Walks the program and keeps, for each byte of the arena, which temporary was written there last.
void expect_no_overwritten_temporary(const Program& p) {
  std::vector<int> owner(p.arena_bytes, -1);
  auto bytes_of = [&](int b) {
    const auto begin = owner.begin() + static_cast<long>(p.buffers[static_cast<size_t>(b)].offset);
    return std::span(begin, begin + static_cast<long>(p.buffers[static_cast<size_t>(b)].desc.size_bytes()));
  };
  auto is_temporary = [&](int b) {
    return b != Step::kNoBuffer && p.buffers[static_cast<size_t>(b)].role == partita::Buffer::Role::temporary;
  };
  for (const Step& step : p.steps) {
    for (size_t o = 0; o < step.out.size(); ++o) {
      const int b = step.out[o];
      for (size_t other = 0; other < o; ++other) {  // but Concat's results are parts of one buffer
        if (step.out[other] == b) {
          ASSERT_NE(step.problem.out[other].offset, step.problem.out[o].offset) << text_of(step);
        }
      }
      if (!is_temporary(b)) continue;
      ASSERT_LE(p.buffers[static_cast<size_t>(b)].offset + p.buffers[static_cast<size_t>(b)].desc.size_bytes(),
                p.scratch_offset);
      EXPECT_EQ(p.buffers[static_cast<size_t>(b)].offset % 64, 0u);
      std::ranges::fill(bytes_of(b), b);
    }
    for (const auto* side : {&step.in, &step.out})
      for (int b : *side) {
        if (!is_temporary(b)) continue;
        for (int found : bytes_of(b)) ASSERT_EQ(found, b) << text_of(step);
      }
    ASSERT_LE(p.scratch_offset + step.run.scratch_bytes, p.arena_bytes);
  }
}

TEST(plan, temporaries_that_are_still_needed_are_never_overwritten) {
  size_t temporaries = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::vector<uint64_t> kept;
    const graph g = random_final_graph(seed, kept);
    const Partition p = one_partition(g);
    Program program = lowered(p, ports_of(p));
    if (seed % 2) fuse_loops(program, interpreter_joins);
    make_kernels(program);
    expect_no_overwritten_temporary(program);
    for (const partita::Buffer& b : program.buffers) temporaries += b.role == partita::Buffer::Role::temporary;
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(temporaries, 300u);
}

/// One step for each operator.
Program plain_program(std::string_view text, const std::vector<uint64_t>& kept = {}) {
  const Partition p = one_partition(final_graph_of(text), kept);
  Program program = lowered(p, ports_of(p));
  make_kernels(program);
  return program;
}

TEST(plan, a_chain_of_two_sizes_needs_two_temporaries_whatever_its_length) {
  std::string text = "%1: bf16 = TypeCast(%0: f32[64])";
  for (int i = 2; i <= 10; ++i) text += str("; %", i, i % 2 == 0 ? ": f32" : ": bf16", " = TypeCast(%", i - 1, ")");
  const Program program = plain_program(text);
  EXPECT_EQ(program.steps.size(), 10u);
  EXPECT_EQ(program.scratch_offset, 64 * (sizeof(float) + sizeof(uint16_t)));
}

TEST(plan, a_chain_that_may_be_computed_in_place_lives_in_its_result) {
  std::string text = "%1: bf16 = TypeCast(%0: f32[64])";
  for (int i = 2; i <= 10; ++i) text += str("; %", i, " = Exp(%", i - 1, ")");
  const Program program = plain_program(text);
  EXPECT_EQ(program.steps.size(), 10u);
  EXPECT_EQ(program.scratch_offset, 0u);
  EXPECT_EQ(program.inplace, (std::vector<std::pair<uint64_t, uint64_t>>{}));
}

TEST(plan, temporaries_live_apart_from_results_that_are_not_theirs_alone) {
  // an input may lie where the result does: %1 would overwrite %3
  EXPECT_EQ(plain_program("%1 = Exp(%0: f32[64]); %2 = Add(%3: f32[64], %1)").scratch_offset, 256u);
  // read again
  EXPECT_EQ(plain_program("%1: f32 = TypeCast(%0: bf16[64]); %2 = Exp(%1); %4 = Add(%2, %1)").scratch_offset, 256u);
  // the first result of the loop is written and read before
  EXPECT_EQ(plain_program("%1: f32 = TypeCast(%0: bf16[2,3]); %2 = StaticTranspose(%1) {order=[1,0]}").scratch_offset,
            64u);
}

/// GenIndex asks for a shape alone, so nobody reads %3: it is free behind its step, but not while that runs.
TEST(plan, results_of_one_step_never_share_memory) {
  const Partition p =
      one_partition(final_graph_of("%1 = SoftMax(%0: f32[2,3]) {axis=1}; %2 = Exp(%1); %3 = Square(%2); %4 = Abs(%2); "
                                   "%5: s32 = GenIndex(%3) {axis=0}"));
  Program program = lowered(p, ports_of(p));
  fuse_loops(program, [](const Problem&, const Problem&) { return false; });
  make_kernels(program);
  EXPECT_TRUE(std::ranges::any_of(program.steps, [](const Step& step) { return step.out.size() == 2; }));
  expect_no_overwritten_temporary(program);
}

TEST(plan, scratch_lies_behind_the_temporaries) {
  Program program = plain_program("%1 = Exp(%0: f32[64]); %2: bf16 = TypeCast(%1)");
  program.steps[0].run.scratch_bytes = 20;
  program.steps[1].run.scratch_bytes = 100;
  plan_memory(program);
  EXPECT_EQ(program.scratch_offset, 256u);
  EXPECT_EQ(program.arena_bytes, 256u + 128u);
}

/// Kernels as compilation chooses them.
void choose_kernels(Program& program) {
  const Status chosen = select_kernels(program, {.isa = machine_isa(), .threads = 2});
  ASSERT_TRUE(chosen.ok()) << chosen.text();
  plan_memory(program);
}

using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

Pairs inplace_of(const Partition& p, const Ports& ports) {
  Program program = lowered(p, ports);
  fuse_loops(program, interpreter_joins);
  make_kernels(program);
  return program.inplace;
}

Pairs inplace_of(std::string_view text, const std::vector<uint64_t>& kept = {}) {
  const Partition p = one_partition(final_graph_of(text), kept);
  return inplace_of(p, ports_of(p));
}

TEST(inplace, needs_one_reading_at_the_same_places_and_elements_of_one_size) {
  EXPECT_EQ(inplace_of("%1 = Exp(%0: f32[4])"), (Pairs{{0, 1}}));
  EXPECT_EQ(inplace_of("%1: s32 = GenIndex(%0: f32[4]) {axis=0}"), Pairs{});
  EXPECT_EQ(inplace_of("%1: bf16 = TypeCast(%0: f32[4])"), Pairs{});
  EXPECT_EQ(inplace_of("%2: s32 = Add(%0: f32[4], %1: f32[4])"), (Pairs{{0, 2}}));
  EXPECT_EQ(inplace_of("%1 = StaticTranspose(%0: f32[2,3]) {order=[1,0]}"), Pairs{});
  EXPECT_EQ(inplace_of("%2 = Add(%0: f32[1,4], %1: f32[3,4])"), (Pairs{{1, 2}}));
}

TEST(inplace, leaves_inputs_alone_that_are_read_later) {
  EXPECT_EQ(inplace_of("%1 = Exp(%0: f32[3,4]); %2 = ReduceSum(%0) {axes=[0]}"), Pairs{});
  EXPECT_EQ(inplace_of("%1 = ReduceSum(%0: f32[3,4]) {axes=[0]}; %2 = Exp(%0)"), (Pairs{{0, 2}}));
}

TEST(inplace, leaves_constants_alone) {
  const Partition p = one_partition(final_graph_of("%1 = Exp(%0: f32[4])"));
  Ports ports = ports_of(p);
  ports.inputs[0].property = Property::constant;
  EXPECT_EQ(inplace_of(p, ports), Pairs{});
}

constexpr std::string_view kAverageNcx =
    "AvgPoolBackward(%0: f32[2,3,4,4]) {src_shape=[2,3,8,8], strides=[2,2], kernel=[3,3], pads_begin=[1,1], "
    "pads_end=[0,0], exclude_pad=true, data_format=NCX}";
constexpr std::string_view kAverageNxc =
    "AvgPoolBackward(%0: f32[2,4,4,20]) {src_shape=[2,8,8,20], strides=[2,2], kernel=[3,3], pads_begin=[1,1], "
    "pads_end=[0,0], exclude_pad=false, data_format=NXC}";
constexpr std::string_view kMaximumNcx =
    "MaxPoolBackward(%5: f32[2,3,8,8], %0: f32[2,3,4,4]) {strides=[2,2], kernel=[3,3], pads_begin=[1,1], "
    "pads_end=[0,0], data_format=NCX}";
constexpr std::string_view kMaximumNxc =
    "MaxPoolBackward(%5: f32[2,8,8,20], %0: f32[2,4,4,20]) {strides=[2,2], kernel=[3,3], pads_begin=[1,1], "
    "pads_end=[0,0], data_format=NXC}";

TEST(inplace, a_result_of_pooling_takes_the_place_of_what_is_joined_to_it) {
  for (const auto& [pool, shape] : {std::pair(kAverageNcx, "[2,3,8,8]"), std::pair(kAverageNxc, "[2,8,8,20]"),
                                    std::pair(kMaximumNcx, "[2,3,8,8]"), std::pair(kMaximumNxc, "[2,8,8,20]")}) {
    SCOPED_TRACE(pool);
    EXPECT_EQ(inplace_of(str("%1 = ", pool, "; %3 = Add(%1, %2: f32", shape, ")")), (Pairs{{2, 3}}));
    EXPECT_EQ(inplace_of(str("%1 = ", pool)), Pairs{});
  }
  EXPECT_EQ(inplace_of("%1 = MaxPool(%0: f32[1,2,8,8]) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], "
                       "data_format=NCX}; %3 = Add(%1, %2: f32[1,2,4,4])"),
            (Pairs{{2, 3}}));
}

TEST(inplace, leaves_alone_what_the_walk_of_a_pooling_reads) {
  // windows of one element: the gradient has the result's shape, but the walk reads it
  EXPECT_EQ(inplace_of("%1 = AvgPoolBackward(%0: f32[1,2,4,4]) {src_shape=[1,2,4,4], strides=[1,1], kernel=[1,1], "
                       "pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, data_format=NCX}; %2 = Abs(%1)"),
            Pairs{});
  // the source decides where gradients go, and is read again behind the pooling
  EXPECT_EQ(inplace_of(str("%1 = ", kMaximumNcx, "; %2 = ReLUBackward(%5, %1)")), Pairs{});
  // the operand behind the pooling is also one in front of it
  EXPECT_EQ(inplace_of("%6 = Exp(%0: f32[1,2,4,4]); %1 = AvgPoolBackward(%6) {src_shape=[1,2,4,4], strides=[1,1], "
                       "kernel=[1,1], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, data_format=NCX}; "
                       "%2 = Add(%1, %0)"),
            Pairs{});
}

/// Joined and with the kernels as compilation does it.
Program chosen_program(const graph& g) {
  const Partition p = one_partition(g);
  Program program = lowered(p, ports_of(p));
  fuse_loops(program, Target{.isa = machine_isa(), .threads = 2});
  choose_kernels(program);
  return program;
}

Pairs chosen_inplace_of(std::string_view text) { return chosen_program(final_graph_of(text)).inplace; }

TEST(inplace, a_result_of_slices_takes_the_place_of_the_main_input) {
  if (!generates_code()) GTEST_SKIP() << "oneDNN's kernels and references promise nothing";
  for (const std::string_view type : {"f32", "bf16"}) {
    const std::string x = str("%0: ", type, "[6,40]"), y = str("%1: ", type, "[6,40]");
    const Pairs main{{0, 8}};
    for (const std::string_view axis : {"-1", "0"}) {
      EXPECT_EQ(chosen_inplace_of(str("%8 = SoftMax(", x, ") {axis=", axis, "}")), main);
      EXPECT_EQ(chosen_inplace_of(str("%8 = LogSoftmax(", x, ") {axis=", axis, "}")), main);
      EXPECT_EQ(chosen_inplace_of(str("%8 = SoftMaxBackward(", x, ", ", y, ") {axis=", axis, "}")), main);
      EXPECT_EQ(chosen_inplace_of(str("%8 = LogSoftmaxBackward(", x, ", ", y, ") {axis=", axis, "}")), main);
    }
    EXPECT_EQ(chosen_inplace_of(str("%8 = LayerNorm(", x, ") {use_affine=false, keep_stats=false}")), main);
    EXPECT_EQ(chosen_inplace_of(str("%8 = RMSNorm(", x, ")")), main);
    EXPECT_EQ(chosen_inplace_of(str("%8, %4: f32, %5: f32 = LayerNormBackward(", y, ", ", x,
                                    ", %2: f32[6], %3: f32[6], %6: f32[40], %7: f32[40])")),
              main);
    EXPECT_EQ(chosen_inplace_of(str("%8 = GroupNorm(%0: ", type,
                                    "[2,6,5,7]) {groups=3, use_affine=false, keep_stats=false, data_format=NCX}")),
              main);
    // what is joined reads the element at the same time
    EXPECT_EQ(chosen_inplace_of(str("%2 = SoftMax(", x, ") {axis=1}; %8 = Multiply(%2, %0)")), main);
    EXPECT_EQ(chosen_inplace_of(str("%2 = Abs(", x, "); %8 = SoftMax(%2) {axis=1}")), main);
    EXPECT_EQ(chosen_inplace_of(str("%2 = SoftMax(", x, ") {axis=1}; %8 = Multiply(%2, ", y, ")")), main);
  }
}

TEST(inplace, slices_leave_inputs_alone_that_lie_otherwise_or_are_read_twice) {
  if (!generates_code()) GTEST_SKIP() << "oneDNN's kernels and references promise nothing";
  EXPECT_EQ(chosen_inplace_of("%8: bf16 = SoftMax(%0: f32[6,40]) {axis=1}"), Pairs{});
  EXPECT_EQ(chosen_inplace_of("%2 = Abs(%0: f32[6,1]); %8 = Multiply(%3: f32[6,40], %2); %9 = SoftMax(%8) {axis=1}"),
            (Pairs{{3, 9}}));
  EXPECT_EQ(chosen_inplace_of("%8 = SoftMaxBackward(%0: f32[6,40], %0) {axis=1}"), Pairs{});
}

TEST(inplace, gives_each_input_away_once) {
  EXPECT_EQ(inplace_of("%1 = Exp(%0: f32[4]); %2 = Abs(%1)", {1}).size(), 1u);
}

/// Empty where all elements hold the same bytes; gaps may differ.
std::string element_difference(const Tensors& got, const Tensors& expected) {
  for (const auto& [id, storage] : expected) {
    const logical_tensor& t = storage.desc;
    for (int64_t i = 0; i < t.elements(); ++i) {
      int64_t at = 0, rest = i;
      for (int d = t.rank(); d-- > 0; rest /= t.dims[d]) at += rest % t.dims[d] * t.strides[d];
      const size_t size = bytes_for(t.dtype, 1), byte = static_cast<size_t>(at) * size;
      if (std::memcmp(static_cast<const char*>(got.at(id).data.get()) + byte,
                      static_cast<const char*>(storage.data.get()) + byte, size) != 0)
        return str("tensor ", id, " (", t.text(), ") differs at element ", i);
    }
  }
  return {};
}

TEST(inplace, pairs_give_the_same_results_in_shared_memory) {
  size_t pairs = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::vector<uint64_t> kept;
    const graph g = random_final_graph(seed, kept);
    const Partition p = one_partition(g, kept);
    Ports ports = ports_of(p);
    // Results in the layout of an input of their size can take its place.
    for (logical_tensor& out : ports.outputs)
      for (const logical_tensor& in : ports.inputs)
        if (seed % 3 && in.dims == out.dims) out = logical_tensor(out.id, out.dtype, in.dims, in.strides);
    Program program = lowered(p, ports);
    fuse_loops(program, interpreter_joins);
    make_kernels(program);
    pairs += program.inplace.size();
    const Tensors inputs = input_data(g, seed);
    EXPECT_EQ(element_difference(executed_in_place(program, inputs), executed(program, inputs)), "");
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(pairs, 50u);
}

TEST(inplace, pooling_gives_the_same_results_in_shared_memory) {
  for (const auto& [pool, shape] : {std::pair(kAverageNcx, "[2,3,8,8]"), std::pair(kAverageNxc, "[2,8,8,20]"),
                                    std::pair(kMaximumNcx, "[2,3,8,8]"), std::pair(kMaximumNxc, "[2,8,8,20]")})
    for (const bool chosen : {false, true}) {
      SCOPED_TRACE(str(pool, chosen ? ", the best kernel" : ", interpreted"));
      const graph g = final_graph_of(str("%1 = ", pool, "; %4 = Multiply(%1, %2: f32", shape, "); %7 = Add(%4, %3: f32",
                                         shape, "); %8 = ReLUBackward(%9: f32", shape, ", %7)"));
      const Partition p = one_partition(g, {7});
      Program program = lowered(p, ports_of(p));
      fuse_loops(program, interpreter_joins);
      ASSERT_EQ(program.steps.size(), 1u);
      chosen ? choose_kernels(program) : make_kernels(program);
      EXPECT_EQ(program.inplace.size(), 2u);
      const Tensors inputs = input_data(g, 1);
      EXPECT_EQ(element_difference(executed_in_place(program, inputs), executed(program, inputs)), "");
    }
}

TEST(inplace, slices_give_the_same_results_in_shared_memory) {
  if (!generates_code()) GTEST_SKIP() << "oneDNN's kernels and references promise nothing";
  for (const std::string_view type : {"f32", "bf16"})
    for (const std::string_view shape : {"[5,20]", "[3,700]", "[2,9000]", "[2,3,200]"})
      for (const std::string_view axis : {"1", "-1"}) {
        const std::string x = str("%0: ", type, shape), y = str("%1: ", type, shape), along = str(" {axis=", axis, "}");
        for (const std::string& text :
             {str("%2 = Abs(", x, "); %8 = SoftMax(%2)", along),
              str("%2 = SoftMax(", x, ")", along, "; %8 = Multiply(%2, %0)"),
              str("%2 = Abs(", x, "); %3 = SoftMaxBackward(%2, ", y, ")", along, "; %8 = Multiply(%3, %0)")}) {
          SCOPED_TRACE(text);
          const graph g = final_graph_of(text);
          const Program program = chosen_program(g);
          EXPECT_EQ(program.inplace, (Pairs{{0, 8}}));
          const Tensors inputs = input_data(g, 1);
          EXPECT_EQ(element_difference(executed_in_place(program, inputs), executed(program, inputs)), "");
        }
      }
}

}  // namespace
}  // namespace partita::test
