// SPDX-License-Identifier: Apache-2.0
// executor: threads of the caller's that an execution may run on.
#pragma once

#include <functional>

namespace partita {

/// Threads of a framework (a pool) that Partita's own kernels run on instead of OpenMP's, for streams that were made
/// with it. Both functions are called by the thread that executes: one executor serves several threads at once if and
/// only if it allows that itself.
class executor {
 public:
  virtual ~executor() = default;
  /// The most parts that are worth making, at least 1. Asked several times in an execution.
  virtual int threads() const = 0;
  /// Calls part(p) once for each p of [0, parts), on any threads, in any order, and returns when all are done. `part`
  /// may be called by several threads at once and never throws; it is gone when run returns.
  virtual void run(int parts, const std::function<void(int)>& part) = 0;
};

}  // namespace partita
