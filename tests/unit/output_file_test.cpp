// SPDX-License-Identifier: Apache-2.0
// Files that the library writes: whole or not at all, and only into the working folder.
#include "src/base/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

namespace partita::test {
namespace {

namespace fs = std::filesystem;

/// A fresh working folder.
class OutputFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "partita_output_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    before_ = fs::current_path();
    folder_ = name;
    fs::create_directory(folder_ / "here");
    fs::current_path(folder_ / "here");
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static std::string content(const fs::path& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  /// Names in the working folder.
  static std::vector<std::string> names() {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(".")) list.push_back(entry.path().filename().string());
    return list;
  }
  using Names = std::vector<std::string>;

  fs::path before_, folder_;
};

TEST_F(OutputFile, is_written_whole) {
  EXPECT_TRUE(write_file_here("a.json", "first").ok());
  EXPECT_TRUE(write_file_here("a.json", std::string(1 << 20, 'x')).ok());
  EXPECT_EQ(content("a.json"), std::string(1 << 20, 'x'));
  EXPECT_EQ(names(), Names{"a.json"});
}

TEST_F(OutputFile, lies_in_the_working_folder) {
  for (const std::string name : {"", ".", "..", "../a", "/tmp/partita_outside", "b/a", "./a"}) {
    EXPECT_EQ(write_file_here(name, "x").code(), Code::invalid_arguments) << name;
    EXPECT_EQ(append_line_here(name, "x").code(), Code::invalid_arguments) << name;
  }
  EXPECT_EQ(names(), Names{});
}

TEST_F(OutputFile, is_not_written_through_symbolic_links) {
  std::ofstream("../outside") << "theirs";
  fs::create_symlink("../outside", "a.json");
  fs::create_symlink("../outside", "a.map");
  EXPECT_TRUE(write_file_here("a.json", "ours").ok());
  EXPECT_EQ(append_line_here("a.map", "ours").code(), Code::runtime_error);
  EXPECT_EQ(content("../outside"), "theirs");
  EXPECT_EQ(content("a.json"), "ours");
  EXPECT_FALSE(fs::is_symlink("a.json"));
}

TEST_F(OutputFile, takes_further_lines) {
  EXPECT_TRUE(append_line_here("a.map", "one").ok());
  EXPECT_TRUE(append_line_here("a.map", "two").ok());
  EXPECT_EQ(content("a.map"), "one\ntwo\n");
}

TEST_F(OutputFile, says_why_it_cannot_be_written) {
  fs::current_path("/proc");  // takes no files, not even from root
  const Status status = write_file_here("a.json", "x");
  EXPECT_EQ(status.code(), Code::runtime_error);
  EXPECT_NE(status.text().find("a.json cannot be written: "), std::string::npos) << status.text();
}

int exit_code_in_child(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A full disk, as far as a file can tell: writing stops in the middle.
TEST_F(OutputFile, of_a_disk_that_is_full_leaves_the_old_one_and_nothing_else) {
  ASSERT_TRUE(write_file_here("a.json", "good").ok());
  EXPECT_EQ(exit_code_in_child([] {
              const rlimit limit{1000, 1000};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
              const bool refused = write_file_here("a.json", std::string(2000, 'x')).code() == Code::runtime_error &&
                                   append_line_here("b.map", std::string(2000, 'x')).code() == Code::runtime_error;
              return refused && write_file_here("c.json", "small").ok();
            }),
            0);
  EXPECT_EQ(content("a.json"), "good");
  EXPECT_EQ(content("c.json"), "small");
  EXPECT_EQ(names().size(), 3u);
}

}  // namespace
}  // namespace partita::test
