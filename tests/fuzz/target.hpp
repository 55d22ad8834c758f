// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share. A target is a program of its own: it checks one input and ends the process where a promise
// is broken (docs/trust.md).
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace partita::test {

/// Ends the process with the text where it is not empty.
inline void stop_unless_empty(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}

/// From now on a failing check of GoogleTest ends the process, and work is shared by a few threads only.
inline void prepare_target() {
  static const bool prepared = [] {
    testing::FLAGS_gtest_throw_on_failure = true;
    omp_set_num_threads(2);
    return true;
  }();
  static_cast<void>(prepared);
}

}  // namespace partita::test
