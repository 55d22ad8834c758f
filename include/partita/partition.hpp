// SPDX-License-Identifier: Apache-2.0
// partition: a group of operators to be compiled as one; compiled_partition: the program made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/engine.hpp"
#include "partita/op.hpp"
#include "partita/status.hpp"
#include "partita/tensor.hpp"

namespace partita {

struct Partition;     // passes/partition.hpp
class CompiledForm;   // src/api/compiled_form.hpp

/// What one step of a compiled partition does and which kernel does it.
struct step_info {
  std::string text;    ///< operators and expression
  std::string kernel;  ///< name of the kernel row
  std::vector<std::pair<std::string, std::string>> refused;  ///< better rows that declined, with the reason
};

/// Immutable and shared; may be executed by several threads at once (each with its own scratchpad and stream).
class compiled_partition {
 public:
  /// Empty: it has no ports and no steps, and execute answers invalid_arguments.
  compiled_partition() = default;

  /// The tensor with all fields filled. invalid_arguments where no port has that id. Dims stay unknown only where they
  /// depend on the content of a shape input that arrives at execution.
  Result<logical_tensor> query_logical_tensor(uint64_t id) const;
  /// Pairs (input id, output id): the two may share one address at execution.
  std::vector<std::pair<uint64_t, uint64_t>> inplace_ports() const;
  /// Bytes an execution needs beside its tensors; give a buffer of that size, aligned to 64, to execute, or none: the
  /// allocator of the stream's engine is asked then, also where a buffer has another alignment.
  size_t scratchpad_bytes() const;
  const std::vector<logical_tensor>& inputs() const;
  const std::vector<logical_tensor>& outputs() const;
  /// The steps in order of execution.
  std::vector<step_info> steps() const;

  /// Runs on the calling thread and `on.threads()` workers, returns when done. Tensors are found by id, in any order;
  /// surplus ones are ignored. Errors: invalid_arguments (a port without tensor or data, dtype or shape that differs
  /// from the compiled one), invalid_shape (a shape input that disagrees), out_of_memory.
  Status execute(const stream& on, std::span<const tensor> inputs, std::span<const tensor> outputs,
                 void* scratchpad = nullptr) const;
  /// The same for callers who know the ports: one address for each of inputs() and outputs(), in their order, whose
  /// memory is laid out as these say. Saves the search and the comparison of descriptions. Errors: as above.
  Status execute_at(const stream& on, std::span<const void* const> inputs, std::span<void* const> outputs,
                    void* scratchpad = nullptr) const;

 private:
  friend class partition;
  std::shared_ptr<const CompiledForm> form_;
};

/// A group of operators of a finalized graph. Immutable, a cheap copy, independent of the graph's lifetime.
class partition {
 public:
  /// Empty: it has no operators and no ports, is not supported, and compile answers invalid_arguments.
  partition() = default;
  explicit partition(std::shared_ptr<const Partition> form) : form_(std::move(form)) {}

  /// A partition of one operator, checked like graph::add_op does.
  static Result<partition> of(const op& single, EngineKind kind = EngineKind::cpu);

  /// Unique in the process; 0 where the partition is empty.
  uint64_t id() const;
  /// Operator ids in topological order.
  std::vector<uint64_t> ops() const;
  /// Name of the pattern that claimed the operators.
  std::string_view pattern() const;
  bool supported() const;
  /// Why it is not supported; empty where it is.
  const std::string& reason() const;
  /// Tensors that come from outside, one entry a use.
  const std::vector<logical_tensor>& input_ports() const;
  /// Tensors that are used outside, or nowhere.
  const std::vector<logical_tensor>& output_ports() const;
  /// The graph's; any where the partition is empty.
  EngineKind engine_kind() const;

  /// Compiles for concrete tensors; every port's id must be present, in any order, surplus ones are ignored.
  /// Inputs need known dims. Outputs may leave dims, strides or the layout (any) open. `constants` may give the content
  /// of constant inputs (shape inputs above all) at compile time. Thread-safe; equal requests share one program.
  /// Compiled for as many threads as OpenMP has for the calling one, and for this engine: streams of other engines
  /// execute what was made for it. Errors: invalid_arguments, invalid_shape, unimplemented, out_of_memory.
  Result<compiled_partition> compile(std::span<const logical_tensor> inputs, std::span<const logical_tensor> outputs,
                                     const engine& on, std::span<const tensor> constants = {}) const;
  /// Null where the partition is empty.
  const Partition* form() const { return form_.get(); }

 private:
  std::shared_ptr<const Partition> form_;
};

}  // namespace partita
