// SPDX-License-Identifier: Apache-2.0
// Small work stays on the calling thread: no thread is started for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/runtime/ready_partition.hpp"

namespace partita::test {
namespace {

int64_t threads_of_the_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// Threads that OpenMP starts for one execution on a fresh thread that may use four.
int64_t threads_started_by(const std::string& text) {
  int64_t started = 0;
  std::thread([&] {
    const ThreadScope four(4);
    const ReadyPartition ready(text);
    const int64_t before = threads_of_the_process();
    EXPECT_TRUE(ready.execute().ok());
    started = threads_of_the_process() - before;
  }).join();
  return started;
}

/// Two element-wise operators over `n` elements.
std::string chain(const std::string& type, int64_t n) {
  const std::string shape = str(": ", type, "[", n, "]");
  return str("%2", shape, " = ReLUBackward(%0", shape, ", %1", shape, "); %4", shape, " = Add(%2, %3", shape, ")");
}

TEST(small_work, of_generated_code_starts_no_thread) {
  for (const char* type : {"f32", "bf16"}) {
    if (ReadyPartition(chain(type, 16)).compiled().steps()[0].kernel.find("_jit_") == std::string::npos) GTEST_SKIP();
    EXPECT_EQ(threads_started_by(chain(type, 16)), 0);
    EXPECT_EQ(threads_started_by(chain(type, 32000)), 0);
    EXPECT_EQ(threads_started_by(chain(type, 1 << 20)), 3);
  }
}

}  // namespace
}  // namespace partita::test
