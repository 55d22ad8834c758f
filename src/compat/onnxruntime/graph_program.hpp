// SPDX-License-Identifier: Apache-2.0
// GraphProgram: a whole graph as one operator of a framework, compiled for each set of input shapes it meets.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "partita/graph.hpp"

namespace partita::compat::onnxruntime {

/// The partitions of a graph compiled for dense tensors of known shapes, and where the values between them lie.
/// Immutable, shared between threads.
class GraphPlan {
 public:
  const std::vector<logical_tensor>& inputs() const { return inputs_; }
  /// Every field known.
  const std::vector<logical_tensor>& outputs() const { return outputs_; }
  /// Memory an execution needs beside inputs and outputs, aligned to 64.
  size_t workspace_bytes() const { return workspace_bytes_; }
  /// Addresses in the order of inputs() and outputs(). Errors: those of compiled_partition::execute.
  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) const;

 private:
  friend class GraphProgram;
  struct Step {
    compiled_partition compiled;
    std::vector<size_t> in, out;  ///< slots of its ports
  };
  std::vector<logical_tensor> inputs_, outputs_;
  std::vector<Step> steps_;
  std::vector<size_t> input_slots_, output_slots_;
  std::vector<size_t> offsets_;  ///< of each slot's value in the workspace; unused for inputs and outputs
  size_t scratchpad_offset_ = 0, workspace_bytes_ = 0;
};

/// A partitioned graph. Thread-safe.
class GraphProgram {
 public:
  /// Inputs and outputs stand in the order in which the text first names them; outputs are the tensors that no operator
  /// reads, or that an End reads. Errors: those of graph_from_json and finalize; unimplemented where a partition is not
  /// supported; invalid_arguments where an input or output is known not to be dense.
  static Result<std::shared_ptr<GraphProgram>> of(std::string_view json);

  const std::vector<logical_tensor>& inputs() const { return inputs_; }
  const std::vector<logical_tensor>& outputs() const { return outputs_; }
  /// The last plan again where the dims are the same. Errors: those of partition::compile; invalid_shape where the
  /// shape of a result depends on the content of a tensor.
  Result<std::shared_ptr<const GraphPlan>> plan(std::span<const Dims> input_dims);

 private:
  Result<std::shared_ptr<const GraphPlan>> make_plan(std::span<const Dims> input_dims) const;

  std::vector<partition> partitions_;
  std::vector<logical_tensor> inputs_, outputs_;
  std::mutex mutex_;
  std::shared_ptr<const GraphPlan> last_;
};

}  // namespace partita::compat::onnxruntime
