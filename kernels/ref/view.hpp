// SPDX-License-Identifier: Apache-2.0
// View: a tensor of a problem with its address, read and written as numbers in runs of equally spaced elements.
// Positions count elements from the tensor's first one.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/problem.hpp"

namespace partita::ref {

class Runs;

/// Longest run the references hand around at once.
inline constexpr int64_t kBlock = 1024;

/// A plain value; does not own the data.
class View {
 public:
  View() = default;
  View(const TensorDesc& desc, const void* data)
      : dims(desc.dims),
        strides(desc.strides),
        dtype_(desc.dtype),
        data_(const_cast<void*>(data)),
        offset_(desc.offset) {}

  Dims dims;
  Dims strides;

  Dtype dtype() const { return dtype_; }
  int rank() const { return dims.size(); }
  /// Two elements share a byte, so neighbours must not be written by different threads.
  bool packed() const { return dtype_ == Dtype::s4 || dtype_ == Dtype::u4; }
  /// Address of the element at `position`; not for packed types.
  void* address(int64_t position) const;

  double at(int64_t position) const;
  void set(int64_t position, double value) const;
  void read(int64_t position, int64_t stride, int64_t n, double* to) const;
  void read(int64_t position, int64_t stride, int64_t n, float* to) const;
  /// Rounds through f32 as every kernel does; s32, s64 and f64 are stored from f64 directly.
  void write(int64_t position, int64_t stride, int64_t n, const double* from) const;

 private:
  template <class Number>
  void read_run(int64_t position, int64_t stride, int64_t n, Number* to) const;

  Dtype dtype_ = Dtype::undef;
  void* data_ = nullptr;
  int64_t offset_ = 0;
};

View in_view(const Problem& problem, const RunArgs& args, int port);
View out_view(const Problem& problem, const RunArgs& args, int port);

/// The view with axes in the order n, channel, spatial, whatever the `data_format` attribute says.
View channel_first(View view, const Attrs& attrs);
/// Axis of the channels in the tensor as the user laid it out. References read data_format and weights_format
/// themselves: src/base/axes.hpp, which everything else asks, is among what they check.
int channel_axis(int rank, const Attrs& attrs);
/// The view broadcast to `dims` by the numpy rule (stride 0 where an axis repeats).
View broadcast_to(View view, const Dims& dims);
/// A rank-1 view spread along one axis of `dims`; one element repeats everywhere.
View along_axis(View view, const Dims& dims, int axis);

/// All elements in row-major order of the view's axes.
std::vector<float> dense_floats(const View& view);
std::vector<double> dense_doubles(const View& view);
void write_dense(const View& view, const double* from);
/// The elements that operand 0 of `runs` visits from `position` on, one after another.
void read_runs(const View& view, const Runs& runs, int64_t position, double* to);
void write_runs(const View& view, const Runs& runs, int64_t position, const double* from);

/// Entries [from, size) of a list of dims.
Dims tail(const Dims& dims, int from);

}  // namespace partita::ref
