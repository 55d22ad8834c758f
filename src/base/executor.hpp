// SPDX-License-Identifier: Apache-2.0
// ExecutorScope: where parallel_for finds its threads.
#pragma once

#include "partita/engine.hpp"

namespace partita {

/// While it lives, parallel_for on this thread runs its parts on the executor; null leaves them to OpenMP.
class ExecutorScope {
 public:
  explicit ExecutorScope(executor* runs_on);
  ~ExecutorScope();
  ExecutorScope(const ExecutorScope&) = delete;
  ExecutorScope& operator=(const ExecutorScope&) = delete;

 private:
  executor* before_;
};

}  // namespace partita
