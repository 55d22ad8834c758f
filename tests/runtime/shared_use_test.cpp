// SPDX-License-Identifier: Apache-2.0
// Use from many threads at once: one compiled partition executed by all, everything at once for a while, and calls from
// inside parallel regions of OpenMP.
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <thread>

#include "src/base/text.hpp"
#include "src/compile/compile.hpp"
#include "tests/support/random.hpp"
#include "tests/support/session.hpp"

namespace partita::test {
namespace {

/// The first thing that went wrong on any thread.
class FirstFailure {
 public:
  void note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = text;
    failed_ = true;
  }
  bool failed() const { return failed_; }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::atomic<bool> failed_ = false;
};

void check(const Status& status, bool right, const std::string& what, FirstFailure& failure) {
  if (!status.ok()) failure.note(str(what, ": ", status.text()));
  if (status.ok() && !right) failure.note(what + ": wrong results");
}

/// Equal requests share one program, so these sessions execute the same one, each on its own tensors.
TEST(shared_use, one_program_is_executed_by_many_threads_at_once) {
  constexpr int kCallers = 6;
  for (const NamedGraph& g : kSharedGraphs) {
    SCOPED_TRACE(g.name);
    std::deque<Session> sessions;
    for (int c = 0; c < kCallers; ++c) sessions.emplace_back(g.text, engine(), 2, g.constants);
    FirstFailure failure;
    std::vector<std::thread> callers;
    for (Session& session : sessions)
      callers.emplace_back([&] {
        for (int round = 0; round < 3; ++round) {
          const Status s = session.execute();
          check(s, session.same_results(), g.name, failure);
        }
      });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(failure.text(), "");
  }
}

/// 2 s, or as many as PARTITA_TEST_SECONDS says.
std::chrono::seconds stress_time() {
  const char* text = std::getenv("PARTITA_TEST_SECONDS");
  return std::chrono::seconds(text ? std::atoi(text) : 2);
}

TEST(shared_use, builds_compiles_executes_destroys_and_changes_capacities_at_once) {
  constexpr int kWorkers = 8;
  constexpr uint64_t kSeed = 1;  // of the first worker
  std::deque<std::deque<Session>> sessions(kWorkers);
  for (int w = 0; w < kWorkers; ++w)
    for (const auto* graphs : {&kSmallGraphs, &kSharedGraphs})
      for (const NamedGraph& g : *graphs)
        sessions[static_cast<size_t>(w)].emplace_back(g.text, engine(), 1 + w % 3, g.constants);
  FirstFailure failure;
  std::atomic<int64_t> rounds = 0;
  const auto end = std::chrono::steady_clock::now() + stress_time();
  const auto work = [&](size_t w) {
    Random random(kSeed + w);
    const auto number = [&](size_t below) {
      return static_cast<size_t>(random.whole(0, static_cast<int64_t>(below) - 1));
    };
    while (!failure.failed() && std::chrono::steady_clock::now() < end) {
      Session& session = sessions[w][number(sessions[w].size())];
      const size_t what = number(16);
      if (what == 0) set_cache_capacity(std::array<size_t, 4>{0, 1, 3, 1024}[number(4)]);
      if (what == 1) (void)set_constant_cache_capacity(EngineKind::cpu, number(3)).ok();
      const Status s = what < 8 ? session.run() : session.execute();
      check(s, session.close_results(), str("worker ", w), failure);
      ++rounds;
    }
  };
  std::vector<std::thread> workers;
  for (size_t w = 0; w < kWorkers; ++w) workers.emplace_back(work, w);
  for (std::thread& worker : workers) worker.join();
  set_cache_capacity(1024);
  EXPECT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 0).ok());
  EXPECT_EQ(failure.text(), "") << "seed " << kSeed;
  EXPECT_GT(rounds, kWorkers);
  RecordProperty("rounds", std::to_string(rounds));
}

// The threads of the region are the caller's; each call runs on its own thread alone, also with programs that were
// compiled outside for many.
TEST(shared_use, from_inside_a_parallel_region) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer sees nothing of how a region of the caller's starts and ends";
#endif
  constexpr int kTeam = 3;
  for (const NamedGraph& g : kSharedGraphs) {
    SCOPED_TRACE(g.name);
    std::deque<Session> sessions;
    for (int c = 0; c < kTeam; ++c) sessions.emplace_back(g.text, engine(), 4, g.constants);
    FirstFailure failure;
    std::atomic<int> team = 0;
#pragma omp parallel num_threads(kTeam)
    {
#pragma omp single
      team = omp_get_num_threads();
      Session& session = sessions[static_cast<size_t>(omp_get_thread_num())];
      for (int round = 0; round < 2; ++round) {
        const Status executed = session.execute();  // compiled outside
        check(executed, session.close_results(), str(g.name, ", compiled outside"), failure);
        const Status whole = session.run();  // compiled inside
        check(whole, session.close_results(), str(g.name, ", compiled inside"), failure);
      }
    }
    EXPECT_EQ(team, kTeam);
    EXPECT_EQ(failure.text(), "");
  }
}

}  // namespace
}  // namespace partita::test
