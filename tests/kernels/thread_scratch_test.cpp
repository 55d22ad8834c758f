// SPDX-License-Identifier: Apache-2.0
// Shares of scratch memory: whole, apart, aligned.
#include "kernels/thread_scratch.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace partita::test {
namespace {

TEST(thread_scratch, shares_lie_apart_inside_the_whole) {
  for (const int64_t threads : {1, 2, 7})
    for (const int64_t bytes : {1, 64, 100, 4096}) {
      const ThreadScratch scratch(threads, bytes);
      std::vector<std::byte> memory(scratch.bytes());
      for (int64_t number = 0; number < threads; ++number) {
        const std::byte* share = scratch.share(memory.data(), number);
        EXPECT_EQ((share - memory.data()) % 64, 0);
        EXPECT_LE(share + bytes, memory.data() + memory.size());
        if (number == 0) continue;
        EXPECT_GT(share, scratch.share(memory.data(), number - 1) + bytes + 1024) << "hardware fetches that far";
      }
    }
}

TEST(thread_scratch, takes_no_more_than_one_thread_needs) { EXPECT_EQ(ThreadScratch(1, 100).bytes(), 128u); }

TEST(thread_scratch, nothing_takes_no_memory) {
  EXPECT_EQ(ThreadScratch().bytes(), 0u);
  EXPECT_EQ(ThreadScratch(4, 0).bytes(), 0u);
}

}  // namespace
}  // namespace partita::test
