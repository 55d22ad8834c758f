// SPDX-License-Identifier: Apache-2.0
// fork: child processes compute as their parents do, whether the parent has used threads before or not. A process of
// its own for each case, so that it is known what was used before.
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "src/base/text.hpp"
#include "tests/support/session.hpp"

namespace partita::test {
namespace {

constexpr int kThreads = 4;
constexpr unsigned kSeconds = 120;  ///< after which a child counts as hanging
#ifdef __SANITIZE_THREAD__          // whose runtime lets the child of a process with threads start none
constexpr bool kChildStartsThreads = false;
#else
constexpr bool kChildStartsThreads = true;
#endif

int exit_code_of(const std::string& test) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status =
      std::system(("'" + self + "' --gtest_also_run_disabled_tests --gtest_brief=1 --gtest_filter=" + test).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(fork, before_the_first_use) { EXPECT_EQ(exit_code_of("fork_process.DISABLED_before_the_first_use"), 0); }
TEST(fork, after_the_first_use) { EXPECT_EQ(exit_code_of("fork_process.DISABLED_after_the_first_use"), 0); }
TEST(fork, of_a_child) { EXPECT_EQ(exit_code_of("fork_process.DISABLED_of_a_child"), 0); }

/// Runs the body in a child process; whether all went well there.
template <class Body>
bool in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFSIGNALED(status)) << "ended by signal " << WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<Session> sessions() {
  std::vector<Session> list;
  for (const NamedGraph& g : kSharedGraphs) list.emplace_back(g.text, engine(), kThreads, g.constants);
  return list;
}

/// What the parent has compiled, and compiled anew.
void expect_to_run(std::vector<Session>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    SCOPED_TRACE(kSharedGraphs[i].name);
    const Status executed = list[i].execute();
    EXPECT_TRUE(executed.ok()) << executed.text();
    EXPECT_TRUE(list[i].close_results());
    const Status whole = list[i].run();
    EXPECT_TRUE(whole.ok()) << whole.text();
    EXPECT_TRUE(list[i].close_results());
  }
}

TEST(fork_process, DISABLED_before_the_first_use) {
  omp_set_num_threads(kThreads);
  EXPECT_TRUE(in_child([] {
    auto list = sessions();
    expect_to_run(list);
  }));
  auto list = sessions();
  expect_to_run(list);
}

TEST(fork_process, DISABLED_after_the_first_use) {
  omp_set_num_threads(kThreads);
  auto list = sessions();
  EXPECT_TRUE(in_child([&] {
    expect_to_run(list);
    // A thread of the child's own may have a team again.
    if (kChildStartsThreads) std::thread([&] { expect_to_run(list); }).join();
  }));
  expect_to_run(list);
}

TEST(fork_process, DISABLED_of_a_child) {
  omp_set_num_threads(kThreads);
  auto list = sessions();
  EXPECT_TRUE(in_child([&] {
    expect_to_run(list);
    EXPECT_TRUE(in_child([&] { expect_to_run(list); }));
  }));
}

}  // namespace
}  // namespace partita::test
