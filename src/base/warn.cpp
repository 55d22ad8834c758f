// SPDX-License-Identifier: Apache-2.0
// Warnings on stderr.
#include "src/base/warn.hpp"

#include <array>
#include <atomic>
#include <cstdio>

namespace partita {

void warn_once(Warning about, std::string_view text) noexcept {
  static std::array<std::atomic<bool>, kWarnings> warned{};
  if (warned[static_cast<size_t>(about)].exchange(true)) return;
  print_warning(text);
}

void print_warning(std::string_view text) noexcept {
  std::fprintf(stderr, "partita: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace partita
