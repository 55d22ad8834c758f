// SPDX-License-Identifier: Apache-2.0
// One axis of what takes each result from a few places: a list of weighted sources for each place of the result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace partita::jit {

/// A source place and its share of the result.
struct Tap {
  int32_t source;
  float weight;
};

/// The taps of every place of the result along one axis; shares of zero are left out.
class AxisMap {
 public:
  AxisMap() = default;
  /// `taps` of place i: [begin[i], begin[i + 1]).
  AxisMap(int64_t from, std::vector<int32_t> begin, std::vector<Tap> taps);

  int64_t from() const { return from_; }
  int64_t to() const { return static_cast<int64_t>(begin_.size()) - 1; }
  std::span<const Tap> taps(int64_t place) const {
    const auto i = static_cast<size_t>(place);
    return std::span(taps_).subspan(static_cast<size_t>(begin_[i]), static_cast<size_t>(begin_[i + 1] - begin_[i]));
  }
  int64_t most_taps() const { return most_; }
  /// False where every share is 1.
  bool weighted() const { return weighted_; }
  AxisMap transposed() const;
  /// The same taps of at least as many source places.
  AxisMap of_source(int64_t from) const { return {from, begin_, taps_}; }

 private:
  int64_t from_ = 0, most_ = 0;
  std::vector<int32_t> begin_ = {0};
  std::vector<Tap> taps_;
  bool weighted_ = false;
};

AxisMap identity_map(int64_t extent);
/// Two axes as one, where the places of `inner` follow each other within those of `outer`.
AxisMap joined_map(const AxisMap& outer, const AxisMap& inner);
}  // namespace partita::jit
