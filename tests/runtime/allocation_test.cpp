// SPDX-License-Identifier: Apache-2.0
// Execution takes nothing from the heap where the caller gives the scratchpad. Every `new` of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "src/base/text.hpp"
#include "src/compile/compile.hpp"
#include "tests/runtime/ready_partition.hpp"
#include "tests/support/kernel_run.hpp"

namespace {

std::atomic<int> taken = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++taken;
  void* p = nullptr;
  if (posix_memalign(&p, std::max(alignment, sizeof(void*)), bytes) != 0) throw std::bad_alloc();
  return p;
}

/// Not inlined: compilers would see free() meet operator new and warn.
[[gnu::noinline]] void given_back(void* p) { std::free(p); }

}  // namespace

// The other forms of new and delete call these.
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { given_back(p); }
void operator delete(void* p, std::size_t) noexcept { given_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { given_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { given_back(p); }

namespace partita::test {
namespace {

constexpr const char* kSmallChain = "%2 = ReLUBackward(%0: f32[8,16], %1: f32[8,16]); %4 = Add(%2, %3: f32[8,16])";

/// Two reductions with element-wise work between and around them.
constexpr const char* kSteps =
    "%1 = Exp(%0: f32[32,64]); %2: f32[32,1] = ReduceSum(%1) {axes=[1], keep_dims=true}; %3 = Divide(%1, %2)";

const char* const kOwn[] = {
    "%1: f32[16] = ReLU(%0: f32[16])",
    kSmallChain,
    "%2 = Add(%0: bf16[64,33], %1: bf16[33]); %3 = Tanh(%2); %4: f32 = TypeCast(%3)",
    "%1: f32[40,30] = StaticTranspose(%0: f32[30,40]) {order=[1,0]}",
    "%1: s8 = Quantize(%0: f32[100]) {scales=[0.5], zps=[1]}",
    "%2 = ReLUBackward(%0: f32[512,512], %1: f32[512,512]); %4 = Add(%2, %3: f32[512,512])",
    "%1 = MaxPool(%0: f32[2,8,8,20]) {strides=[2,2], kernel=[3,3], pads_begin=[1,1], pads_end=[0,0], "
    "data_format=NXC}; %2 = Abs(%1)",
    "%1 = AvgPool(%0: f32[2,8,9,9]) {strides=[2,2], kernel=[3,3], pads_begin=[1,1], pads_end=[0,0], "
    "exclude_pad=true, data_format=NCX}; %2 = Abs(%1)",
    "%1 = AvgPoolBackward(%0: f32[2,3,4,4]) {src_shape=[2,3,8,8], strides=[2,2], kernel=[2,2], pads_begin=[0,0], "
    "pads_end=[0,0], exclude_pad=true, data_format=NCX}; %3 = Add(%1, %2: f32[2,3,8,8])",
    "%2: f32[2,3,8,8] = MaxPoolBackward(%0: f32[2,3,8,8], %1: f32[2,3,4,4]) {strides=[2,2], kernel=[2,2], "
    "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}; %3 = ReLUBackward(%0, %2)",
};

int taken_by(const ReadyPartition& ready) {
  const int before = taken;
  const Status s = ready.execute();
  const int count = taken - before;
  EXPECT_TRUE(s.ok()) << s.text();
  return count;
}

TEST(allocation, is_counted) {
  const int before = taken;
  constexpr std::align_val_t kWide{64};
  ::operator delete(::operator new(3));
  ::operator delete(::operator new(3, kWide), kWide);
  ::operator delete[](::operator new[](3));
  EXPECT_EQ(taken, before + 3);
}

TEST(allocation, execution_of_our_own_kernels_takes_no_memory) {
  for (const char* text : kOwn)
    for (int threads : {1, 2}) {
      SCOPED_TRACE(str(text, ", ", threads, " threads"));
      const ReadyPartition ready(text, threads);
      // Without generated code oneDNN does the poolings.
      if (!generates_code() && !ready.is_our_own()) continue;
      EXPECT_TRUE(ready.is_our_own());
      EXPECT_EQ(taken_by(ready), 0);
    }
}

/// Which of these have kernels of our own is the tables' business.
TEST(allocation, no_kernel_of_our_own_takes_memory) {
  for (const char* text : {
           "%1 = SoftMax(%0: f32[32,100]) {axis=-1}",
           "%1 = LogSoftmax(%0: bf16[4,100,7]) {axis=1}",
           "%2 = SoftMaxBackward(%0: f32[32,100], %1: f32[32,100]) {axis=-1}",
           "%3 = LayerNorm(%0: f32[16,50], %1: f32[50], %2: f32[50]) {keep_stats=false}",
           "%1: f32[32,1] = ReduceSum(%0: f32[32,64]) {axes=[1], keep_dims=true}",
           "%1 = MaxPool(%0: f16[2,8,8,20]) {strides=[2,2], kernel=[3,3], pads_begin=[1,1], pads_end=[0,0], "
           "data_format=NXC}",
           "%1: f32[1,2,8,8] = Interpolate(%0: f32[1,2,4,4]) {mode=nearest, sizes=[8,8], data_format=NCX}",
           kSteps,
       }) {
    SCOPED_TRACE(text);
    const ReadyPartition ready(text, 2);
    ASSERT_TRUE(ready.execute().ok());
    const int count = taken_by(ready);
    if (ready.is_our_own()) {
      EXPECT_EQ(count, 0);
    }
  }
}

TEST(allocation, more_addresses_than_fit_the_stack_lie_in_the_scratchpad) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += str(i ? "; %" : "%", 1000 + i, " = Exp(%", i, ": f32[4])");
  const graph g = final_graph_of(text);
  const Partition p = whole_partition(*g.form(), {});
  std::vector<logical_tensor> outputs = p.outputs;
  for (logical_tensor& t : outputs) t.layout = Layout::any;
  const auto compiled = compile_uncached(p, {p.inputs, outputs, {}}, {.threads = 1});
  ASSERT_TRUE(compiled.ok()) << compiled.status().text();
  const Executable& e = *compiled->executable;
  ASSERT_GT(e.program.addresses, Program::kPointersOnStack);
  std::vector<float> source(800, 1.0f), result(800);
  std::vector<tensor> in, out;
  for (size_t i = 0; i < 200; ++i) in.emplace_back(e.inputs[i], source.data() + 4 * i);
  for (size_t i = 0; i < 200; ++i) out.emplace_back(e.outputs[i], result.data() + 4 * i);
  auto* scratchpad = static_cast<std::byte*>(std::aligned_alloc(64, e.program.arena_bytes));
  const stream s{engine(), 1};
  const int before = taken;
  const Status status = run(e, s, in, out, scratchpad);
  EXPECT_EQ(taken, before);
  EXPECT_TRUE(status.ok()) << status.text();
  for (float x : result) EXPECT_NEAR(x, 2.7182818f, 1e-5f);
  std::free(scratchpad);
}

TEST(allocation, a_cached_compilation_looks_up_without_copies_of_the_partition) {
  const graph g = final_graph_of(kSmallChain);
  const auto partitions = g.get_partitions();
  const Partition& p = *(*partitions)[0].form();
  std::vector<logical_tensor> outputs = p.outputs;
  for (logical_tensor& t : outputs) t.layout = Layout::any;
  const auto first = compile(p, {p.inputs, outputs, {}}, 1);
  ASSERT_TRUE(first.ok()) << first.status().text();
  const int before = taken;
  const auto second = compile(p, {p.inputs, outputs, {}}, 1);
  EXPECT_EQ(taken, before);
  EXPECT_EQ(first->executable, second->executable);
}

}  // namespace
}  // namespace partita::test
