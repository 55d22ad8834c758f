// SPDX-License-Identifier: Apache-2.0
// The checks of first calls.
#include "src/compat/ascend/checks.hpp"

#include <algorithm>

#include "src/base/shared_place.hpp"

namespace partita::compat::ascend {
namespace {

Dtype dtype_of(aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return Dtype::f32;
    case ACL_FLOAT16: return Dtype::f16;
    case ACL_BF16: return Dtype::bf16;
    case ACL_INT32: return Dtype::s32;
    case ACL_INT64: return Dtype::s64;
    default: return Dtype::undef;
  }
}

std::string name_of(aclDataType type) {
  const Dtype dtype = dtype_of(type);
  return dtype == Dtype::undef ? str("data type ", static_cast<int>(type)) : std::string(partita::name_of(dtype));
}

std::string name_of(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_NCHW: return "NCHW";
    case ACL_FORMAT_NHWC: return "NHWC";
    case ACL_FORMAT_ND: return "ND";
    case ACL_FORMAT_NDHWC: return "NDHWC";
    case ACL_FORMAT_NCDHW: return "NCDHW";
    case ACL_FORMAT_NCL: return "NCL";
    default: return str("format ", static_cast<int>(format));
  }
}

/// Two spatial axes: NCHW, NCL of three dims, ND; three: NCDHW, ND.
bool takes_format(aclFormat format, int spatial, bool batch) {
  if (format == ACL_FORMAT_ND) return true;
  if (spatial == 3) return format == ACL_FORMAT_NCDHW;
  return format == ACL_FORMAT_NCHW || (format == ACL_FORMAT_NCL && !batch);
}

std::string shape(const aclTensor& t) { return str("[", text_of(t.dims), "]"); }

void describe(const aclTensor& t, int spatial, View& view) {
  view.dtype = dtype_of(t.type);
  view.dims = t.dims;
  view.strides = t.strides;
  if (t.dims.size() == spatial + 1) view = with_batch(view);
}

}  // namespace

aclnnStatus FirstCall::is_null(const char* name) const {
  return report(ACLNN_ERR_PARAM_NULLPTR, str(call_, ": ", name, " is null"));
}

aclnnStatus FirstCall::image(Named image) const {
  const auto& [name, t] = image;
  if (t->type != ACL_FLOAT && t->type != ACL_FLOAT16 && t->type != ACL_BF16)
    return invalid(name, " is ", name_of(t->type), ", it must be f32, f16 or bf16");
  const int rank = t->dims.size();
  if (rank != spatial_ + 1 && rank != spatial_ + 2)
    return invalid(name, " has ", rank, " dims, it must have ", spatial_ + 1, " or ", spatial_ + 2);
  if (std::ranges::any_of(t->dims, [](int64_t d) { return d < 0; }))
    return invalid(name, " is ", shape(*t), ", no dim may be negative");
  if (!takes_format(t->format, spatial_, rank == spatial_ + 2))
    return invalid(name, " with ", rank, " dims is ", name_of(t->format), ", it must be ",
                   spatial_ == 3 ? "NCDHW or ND" : "NCHW, ND or (three dims) NCL");
  return ACLNN_SUCCESS;
}

aclnnStatus FirstCall::equal_types(Named a, Named b) const {
  if (a.tensor->type == b.tensor->type) return ACLNN_SUCCESS;
  return invalid(a.name, " is ", name_of(a.tensor->type), ", ", b.name, " is ", name_of(b.tensor->type));
}

aclnnStatus FirstCall::equal_formats(Named a, Named b) const {
  if (a.tensor->format == b.tensor->format) return ACLNN_SUCCESS;
  return invalid(a.name, " is ", name_of(a.tensor->format), ", ", b.name, " is ", name_of(b.tensor->format));
}

aclnnStatus FirstCall::equal_shapes(Named a, Named b) const {
  if (a.tensor->dims == b.tensor->dims) return ACLNN_SUCCESS;
  return invalid(a.name, " is ", shape(*a.tensor), ", ", b.name, " is ", shape(*b.tensor));
}

aclnnStatus FirstCall::equal_batch_and_channels(Named a, Named b) const {
  const Dims &x = a.tensor->dims, &y = b.tensor->dims;
  if (x.size() == y.size() && std::equal(x.begin(), x.end() - spatial_, y.begin())) return ACLNN_SUCCESS;
  return invalid(a.name, " is ", shape(*a.tensor), ", ", b.name, " is ", shape(*b.tensor),
                 ": batch and channels must agree");
}

aclnnStatus FirstCall::list(const char* name, const aclIntArray* array, int64_t least, const Dims* fallback,
                            Dims& result) const {
  if (fallback && (!array || array->values.empty())) {
    result = *fallback;
    return ACLNN_SUCCESS;
  }
  PT_CHECK(not_null(name, array));
  const std::vector<int64_t>& values = array->values;
  if (values.size() != 1 && values.size() != static_cast<size_t>(spatial_))
    return invalid(name, " has ", values.size(), " entries, it must have ", fallback ? "none, one or " : "one or ",
                   spatial_);
  for (int i = 0; i < spatial_; ++i) {
    const int64_t number = values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
    if (number < least) return invalid(name, "[", i, "] is ", number, ", it must be at least ", least);
    result.push_back(number);
  }
  return ACLNN_SUCCESS;
}

aclnnStatus FirstCall::windows_fit(Named pooled, Named source, const Pooling& p) const {
  PT_CHECK(equal_batch_and_channels(pooled, source));
  for (int i = 0; i < spatial_; ++i) {
    const int64_t cells = spatial_dim(*source.tensor, i), made = spatial_dim(*pooled.tensor, i);
    if (cells == 0) continue;  // nothing is pooled
    const int64_t count = window_count(cells, p.kernel[i], p.strides[i], p.pads_begin[i], p.pads_end[i], p.dilations[i],
                                       p.ceil ? LastWindow::kept_inside : LastWindow::dropped);
    if (count < 1)
      return invalid("a window of ", p.kernel[i], " cells does not fit into ", cells, " cells of ", source.name,
                     " with padding ", p.pads_begin[i], " on both sides (spatial axis ", i, ")");
    if (count != made)
      return invalid(pooled.name, " is ", shape(*pooled.tensor), ", pooling ", source.name, " ", shape(*source.tensor),
                     " makes ", count, " windows on spatial axis ", i);
  }
  return ACLNN_SUCCESS;
}

aclnnStatus FirstCall::finish(Pooling& p, std::initializer_list<Named> tensors, std::initializer_list<int> inputs,
                              uint64_t* workspace_size, aclOpExecutor** executor) const {
  PT_CHECK(not_null("workspaceSize", workspace_size));
  PT_CHECK(not_null("executor", executor));
  const Named result = tensors.end()[-1];
  describe(*result.tensor, spatial_, p.output);
  p.input_count = 0;
  for (int place : inputs)
    describe(*tensors.begin()[place].tensor, spatial_, p.inputs[static_cast<size_t>(p.input_count++)]);
  if (shared_place(p.output.dims, p.output.strides))
    return invalid(result.name, " has strides [", text_of(result.tensor->strides), "], with which cells of ",
                   shape(*result.tensor), " share memory");

  std::shared_ptr<const PoolingProgram> program;
  if (!p.output.empty()) {
    auto made = PoolingProgram::of(p);
    if (!made.ok()) {
      const Code code = made.status().code();
      const bool callers = code != Code::unimplemented && code != Code::out_of_memory && code != Code::runtime_error;
      return report(callers ? ACLNN_ERR_PARAM_INVALID : ACLNN_ERR_INNER, str(call_, ": ", made.status().text()));
    }
    program = std::move(made).value();
  }
  *workspace_size = program ? program->scratchpad_bytes() : 0;
  aclOpExecutor& e = *(*executor = lease_executor());
  e.state = aclOpExecutor::State::once;
  e.call = call_;
  e.program = std::move(program);
  e.tensors = 0;
  for (const Named& t : tensors) {
    const auto place = static_cast<size_t>(e.tensors++);
    e.names[place] = t.name;
    e.data[place] = t.tensor->data();
  }
  std::ranges::copy(inputs, e.inputs.begin());
  return ACLNN_SUCCESS;
}

}  // namespace partita::compat::ascend
