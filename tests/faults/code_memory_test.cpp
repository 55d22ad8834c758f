// SPDX-License-Identifier: Apache-2.0
// A system that gives no memory for machine code: everything still computes, with the interpreter and the references,
// and the user is told once. Each way of refusing has a process of its own, for it is told once a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "src/base/text.hpp"
#include "src/compile/compile.hpp"
#include "tests/faults/failing_memory.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/session.hpp"

namespace partita::test {
namespace {

int exit_code_of(const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status =
      std::system(("'" + self + "' --gtest_also_run_disabled_tests --gtest_brief=1 --gtest_filter=" + test).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(code_memory, that_cannot_be_mapped_is_done_without) {
  EXPECT_EQ(exit_code_of("code_memory_process.DISABLED_no_pages"), 0);
}
TEST(code_memory, that_does_not_become_executable_is_done_without) {
  EXPECT_EQ(exit_code_of("code_memory_process.DISABLED_no_execution"), 0);
}
TEST(code_memory, that_is_never_writable_and_executable_is_enough_for_our_own_kernels) {
  EXPECT_EQ(exit_code_of("code_memory_process.DISABLED_no_both_at_once"), 0);
}

/// What is written to stderr while everything runs.
std::string told_while(NoCodeMemory::How how) {
  set_cache_capacity(0);
  std::vector<Session> sessions;
  for (const NamedGraph& g : kSmallGraphs) sessions.emplace_back(g.text, engine(), 2);
  testing::internal::CaptureStderr();
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < sessions.size(); ++i) {
      SCOPED_TRACE(kSmallGraphs[i].name);
      Status status;
      {
        const NoCodeMemory refused(how);
        status = sessions[i].run();
      }
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(sessions[i].close_results());
    }
  const std::string told = testing::internal::GetCapturedStderr();
  // What is refused for a while is not missed for ever.
  for (Session& session : sessions) {
    const Status status = session.run();
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(session.same_results());
  }
  return told;
}

void expect_told_once(NoCodeMemory::How how) {
  const std::string told = told_while(how);
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  EXPECT_THAT(told, testing::StartsWith("partita: "));
  EXPECT_THAT(told, testing::HasSubstr("the interpreter is used"));
}

TEST(code_memory_process, DISABLED_no_pages) { expect_told_once(NoCodeMemory::How::no_pages); }
TEST(code_memory_process, DISABLED_no_execution) { expect_told_once(NoCodeMemory::How::no_execution); }

TEST(code_memory_process, DISABLED_no_both_at_once) {
  if (!generates_code()) return;
  set_cache_capacity(0);
  Session session(kSmallGraphs[0].text, engine(), 1);
  testing::internal::CaptureStderr();
  const NoCodeMemory refused(NoCodeMemory::How::no_both_at_once);
  const Status status = session.run();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(session.same_results());  // by the generated kernel
}

}  // namespace
}  // namespace partita::test
