// SPDX-License-Identifier: Apache-2.0
// The kernels of nodes: pooling gradients and whole graphs, run on the session's threads.
#include <memory>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/onnxruntime/custom_op.hpp"
#include "src/compat/onnxruntime/graph_program.hpp"
#include "src/compat/onnxruntime/pool_gradient.hpp"
#include "src/run/arena.hpp"

namespace partita::compat::onnxruntime {
namespace {

class PoolGradientKernel : public NodeKernel {
 public:
  PoolGradientKernel(GradientNode node, Dtype dtype, const Dims& source)
      : node_(std::move(node)), dtype_(dtype), source_(source) {}

  Status compute(OrtKernelContext* context) override {
    SessionThreads session(context);
    const ExecutorScope scope(session);
    PT_ASSIGN(const Input gradient, input(context, 0));
    std::array<const void*, 2> data{gradient.data, nullptr};
    if (node_.maximum) {
      PT_ASSIGN(const Input indices, input(context, 1));
      if (indices.dims != gradient.dims)
        return fail(Code::invalid_shape,
                    str("dY is [", text_of(gradient.dims), "], Indices are [", text_of(indices.dims), "]"));
      data[1] = indices.data;
    }
    PT_ASSIGN(const Pooling pooling, pooling_of(node_, dtype_, gradient.dims, source_));
    PT_ASSIGN(void* const result, output(context, 0, pooling.output.dims));
    if (pooling.output.empty()) return {};
    PT_ASSIGN(const auto program, PoolingProgram::of(pooling));
    return program->execute({data.data(), node_.maximum ? size_t{2} : size_t{1}}, result, nullptr);
  }

 private:
  GradientNode node_;
  Dtype dtype_;
  Dims source_;  ///< of dX, as the graph tells it
};

Result<std::unique_ptr<NodeKernel>> make_gradient(bool maximum, const OrtKernelInfo* info, Dtype dtype) {
  GradientNode node;
  node.maximum = maximum;
  node.kernel_shape = integers(info, "kernel_shape");
  node.strides = integers(info, "strides");
  node.pads = integers(info, "pads");
  node.dilations = integers(info, "dilations");
  node.auto_pad = text(info, "auto_pad").value_or("NOTSET");
  node.ceil_mode = integer(info, "ceil_mode").value_or(0) != 0;
  node.count_include_pad = integer(info, "count_include_pad").value_or(0) != 0;
  node.storage_order = integer(info, "storage_order").value_or(0);
  PT_TRY(check(node));
  PT_ASSIGN(const std::optional<Dims> source, output_dims(info, 0));
  if (!source || source->empty())
    return fail(Code::invalid_shape, "the graph must tell the shape of dX (value_info of the output)");
  return std::unique_ptr<NodeKernel>(std::make_unique<PoolGradientKernel>(std::move(node), dtype, *source));
}

class GraphKernel : public NodeKernel {
 public:
  explicit GraphKernel(std::shared_ptr<GraphProgram> program) : program_(std::move(program)) {}

  Status compute(OrtKernelContext* context) override {
    SessionThreads session(context);
    const ExecutorScope scope(session);
    const std::vector<logical_tensor>& expected = program_->inputs();
    size_t count = 0;
    PT_TRY(taken(ort().KernelContext_GetInputCount(context, &count)));
    if (count != expected.size())
      return fail(Code::invalid_arguments, str("the graph has ", expected.size(), " inputs, the node ", count));
    PT_TRY(taken(ort().KernelContext_GetOutputCount(context, &count)));
    if (count != program_->outputs().size())
      return fail(Code::invalid_arguments,
                  str("the graph has ", program_->outputs().size(), " outputs, the node ", count));
    std::vector<Dims> dims;
    std::vector<const void*> in;
    for (size_t i = 0; i < expected.size(); ++i) {
      PT_ASSIGN(const Input given, input(context, i));
      if (given.dtype != expected[i].dtype)
        return fail(Code::invalid_data_type, str("input ", i, " is ", name_of(given.dtype), ", the graph's tensor ",
                                                 expected[i].id, " is ", name_of(expected[i].dtype)));
      dims.push_back(given.dims);
      in.push_back(given.data);
    }
    PT_ASSIGN(const auto plan, program_->plan(dims));
    std::vector<void*> out;
    for (size_t i = 0; i < plan->outputs().size(); ++i) {
      PT_ASSIGN(void* const data, output(context, i, plan->outputs()[i].dims));
      out.push_back(data);
    }
    const Arena workspace(plan->workspace_bytes());
    if (!workspace.data() && plan->workspace_bytes() > 0)
      return fail(Code::out_of_memory, str("there are no ", plan->workspace_bytes(), " bytes for values in between"));
    return plan->execute(in, out, workspace.data());
  }

 private:
  std::shared_ptr<GraphProgram> program_;
};

}  // namespace

Result<std::unique_ptr<NodeKernel>> make_max_pool_grad(const OrtKernelInfo* info, ONNXTensorElementDataType type) {
  return make_gradient(true, info, dtype_of(type));
}

Result<std::unique_ptr<NodeKernel>> make_average_pool_grad(const OrtKernelInfo* info, ONNXTensorElementDataType type) {
  return make_gradient(false, info, dtype_of(type));
}

Result<std::unique_ptr<NodeKernel>> make_graph(const OrtKernelInfo* info, ONNXTensorElementDataType) {
  const std::optional<std::string> json = text(info, "graph");
  if (!json) return fail(Code::invalid_arguments, "the attribute `graph` (a graph as JSON text) is missing");
  PT_ASSIGN(auto program, GraphProgram::of(*json));
  return std::unique_ptr<NodeKernel>(std::make_unique<GraphKernel>(std::move(program)));
}

}  // namespace partita::compat::onnxruntime
