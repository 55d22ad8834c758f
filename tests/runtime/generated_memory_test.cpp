// SPDX-License-Identifier: Apache-2.0
// Generated code is never writable and executable at once, the perf map of PARTITA_PERF=1 covers it, and PARTITA_CODE=1
// writes its instructions.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "src/base/cpu.hpp"
#include "src/base/perf_map.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/runtime/ready_partition.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

constexpr const char* kChain =
    "%2: f32[64] = ReLUBackward(%0: f32[64], %1: f32[64]); %4: f32[64] = Add(%2, %3: f32[64])";

struct Mapping {
  uintptr_t begin = 0, end = 0;
  std::string rights, path;
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> list;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping m;
    std::string offset, device, inode;
    char dash = 0;
    std::istringstream words(line);
    words >> std::hex >> m.begin >> dash >> m.end >> m.rights >> offset >> device >> inode >> m.path;
    list.push_back(m);
  }
  return list;
}

/// Runs one of the disabled tests in a process of its own, the variable as given.
int exit_code_of(const std::string& test, const std::string& switched, const std::string& variable = "PARTITA_PERF") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status = std::system((variable + "=" + switched + " '" + self + "' --gtest_also_run_disabled_tests " +
                                  "--gtest_brief=1 --gtest_filter=" + test)
                                     .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// oneDNN's own code lies in pages that stay writable, so that nothing of it may run in the same process.
TEST(generated_memory, is_never_writable_and_executable_at_once) {
  if (!generates_code()) GTEST_SKIP() << "no code is generated here";
  EXPECT_EQ(exit_code_of("generated_memory_process.DISABLED_has_no_writable_code", "0"), 0);
}

TEST(generated_memory_process, DISABLED_has_no_writable_code) {
  std::vector<std::unique_ptr<ReadyPartition>> alive;
  for (const char* text :
       {"%1: f32[100] = Tanh(%0: f32[100])", kChain,
        "%1: f32[1,8,8,16] = AvgPoolBackward(%0: f32[1,4,4,16]) {src_shape=[1,8,8,16], strides=[2,2], kernel=[3,3], "
        "pads_begin=[1,1], pads_end=[0,0], exclude_pad=true, data_format=NXC}; %2: f32[1,8,8,16] = Abs(%1)"}) {
    alive.push_back(std::make_unique<ReadyPartition>(text));
    ASSERT_TRUE(alive.back()->is_our_own()) << text;
    EXPECT_TRUE(alive.back()->execute().ok());
  }
  size_t generated = 0;
  for (const Mapping& m : mappings()) {
    const bool executable = m.rights.find('x') != std::string::npos;
    EXPECT_FALSE(executable && m.rights.find('w') != std::string::npos) << m.rights << " " << m.path;
    generated += m.path.empty() && executable;
  }
  EXPECT_EQ(generated > 0, generates_code());
}

TEST(perf_map, is_written_where_it_is_asked_for) {
  EXPECT_EQ(exit_code_of("perf_map_process.DISABLED_writes", "1"), 0);
  EXPECT_EQ(exit_code_of("perf_map_process.DISABLED_does_not_write", "0"), 0);
  EXPECT_EQ(exit_code_of("perf_map_process.DISABLED_does_not_write", "''"), 0);
}

struct Line {
  uintptr_t begin = 0, size = 0;
  std::string name;
};

TEST(perf_map_process, DISABLED_writes) {
  std::filesystem::remove(perf_map_path());
  const ReadyPartition chain(kChain), tanh("%1: f32[100] = Tanh(%0: f32[100])");
  std::vector<Line> lines;
  std::ifstream map(perf_map_path());
  const std::regex form("([0-9a-f]+) ([0-9a-f]+) ([^ ]+)");
  for (std::string text; std::getline(map, text);) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(text, parts, form)) << text;
    lines.push_back({std::stoull(parts[1], nullptr, 16), std::stoull(parts[2], nullptr, 16), parts[3]});
  }
  std::filesystem::remove(perf_map_path());
  if (!generates_code()) {
    EXPECT_TRUE(lines.empty());
    return;
  }
  const std::string isa(name_of(machine_isa()));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front().name, "loop_any_jit_" + isa + ":ReLUBackward+Add");
  EXPECT_EQ(lines.back().name, "loop_any_jit_" + isa + ":Tanh");
  // No other code is generated here: each line lies in executable memory, all of which begins with a line.
  size_t inside = 0, blocks = 0;
  for (const Mapping& m : mappings()) {
    if (!m.path.empty() || m.rights.find('x') == std::string::npos) continue;
    ++blocks;
    const size_t before = inside;
    for (const Line& line : lines) inside += line.begin >= m.begin && line.begin + line.size <= m.end;
    EXPECT_GT(inside, before);
  }
  EXPECT_GT(blocks, 0u);
  EXPECT_EQ(inside, lines.size());
}

TEST(perf_map_process, DISABLED_does_not_write) {
  std::filesystem::remove(perf_map_path());
  const ReadyPartition chain(kChain);
  EXPECT_FALSE(std::filesystem::exists(perf_map_path()));
}

TEST(code_file, is_written_where_it_is_asked_for) {
  EXPECT_EQ(exit_code_of("code_file_process.DISABLED_writes", "1", "PARTITA_CODE"), 0);
  EXPECT_EQ(exit_code_of("code_file_process.DISABLED_does_not_write", "0", "PARTITA_CODE"), 0);
}

/// Text for an assembler: a label of its own for each kernel, and the bytes that its memory begins with.
TEST(code_file_process, DISABLED_writes) {
  std::filesystem::remove(code_file_path());
  const ReadyPartition chain(kChain), tanh("%1: f32[100] = Tanh(%0: f32[100])");
  std::vector<std::string> labels;
  std::ifstream file(code_file_path());
  for (std::string text; std::getline(file, text);) {
    const size_t bytes = text.find("\": .byte ");
    ASSERT_NE(bytes, std::string::npos) << text;
    labels.push_back(text.substr(0, bytes));
    EXPECT_EQ(text.find_first_not_of("0123456789,", bytes + 9), std::string::npos) << text;
    EXPECT_GT(std::ranges::count(text, ','), 16);
  }
  std::filesystem::remove(code_file_path());
  if (!generates_code()) {
    EXPECT_TRUE(labels.empty());
    return;
  }
  const std::string isa(name_of(machine_isa()));
  ASSERT_FALSE(labels.empty());
  EXPECT_EQ(labels.front(), "\"loop_any_jit_" + isa + ":ReLUBackward+Add #0");
  EXPECT_EQ(labels.back(), "\"loop_any_jit_" + isa + ":Tanh #" + std::to_string(labels.size() - 1));
}

TEST(code_file_process, DISABLED_does_not_write) {
  std::filesystem::remove(code_file_path());
  const ReadyPartition chain(kChain);
  EXPECT_FALSE(std::filesystem::exists(code_file_path()));
}

TEST(perf_map, is_not_written_where_nobody_asks) {
  if (perf_map_wanted()) GTEST_SKIP() << "somebody set PARTITA_PERF";
  std::filesystem::remove(perf_map_path());
  const CodeName outer("outer");
  { const CodeName inner("inner"); }
  add_to_perf_map(&outer, 1);
  EXPECT_FALSE(std::filesystem::exists(perf_map_path()));
}

}  // namespace
}  // namespace partita::test
