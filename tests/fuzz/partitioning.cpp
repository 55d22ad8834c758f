// SPDX-License-Identifier: Apache-2.0
// Random graphs full of what patterns look for: partitioning ends soon, each operator is in exactly one partition, none
// depends on itself, and the reasons it gives change nothing.
#include "partita/graph.hpp"
#include "src/base/text.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/linked_samples.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/sound.hpp"

namespace partita::test {
namespace {

std::string groups_of(const std::vector<Partition>& partitions) {
  std::string text;
  for (const Partition& p : partitions) {
    text += str("[", p.pattern, ":");
    for (const op& o : p.ops) text += str(" ", o.id);
    text += "]";
  }
  return text;
}

void check(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops)
    if (!g.add_op(o).ok()) return;  // rare: what was drawn fits no operator
  if (const Status status = g.finalize(); !status.ok()) stop_unless_empty(status.text());
  const auto partitions = partition_graph(*g.form(), {});
  stop_unless_empty(unsoundness(*g.form(), partitions));
  std::vector<PatternNote> notes;
  const auto explained = partition_graph(*g.form(), {}, &notes);
  if (groups_of(explained) != groups_of(partitions)) stop_unless_empty("other groups where reasons are kept");
  const auto single = partition_graph(*g.form(), {.policy = Policy::debug});
  stop_unless_empty(unsoundness(*g.form(), single));
  if (single.size() != ops.size()) stop_unless_empty("the debug policy joins operators");
}

}  // namespace
}  // namespace partita::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita::test;
  Random random(std::span(data, size));
  if (random.whole(0, 3) == 0)
    check(random_graph(random, static_cast<int>(random.whole(2, 60))).ops);
  else
    check(linked_samples(random, static_cast<int>(random.whole(1, 12))));
  return 0;
}
