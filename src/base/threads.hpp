// SPDX-License-Identifier: Apache-2.0
// Work split over threads: contiguous parts, the same split for the same count, so results never depend on timing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "partita/executor.hpp"

namespace partita {

/// True where OpenMP can give this thread no team: inside a parallel region of the caller's, and in a child process
/// that was forked by a thread with a team. That team stayed behind, and GNU's runtime would wait for it for ever.
bool works_alone();

/// Says that this thread may get a team now; from then on it works alone in child processes that it forks.
void has_team();

/// Threads that parallel_for uses on this thread now: the innermost ThreadScope's number, else as many as the
/// executor has, else OpenMP's default.
int thread_count();

/// Sets the number of threads for calls from this thread (ours and oneDNN's) while it lives; 0 leaves it as it is.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_ = 0;       ///< 0: nothing was changed
  bool limits_ = false;  ///< an executor's threads rather than OpenMP's
};

/// What parallel_for calls: part(begin, end) or part(begin, end, number). Refers to a callable and does not own it, so
/// that captures cost no memory.
class PartRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, PartRef>)
      PartRef(F&& callable)  // NOLINT(bugprone-forwarding-reference-overload): not for itself
      : callable_(std::addressof(callable)), call_([](const void* callable, int64_t begin, int64_t end, int number) {
          auto& part = *static_cast<std::remove_reference_t<F>*>(const_cast<void*>(callable));
          if constexpr (std::is_invocable_v<decltype(part), int64_t, int64_t, int>)
            part(begin, end, number);
          else
            part(begin, end);
        }) {}
  void operator()(int64_t begin, int64_t end, int number) const { call_(callable_, begin, end, number); }

 private:
  const void* callable_;
  void (*call_)(const void*, int64_t, int64_t, int);
};

/// While it lives parallel_for, called from this thread, runs on the executor, and oneDNN's primitives, which know no
/// threads but OpenMP's, run on this thread alone.
class ExecutorScope {
 public:
  explicit ExecutorScope(executor& given);
  ~ExecutorScope();
  ExecutorScope(const ExecutorScope&) = delete;
  ExecutorScope& operator=(const ExecutorScope&) = delete;

 private:
  executor* before_;
  int limit_before_, openmp_before_;
};

/// Calls part(begin, end) for contiguous parts of [0, n), at most one a thread and at most `most`, on the calling
/// thread where n * cost (a rough count of element operations an item) is small. The number of a part, counted from 0,
/// may choose its share of a scratch buffer: no two parts with the same number run at once.
void parallel_for(int64_t n, int64_t cost, PartRef part, int most = std::numeric_limits<int>::max());

}  // namespace partita
