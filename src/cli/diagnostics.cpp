// SPDX-License-Identifier: Apache-2.0
// Errors through spdlog, the progress bar straight to the terminal.
#include "src/cli/diagnostics.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace partita::cli {

void set_up_diagnostics() {
  spdlog::set_default_logger(spdlog::stderr_logger_st("partita"));
  spdlog::set_pattern("partita: %v");
}

void report(std::string_view text) { spdlog::error("{}", text); }
void report(const Status& failure) { report(failure.text()); }

ProgressBar::ProgressBar(size_t files) : files_(files), terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(size_t file, const std::string& name, double share) {
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  if (!terminal_ || (files_ < 2 && elapsed < std::chrono::seconds(1))) return;
  constexpr int kWidth = 24;
  constexpr size_t kNameWidth = 44;
  const double done = (static_cast<double>(file) + share) / static_cast<double>(std::max<size_t>(files_, 1));
  const int marks = static_cast<int>(done * kWidth);
  const std::string bar =
      std::string(static_cast<size_t>(marks), '#') + std::string(static_cast<size_t>(kWidth - marks), '.');
  // The end of a long path tells more than its beginning.
  const std::string shown = name.size() > kNameWidth ? ".." + name.substr(name.size() - kNameWidth + 2) : name;
  std::fprintf(stderr, "\r\033[K[%s] %3d%% %zu/%zu %s", bar.c_str(), static_cast<int>(done * 100), file + 1, files_,
               shown.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::hide() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace partita::cli
