// SPDX-License-Identifier: Apache-2.0
// parallel_for and ThreadScope, on OpenMP or on an executor.
#include "src/base/threads.hpp"

#include <omp.h>

#include <algorithm>
#include <utility>

namespace partita {
namespace {

/// Element operations below which waking the threads costs more than they save (about ten microseconds of work).
constexpr int64_t kWorthThreads = 32768;

bool is_small(int64_t n, int64_t cost) {
  int64_t work = 0;
  return !__builtin_mul_overflow(n, cost, &work) && work < kWorthThreads;
}

thread_local Executor* executor = nullptr;
thread_local int executor_limit = 0;      ///< the innermost ThreadScope's number under the executor; 0: none
thread_local bool inside_a_part = false;  ///< this thread works for an executor: what it calls does not split again

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

}  // namespace

int thread_count() {
  if (!executor) return std::max(1, omp_get_max_threads());
  const int most = std::max(1, executor->threads());
  return executor_limit > 0 ? std::min(executor_limit, most) : most;
}

ExecutorScope::ExecutorScope(Executor& given)
    : before_(std::exchange(executor, &given)),
      limit_before_(std::exchange(executor_limit, 0)),
      openmp_before_(omp_get_max_threads()) {
  if (openmp_before_ != 1) omp_set_num_threads(1);
}

ExecutorScope::~ExecutorScope() {
  executor = before_;
  executor_limit = limit_before_;
  if (openmp_before_ != 1) omp_set_num_threads(openmp_before_);
}

// OpenMP keeps the number per calling thread, and oneDNN built on OpenMP reads the same number. Setting it costs more
// than asking, and mostly it is the wanted one already.
ThreadScope::ThreadScope(int threads) {
  if (threads <= 0) return;
  if (executor) {
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
  if (parts == 1 || inside_a_part || omp_in_parallel()) return part(0, n, 0);
  const int64_t each = n / parts, rest = n % parts;
  const auto run_part = [&](int64_t p) {
    const int64_t begin = p * each + std::min<int64_t>(p, rest);
    part(begin, begin + each + (p < rest ? 1 : 0), static_cast<int>(p));
  };
  if (executor)
    return executor->run(parts, [&](int64_t p, int64_t) {
      const InsidePart inside;
      run_part(p);
    });
    // Parts are dealt by number, not by the size of the team: OpenMP may give fewer threads than asked for.
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; ++p) run_part(p);
}

}  // namespace partita
