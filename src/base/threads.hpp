// SPDX-License-Identifier: Apache-2.0
// Work split over threads: contiguous parts, the same split for the same count, so results never depend on timing.
#pragma once

#include <cstdint>
#include <functional>

namespace partita {

/// Threads that parallel_for uses on this thread now: the innermost ThreadScope's number, else OpenMP's default.
int thread_count();

/// Sets the number of threads for calls from this thread (ours and oneDNN's) while it lives; 0 leaves it as it is.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

/// Calls part(begin, end) for contiguous parts of [0, n), at most one a thread, on the calling thread where n * cost
/// (a rough count of element operations an item) is small.
void parallel_for(int64_t n, int64_t cost, const std::function<void(int64_t begin, int64_t end)>& part);

}  // namespace partita
