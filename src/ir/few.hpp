// SPDX-License-Identifier: Apache-2.0
// Few<T, N>: at most N values in place, written as a list; keeps the operator table in read-only memory.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

namespace partita {

template <class T, size_t N>
struct Few {
  std::array<T, N> values{};
  size_t count = 0;

  constexpr Few() = default;
  constexpr Few(std::initializer_list<T> list) {
    for (const T& v : list) values[count++] = v;  // more than N does not compile in a constant expression
  }
  constexpr size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr const T* begin() const { return values.data(); }
  constexpr const T* end() const { return values.data() + count; }
  constexpr const T& operator[](size_t i) const { return values[i]; }
};

}  // namespace partita
