// SPDX-License-Identifier: Apache-2.0
// An executor for tests.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "partita/executor.hpp"

namespace partita::test {

/// One thread a part, as a framework's pool may do it.
class ThreadPerPart : public executor {
 public:
  explicit ThreadPerPart(int threads) : threads_(threads) {}
  int threads() const override { return threads_; }
  void run(int parts, const std::function<void(int)>& part) override {
    ++runs;
    most_parts = std::max(most_parts, parts);
    std::vector<std::thread> pool;
    for (int p = 0; p < parts; ++p) pool.emplace_back(part, p);
    for (std::thread& t : pool) t.join();
  }
  int runs = 0, most_parts = 0;

 private:
  int threads_;
};

}  // namespace partita::test
