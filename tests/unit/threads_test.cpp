// SPDX-License-Identifier: Apache-2.0
// parallel_for visits every index once, whatever the count and the number of threads.
#include "src/base/threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/thread_per_part.hpp"

namespace partita {
namespace {

using test::ThreadPerPart;

constexpr int64_t kCostly = 1 << 20;

TEST(threads, every_index_is_visited_exactly_once) {
  for (int threads : {1, 2, 3, 7, 16}) {
    ThreadScope scope(threads);
    for (int64_t n : {0, 1, 2, 3, 5, 15, 16, 17, 100, 1001}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
      std::atomic<int> parts{0};
      parallel_for(n, kCostly, [&](int64_t begin, int64_t end) {
        ++parts;
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      EXPECT_EQ(parts, std::min<int64_t>(threads, n));
      for (auto& v : visits) EXPECT_EQ(v, 1);
    }
  }
}

TEST(threads, parts_are_equal_up_to_one_and_the_same_each_time) {
  ThreadScope scope(4);
  std::vector<std::pair<int64_t, int64_t>> before;
  for (int round = 0; round < 5; ++round) {
    std::mutex guard;
    std::vector<std::pair<int64_t, int64_t>> parts;
    parallel_for(10, kCostly, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(guard);
      parts.emplace_back(begin, end);
    });
    std::sort(parts.begin(), parts.end());
    if (round > 0) {
      EXPECT_EQ(parts, before);
    }
    before = parts;
  }
  EXPECT_EQ(before, (std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 6}, {6, 8}, {8, 10}}));
}

TEST(threads, parts_are_numbered_and_no_more_than_allowed) {
  ThreadScope scope(8);
  for (int most : {1, 3, 8, 100}) {
    std::vector<std::atomic<int>> seen(8);
    parallel_for(
        1000, kCostly, [&](int64_t, int64_t, int number) { ++seen.at(static_cast<size_t>(number)); }, most);
    for (int p = 0; p < 8; ++p) EXPECT_EQ(seen[static_cast<size_t>(p)], p < most ? 1 : 0) << most;
  }
}

TEST(threads, a_callable_may_be_const_or_passed_by_name) {
  int calls = 0;
  const auto part = [&](int64_t, int64_t) { ++calls; };
  auto counting = [&, more = 0](int64_t, int64_t) mutable { calls += ++more; };
  parallel_for(1, 1, part);
  parallel_for(1, 1, counting);
  parallel_for(1, 1, counting);
  EXPECT_EQ(calls, 1 + 1 + 2);
}

TEST(threads, small_work_stays_on_the_calling_thread) {
  ThreadScope scope(4);
  int calls = 0;
  parallel_for(100, 1, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
  EXPECT_EQ(calls, 1);
}

TEST(threads, a_cost_beyond_int64_counts_as_large) {
  ThreadScope scope(2);
  std::atomic<int> calls{0};
  parallel_for(4, std::numeric_limits<int64_t>::max(), [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(threads, a_parallel_for_inside_another_runs_inline) {
  ThreadScope scope(2);
  std::atomic<int> inner{0};
  parallel_for(2, kCostly, [&](int64_t, int64_t) { parallel_for(8, kCostly, [&](int64_t, int64_t) { ++inner; }); });
  EXPECT_EQ(inner, 2);
}

TEST(threads, a_scope_ends_where_it_ends_and_concerns_one_thread) {
  const int before = thread_count();
  {
    ThreadScope three(3);
    EXPECT_EQ(thread_count(), 3);
    {
      ThreadScope same(0);
      EXPECT_EQ(thread_count(), 3);
      ThreadScope five(5);
      EXPECT_EQ(thread_count(), 5);
    }
    EXPECT_EQ(thread_count(), 3);
    int other = 0;
    std::thread([&] { other = thread_count(); }).join();
    EXPECT_EQ(other, before);
  }
  EXPECT_EQ(thread_count(), before);
}

TEST(executor, does_the_parts_that_openmp_would_do) {
  const auto split = [] {
    std::mutex guard;
    std::vector<std::pair<int64_t, int64_t>> parts;
    parallel_for(10, kCostly, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(guard);
      parts.emplace_back(begin, end);
    });
    std::sort(parts.begin(), parts.end());
    return parts;
  };
  const ThreadScope openmp(4);
  const auto expected = split();
  ThreadPerPart pool(4);
  {
    const ExecutorScope scope(pool);
    EXPECT_EQ(thread_count(), 4);
    EXPECT_EQ(split(), expected);
    EXPECT_EQ(pool.runs, 1);
  }
  EXPECT_EQ(split(), expected);
  EXPECT_EQ(pool.runs, 1);
}

TEST(executor, threads_are_limited_by_a_scope_inside_and_set_back) {
  ThreadPerPart pool(4);
  const int before = thread_count();
  {
    const ExecutorScope scope(pool);
    {
      const ThreadScope two(2);
      EXPECT_EQ(thread_count(), 2);
      const ThreadScope nine(9);
      EXPECT_EQ(thread_count(), 4);
    }
    EXPECT_EQ(thread_count(), 4);
    ThreadPerPart other(3);
    const ExecutorScope inner(other);
    EXPECT_EQ(thread_count(), 3);
  }
  EXPECT_EQ(thread_count(), before);
}

TEST(executor, work_inside_a_part_is_not_split_again) {
  ThreadPerPart pool(3);
  const ExecutorScope scope(pool);
  std::atomic<int> inner{0};
  parallel_for(3, kCostly, [&](int64_t, int64_t) {
    parallel_for(100, kCostly, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(end - begin, 100);
      ++inner;
    });
  });
  EXPECT_EQ(inner, 3);
  EXPECT_EQ(pool.runs, 1);
}

}  // namespace
}  // namespace partita
