// SPDX-License-Identifier: Apache-2.0
// Planes: the spatial box of one image and channel, as dense f64, whatever the layout of its tensor.
#pragma once

#include "kernels/ref/runs.hpp"
#include "kernels/ref/view.hpp"
#include "src/base/shape.hpp"

namespace partita::ref {

/// A tensor of rank >= 2, accessed plane by plane.
class Planes {
 public:
  Planes(const View& view, const Attrs& attrs)
      : view_(channel_first(view, attrs)),
        spatial_(tail(view_.dims, 2)),
        runs_(spatial_, {tail(view_.strides, 2)}, Order::row_major) {}

  const Dims& spatial() const { return spatial_; }
  int64_t count() const { return view_.dims[0] * view_.dims[1]; }
  int64_t size() const { return runs_.count(); }
  void read(int64_t plane, double* to) const { read_runs(view_, runs_, position(plane), to); }
  void write(int64_t plane, const double* from) const { write_runs(view_, runs_, position(plane), from); }

 private:
  int64_t position(int64_t plane) const {
    return plane / view_.dims[1] * view_.strides[0] + plane % view_.dims[1] * view_.strides[1];
  }

  View view_;
  Dims spatial_;
  Runs runs_;
};

/// Advances `place` to the next one in row-major order; back to the origin after the last.
inline void advance(Dims& place, const Dims& dims) {
  for (int axis = dims.size(); axis-- > 0;) {
    if (++place[axis] < dims[axis]) return;
    place[axis] = 0;
  }
}

}  // namespace partita::ref
