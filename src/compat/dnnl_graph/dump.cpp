// SPDX-License-Identifier: Apache-2.0
// Writing of graph dumps. A file that cannot be written is told once on stderr and is no failure of the call.
#include "src/compat/dnnl_graph/dump.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "partita/json.hpp"
#include "passes/specialize.hpp"
#include "src/base/check.hpp"
#include "src/base/env.hpp"
#include "src/base/guarded.hpp"
#include "src/base/hash.hpp"
#include "src/base/output_file.hpp"
#include "src/base/text.hpp"
#include "src/base/warn.hpp"
#include "src/compat/dnnl_graph/answer.hpp"

namespace partita::abi {
namespace {

constexpr unsigned kKnownBits = static_cast<unsigned>(Dump::subgraph) | static_cast<unsigned>(Dump::graph);

/// Words between commas, in any case; an unknown one takes back those before it.
unsigned mode_in(Env key, std::string text) {
  unsigned mode = 0;
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    if (word == "graph") {
      mode |= static_cast<unsigned>(Dump::graph);
    } else if (word == "subgraph") {
      mode |= static_cast<unsigned>(Dump::subgraph);
    } else {
      mode = 0;
      warn_of_value(key, word);
    }
    begin = end + 1;
  }
  return mode;
}

std::atomic<unsigned>& mode() {
  static std::atomic<unsigned> now = [] {
    const Env key = env(Env::graph_dump) ? Env::graph_dump : Env::graph_dump_old;
    return env(key) ? mode_in(key, *env(key)) : 0u;
  }();
  return now;
}

void write(const std::string& file, const std::string& text) {
  std::printf("onednn_verbose,v1,graph,info,serialize graph to a json file %s\n", file.c_str());
  std::fflush(stdout);
  if (const Status done = write_file_here(file, text); !done.ok()) warn_once(Warning::no_dump, done.text());
}

/// A dump that fails, for want of memory too, is no failure of the call that makes it.
template <class Body>
void dumped(Body&& body) {
  const Status done = guarded([&]() -> Status {
    body();
    return {};
  });
  if (!done.ok()) warn_once(Warning::no_dump, "a graph is not dumped: out of memory");
}

uint64_t hash_of(std::span<const logical_tensor> in, std::span<const logical_tensor> out) {
  Hasher h;
  for (const auto side : {in, out})
    for (const logical_tensor& t : side) {
      h.add(t.id).add(static_cast<uint64_t>(t.dtype)).add(static_cast<uint64_t>(t.layout));
      for (int64_t d : t.dims) h.add(static_cast<uint64_t>(d));
      for (int64_t d : t.strides) h.add(static_cast<uint64_t>(d));
    }
  return h.value();
}

/// What is known of the partition's tensors once these are given.
std::unordered_map<uint64_t, logical_tensor> known_tensors(const partition& p, std::span<const logical_tensor> in,
                                                           std::span<const logical_tensor> out) {
  std::unordered_map<uint64_t, logical_tensor> known;
  for (const auto side : {in, out})
    for (const logical_tensor& t : side) known.insert_or_assign(t.id, t);
  if (const auto specialized = specialize(*p.form(), {in, out, {}}); specialized.ok())
    for (const SubValue& value : specialized->graph.values)
      if (value.desc.shape_known()) known.insert_or_assign(value.desc.id, value.desc);
  return known;
}

}  // namespace

bool dumps(Dump what) { return (mode().load(std::memory_order_relaxed) & static_cast<unsigned>(what)) != 0; }

void dump_graph(const graph& g, uint64_t id) {
  dumped([&] { write(str("graph-", id, ".json"), graph_to_json(g)); });
}

void dump_partitioning(const graph& g, uint64_t id, const std::vector<partition>& partitions) {
  dumped([&] {
    using nlohmann::ordered_json;
    std::unordered_map<uint64_t, const partition*> owner;
    for (const partition& p : partitions)
      for (uint64_t o : p.ops()) owner[o] = &p;
    ordered_json tree = ordered_json::parse(graph_to_json(g));
    const auto text = [](const std::string& value) { return ordered_json{{"type", "string"}, {"value", value}}; };
    for (ordered_json& o : tree["graph"]) {
      const auto at = owner.find(o["id"].get<uint64_t>());
      if (at == owner.end()) continue;
      o["attrs"]["partition_id"] = text(std::to_string(at->second->id()));
      o["attrs"]["backend"] = text(at->second->supported() ? "partita" : "fake_backend");
    }
    write(str("graph-", id, "-partitioning.json"), tree.dump(2) + "\n");
  });
}

void dump_subgraph(const partition& p, std::span<const logical_tensor> in, std::span<const logical_tensor> out) {
  dumped([&] {
    const auto known = known_tensors(p, in, out);
    const Partition& form = *p.form();
    graph g(form.kind, form.fpmath);
    if (!g.set_fpmath_mode(form.fpmath, form.apply_to_int).ok()) return;
    for (size_t i = 0; i < form.ops.size(); ++i) {
      op o = form.ops[i];
      for (const auto& [attr, value] : form.attrs[i].all()) o.set_attr(attr, value);
      for (auto* side : {&o.inputs, &o.outputs})
        for (logical_tensor& t : *side)
          if (const auto at = known.find(t.id); at != known.end()) t = at->second;
      if (const Status added = g.add_op(o); !added.ok()) {
        std::fprintf(stderr, "partita: partition %llu is not dumped: %s\n", static_cast<unsigned long long>(p.id()),
                     added.text().c_str());
        return;
      }
    }
    write(str("graph-", p.id(), "-", hash_of(in, out), ".json"), graph_to_json(g));
  });
}

}  // namespace partita::abi

using namespace partita;
using namespace partita::abi;

dnnl_status_t dnnl_graph_set_dump_mode(dnnl_graph_dump_mode_t wanted) {
  return answer_of([&]() -> Status {
    const auto bits = static_cast<unsigned>(wanted);
    if (bits & ~kKnownBits) return fail(Code::invalid_arguments, str("no dump mode has the bits ", bits & ~kKnownBits));
    mode().store(bits);
    return {};
  });
}
