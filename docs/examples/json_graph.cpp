// SPDX-License-Identifier: Apache-2.0
// A graph as JSON text: loaded, partitioned, run. A bad graph gives an error with its place.
#include <iostream>
#include <partita/partita.hpp>

int main() {
  const char* text = R"({"graph": [{"id": 7, "kind": "SoftMax", "attrs": {"axis": {"type": "s64", "value": -1}},
    "inputs": [{"id": 0, "dtype": "f32", "shape": [2, 2], "stride": [2, 1], "layout_type": "strided", "property_type": "undef"}],
    "outputs": [{"id": 1, "dtype": "f32", "shape": [2, 2], "stride": [2, 1], "layout_type": "strided", "property_type": "undef"}]}]})";
  auto graph = partita::graph_from_json(text, "softmax.json");
  if (!graph.ok()) return std::cerr << graph.status().text() << '\n', 1;
  if (const auto s = graph->finalize(); !s.ok()) return std::cerr << s.text() << '\n', 1;
  const auto partition = graph->get_partitions().value()[0];

  const partita::engine cpu;
  const auto compiled = partition.compile(partition.input_ports(), partition.output_ports(), cpu);
  if (!compiled.ok()) return std::cerr << compiled.status().text() << '\n', 1;
  float src[4] = {0, 0, 1, 1}, dst[4];
  const auto done =
      compiled->execute(partita::stream(cpu), std::vector<partita::tensor>{{partition.input_ports()[0], src}},
                        std::vector<partita::tensor>{{partition.output_ports()[0], dst}});
  if (!done.ok()) return std::cerr << done.text() << '\n', 1;
  std::cout << "dst[0] = " << dst[0] << '\n';

  const auto wrong = partita::graph_from_json(R"({"graph": [{"id": 7, "kind": "SoftMix"}]})", "wrong.json");
  std::cout << wrong.status().text() << '\n';
  return dst[0] == 0.5f && !wrong.ok() ? 0 : 1;
}
