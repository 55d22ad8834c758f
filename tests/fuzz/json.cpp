// SPDX-License-Identifier: Apache-2.0
// Any bytes as a graph file. What loads must come back from its own text unchanged, and is finalized, partitioned and
// drawn without fault.
#include "partita/json.hpp"

#include <string_view>

#include "src/io/dot.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/sound.hpp"

namespace partita::test {
namespace {

void check_groups(graph g) {
  if (const Status status = g.finalize(); !status.ok())
    return stop_unless_empty(status.text().empty() ? "no text" : "");
  stop_unless_empty(unsoundness(*g.form(), partition_graph(*g.form(), {})));
  if (graph_to_dot(g).empty() || (graph_to_text(g).empty() && !g.ops().empty())) stop_unless_empty("nothing drawn");
}

}  // namespace
}  // namespace partita::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita;
  const auto read = graph_from_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read.ok()) {
    test::stop_unless_empty(read.status().text().empty() ? "a failure without text" : "");
    return 0;
  }
  // Text is compared, not graphs: it is equal also where an attribute is NaN.
  const std::string text = graph_to_json(*read);
  const auto again = graph_from_json(text, "again");
  if (!again.ok()) test::stop_unless_empty(again.status().text() + "\n" + text);
  if (graph_to_json(*again) != text) test::stop_unless_empty("reads differently:\n" + text);
  test::check_groups(*read);
  return 0;
}
