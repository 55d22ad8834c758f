// SPDX-License-Identifier: Apache-2.0
// The same loops for what every processor has, and for wider vectors.
#include "kernels/loop/fold_numbers.hpp"

#include <type_traits>

#include "src/base/cpu.hpp"

namespace partita {
namespace {

constexpr int64_t kWorthWide = 32;  ///< numbers; below, the choice takes as long as it saves

template <class T>
[[gnu::always_inline]] inline void fold(Fold how, double* to, const T* from, int64_t n) {
  const auto each = [&](auto constant) __attribute__((always_inline)) {  // so that the loop is of one fold
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = folded(constant, to[i], static_cast<double>(from[i]));
  };
  switch (how) {
    case Fold::max: return each(std::integral_constant<Fold, Fold::max>());
    case Fold::min: return each(std::integral_constant<Fold, Fold::min>());
    case Fold::mul: return each(std::integral_constant<Fold, Fold::mul>());
    default: return each(std::integral_constant<Fold, Fold::sum>());
  }
}

[[gnu::always_inline]] inline void round(float* to, const double* from, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx512f")]] void fold_wide(Fold how, double* to, const T* from, int64_t n) {
  fold(how, to, from, n);
}
[[gnu::target("avx512f")]] void round_wide(float* to, const double* from, int64_t n) { round(to, from, n); }
bool has_wide(int64_t n) { return n >= kWorthWide && machine_isa() >= Isa::avx512; }
#else
template <class T>
void fold_wide(Fold how, double* to, const T* from, int64_t n) {
  fold(how, to, from, n);
}
void round_wide(float* to, const double* from, int64_t n) { round(to, from, n); }
bool has_wide(int64_t) { return false; }
#endif

}  // namespace

void fold_numbers(Fold how, double* to, const float* from, int64_t n) {
  has_wide(n) ? fold_wide(how, to, from, n) : fold(how, to, from, n);
}

void fold_numbers(Fold how, double* to, const double* from, int64_t n) {
  has_wide(n) ? fold_wide(how, to, from, n) : fold(how, to, from, n);
}

void round_numbers(float* to, const double* from, int64_t n) {
  has_wide(n) ? round_wide(to, from, n) : round(to, from, n);
}

}  // namespace partita
