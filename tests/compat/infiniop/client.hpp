// SPDX-License-Identifier: Apache-2.0
// A client of the InfiniCore door: descriptors over images, and each operator's four calls.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "infiniop.h"
#include "infinirt.h"
#include "tests/compat/image.hpp"

namespace partita::test {

inline infiniDtype_t infini_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return INFINI_DTYPE_F32;
    case Dtype::f16: return INFINI_DTYPE_F16;
    case Dtype::bf16: return INFINI_DTYPE_BF16;
    default: return INFINI_DTYPE_INVALID;
  }
}

/// A tensor descriptor that goes with its scope.
class Descriptor {
 public:
  Descriptor(infiniDtype_t type, const Dims& dims, const Dims& strides) {
    const std::vector<size_t> shape(dims.begin(), dims.end());
    const std::vector<ptrdiff_t> steps(strides.begin(), strides.end());
    EXPECT_EQ(infiniopCreateTensorDescriptor(&made_, shape.size(), shape.data(), steps.empty() ? nullptr : steps.data(),
                                             type),
              INFINI_STATUS_SUCCESS);
  }
  explicit Descriptor(const Image& image) : Descriptor(infini_type(image.dtype), image.dims, image.strides) {}
  ~Descriptor() { infiniopDestroyTensorDescriptor(made_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator infiniopTensorDescriptor_t() const { return made_; }

 private:
  infiniopTensorDescriptor_t made_ = nullptr;
};

class Handle {
 public:
  Handle() { EXPECT_EQ(infiniopCreateHandle(&made_), INFINI_STATUS_SUCCESS); }
  ~Handle() { infiniopDestroyHandle(made_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator infiniopHandle_t() const { return made_; }

 private:
  infiniopHandle_t made_ = nullptr;
};

/// kernel, strides and pads as the calls take them.
struct Lists {
  Lists(const Dims& kernel, const Dims& strides, const Dims& pads, bool ceil)
      : kernel(kernel.begin(), kernel.end()),
        strides(strides.begin(), strides.end()),
        pads(pads.begin(), pads.end()),
        ceil(ceil) {}
  std::vector<size_t> kernel, strides, pads;
  bool ceil;
};

/// The four calls of a forward pooling and of a gradient.
struct Forward {
  decltype(&infiniopCreateAvgPoolDescriptor) create;
  decltype(&infiniopGetAvgPoolWorkspaceSize) size;
  decltype(&infiniopAvgPool) run;
  decltype(&infiniopDestroyAvgPoolDescriptor) destroy;
};
struct Backward {
  decltype(&infiniopCreateAvgPoolBackwardDescriptor) create;
  decltype(&infiniopGetAvgPoolBackwardWorkspaceSize) size;
  decltype(&infiniopAvgPoolBackward) run;
  decltype(&infiniopDestroyAvgPoolBackwardDescriptor) destroy;
};
inline const Forward kAveragePool{infiniopCreateAvgPoolDescriptor, infiniopGetAvgPoolWorkspaceSize, infiniopAvgPool,
                                  infiniopDestroyAvgPoolDescriptor};
inline const Forward kMaximumPool{infiniopCreateMaxPoolDescriptor, infiniopGetMaxPoolWorkspaceSize, infiniopMaxPool,
                                  infiniopDestroyMaxPoolDescriptor};
inline const Backward kAveragePoolBackward{infiniopCreateAvgPoolBackwardDescriptor,
                                           infiniopGetAvgPoolBackwardWorkspaceSize, infiniopAvgPoolBackward,
                                           infiniopDestroyAvgPoolBackwardDescriptor};
inline const Backward kMaximumPoolBackward{infiniopCreateMaxPoolBackwardDescriptor,
                                           infiniopGetMaxPoolBackwardWorkspaceSize, infiniopMaxPoolBackward,
                                           infiniopDestroyMaxPoolBackwardDescriptor};

/// All calls in order; the first status that is no success.
inline infiniStatus_t forward(const Forward& f, Image& output, Image& input, Lists& lists) {
  const Handle handle;
  InfiniopDescriptor* desc = nullptr;
  {
    const Descriptor y(output), x(input);  // not needed after the creation
    const infiniStatus_t s =
        f.create(handle, &desc, y, x, lists.kernel.data(), lists.strides.data(), lists.pads.data(), lists.ceil);
    if (s != INFINI_STATUS_SUCCESS) return s;
  }
  size_t size = 0;
  EXPECT_EQ(f.size(desc, &size), INFINI_STATUS_SUCCESS);
  std::vector<char> workspace(size + 1);  // any alignment will do
  const infiniStatus_t s = f.run(desc, workspace.data(), size, output.data(), input.data(), nullptr);
  EXPECT_EQ(f.destroy(desc), INFINI_STATUS_SUCCESS);
  return s;
}

inline infiniStatus_t backward(const Backward& b, Image& grad_input, Image& grad_output, Image& input, Lists& lists) {
  const Handle handle;
  InfiniopDescriptor* desc = nullptr;
  {
    const Descriptor dx(grad_input), dy(grad_output), x(input);
    const infiniStatus_t s =
        b.create(handle, &desc, dx, dy, x, lists.kernel.data(), lists.strides.data(), lists.pads.data(), lists.ceil);
    if (s != INFINI_STATUS_SUCCESS) return s;
  }
  size_t size = 0;
  EXPECT_EQ(b.size(desc, &size), INFINI_STATUS_SUCCESS);
  std::vector<char> workspace(size + 1);
  const infiniStatus_t s =
      b.run(desc, workspace.data(), size, grad_input.data(), grad_output.data(), input.data(), nullptr);
  EXPECT_EQ(b.destroy(desc), INFINI_STATUS_SUCCESS);
  return s;
}

}  // namespace partita::test
