// SPDX-License-Identifier: Apache-2.0
// Messages for the person at the terminal: errors on stderr as "partita: <text>", and a progress bar.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "partita/status.hpp"

namespace partita::cli {

/// Once, before anything is reported.
void set_up_diagnostics();
void report(std::string_view text);
void report(const Status& failure);

/// A line on stderr that shows how far the work is; only where stderr is a terminal, and the work takes a second or
/// more, or is about more than one file.
class ProgressBar {
 public:
  explicit ProgressBar(size_t files);
  ~ProgressBar() { hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `file` counts from 0; `share` of it is done.
  void show(size_t file, const std::string& name, double share);
  /// Frees the line for other output.
  void hide();

 private:
  size_t files_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace partita::cli
