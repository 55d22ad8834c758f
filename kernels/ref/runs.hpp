// SPDX-License-Identifier: Apache-2.0
// Runs: walks an index space that several operands share, in runs along which each operand has one stride.
// Slices: the same, split into an outer space (in parallel) and an inner one (what one result depends on).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "partita/types.hpp"

namespace partita::ref {

inline constexpr int kMaxOperands = 8;
/// Position of each operand.
using Positions = std::array<int64_t, kMaxOperands>;
/// A run of `n` places, `done` places after the first one of the walk.
using RunBody = std::function<void(const Positions& at, int64_t done, int64_t n)>;

enum class Order {
  row_major,  ///< as the axes stand
  memory,     ///< the first operand's memory order; for work where the order does not matter
};

/// Longer lists than Dims hold, because axes may be split.
using Ints = std::vector<int64_t>;

class Runs {
 public:
  /// `strides` has one list an operand, each with one entry an axis.
  Runs(const Dims& dims, const std::vector<Dims>& strides, Order order);
  Runs(Ints dims, std::vector<Ints> strides, Order order);

  int64_t count() const { return count_; }
  /// Distance from one place of a run to the next.
  int64_t stride(int operand) const { return strides_[static_cast<size_t>(operand)].back(); }
  /// All runs in order, at most kBlock places each.
  void each(const Positions& base, const RunBody& body) const { range(0, count_, base, body); }
  /// The runs that make up places [begin, end).
  void range(int64_t begin, int64_t end, const Positions& base, const RunBody& body) const;
  /// All runs, divided among threads; `cost` as in parallel_for. `parallel` false: one after another.
  void each_in_parallel(int64_t cost, const RunBody& body, bool parallel = true) const;
  /// Positions of place `index`.
  Positions at(int64_t index) const;

 private:
  void merge_axes(Order order);

  Ints dims_;
  std::vector<Ints> strides_;
  int64_t count_ = 1;
};

/// An operand's strides along the outer and the inner axes.
struct Slices {
  /// Axes where `inner` is true make up the inner space, in the order they stand.
  Slices(const Dims& dims, const std::vector<Dims>& strides, const std::vector<bool>& inner, Order inner_order);
  Slices(const Runs& outer, const Runs& inner) : outer(outer), inner(inner) {}

  Runs outer;
  Runs inner;

  /// body(positions of the slice's first element, index of the slice), slices divided among threads.
  void each_in_parallel(int64_t cost, const std::function<void(const Positions& base, int64_t index)>& body) const;
};

}  // namespace partita::ref
