// SPDX-License-Identifier: Apache-2.0
// parallel_for and ThreadScope, on OpenMP or on an executor.
#include "src/base/threads.hpp"

#include <omp.h>
#include <pthread.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <utility>

namespace partita {
namespace {

/// Element operations below which waking the threads costs more than they save (about ten microseconds of work).
constexpr int64_t kWorthThreads = 32768;

bool is_small(int64_t n, int64_t cost) {
  int64_t work = 0;
  return !__builtin_mul_overflow(n, cost, &work) && work < kWorthThreads;
}

thread_local bool team_left = false;     ///< a team of this thread may wait in the runtime's pool
thread_local bool team_is_lost = false;  ///< its threads belong to the process that this one was forked from

/// Runs in a child process, on the only thread it has.
void after_fork() {
  if (!team_left) return;
  team_is_lost = true;
  omp_set_max_active_levels(0);  // also oneDNN's regions, and the caller's, run on this thread alone
}

thread_local executor* current = nullptr;  ///< what parallel_for runs on; null: OpenMP
thread_local int executor_limit = 0;       ///< the innermost ThreadScope's number under the executor; 0: none
thread_local bool inside_a_part = false;   ///< this thread works for an executor: what it calls does not split again

/// Runs one part on a thread of an executor.
class InsidePart {
 public:
  InsidePart() : before_(std::exchange(inside_a_part, true)) {}
  ~InsidePart() { inside_a_part = before_; }
  InsidePart(const InsidePart&) = delete;
  InsidePart& operator=(const InsidePart&) = delete;

 private:
  bool before_;
};

#ifdef __SANITIZE_THREAD__
/// ThreadSanitizer sees nothing of how OpenMP's runtime starts and joins threads, for it is not compiled with it.
void told(int p, PartRef part, void* team) {
  __tsan_acquire(team);
  part(p, p + 1, p);
  __tsan_release(team);
}

[[gnu::no_sanitize("thread"), gnu::noinline]] void fork_and_join(int parts, PartRef part, void* team) {
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; ++p) told(p, part, team);
}

void run_team(int parts, PartRef part) {
  char team = 0;
  __tsan_release(&team);
  fork_and_join(parts, part, &team);
  __tsan_acquire(&team);
}
#else
/// Parts are dealt by number, not by the size of the team: OpenMP may give fewer threads than asked for.
void run_team(int parts, PartRef part) {
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; ++p) part(p, p + 1, p);
}
#endif

}  // namespace

bool works_alone() { return team_is_lost || omp_in_parallel(); }

void has_team() {
  if (team_left) return;
  static const int registered = pthread_atfork(nullptr, nullptr, after_fork);
  team_left = registered == 0;
}

int thread_count() {
  if (!current) return works_alone() ? 1 : std::max(1, omp_get_max_threads());
  const int most = std::max(1, current->threads());
  return executor_limit > 0 ? std::min(executor_limit, most) : most;
}

ExecutorScope::ExecutorScope(executor& given)
    : before_(std::exchange(current, &given)),
      limit_before_(std::exchange(executor_limit, 0)),
      openmp_before_(omp_get_max_threads()) {
  if (openmp_before_ != 1) omp_set_num_threads(1);
}

ExecutorScope::~ExecutorScope() {
  current = before_;
  executor_limit = limit_before_;
  if (openmp_before_ != 1) omp_set_num_threads(openmp_before_);
}

// OpenMP keeps the number per calling thread, and oneDNN built on OpenMP reads the same number. Setting it costs more
// than asking, and mostly it is the wanted one already.
ThreadScope::ThreadScope(int threads) {
  if (threads <= 0) return;
  if (current) {
    limits_ = true;
    before_ = std::exchange(executor_limit, threads);
    return;
  }
  const int now = omp_get_max_threads();
  if (now == threads) return;
  before_ = now;
  omp_set_num_threads(threads);
}

ThreadScope::~ThreadScope() {
  if (limits_)
    executor_limit = before_;
  else if (before_ > 0)
    omp_set_num_threads(before_);
}

void parallel_for(int64_t n, int64_t cost, PartRef part, int most) {
  if (n <= 0) return;
  if (n == 1 || most <= 1 || is_small(n, cost)) return part(0, n, 0);
  const int parts = static_cast<int>(std::min<int64_t>(std::min(thread_count(), most), n));
  if (parts == 1 || inside_a_part || works_alone()) return part(0, n, 0);
  const int64_t each = n / parts, rest = n % parts;
  // What a part throws (containers do where there is no memory) must not leave its thread.
  std::atomic<bool> failed = false;
  std::exception_ptr first;
  const auto run_part = [&](int64_t p) noexcept {
    const int64_t begin = p * each + std::min<int64_t>(p, rest);
    try {
      part(begin, begin + each + (p < rest ? 1 : 0), static_cast<int>(p));
    } catch (...) {
      if (!failed.exchange(true)) first = std::current_exception();
    }
  };
  if (current) {
    const auto numbered = [&](int p) {
      const InsidePart inside;
      run_part(p);
    };
    current->run(parts, std::cref(numbered));  // by reference: a function with so many captures would take memory
  } else {
    has_team();
    run_team(parts, [&](int64_t p, int64_t) { run_part(p); });
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace partita
