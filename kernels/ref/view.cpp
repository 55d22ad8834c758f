// SPDX-License-Identifier: Apache-2.0
// Reads and writes of runs: fast ways for f32 and for contiguous 16- and 8-bit data, element by element for the rest.
#include "kernels/ref/view.hpp"

#include <algorithm>

#include "kernels/ref/runs.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::ref {

void* View::address(int64_t position) const {
  return static_cast<char*>(data_) + (offset_ + position) * element_bytes(dtype_);
}

double View::at(int64_t position) const { return load_as_double(data_, dtype_, offset_ + position); }

void View::set(int64_t position, double value) const { write(position, 1, 1, &value); }

template <class Number>
void View::read_run(int64_t position, int64_t stride, int64_t n, Number* to) const {
  const int64_t first = offset_ + position;
  if (stride == 0) {
    std::fill_n(to, n, static_cast<Number>(load_as_double(data_, dtype_, first)));
    return;
  }
  if (dtype_ == Dtype::f32) {
    const float* from = static_cast<const float*>(data_) + first;
    if (stride == 1) {
      std::copy_n(from, n, to);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    }
    return;
  }
  if ((dtype_ == Dtype::bf16 || dtype_ == Dtype::f16) && stride != 1) {
    const uint16_t* from = static_cast<const uint16_t*>(data_) + first;
    const auto convert = dtype_ == Dtype::bf16 ? bf16_to_f32 : f16_to_f32;
    for (int64_t i = 0; i < n; ++i) to[i] = convert(from[i * stride]);
    return;
  }
  const bool fits_f32 = dtype_ != Dtype::s32 && dtype_ != Dtype::s64 && dtype_ != Dtype::f64;
  if (stride == 1 && fits_f32) {
    float block[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      load_floats(data_, dtype_, first + i, count, block);
      std::copy_n(block, count, to + i);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Number>(load_as_double(data_, dtype_, first + i * stride));
}

void View::read(int64_t position, int64_t stride, int64_t n, double* to) const { read_run(position, stride, n, to); }
void View::read(int64_t position, int64_t stride, int64_t n, float* to) const { read_run(position, stride, n, to); }

void View::write(int64_t position, int64_t stride, int64_t n, const double* from) const {
  const int64_t first = offset_ + position;
  if (dtype_ == Dtype::f32) {
    float* to = static_cast<float*>(data_) + first;
    for (int64_t i = 0; i < n; ++i) to[i * stride] = static_cast<float>(from[i]);
    return;
  }
  if (dtype_ == Dtype::s32 || dtype_ == Dtype::s64 || dtype_ == Dtype::f64) {
    for (int64_t i = 0; i < n; ++i) store_from_double(data_, dtype_, first + i * stride, from[i]);
    return;
  }
  if (stride != 1) {
    for (int64_t i = 0; i < n; ++i) {
      store_from_double(data_, dtype_, first + i * stride, static_cast<double>(static_cast<float>(from[i])));
    }
    return;
  }
  float block[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    for (int64_t j = 0; j < count; ++j) block[j] = static_cast<float>(from[i + j]);
    store_floats(data_, dtype_, first + i, count, block);
  }
}

View in_view(const Problem& problem, const RunArgs& args, int port) {
  const size_t i = static_cast<size_t>(port);
  return View(problem.in[i], args.in[i]);
}

View out_view(const Problem& problem, const RunArgs& args, int port) {
  const size_t i = static_cast<size_t>(port);
  return View(problem.out[i], args.out[i]);
}

int channel_axis(int rank, const Attrs& attrs) { return attrs.is(Attr::data_format, "NCX") ? 1 : rank - 1; }

View channel_first(View view, const Attrs& attrs) {
  const int channel = channel_axis(view.rank(), attrs);
  if (channel == 1) return view;
  std::rotate(view.dims.begin() + 1, view.dims.end() - 1, view.dims.end());
  std::rotate(view.strides.begin() + 1, view.strides.end() - 1, view.strides.end());
  return view;
}

View broadcast_to(View view, const Dims& dims) {
  Dims strides(dims.size(), 0);
  const int missing = dims.size() - view.rank();
  for (int i = 0; i < view.rank(); ++i) strides[missing + i] = view.dims[i] == 1 ? 0 : view.strides[i];
  view.dims = dims;
  view.strides = strides;
  return view;
}

View along_axis(View view, const Dims& dims, int axis) {
  Dims strides(dims.size(), 0);
  if (elements(view.dims) != 1) strides[axis] = view.strides[0];
  view.dims = dims;
  view.strides = strides;
  return view;
}

std::vector<double> dense_doubles(const View& view) {
  std::vector<double> values(static_cast<size_t>(elements(view.dims)));
  read_runs(view, Runs(view.dims, {view.strides}, Order::row_major), 0, values.data());
  return values;
}

void write_dense(const View& view, const double* from) {
  write_runs(view, Runs(view.dims, {view.strides}, Order::row_major), 0, from);
}

std::vector<float> dense_floats(const View& view) {
  std::vector<float> values(static_cast<size_t>(elements(view.dims)));
  const Runs runs(view.dims, {view.strides}, Order::row_major);
  runs.each({}, [&](const Positions& at, int64_t done, int64_t n) {
    view.read(at[0], runs.stride(0), n, values.data() + done);
  });
  return values;
}

void read_runs(const View& view, const Runs& runs, int64_t position, double* to) {
  runs.each({position},
            [&](const Positions& at, int64_t done, int64_t n) { view.read(at[0], runs.stride(0), n, to + done); });
}

void write_runs(const View& view, const Runs& runs, int64_t position, const double* from) {
  runs.each({position},
            [&](const Positions& at, int64_t done, int64_t n) { view.write(at[0], runs.stride(0), n, from + done); });
}

Dims tail(const Dims& dims, int from) {
  return Dims(std::span<const int64_t>(dims).subspan(static_cast<size_t>(from)));
}

}  // namespace partita::ref
