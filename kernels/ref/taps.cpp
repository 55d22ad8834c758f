// SPDX-License-Identifier: Apache-2.0
// Rows of places are cut where the last axis ends; within a cut the other axes stand still.
#include "kernels/ref/taps.hpp"

#include <algorithm>

#include "src/base/shape.hpp"

namespace partita::ref {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/// Calls cut(place, n, to) for the parts of places [first, first + n) that differ only in the last axis.
template <class Cut>
void for_each_cut(const Dims& dims, int64_t first, int64_t n, float* to, Cut cut) {
  Dims place = coordinates(first, dims);
  while (n > 0) {
    const int64_t count = std::min(n, dims.back() - place.back());
    cut(place, count, to);
    place.back() += count - 1;
    advance(place, dims);
    to += count;
    n -= count;
  }
}

/// Wide coordinate of window coordinate 0 under the tap.
int64_t origin(const WindowShape& shape, const Dims& tap, int axis) {
  return tap[axis] * shape.dilations[axis] - shape.pads[axis];
}

}  // namespace

void read_under_tap(const Sliding& sliding, const View& wide, int64_t at, const Dims& tap, int64_t first, int64_t n,
                    float* to) {
  const WindowShape& shape = sliding.shape;
  const int last = tap.size() - 1;
  const int64_t step = shape.strides[last], start = origin(shape, tap, last);
  const int64_t valid_begin = std::max<int64_t>(0, ceil_div(-start, step));
  const int64_t valid_end = ceil_div(sliding.wide[last] - start, step);
  for_each_cut(sliding.narrow, first, n, to, [&](const Dims& place, int64_t count, float* row) {
    int64_t position = at;
    bool inside = true;
    for (int axis = 0; axis < last; ++axis) {
      const int64_t x = place[axis] * shape.strides[axis] + origin(shape, tap, axis);
      inside = inside && x >= 0 && x < sliding.wide[axis];
      position += x * wide.strides[axis + 2];
    }
    const int64_t begin = std::clamp(valid_begin, place[last], place[last] + count);
    const int64_t end = std::clamp(valid_end, begin, place[last] + count);
    if (!inside || begin == end) return void(std::fill_n(row, count, 0.0f));
    std::fill(row, row + (begin - place[last]), 0.0f);
    const int64_t stride = wide.strides[last + 2];
    wide.read(position + (begin * step + start) * stride, step * stride, end - begin, row + (begin - place[last]));
    std::fill(row + (end - place[last]), row + count, 0.0f);
  });
}

void read_through_tap(const Sliding& sliding, const View& narrow, int64_t at, const Dims& tap, int64_t first, int64_t n,
                      float* to) {
  const WindowShape& shape = sliding.shape;
  const int last = tap.size() - 1;
  const int64_t step = shape.strides[last], start = origin(shape, tap, last);
  for_each_cut(sliding.wide, first, n, to, [&](const Dims& place, int64_t count, float* row) {
    std::fill_n(row, count, 0.0f);
    int64_t position = at;
    for (int axis = 0; axis < last; ++axis) {
      const int64_t ahead = place[axis] - origin(shape, tap, axis);
      if (ahead < 0 || ahead % shape.strides[axis] != 0 || ahead / shape.strides[axis] >= sliding.narrow[axis]) return;
      position += ahead / shape.strides[axis] * narrow.strides[axis + 2];
    }
    const int64_t begin = std::max<int64_t>(0, ceil_div(place[last] - start, step));
    const int64_t end = std::min(sliding.narrow[last], ceil_div(place[last] + count - start, step));
    float values[kBlock];
    for (int64_t window = begin; window < end; window += kBlock) {
      const int64_t part = std::min(kBlock, end - window), stride = narrow.strides[last + 2];
      narrow.read(position + window * stride, stride, part, values);
      for (int64_t i = 0; i < part; ++i) row[(window + i) * step + start - place[last]] = values[i];
    }
  });
}

}  // namespace partita::ref
