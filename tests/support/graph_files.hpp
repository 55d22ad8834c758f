// SPDX-License-Identifier: Apache-2.0
// Graph files as test parameters: one test a file, so that ctest runs them side by side.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace partita::test {

/// All *.json below `folder`, relative to it, sorted; nothing where there is no such folder.
std::vector<std::string> json_files(const std::string& folder);

/// "op/f32/abs.json" as part of a test's name: "op_f32_abs".
std::string file_test_name(const testing::TestParamInfo<std::string>& file);

}  // namespace partita::test
