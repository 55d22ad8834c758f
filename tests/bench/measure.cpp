// SPDX-License-Identifier: Apache-2.0
// Turns and their times.
#include "tests/bench/measure.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "src/base/check.hpp"

namespace partita::bench {
namespace {

constexpr int kLeastTurns = 3;
constexpr double kLeastSecondsOfTurn = 20e-6;  // far above the clock's own cost
constexpr int kMostCallsOfTurn = 10000;

/// Seconds of `calls` calls.
Result<double> time_calls(const Contender& contender, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    PT_TRY(contender.run());
    benchmark::ClobberMemory();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Turns {
  int calls = 1;
  double spent = 0;
  int done = 0;
};

/// A first call warms up; where it was short, a second one tells how many calls make a turn.
Result<Turns> warm_up(const Contender& contender) {
  PT_ASSIGN(double call, time_calls(contender, 1));
  if (call < kLeastSecondsOfTurn * kMostCallsOfTurn) {
    PT_ASSIGN(const double again, time_calls(contender, 1));
    call = std::max(1e-9, std::min(call, again));
  }
  return Turns{.calls = std::clamp(static_cast<int>(std::ceil(kLeastSecondsOfTurn / call)), 1, kMostCallsOfTurn)};
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
    PT_ASSIGN(turns.emplace_back(), warm_up(contender));
  }
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (turns[i].done >= kLeastTurns && turns[i].spent >= options.seconds) continue;
      if (options.before) options.before();
      PT_ASSIGN(const double spent, time_calls(contenders[i], turns[i].calls));
      contenders[i].seconds.push_back(spent / turns[i].calls);
      turns[i].spent += spent;
      ++turns[i].done;
      again = true;
    }
  }
  return {};
}

}  // namespace partita::bench
