// SPDX-License-Identifier: Apache-2.0
// ShapeContext: what a shape rule sees and what it answers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "partita/logical_tensor.hpp"
#include "partita/status.hpp"
#include "src/base/attrs.hpp"
#include "src/ir/op_def.hpp"

namespace partita {

/// Inputs have known dims. Given output dims act as a check, unknown ones match everything.
class ShapeContext {
 public:
  /// `outputs` are the given ones; they are overwritten with what is inferred.
  ShapeContext(const OpDef& def, Attrs& attrs, std::span<const logical_tensor> inputs,
               std::span<logical_tensor> outputs)
      : def_(def), attrs_(attrs), inputs_(inputs), outputs_(outputs) {}

  const OpDef& def() const { return def_; }
  /// A rule may rewrite attributes: auto_pad resolved into pads_begin and pads_end.
  Attrs& attrs() { return attrs_; }
  const Attrs& attrs() const { return attrs_; }
  int inputs() const { return static_cast<int>(inputs_.size()); }
  int outputs() const { return static_cast<int>(outputs_.size()); }
  const Dims& in(int i) const { return inputs_[static_cast<size_t>(i)].dims; }
  int rank(int i) const { return in(i).size(); }
  Dtype in_type(int i) const { return inputs_[static_cast<size_t>(i)].dtype; }
  /// The output as given: its rank or dims may be unknown.
  const logical_tensor& given(int o) const { return outputs_[static_cast<size_t>(o)]; }

  /// Sets an output's dims, or fails where given dims disagree: "`dst` is f32[2,4], the operator makes [2,3]".
  Status set(int output, const Dims& dims);
  /// True where `dims` agree with what is given for that output.
  bool agrees(int output, const Dims& dims) const;
  /// A failure that names the port (invalid_shape).
  Status wrong(std::string message) const { return fail(Code::invalid_shape, std::move(message)); }
  /// The attribute `key`, normalised to [0, rank), or a failure.
  Result<int> axis(Attr key, int rank) const;
  /// "`src` is f32[2,3]"
  std::string input_text(int i) const;
  std::string output_text(int o) const;

 private:
  const OpDef& def_;
  Attrs& attrs_;
  std::span<const logical_tensor> inputs_;
  std::span<logical_tensor> outputs_;
};

/// Infers and checks the shapes of all outputs of one operator.
Status infer_shapes(const OpDef& def, Attrs& attrs, std::span<const logical_tensor> inputs,
                    std::span<logical_tensor> outputs);

}  // namespace partita
