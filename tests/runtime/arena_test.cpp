// SPDX-License-Identifier: Apache-2.0
// Memory of executions that is kept for later ones.
#include "src/run/arena.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/runtime/ready_partition.hpp"

namespace partita::test {
namespace {

/// Counts what is out, and how often it was asked; `left`: how often it gives something.
struct Counted {
  std::atomic<int> asked = 0, out = 0, most_out = 0, left = 1 << 30;

  allocator memory() {
    return {[this](size_t bytes, size_t alignment) -> void* {
              ++asked;
              if (left-- <= 0) return nullptr;
              const int now = ++out;
              for (int most = most_out; now > most && !most_out.compare_exchange_weak(most, now);) {
              }
              return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
            },
            [this](void* p) {
              --out;
              std::free(p);
            }};
  }
};

TEST(arena_pool, gives_again_what_it_got_back) {
  Counted counted;
  ArenaPool pool(counted.memory());
  const auto first = pool.take(1000);
  ASSERT_NE(first.data, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % kArenaAlignment, 0u);
  pool.give_back(first);
  const auto smaller = pool.take(10);
  EXPECT_EQ(smaller.data, first.data);
  EXPECT_EQ(smaller.bytes, 1000u);
  EXPECT_EQ(counted.asked, 1);
  const auto second = pool.take(10);  // the other one is in use
  EXPECT_NE(second.data, first.data);
  EXPECT_EQ(counted.asked, 2);
  pool.give_back(smaller);
  pool.give_back(second);
}

TEST(arena_pool, gives_the_smallest_that_suffices) {
  Counted counted;
  ArenaPool pool(counted.memory());
  const auto small = pool.take(100), middle = pool.take(200), large = pool.take(300);
  pool.give_back(large);
  pool.give_back(small);
  pool.give_back(middle);
  const auto taken = pool.take(150);
  EXPECT_EQ(taken.data, middle.data);
  pool.give_back(taken);
}

TEST(arena_pool, keeps_no_more_blocks_than_were_in_use_at_once) {
  Counted counted;
  ArenaPool pool(counted.memory());
  for (size_t bytes : {100, 200, 50, 400, 300, 800}) {
    pool.give_back(pool.take(bytes));
    EXPECT_EQ(counted.out, 1) << bytes;
  }
  EXPECT_EQ(counted.asked, 4);  // each larger demand replaces what was too small
  pool.release();
  EXPECT_EQ(counted.out, 0);
}

TEST(arena_pool, gives_everything_back_when_memory_is_short_and_in_the_end) {
  Counted counted;
  {
    ArenaPool pool(counted.memory());
    const auto a = pool.take(100), b = pool.take(100), c = pool.take(100);
    for (const auto& block : {a, b, c}) pool.give_back(block);
    EXPECT_EQ(counted.out, 3);
    counted.left = 0;
    EXPECT_EQ(pool.take(1000).data, nullptr);
    EXPECT_EQ(counted.out, 0);
    EXPECT_EQ(counted.asked, 5);  // once more after that
    counted.left = 1;
    const auto d = pool.take(1000);
    EXPECT_NE(d.data, nullptr);
    pool.give_back(d);
  }
  EXPECT_EQ(counted.out, 0);
}

TEST(arena_pool, gives_no_block_to_two_threads) {
  constexpr int kThreads = 8, kRounds = 2000;
  Counted counted;
  ArenaPool pool(counted.memory());
  std::atomic<int> wrong = 0;
  const auto work = [&](int number) {
    for (int round = 0; round < kRounds; ++round) {
      const auto block = pool.take(static_cast<size_t>(64 + (number * 7 + round * 13) % 512));
      std::memset(block.data, number, block.bytes);
      std::this_thread::yield();
      const auto* bytes = static_cast<const unsigned char*>(block.data);
      if (bytes[0] != number || bytes[block.bytes - 1] != number) ++wrong;
      pool.give_back(block);
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) threads.emplace_back(work, number);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(counted.most_out, kThreads);
}

TEST(arena, is_asked_for_in_every_execution_where_the_allocator_is_the_callers) {
  Counted counted;
  const engine e(EngineKind::cpu, counted.memory());
  for (int i = 1; i <= 3; ++i) {
    const Arena arena(e, 500);
    EXPECT_EQ(counted.asked, i);
    EXPECT_EQ(counted.out, 1);
  }
  EXPECT_EQ(counted.out, 0);
  const Arena none(e, 0);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(counted.asked, 3);
}

TEST(arena, is_kept_for_all_engines_with_the_standard_allocator) {
  forget_engine(0);
  void* first = nullptr;
  {
    const Arena arena(engine(), 100000);
    first = arena.data();
  }
  {
    const Arena arena(99999);
    EXPECT_EQ(arena.data(), first);
  }
}

TEST(arena, executions_have_memory_after_all_was_given_back) {
  const ReadyPartition ready(
      "%2: f32[4,4] = MatMul(%0: f32[4,4], %1: f32[4,4]); %3: f32[4,4] = SoftMax(%2) {axis=1}; "
      "%4: f32[4,4] = MatMul(%3, %5: f32[4,4])");
  ASSERT_GT(ready.compiled().scratchpad_bytes(), 0u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(ready.execute_without_scratchpad().ok());
    EXPECT_TRUE(ready.execute_without_scratchpad().ok());
    forget_engine(0);
  }
}

}  // namespace
}  // namespace partita::test
