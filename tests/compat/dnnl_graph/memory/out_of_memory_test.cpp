// SPDX-License-Identifier: Apache-2.0
// The C interface with memory that fails at the nth request, for every n, and with an engine's allocator that does.
#include <atomic>
#include <cstdlib>

#include "tests/compat/dnnl_graph/handles.hpp"
#include "tests/faults/failing_memory.hpp"

namespace partita::test {
namespace {

/// What is given for each call, made before memory begins to fail.
struct Client {
  static constexpr int64_t kRows = 4, kLength = 480;  // too long for registers: softmax takes scratch memory
  const Lt a = lt(10, {kRows, kLength}), sum = lt(2, {kRows, kLength}), b = lt(11, {kRows, kLength}),
           out = lt(12, {kRows, kLength});
  const Lt* in[2] = {&a, &b};
  const Lt* results[1] = {&out};
  std::vector<float> numbers = std::vector<float>(kRows * kLength, 1.0f), result = std::vector<float>(kRows * kLength);
  const int64_t axis = 1;
};

#define TRY(call)                              \
  do {                                         \
    const dnnl_status_t status = (call);       \
    if (status != dnnl_success) return status; \
  } while (false)

/// Builds, partitions, compiles and executes softmax(a) - b; destroys all. The first failure.
dnnl_status_t session(Client& c, dnnl_engine_t engine, dnnl_stream_t stream) {
  dnnl_graph_graph_t g = nullptr;
  TRY(dnnl_graph_graph_create(&g, dnnl_cpu));
  const Graph graph(g);
  dnnl_graph_op_t o = nullptr;
  TRY(dnnl_graph_op_create(&o, 1, dnnl_graph_op_softmax, "a name that is longer than a short string"));
  const Op softmax(o);
  TRY(dnnl_graph_op_add_input(o, &c.a));
  TRY(dnnl_graph_op_add_output(o, &c.sum));
  TRY(dnnl_graph_op_set_attr_s64(o, dnnl_graph_op_attr_axis, &c.axis, 1));
  TRY(dnnl_graph_op_create(&o, 2, dnnl_graph_op_subtract, "difference"));
  const Op difference(o);
  TRY(dnnl_graph_op_add_input(o, &c.sum));
  TRY(dnnl_graph_op_add_input(o, &c.b));
  TRY(dnnl_graph_op_add_output(o, &c.out));
  TRY(dnnl_graph_add_op(g, softmax.get()));
  TRY(dnnl_graph_add_op(g, difference.get()));
  TRY(dnnl_graph_graph_finalize(g));
  TRY(dnnl_graph_graph_filter(g, dnnl_graph_partition_policy_fusion));
  dnnl_graph_partition_t p = nullptr;
  TRY(dnnl_graph_graph_get_partitions(g, 1, &p));
  const PartitionHandle partition(p);
  dnnl_graph_compiled_partition_t compiled = nullptr;
  TRY(dnnl_graph_compiled_partition_create(&compiled, p));
  const Compiled owner(compiled);
  TRY(dnnl_graph_partition_compile(p, compiled, 2, c.in, 1, c.results, engine));
  dnnl_graph_tensor_t t = nullptr;
  TRY(dnnl_graph_tensor_create(&t, &c.a, engine, c.numbers.data()));
  const Tensor a(t);
  TRY(dnnl_graph_tensor_create(&t, &c.b, engine, c.numbers.data()));
  const Tensor b(t);
  TRY(dnnl_graph_tensor_create(&t, &c.out, engine, c.result.data()));
  const Tensor out(t);
  const_dnnl_graph_tensor_t inputs[] = {a.get(), b.get()}, outputs[] = {out.get()};
  return dnnl_graph_compiled_partition_execute(compiled, stream, 2, inputs, 1, outputs);
}

bool right(const Client& c) {
  for (const float x : c.result)
    if (std::abs(x - (1.0f / Client::kLength - 1)) > 1e-6f) return false;
  return true;
}

TEST(dnnl_graph_out_of_memory, is_answered_and_loses_nothing) {
  ASSERT_EQ(dnnl_graph_set_compiled_partition_cache_capacity(0), dnnl_success);
  Client client;
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  ASSERT_STATUS(session(client, engine.get(), stream.get()), dnnl_success);
  const int64_t blocks = heap().blocks, mapped = mapped_bytes();
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    std::fill(client.result.begin(), client.result.end(), 0.0f);
    dnnl_status_t status{};
    bool happened = false;
    {
      const FailingMemory memory(n);
      status = session(client, engine.get(), stream.get());
      happened = memory.happened();
    }
    EXPECT_LE(heap().blocks, blocks) << "request " << n;
    EXPECT_EQ(mapped_bytes(), mapped) << "request " << n;
    if (status == dnnl_success) {
      EXPECT_TRUE(right(client)) << "request " << n;
    } else {
      EXPECT_STATUS(status, dnnl_out_of_memory) << "request " << n;
      ++failures;
    }
    if (!happened || HasFailure()) break;
  }
  EXPECT_GT(failures, 50);
  EXPECT_EQ(dnnl_graph_set_compiled_partition_cache_capacity(1024), dnnl_success);
}

std::atomic<int64_t> left = 0, taken = 0;

void* failing_malloc(size_t size, size_t alignment) {
  if (--left == 0) return nullptr;
  ++taken;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void counted_free(void* p) {
  if (p) --taken;
  std::free(p);
}

TEST(dnnl_graph_out_of_memory, of_an_allocator_is_answered) {
  const Allocator allocator = make_allocator(failing_malloc, counted_free);
  const Engine engine = make_engine(allocator);
  const Stream stream = make_stream(engine);
  Client client;
  int failures = 0;
  for (int64_t n = 1; n < 100; ++n) {
    left = n;
    const dnnl_status_t status = session(client, engine.get(), stream.get());
    EXPECT_EQ(taken, 0);
    if (status != dnnl_success) {
      EXPECT_STATUS(status, dnnl_out_of_memory);
      ++failures;
    }
    if (left > 0) break;
  }
  EXPECT_TRUE(right(client));
  EXPECT_GT(failures, 0);
}

/// Makes and destroys an engine with the nth request failing.
dnnl_status_t engine_with_failing(int64_t n, const Allocator& allocator) {
  dnnl_engine_t engine = nullptr;
  dnnl_status_t status{};
  {
    const FailingMemory memory(n);
    status = dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, allocator.get());
  }
  if (status == dnnl_success) {
    EXPECT_EQ(dnnl_engine_destroy(engine), dnnl_success);
  }
  return status;
}

TEST(dnnl_graph_out_of_memory, while_an_engine_is_made_loses_nothing) {
  const Allocator allocator = make_allocator(failing_malloc, counted_free);
  left = 0;
  // The first exceptions and messages of a process keep memory, libdnnl's among them.
  for (int64_t n = 1; engine_with_failing(n, allocator) != dnnl_success;) ++n;
  const int64_t blocks = heap().blocks;
  int failures = 0;
  for (int64_t n = 1;; ++n) {
    const dnnl_status_t status = engine_with_failing(n, allocator);
    if (status == dnnl_success) break;
    // libdnnl, which makes the engine itself, calls its own lack of memory a runtime error.
    EXPECT_TRUE(status == dnnl_out_of_memory || status == dnnl_runtime_error) << "request " << n << ": " << status;
    EXPECT_LE(heap().blocks, blocks) << "request " << n;
    ++failures;
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace partita::test
