// SPDX-License-Identifier: Apache-2.0
// parallel_for and ThreadScope on OpenMP, or on the executor of a caller.
#include "src/base/threads.hpp"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "src/base/executor.hpp"

namespace partita {
namespace {

/// Element operations below which waking the threads costs more than they save (about ten microseconds of work).
constexpr int64_t kWorthThreads = 32768;

bool is_small(int64_t n, int64_t cost) {
  int64_t work = 0;
  return !__builtin_mul_overflow(n, cost, &work) && work < kWorthThreads;
}

/// The executor of this thread, and whether the thread runs one of its parts: work inside a part stays there.
thread_local executor* current_executor = nullptr;
thread_local bool inside_part = false;

/// One call of parallel_for on an executor.
struct Shares {
  int64_t each, rest;
  PartRef part;

  void run(int p) const {
    const int64_t begin = p * each + std::min<int64_t>(p, rest);
    part(begin, begin + each + (p < rest ? 1 : 0), p);
  }
  static void run_on_executor(void* shares, int p) {
    const bool before = std::exchange(inside_part, true);
    static_cast<const Shares*>(shares)->run(p);
    inside_part = before;
  }
};

}  // namespace

ExecutorScope::ExecutorScope(executor* runs_on) : before_(std::exchange(current_executor, runs_on)) {}
ExecutorScope::~ExecutorScope() { current_executor = before_; }

int thread_count() { return std::max(1, omp_get_max_threads()); }

// OpenMP keeps the number per calling thread, and oneDNN built on OpenMP reads the same number. Setting it costs more
// than asking, and mostly it is the wanted one already.
ThreadScope::ThreadScope(int threads) {
  if (threads <= 0) return;
  const int now = omp_get_max_threads();
  if (now == threads) return;
  before_ = now;
  omp_set_num_threads(threads);
}

ThreadScope::~ThreadScope() {
  if (before_ > 0) omp_set_num_threads(before_);
}

void parallel_for(int64_t n, int64_t cost, PartRef part, int most) {
  if (n <= 0) return;
  if (n == 1 || most <= 1 || is_small(n, cost)) return part(0, n, 0);
  const int parts = static_cast<int>(std::min<int64_t>(std::min(thread_count(), most), n));
  if (parts == 1 || omp_in_parallel() || inside_part) return part(0, n, 0);
  Shares shares{n / parts, n % parts, part};
  if (current_executor) return current_executor->run(parts, Shares::run_on_executor, &shares);
    // Parts are dealt by number, not by the size of the team: OpenMP may give fewer threads than asked for.
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; ++p) shares.run(p);
}

}  // namespace partita
