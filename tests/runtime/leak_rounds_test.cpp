// SPDX-License-Identifier: Apache-2.0
// Many rounds of compile, execute, destroy: the memory of the process stays flat.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "src/base/text.hpp"
#include "src/compile/compile.hpp"
#include "tests/support/session.hpp"

namespace partita::test {
namespace {

/// 300, or as many as PARTITA_TEST_ROUNDS says.
int64_t rounds() {
  const char* text = std::getenv("PARTITA_TEST_ROUNDS");
  return text ? std::atoll(text) : 300;
}

/// Of the runtime of a sanitizer, null without one: bytes of the heap that are in use.
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

/// Resident memory, in bytes. With a sanitizer, which keeps freed memory for a while to catch late readers: the heap's.
int64_t memory_in_use() {
  if (__sanitizer_get_current_allocated_bytes != nullptr)
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
  int64_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// An allocator that knows what is out.
struct Counted {
  std::atomic<int64_t> blocks = 0;
  allocator made() {
    return {[this](size_t size, size_t alignment) {
              ++blocks;
              return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
            },
            [this](void* p) {
              --blocks;
              std::free(p);
            }};
  }
};

TEST(leaks, no_round_leaves_anything_behind) {
  set_cache_capacity(0);  // each round compiles
  ASSERT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 1).ok());
  Counted counted;
  int64_t warm = 0;
  {
    const engine on(EngineKind::cpu, counted.made());
    std::vector<Session> sessions;
    for (const NamedGraph& g : kSmallGraphs) sessions.emplace_back(g.text, on, 2, g.constants);
    const int64_t before = counted.blocks;
    const int64_t all = rounds();
    for (int64_t round = 0; round < all; ++round) {
      Session& session = sessions[static_cast<size_t>(round) % sessions.size()];
      const Status s = session.run();
      ASSERT_TRUE(s.ok()) << s.text();
      ASSERT_TRUE(session.close_results());
      ASSERT_EQ(counted.blocks, before);
      if (round == all / 3) warm = memory_in_use();
    }
    const int64_t now = memory_in_use();
    RecordProperty("memory_after_a_third", std::to_string(warm));
    RecordProperty("memory_at_the_end", std::to_string(now));
    // Two thirds of the rounds: a leak of a hundred bytes a round shows in ten thousand of them, one of a program's
    // size in the few of the suite.
    EXPECT_LT(now - warm, 1 << 20) << "after " << all << " rounds";
  }
  EXPECT_EQ(counted.blocks, 0);
  EXPECT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 0).ok());
  set_cache_capacity(1024);
}

}  // namespace
}  // namespace partita::test
