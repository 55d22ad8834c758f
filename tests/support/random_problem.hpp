// SPDX-License-Identifier: Apache-2.0
// Random tensors of every type and layout, and the differential test of kernels: every row of a step's table that
// accepts a problem must compute what the reference computes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/problem.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/random.hpp"

namespace partita::test {

Problem problem_for(StepKind step, OpKind op);
/// Row-major, no gaps.
TensorDesc dense_desc(Dtype dtype, const Dims& dims);
/// Dense in the memory order of the other data format: of NCX where `channel_last`, else of NXC.
TensorDesc other_format_desc(Dtype dtype, const Dims& dims, bool channel_last);
/// Axes in random order in memory, with gaps and an offset.
TensorDesc scattered_desc(Dtype dtype, const Dims& dims, Random& random);
/// One of the two, dense twice as often.
TensorDesc any_desc(Dtype dtype, const Dims& dims, Random& random);

/// Memory of a tensor from before its offset to behind its last element.
struct Buffer {
  TensorDesc desc;
  GuardedMemory bytes;

  void* data() { return bytes.data(); }
  const void* data() const { return bytes.data(); }
  /// Element at the position of a row-major walk over the dims.
  double get(int64_t index) const;
};

struct Range {
  double low = -1, high = 1;
};
Buffer random_buffer(const TensorDesc& desc, Random& random, Range range = {});
/// Filled with a byte pattern that is NaN in every floating-point type.
Buffer nan_buffer(const TensorDesc& desc);
/// The same tensor with other strides; what lies between its elements is zero and takes no memory.
Buffer with_strides(const Buffer& tensor, const Dims& strides);

/// Empty where all elements agree, otherwise the first that does not. The tolerance is relative above 1, else absolute.
std::string difference(const Buffer& got, const Buffer& expected, double tolerance);
/// Empty where the memory between the elements still holds what nan_buffer wrote.
std::string damage(const Buffer& written);
/// What a kernel that accumulates in f32 keeps of the type's precision on small problems.
double tolerance_of(Dtype dtype);

struct Expectation {
  std::vector<Range> ranges = {};  ///< of the inputs by port; missing ones are [-1, 1]
  double tolerance_factor = 1;
  int at_least = 1;  ///< rows beside the reference that must accept
  Target target = {};
};

/// Runs every accepting row and compares it with the reference, and what it makes in place with what it makes apart.
void expect_rows_agree(const Problem& problem, Random& random, const Expectation& expectation = {});
/// "convolution Convolution (f32[1,2,3]/.. , ..) -> (..) {strides=[1], ..}"
std::string text_of(const Problem& problem);

}  // namespace partita::test
