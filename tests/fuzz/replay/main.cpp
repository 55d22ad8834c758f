// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files instead of under a fuzzer: `fuzz_replay_NAME FILE ..`, a folder stands for its files.
// Used by the tests for what fuzzers found (tests/reproducers), with any compiler.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace {

std::vector<std::filesystem::path> files_at(const char* argument) {
  if (!std::filesystem::is_directory(argument)) return {argument};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argument))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  int ran = 0;
  for (int i = 1; i < count; ++i)
    for (const auto& path : files_at(arguments[i])) {
      std::ifstream file(path, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "%s cannot be read\n", path.c_str());
        return 1;
      }
      std::fprintf(stderr, "%s\n", path.c_str());
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
      ++ran;
    }
  std::fprintf(stderr, "%d inputs\n", ran);
  return ran > 0 ? 0 : 1;
}
