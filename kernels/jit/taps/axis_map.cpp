// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/taps/axis_map.hpp"

#include <algorithm>
#include <numeric>

namespace partita::jit {

AxisMap::AxisMap(int64_t from, std::vector<int32_t> begin, std::vector<Tap> taps)
    : from_(from), begin_(std::move(begin)), taps_(std::move(taps)) {
  for (size_t i = 0; i + 1 < begin_.size(); ++i) most_ = std::max<int64_t>(most_, begin_[i + 1] - begin_[i]);
  weighted_ = std::any_of(taps_.begin(), taps_.end(), [](const Tap& t) { return t.weight != 1; });
}

AxisMap AxisMap::transposed() const {
  std::vector<int32_t> begin(static_cast<size_t>(from_) + 1, 0);
  for (const Tap& t : taps_) ++begin[static_cast<size_t>(t.source) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int32_t> next(begin.begin(), begin.end() - 1);
  std::vector<Tap> taps(taps_.size());
  for (int64_t place = 0; place < to(); ++place)
    for (const Tap& t : this->taps(place))
      taps[static_cast<size_t>(next[static_cast<size_t>(t.source)]++)] = {static_cast<int32_t>(place), t.weight};
  return {to(), std::move(begin), std::move(taps)};
}

AxisMap identity_map(int64_t extent) {
  std::vector<int32_t> begin(static_cast<size_t>(extent) + 1);
  std::iota(begin.begin(), begin.end(), 0);
  std::vector<Tap> taps;
  for (int32_t i = 0; i < static_cast<int32_t>(extent); ++i) taps.push_back({i, 1});
  return {extent, std::move(begin), std::move(taps)};
}

AxisMap joined_map(const AxisMap& outer, const AxisMap& inner) {
  std::vector<int32_t> begin = {0};
  std::vector<Tap> taps;
  for (int64_t o = 0; o < outer.to(); ++o)
    for (int64_t i = 0; i < inner.to(); ++i) {
      for (const Tap& far : outer.taps(o))
        for (const Tap& near : inner.taps(i))
          taps.push_back({far.source * static_cast<int32_t>(inner.from()) + near.source, far.weight * near.weight});
      begin.push_back(static_cast<int32_t>(taps.size()));
    }
  return {outer.from() * inner.from(), std::move(begin), std::move(taps)};
}

}  // namespace partita::jit
