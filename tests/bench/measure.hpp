// SPDX-License-Identifier: Apache-2.0
// Interleaved measurement: contenders run in turns, so that what disturbs the machine disturbs all of them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "partita/status.hpp"

namespace partita::bench {

/// One contender and the seconds a call took in each of its turns.
struct Contender {
  std::function<Status()> run;
  std::vector<double> seconds{};
};

/// What is kept of a contender's turns.
struct Timing {
  double median = 0;  ///< seconds
  double least = 0;
  int turns = 0;  ///< 0: not measured
};
Timing timing_of(const std::vector<double>& seconds);

struct MeasureOptions {
  double seconds = 0.15;           ///< each contender is measured at least so long
  std::function<void()> before{};  ///< runs before each turn, unmeasured; may be empty
  bool processor_time = false;     ///< counts what the process computes instead of what passes: for one thread
  double turn = 20e-6;             ///< seconds a turn takes at least, far above the clock's own cost
};

/// A, B, C, A, B, C, ... A contender that has had its time (and at least three turns) sits out, so that a slow one does
/// not starve the others. Short calls are repeated within a turn. Stops at the first failure.
Status measure(std::span<Contender> contenders, const MeasureOptions& options);

}  // namespace partita::bench
