// SPDX-License-Identifier: Apache-2.0
// Tolerances and comparison, element by element over strided tensors.
#include "src/harness/compare.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita {
namespace {

double tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 6e-3;
    case Dtype::bf16: return 4e-2;
    case Dtype::f8_e4m3: return 0.15;
    case Dtype::f8_e5m2: return 0.3;
    default: return 2e-4;
  }
}

/// Between the smallest numbers of narrow types, where rounding either way is a large part of a number.
double least_step(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 0x1p-24;
    case Dtype::f8_e4m3: return 0x1p-9;
    case Dtype::f8_e5m2: return 0x1p-16;
    default: return 0;
  }
}

int64_t element_of(int64_t index, const logical_tensor& t) {
  int64_t at = 0;
  for (int d = t.rank() - 1; d >= 0; --d) {
    at += index % t.dims[d] * t.strides[d];
    index /= t.dims[d];
  }
  return at;
}

struct Size {
  double root_mean_square = 0;
  int64_t finite = 0;
};

Size size_of(const Storage& s) {
  const int64_t n = s.desc.elements();
  // Sums of fixed parts, added in order: the same for every number of threads.
  constexpr int64_t kPart = 65536;
  std::vector<double> sums(static_cast<size_t>((n + kPart - 1) / kPart), 0.0);
  std::vector<int64_t> finite(sums.size(), 0);
  parallel_for(static_cast<int64_t>(sums.size()), kPart, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = p * kPart; i < std::min(n, (p + 1) * kPart); ++i) {
        const double x = load_as_double(s.data.get(), s.desc.dtype, element_of(i, s.desc));
        if (!std::isfinite(x)) continue;
        sums[static_cast<size_t>(p)] += x * x;
        ++finite[static_cast<size_t>(p)];
      }
  });
  Size size;
  for (size_t p = 0; p < sums.size(); ++p) {
    size.root_mean_square += sums[p];
    size.finite += finite[p];
  }
  if (size.finite > 0) size.root_mean_square = std::sqrt(size.root_mean_square / static_cast<double>(size.finite));
  return size;
}

struct Interval {
  double low, high;
};

/// What the results span at an element, and that much again on either side.
Interval range_of(double expected, int64_t i, std::span<const Storage* const> others) {
  Interval range{expected, expected};
  if (!std::isfinite(expected)) return range;
  for (const Storage* other : others) {
    const double x = load_as_double(other->data.get(), other->desc.dtype, element_of(i, other->desc));
    if (!std::isfinite(x)) continue;
    range.low = std::min(range.low, x);
    range.high = std::max(range.high, x);
  }
  const double width = range.high - range.low;
  return width > 0 ? Interval{range.low - width, range.high + width} : range;
}

double distance_from(double x, const Interval& range) {
  if (std::isnan(x) || std::isnan(range.low)) return NAN;
  return std::max({range.low - x, x - range.high, 0.0});
}

/// What f32 mathematics may be made of.
double tolerance_of(FpMath fpmath) {
  switch (fpmath) {
    case FpMath::bf16:
    case FpMath::any: return tolerance_of(Dtype::bf16);
    case FpMath::f16:
    case FpMath::tf32: return tolerance_of(Dtype::f16);
    default: return 0;
  }
}

}  // namespace

double value_tolerance_of(const Partition& partition) {
  double tolerance = tolerance_of(partition.fpmath);
  int products = 0;
  for (const op& o : partition.ops) {
    products += o.kind == OpKind::MatMul || o.kind == OpKind::Convolution;
    for (const logical_tensor& t : o.outputs) tolerance = std::max(tolerance, tolerance_of(t.dtype));
  }
  // A product's inner results are not rounded where its post-ops read them; each further product carries that on.
  if (products > 1) tolerance *= 1 + 0.5 * (products - 1);
  return tolerance;
}

bool is_quantized_inside(const Partition& partition) {
  return partition.ops.size() > 1 && std::ranges::any_of(partition.ops, [](const op& o) {
           return o.kind == OpKind::Quantize || o.kind == OpKind::DynamicQuantize;
         });
}

double tolerance_of(const Partition& partition) {
  const double tolerance = value_tolerance_of(partition);
  // A value near the middle between two integers may round either way, and travels on as a whole step.
  return is_quantized_inside(partition) ? std::max(tolerance, 5e-2) : tolerance;
}

Difference compare(const Storage& got, const Storage& expected, double tolerance,
                   std::span<const Storage* const> others) {
  const int64_t n = expected.desc.elements();
  const Dtype dtype = expected.desc.dtype;
  const bool exact = dtype == Dtype::boolean || dtype == Dtype::s32 || dtype == Dtype::s64;
  const Size size = size_of(expected);
  if (n > 0 && size.finite == 0) return {NAN, n, "the reference is nowhere finite, so nothing can be compared"};
  const double least = size.root_mean_square > 0 ? size.root_mean_square : 1;
  Difference result;
  int64_t first_at = n;
  std::mutex mutex;
  parallel_for(n, 4, [&](int64_t begin, int64_t end) {
    Difference mine;
    int64_t mine_at = n;
    for (int64_t i = begin; i < end; ++i) {
      const double e = load_as_double(expected.data.get(), dtype, element_of(i, expected.desc));
      const double g = load_as_double(got.data.get(), dtype, element_of(i, got.desc));
      if (e == g || (std::isnan(e) && std::isnan(g))) continue;
      const double distance = distance_from(g, range_of(e, i, others));
      const double error = distance / std::max(std::fabs(e), least);
      const bool ok = exact               ? distance == 0
                      : is_integer(dtype) ? distance <= 1
                                          : error <= tolerance || distance <= least_step(dtype);
      if (error > mine.max_error || std::isnan(error)) mine.max_error = error;
      if (ok) continue;
      if (mine.wrong++ == 0) {
        mine_at = i;
        mine.first = str("element ", i, " is ", g, ", expected ", e);
      }
    }
    const std::lock_guard lock(mutex);
    result.max_error = std::isnan(mine.max_error) ? mine.max_error : std::max(result.max_error, mine.max_error);
    result.wrong += mine.wrong;
    if (mine_at < first_at) {
      first_at = mine_at;
      result.first = mine.first;
    }
  });
  if (result.wrong > 0) result.first += str(" (", result.wrong, " of ", n, " differ)");
  return result;
}

}  // namespace partita
