// SPDX-License-Identifier: Apache-2.0
// FirstCall: the checks that first calls of the Ascend door share, each with its code and text.
#pragma once

#include <initializer_list>
#include <span>

#include "src/base/text.hpp"
#include "src/compat/ascend/objects.hpp"

namespace partita::compat::ascend {

/// A tensor of a call, by the name that the call's parameter has.
struct Named {
  const char* name;
  const aclTensor* tensor;
};

/// One first call. Each check returns ACLNN_SUCCESS, or reports.
class FirstCall {
 public:
  /// `call`: name of the second call, a literal. `spatial`: number of spatial axes.
  FirstCall(const char* call, int spatial) : call_(call), spatial_(spatial) {}

  template <class... Parts>
  aclnnStatus invalid(const Parts&... parts) const {
    return report(ACLNN_ERR_PARAM_INVALID, str(call_, ": ", parts...));
  }
  aclnnStatus not_null(const char* name, const void* pointer) const { return pointer ? ACLNN_SUCCESS : is_null(name); }
  /// f32, f16 or bf16; dims and format of a pooling.
  aclnnStatus image(Named image) const;
  aclnnStatus equal_types(Named a, Named b) const;
  aclnnStatus equal_formats(Named a, Named b) const;
  aclnnStatus equal_shapes(Named a, Named b) const;
  /// Equal but for the spatial axes.
  aclnnStatus equal_batch_and_channels(Named a, Named b) const;
  /// One entry for all axes or one an axis, none below `least`; null or none where `fallback` (not null) says what
  /// stands for that. `result` is empty before.
  aclnnStatus list(const char* name, const aclIntArray* array, int64_t least, const Dims* fallback, Dims& result) const;
  /// The spatial dims of `pooled` are what pooling `source` makes.
  aclnnStatus windows_fit(Named pooled, Named source, const Pooling& p) const;

  /// Compiles `p` (not where the result is empty) and hands out the executor. The last of `tensors` is the result;
  /// `inputs` are the places of the program's inputs among them.
  aclnnStatus finish(Pooling& p, std::initializer_list<Named> tensors, std::initializer_list<int> inputs,
                     uint64_t* workspace_size, aclOpExecutor** executor) const;

  int64_t spatial_dim(const aclTensor& t, int axis) const { return t.dims[t.dims.size() - spatial_ + axis]; }

 private:
  aclnnStatus is_null(const char* name) const;

  const char* call_;
  int spatial_;
};

}  // namespace partita::compat::ascend

/// Leaves a first call with the code of a check that failed.
#define PT_CHECK(expression)                                      \
  do {                                                            \
    if (const aclnnStatus status_ = (expression)) return status_; \
  } while (false)
