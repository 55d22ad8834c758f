// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a graph file. What loads must come back from its own text unchanged.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "partita/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = partita::graph_from_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read.ok()) {
    if (read.status().text().empty()) std::abort();
    return 0;
  }
  // Text is compared, not graphs: it is equal also where an attribute is NaN.
  const std::string text = partita::graph_to_json(*read);
  const auto again = partita::graph_from_json(text, "again");
  if (!again.ok() || partita::graph_to_json(*again) != text) {
    std::fprintf(stderr, "%s\n%s\n", again.ok() ? "reads differently" : again.status().text().c_str(), text.c_str());
    std::abort();
  }
  return 0;
}
