// SPDX-License-Identifier: Apache-2.0
// Finding graph files, and names for them.
#include "tests/support/graph_files.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace partita::test {

std::vector<std::string> json_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(fs::relative(entry.path(), folder).string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string file_test_name(const testing::TestParamInfo<std::string>& file) {
  std::string name = file.param.substr(0, file.param.rfind('.'));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace partita::test
