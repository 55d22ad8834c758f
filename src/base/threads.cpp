// SPDX-License-Identifier: Apache-2.0
// parallel_for and ThreadScope on OpenMP.
#include "src/base/threads.hpp"

#include <omp.h>

#include <algorithm>

namespace partita {
namespace {

/// Element operations below which waking the threads costs more than they save (about ten microseconds of work).
constexpr int64_t kWorthThreads = 32768;

bool is_small(int64_t n, int64_t cost) {
  int64_t work = 0;
  return !__builtin_mul_overflow(n, cost, &work) && work < kWorthThreads;
}

}  // namespace

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
  if (parts == 1 || omp_in_parallel()) return part(0, n, 0);
  const int64_t each = n / parts, rest = n % parts;
  // Parts are dealt by number, not by the size of the team: OpenMP may give fewer threads than asked for.
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; ++p) {
    const int64_t begin = p * each + std::min<int64_t>(p, rest);
    part(begin, begin + each + (p < rest ? 1 : 0), p);
  }
}

}  // namespace partita
