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

struct Count {
  int64_t before, after;
};

/// The process's threads around one execution on a fresh thread that may use four.
Count threads_around(const std::string& text) {
  Count count{};
  std::thread([&] {
    const ThreadScope four(4);
    const ReadyPartition ready(text);
    count.before = threads_of_the_process();
    EXPECT_TRUE(ready.execute().ok());
    count.after = threads_of_the_process();
  }).join();
  return count;
}

/// Two element-wise operators over `n` elements.
std::string chain(const std::string& type, int64_t n) {
  const std::string shape = str(": ", type, "[", n, "]");
  return str("%2", shape, " = ReLUBackward(%0", shape, ", %1", shape, "); %4", shape, " = Add(%2, %3", shape, ")");
}

TEST(small_work, of_generated_code_starts_no_thread) {
  for (const char* type : {"f32", "bf16"}) {
    if (ReadyPartition(chain(type, 16)).compiled().steps()[0].kernel.find("_jit_") == std::string::npos) GTEST_SKIP();
    for (int64_t n : {16, 32000}) {
      const Count small = threads_around(chain(type, n));
      EXPECT_EQ(small.after, small.before) << n;
    }
  }
  // The main thread, the caller and its team of three, which libomp may have kept from a caller that ended.
  EXPECT_GE(threads_around(chain("f32", 1 << 20)).after, 5);
}

}  // namespace
}  // namespace partita::test
