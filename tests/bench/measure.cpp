// SPDX-License-Identifier: Apache-2.0
// Turns and their times.
#include "tests/bench/measure.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "src/base/check.hpp"

namespace partita::bench {
namespace {

constexpr int kLeastTurns = 3;
constexpr int kMostCallsOfTurn = 10000;

double seconds_now(bool processor_time) {
  timespec now{};
  clock_gettime(processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Seconds of `calls` calls.
Result<double> time_calls(const Contender& contender, int calls, bool processor_time) {
  const double start = seconds_now(processor_time);
  for (int i = 0; i < calls; ++i) {
    PT_TRY(contender.run());
    benchmark::ClobberMemory();
  }
  return seconds_now(processor_time) - start;
}

struct Turns {
  int calls = 1;
  double spent = 0;
  int done = 0;
};

/// A first call warms up; where it was short, a second one tells how many calls make a turn.
Result<Turns> warm_up(const Contender& contender, const MeasureOptions& options) {
  PT_ASSIGN(double call, time_calls(contender, 1, options.processor_time));
  if (call < options.turn * kMostCallsOfTurn) {
    PT_ASSIGN(const double again, time_calls(contender, 1, options.processor_time));
    call = std::max(1e-9, std::min(call, again));
  }
  return Turns{.calls = std::clamp(static_cast<int>(std::ceil(options.turn / call)), 1, kMostCallsOfTurn)};
}

}  // namespace

Timing timing_of(const std::vector<double>& seconds) {
  if (seconds.empty()) return {};
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return {median, sorted.front(), static_cast<int>(sorted.size())};
}

Status measure(std::span<Contender> contenders, const MeasureOptions& options) {
  std::vector<Turns> turns;
  for (const Contender& contender : contenders) {
    PT_ASSIGN(turns.emplace_back(), warm_up(contender, options));
  }
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (turns[i].done >= kLeastTurns && turns[i].spent >= options.seconds) continue;
      if (options.before) options.before();
      PT_ASSIGN(const double spent, time_calls(contenders[i], turns[i].calls, options.processor_time));
      contenders[i].seconds.push_back(spent / turns[i].calls);
      turns[i].spent += spent;
      ++turns[i].done;
      again = true;
    }
  }
  return {};
}

}  // namespace partita::bench
