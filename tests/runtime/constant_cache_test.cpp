// SPDX-License-Identifier: Apache-2.0
// The constant cache: the same results whatever is kept, memory within the capacity, nothing left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "kernels/onednn/primitive_run.hpp"
#include "src/harness/compare.hpp"
#include "tests/support/compiled_run.hpp"

namespace partita::test {
namespace {

// The weights are scaled, then a primitive's layout is made of them: both once.
constexpr const char* kGraph =
    "%6 = Multiply(%1: f32[3,3,32,64], %4: f32[64]);"
    "%3 = Convolution(%0: f32[1,12,12,32], %6) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], dilations=[1,1], "
    "data_format=NXC, weights_format=XIO}; %7 = BatchNormInference(%3, %8: f32[64], %9: f32[64], %10: f32[64], %11: "
    "f32[64]) {epsilon=0.001, data_format=NXC}; %12 = ReLU(%7); %13 = MatMul(%12, %14: f32[64,48])";

const std::vector<uint64_t> kConstants = {1, 4, 8, 9, 10, 11, 14};

/// Capacity for the time of a test.
class Capacity {
 public:
  explicit Capacity(size_t megabytes) : before_(constant_cache_capacity(EngineKind::cpu)) { set(megabytes); }
  ~Capacity() { set(before_); }
  static void set(size_t megabytes) {
    const Status status = set_constant_cache_capacity(EngineKind::cpu, megabytes);
    EXPECT_TRUE(status.ok()) << status.text();
  }

 private:
  size_t before_;
};

std::atomic<int64_t> blocks = 0;

/// Counts what is allocated and not yet given back.
allocator counting() {
  const allocator plain = allocator::standard();
  return {[plain](size_t size, size_t alignment) {
            ++blocks;
            return plain.allocate(size, alignment);
          },
          [plain](void* p) {
            --blocks;
            plain.deallocate(p);
          }};
}

Tensors run_on(const CompiledGraph& g, const engine& on, const Tensors& inputs) {
  std::vector<tensor> in, out;
  Tensors made;
  for (const logical_tensor& t : g.executable->inputs) in.push_back(inputs.at(t.id).as_tensor());
  for (const logical_tensor& t : g.executable->outputs) {
    Storage& storage = made[t.id] = Storage(t);
    out.push_back(storage.as_tensor());
  }
  const Status status = run(*g.executable, stream(on), in, out, nullptr);
  EXPECT_TRUE(status.ok()) << status.text();
  return made;
}

TEST(constant_cache, starts_with_nothing_and_tells_its_capacity) {
  EXPECT_EQ(constant_cache_capacity(EngineKind::cpu), 0u);
  const Capacity capacity(17);
  EXPECT_EQ(constant_cache_capacity(EngineKind::cpu), 17u);
}

TEST(constant_cache, results_are_the_references_whatever_is_kept) {
  for (size_t megabytes : {size_t{0}, size_t{1}, size_t{1024}, SIZE_MAX}) {
    const Capacity capacity(megabytes);
    const CompiledGraph g = compiled_graph(kGraph, 2, 1, kConstants);
    ASSERT_TRUE(g.executable);
    EXPECT_GT(g.executable->program.kept_bytes, 0u) << g.steps();
    for (int repetition = 0; repetition < 3; ++repetition)
      EXPECT_EQ(g.difference(g.run()), "") << megabytes << " MB, run " << repetition << "\n" << g.steps();
  }
}

TEST(constant_cache, copies_of_weights_in_another_type_are_kept_too) {
  const std::string products =
      "%3 = Convolution(%0: f16[1,9,9,16], %1: f16[3,3,16,24], %2: f16[24]) {strides=[1,1], pads_begin=[1,1], "
      "pads_end=[1,1], dilations=[1,1], data_format=NXC, weights_format=XIO}; %5 = MatMul(%3, %4: f16[24,40])";
  const CompiledGraph changing = compiled_graph(products, 2, 1, {});
  const Tensors expected = changing.run();
  EXPECT_EQ(changing.difference(expected), "") << changing.steps();
  for (size_t megabytes : {size_t{0}, size_t{64}}) {
    const Capacity capacity(megabytes);
    const CompiledGraph g = compiled_graph(products, 2, 1, {1, 2, 4});
    EXPECT_GT(g.executable->program.kept_bytes, 0u) << g.steps();
    for (int repetition = 0; repetition < 2; ++repetition) EXPECT_EQ(g.difference(g.run()), "") << g.steps();
  }
}

TEST(constant_cache, keeps_one_block_for_each_address_and_gives_it_back) {
  blocks = 0;
  {
    const Capacity capacity(64);
    const engine on(EngineKind::cpu, counting());
    CompiledGraph g = compiled_graph(kGraph, 1, 1, kConstants);
    const Tensors first = run_on(g, on, g.inputs);
    EXPECT_EQ(blocks, 1);
    run_on(g, on, g.inputs);
    EXPECT_EQ(blocks, 1) << "the second execution finds what the first one kept";
    // other weights at another address
    const CompiledGraph other = compiled_graph(kGraph, 1, 2, kConstants);
    Tensors mixed = run_on(g, on, other.inputs);
    EXPECT_EQ(blocks, 2);
    EXPECT_EQ(other.difference(mixed), "");
    EXPECT_EQ(bit_difference(run_on(g, on, g.inputs), first), "");
    EXPECT_EQ(blocks, 2);
    Capacity::set(64);
    EXPECT_EQ(blocks, 0) << "setting a capacity forgets what is kept";
    run_on(g, on, g.inputs);
    EXPECT_EQ(blocks, 1);
  }
  EXPECT_EQ(blocks, 0) << "what belongs to a compiled partition goes with it";
}

TEST(constant_cache, what_was_begun_before_it_is_forgotten_is_not_kept) {
  const Capacity capacity(64);
  KeptConstants kept;
  const void* const address = &kept;
  int fills = 0;
  const auto filled_while = [&](const auto& meanwhile) {
    return kept.get({&address, 1}, 64, allocator::standard(), [&](std::byte*) {
      ++fills;
      meanwhile();
      return Status();
    });
  };
  EXPECT_TRUE(filled_while([] { Capacity::set(64); })) << "this execution has it";
  EXPECT_TRUE(filled_while([] {}));
  EXPECT_EQ(fills, 2) << "the first block was made of what is forgotten";
  EXPECT_TRUE(filled_while([] {}));
  EXPECT_EQ(fills, 2);
}

TEST(constant_cache, kernels_are_chosen_for_what_the_request_says) {
  if (!onednn::has_isa(dnnl::cpu_isa::avx512_core))
    GTEST_SKIP() << "matrices have no order of the primitive's own here";
  const auto kept_bytes = [](bool keeps_constants) {
    const CompiledGraph g = compiled_graph("%2 = MatMul(%0: f32[64,64], %1: f32[64,48])", 1, 1, {1});
    const auto c = compile_uncached(g.partition, g.ports.given(), {.threads = 1, .keeps_constants = keeps_constants});
    EXPECT_TRUE(c.ok()) << c.status().text();
    return c.ok() ? c->executable->program.kept_bytes : 0;
  };
  EXPECT_GT(kept_bytes(true), 0u) << "whatever the capacity is by the time of compilation";
  const Capacity capacity(64);
  EXPECT_EQ(kept_bytes(false), 0u);
}

TEST(constant_cache, what_does_not_fit_is_not_kept) {
  blocks = 0;
  const Capacity capacity(1);
  const engine on(EngineKind::cpu, counting());
  const char* scaled = "%5 = Multiply(%1: f32[600,700], %6: f32[700]); %2 = MatMul(%0: f32[64,600], %5); %3 = ReLU(%2)";
  const CompiledGraph g = compiled_graph(scaled, 1, 1, {1, 6});
  ASSERT_GT(g.executable->program.kept_bytes, size_t{1} << 20);
  EXPECT_EQ(g.difference(run_on(g, on, g.inputs)), "");
  EXPECT_EQ(blocks, 0);
  Capacity::set(8);
  EXPECT_EQ(g.difference(run_on(g, on, g.inputs)), "");
  EXPECT_EQ(blocks, 1);
}

TEST(constant_cache, an_engine_that_does_not_exist_has_no_capacity) {
  const Capacity capacity(3);
  constexpr auto kGpu = static_cast<EngineKind>(2);
  const Status status = set_constant_cache_capacity(kGpu, 5);
  EXPECT_EQ(status.code(), Code::unimplemented);
  EXPECT_EQ(status.text(), "there is no engine of kind 2, only the CPU");
  EXPECT_EQ(constant_cache_capacity(kGpu), 0u);
  EXPECT_EQ(constant_cache_capacity(EngineKind::cpu), 3u);
  EXPECT_EQ(constant_cache_capacity(EngineKind::any), 3u);
}

TEST(constant_cache, threads_share_what_is_kept) {
  const Capacity capacity(64);
  const CompiledGraph g = compiled_graph(kGraph, 1, 1, kConstants);
  const Tensors expected = g.run();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) wrong += bit_difference(g.run(), expected).empty() ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace partita::test
