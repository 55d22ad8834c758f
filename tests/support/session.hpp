// SPDX-License-Identifier: Apache-2.0
// Session: everything a user does with one graph, from its operators to its results, prepared so that nothing but
// Partita takes memory while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "partita/partita.hpp"

namespace partita::test {

class Session {
 public:
  /// The graph as text (tests/support/graph_text.hpp); inputs get repeatable data, those of `constants` are constant.
  /// Runs once, so that what is made once a process is there and the right results are known.
  Session(std::string_view text, const engine& on, int threads, const std::vector<uint64_t>& constants = {});

  /// Builds the graph, partitions, compiles and executes it, and destroys all. The first failure, or success.
  Status run();
  /// Executes what was compiled for the first time.
  Status execute() const;
  /// After a success: whether the results are those of the first time, to the bit.
  bool same_results() const;
  /// The same within the error of another kernel: f32 results to 1e-4 of the largest one, others to the bit.
  bool close_results() const;

 private:
  struct Work {
    std::vector<logical_tensor> given;  ///< outputs to compile for
    std::vector<tensor> inputs, outputs;
    compiled_partition compiled;
  };
  void clear_results() const;
  void prepare(const partition& p);
  void* memory(const logical_tensor& t);

  stream stream_;
  std::vector<op> ops_;
  std::vector<Work> work_;  ///< of each partition
  std::map<uint64_t, std::vector<std::byte>> storage_;
  std::vector<std::vector<std::byte>> expected_;
};

struct NamedGraph {
  const char* name;
  const char* text;
  std::vector<uint64_t> constants = {};
};
/// For the names of tests: without it they have the bytes of the pointers.
inline void PrintTo(const NamedGraph& graph, std::ostream* os) { *os << graph.name; }
/// Graphs of all kinds of kernels, small: generated loops, poolings backward, a convolution with reorders, attention in
/// tiles.
extern const std::vector<NamedGraph> kSmallGraphs;
/// Work that is worth several threads, of our own kernels and of oneDNN's, where some primitives' threads wait for each
/// other.
extern const std::vector<NamedGraph> kSharedGraphs;

}  // namespace partita::test
