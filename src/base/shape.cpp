// SPDX-License-Identifier: Apache-2.0
// Arithmetic on dims and strides.
#include "src/base/shape.hpp"

#include <algorithm>
#include <functional>

#include "src/base/check.hpp"

namespace partita {

std::optional<int64_t> checked_elements(const Dims& dims) {
  // A zero makes the product zero wherever it stands, even behind factors that overflow.
  bool zero = false;
  for (int64_t d : dims) {
    if (d < 0) return std::nullopt;
    zero |= d == 0;
  }
  if (zero) return 0;
  int64_t product = 1;
  for (int64_t d : dims) {
    if (__builtin_mul_overflow(product, d, &product)) return std::nullopt;
  }
  return product;
}

int64_t elements(const Dims& dims) {
  const std::optional<int64_t> product = checked_elements(dims);
  PT_ASSERT(product.has_value());
  return *product;
}

bool all_known(const Dims& dims) {
  return std::none_of(dims.begin(), dims.end(), [](int64_t d) { return d == kUnknownDim; });
}

bool is_dense(const Dims& dims, const Dims& strides) {
  if (dims.size() != strides.size()) return false;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return true;
  int64_t expected = 1;
  for (int i = dims.size() - 1; i >= 0; --i) {
    if (dims[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

int64_t span_of(const Dims& dims, const Dims& strides) {
  int64_t last = 0;
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    last += (dims[i] - 1) * strides[i];
  }
  return last + 1;
}

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  const int lead = longer.size() - shorter.size();
  Dims out = longer;
  for (int i = 0; i < shorter.size(); ++i) {
    const int64_t x = longer[lead + i], y = shorter[i];
    if (x == kUnknownDim || y == kUnknownDim) {
      out[lead + i] = kUnknownDim;
    } else if (x == y || y == 1) {
      out[lead + i] = x;
    } else if (x == 1) {
      out[lead + i] = y;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

Dims permuted(const Dims& a, const Dims& order) {
  Dims out(order.size(), 0);
  for (int i = 0; i < order.size(); ++i) out[i] = a[static_cast<int>(order[i])];
  return out;
}

Dims axes_in_memory_order(const Dims& strides) {
  Dims axes;
  for (int axis = 0; axis < strides.size(); ++axis) axes.push_back(axis);
  std::ranges::stable_sort(axes, std::greater(), [&](int64_t axis) { return strides[static_cast<int>(axis)]; });
  return axes;
}

std::optional<int> normal_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void move_axis(Dims& list, int from, int to) {
  const int64_t entry = list[from];
  list.erase(from);
  list.insert(to, entry);
}

Dims coordinates(int64_t index, const Dims& dims) {
  Dims at(dims.size(), 0);
  for (int d = dims.size() - 1; d >= 0; --d) {
    at[d] = index % dims[d];
    index /= dims[d];
  }
  return at;
}

}  // namespace partita
