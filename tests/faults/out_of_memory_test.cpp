// SPDX-License-Identifier: Apache-2.0
// Memory that fails at the nth request, for every n: each call answers out_of_memory or gives the right results,
// nothing is lost, and the next call works. The heap fails below everything (containers, Xbyak, oneDNN), the engine's
// allocator by itself.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>

#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"
#include "tests/faults/failing_memory.hpp"
#include "tests/support/session.hpp"

namespace partita::test {
namespace {

/// PARTITA_TEST_EVERY=1: every n. Else every one of the first hundred, and behind them steps that grow.
int64_t after(int64_t n) {
  static const bool every = std::getenv("PARTITA_TEST_EVERY") != nullptr;
  return every || n < 100 ? n + 1 : n + 1 + n / 16;
}

struct Sweep {
  int64_t failures = 0, requests = 0;
};

/// Calls `body` with the nth request failing, for n = 1.. until there is no nth request.
Sweep sweep(const std::function<Status()>& body, const std::function<bool()>& right) {
  Sweep result;
  {
    const FailingMemory memory(1);
    (void)body();  // the first exception of a process makes the unwinder keep a block
  }
  // What is made once a process or a thread may be given up and made again, so there may be less.
  const int64_t most = heap().blocks;
  for (int64_t n = 1;; n = after(n)) {
    const int64_t mapped_before = mapped_bytes();
    bool happened = false, wrong = false;
    Code code = Code::success;
    {
      const FailingMemory memory(n);
      const Status status = body();
      happened = memory.happened();
      code = status.code();
      wrong = status.ok() && !right();
    }
    EXPECT_TRUE(code == Code::success || code == Code::out_of_memory) << "request " << n << ": " << name_of(code);
    EXPECT_FALSE(wrong) << "request " << n << ": wrong results";
    EXPECT_LE(heap().blocks, most) << "request " << n << " (" << name_of(code) << ")";
    EXPECT_EQ(mapped_bytes(), mapped_before) << "request " << n;
    result.failures += code == Code::out_of_memory;
    result.requests = n;
    if (!happened || ::testing::Test::HasFailure()) return result;
  }
}

class OutOfMemory : public testing::TestWithParam<NamedGraph> {
 protected:
  void SetUp() override { set_cache_capacity(0); }  // otherwise what succeeds stays
  void TearDown() override { set_cache_capacity(1024); }
};

TEST_P(OutOfMemory, of_the_heap_is_answered_and_loses_nothing) {
  for (const int threads : {1, 2}) {
    // oneDNN takes memory on the threads of its own parallel region, and what is thrown there ends the process.
    if (threads > 1 && std::string_view(GetParam().name).starts_with("convolution")) continue;
    SCOPED_TRACE(str(threads, " threads"));
    const ThreadScope scope(threads);
    Session session(GetParam().text, engine(), threads);
    if (HasFailure()) return;
    const Sweep swept = sweep([&] { return session.run(); }, [&] { return session.same_results(); });
    EXPECT_GT(swept.failures, 20);
    RecordProperty(str("requests_", threads, "_threads"), std::to_string(swept.requests));
    const Status afterwards = session.run();
    EXPECT_TRUE(afterwards.ok()) << afterwards.text();
    EXPECT_TRUE(session.same_results());
  }
}

TEST_P(OutOfMemory, in_the_cache_leaves_no_request_waiting) {
  set_cache_capacity(1);
  Session session(GetParam().text, engine(), 1);
  for (int64_t n = 1;; n = after(n) + 5) {
    set_cache_capacity(0);
    set_cache_capacity(1);
    bool happened = false;
    {
      const FailingMemory memory(n);
      const Status status = session.run();
      happened = memory.happened();
      EXPECT_TRUE(status.ok() || status.code() == Code::out_of_memory) << status.text();
    }
    const Status again = session.run();  // would wait for ever for a promise that nobody keeps
    ASSERT_TRUE(again.ok()) << "after request " << n << ": " << again.text();
    ASSERT_TRUE(session.same_results());
    if (!happened) break;
  }
}

INSTANTIATE_TEST_SUITE_P(graphs, OutOfMemory, testing::ValuesIn(kSmallGraphs),
                         [](const auto& param) { return std::string(param.param.name); });

/// An allocator that fails at the nth request and counts what is out.
struct Counting {
  std::atomic<int64_t> left{0}, out{0}, requests{0};
  allocator made() {
    return {[this](size_t size, size_t alignment) -> void* {
              ++requests;
              if (--left == 0) return nullptr;
              ++out;
              return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
            },
            [this](void* p) {
              --out;
              std::free(p);
            }};
  }
};

TEST(out_of_memory, of_the_engines_allocator_is_answered) {
  for (const size_t megabytes : {0, 16}) {
    ASSERT_TRUE(set_constant_cache_capacity(EngineKind::cpu, megabytes).ok());
    int64_t failures = 0;
    for (const NamedGraph& g : kSmallGraphs) {
      SCOPED_TRACE(str(g.name, ", constant cache of ", megabytes, " MB"));
      Counting counting;
      Session session(g.text, engine(EngineKind::cpu, counting.made()), 2);
      const int64_t before = counting.out;
      for (int64_t n = 1; n < 100; ++n) {
        counting.left = n;
        const Status status = session.run();
        EXPECT_TRUE(status.ok() || status.code() == Code::out_of_memory) << status.text();
        EXPECT_TRUE(!status.ok() || session.same_results());
        EXPECT_EQ(counting.out, before);
        failures += !status.ok();
        if (counting.left > 0) break;
      }
    }
    EXPECT_GT(failures, 0);
  }
  ASSERT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 0).ok());
}

constexpr const char* kJson = R"({"version": "3.7.0", "engine_kind": "cpu", "fpmath_mode": "strict",
  "input_ports": [0], "output_ports": [1],
  "graph": [{"id": 7, "name": "sm", "kind": "SoftMax", "attrs": {"axis": {"type": "s64", "value": -1}},
    "inputs": [{"id": 0, "dtype": "f32", "shape": [4, 8], "stride": [8, 1], "layout_type": "strided",
                "property_type": "undef"}],
    "outputs": [{"id": 1, "dtype": "f32", "shape": [4, 8], "stride": [8, 1], "layout_type": "strided",
                 "property_type": "undef"}]}]})";

TEST(out_of_memory, while_a_graph_is_read_is_answered) {
  ASSERT_TRUE(graph_from_json(kJson).ok()) << graph_from_json(kJson).status().text();
  const Sweep swept = sweep(
      [] {
        auto read = graph_from_json(kJson);
        return std::move(read).take_status();
      },
      [] { return true; });
  EXPECT_GT(swept.failures, 20);
}

TEST(out_of_memory, leaves_a_graph_as_it_was) {
  graph g;
  op relu(1, OpKind::ReLU, {logical_tensor(0, Dtype::f32, Dims{4})}, {logical_tensor(1, Dtype::f32, Dims{4})}, "relu");
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    Code code{};
    {
      const FailingMemory memory(n);
      code = g.add_op(relu).code();
    }
    if (code == Code::success) break;
    ASSERT_EQ(code, Code::out_of_memory);
    ASSERT_TRUE(g.ops().empty());
    ++failures;
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(g.ops().size(), 1u);
}

TEST(out_of_memory, in_a_part_of_parallel_work_reaches_the_caller) {
  const ThreadScope scope(4);
  for (int64_t bad : {0, 3, 7})
    EXPECT_THROW(parallel_for(8, 1 << 20,
                              [&](int64_t begin, int64_t end) {
                                if (begin <= bad && bad < end) throw std::bad_alloc();
                              }),
                 std::bad_alloc);
}

TEST(cache, of_capacity_0_and_1_works) {
  for (const size_t capacity : {0, 1}) {
    set_cache_capacity(capacity);
    EXPECT_EQ(cache_capacity(), capacity);
    std::vector<Session> sessions;
    for (size_t i = 0; i < 3; ++i) sessions.emplace_back(kSmallGraphs[i].text, engine(), 2);
    for (int round = 0; round < 3; ++round)
      for (Session& session : sessions) {
        const Status status = session.run();
        EXPECT_TRUE(status.ok()) << status.text();
        EXPECT_TRUE(session.same_results());
      }
  }
  set_cache_capacity(1024);
}

}  // namespace
}  // namespace partita::test
