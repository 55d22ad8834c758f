// SPDX-License-Identifier: Apache-2.0
// GraphSide: one way to run a whole graph: calls in order, with all memory they need planned and allocated before.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/harness/storage.hpp"
#include "src/ir/finalize.hpp"

namespace partita::bench {

/// Addresses of one call, in the order of its tensors.
struct Bound {
  std::vector<void*> in, out;
  void* scratch = nullptr;  ///< Part::scratch_bytes bytes, aligned to 64
};

using Call = std::function<Status()>;

/// One call of a side: a compiled partition, or the primitive of one operator.
struct Part {
  std::vector<logical_tensor> in, out;  ///< as they lie in memory
  /// (input, output): the output may lie over the input where nobody reads that any more.
  std::vector<std::pair<uint64_t, uint64_t>> may_share;
  size_t scratch_bytes = 0;
  /// Makes the call on these addresses. Null: nothing has to run, out[0] is in[0] under another name.
  std::function<Result<Call>(const Bound&)> bind;
  std::string kernel;  ///< what runs, for a person
  bool once = false;   ///< reads constants alone: called when the side is made, its results last
};

/// Tensors by id, with the memory of graph inputs.
using GraphInputs = std::map<uint64_t, Storage>;

class GraphSide {
 public:
  /// Tensors between calls share one arena by lifetime; results of the graph have memory of their own. `inputs` is not
  /// owned. out_of_memory.
  static Result<GraphSide> make(const FinalGraph& graph, const GraphInputs& inputs, std::vector<Part> parts);

  Status run() const;
  int calls() const { return static_cast<int>(calls_.size()); }
  const std::vector<Part>& parts() const { return parts_; }
  /// Most memory an execution needs beside inputs and results: tensors between calls, and scratch of the calls.
  size_t peak_scratch_bytes() const { return arena_.bytes + scratch_.bytes; }
  /// Results of the graph by id.
  const std::map<uint64_t, Storage>& results() const { return results_; }

 private:
  std::vector<Part> parts_;
  std::vector<Call> calls_;
  std::map<uint64_t, Storage> results_;
  Storage arena_, scratch_;
};

/// True where nobody in the graph reads the tensor.
bool is_result(const FinalGraph& graph, uint64_t id);

}  // namespace partita::bench
