// SPDX-License-Identifier: Apache-2.0
// The last failure of each thread.
#include "src/compat/dnnl_graph/answer.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "src/base/text.hpp"

namespace partita::abi {
namespace {

/// Plain memory, so that it is there as long as its thread, also when the process ends. Longer texts are cut.
thread_local std::array<char, 4096> last_error{};

void keep(std::string_view text) {
  const size_t n = std::min(text.size(), last_error.size() - 1);
  std::copy_n(text.begin(), n, last_error.begin());
  last_error[n] = '\0';
}

}  // namespace

dnnl_status_t answer(const Status& status) noexcept {
  if (status.ok()) return dnnl_success;
  try {
    keep(status.text());
  } catch (const std::bad_alloc&) {
    keep(status.error().message);
  }
  return static_cast<dnnl_status_t>(status.code());
}

Status need(std::initializer_list<std::pair<const char*, const void*>> pointers, Code code) {
  for (const auto& [name, pointer] : pointers)
    if (pointer == nullptr) return fail(code, str("`", name, "` is null"));
  return {};
}

}  // namespace partita::abi

const char* partita_last_error(void) { return partita::abi::last_error.data(); }
const char* partita_version(void) { return PARTITA_VERSION; }
