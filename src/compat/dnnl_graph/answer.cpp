// SPDX-License-Identifier: Apache-2.0
// The last failure of each thread.
#include "src/compat/dnnl_graph/answer.hpp"

#include <new>
#include <string>

#include "src/base/text.hpp"

namespace partita::abi {
namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

}  // namespace

dnnl_status_t answer(const Status& status) noexcept {
  if (status.ok()) return dnnl_success;
  try {
    last_error() = status.text();
  } catch (const std::bad_alloc&) {
    last_error().clear();
  }
  return static_cast<dnnl_status_t>(status.code());
}

dnnl_status_t answer_out_of_memory() noexcept {
  last_error().clear();  // frees no memory and needs none: short texts lie in the string itself
  last_error() = "out of memory";
  return dnnl_out_of_memory;
}

Status need(std::initializer_list<std::pair<const char*, const void*>> pointers, Code code) {
  for (const auto& [name, pointer] : pointers)
    if (pointer == nullptr) return fail(code, str("`", name, "` is null"));
  return {};
}

}  // namespace partita::abi

const char* partita_last_error(void) { return partita::abi::last_error().c_str(); }
const char* partita_version(void) { return PARTITA_VERSION; }
