// SPDX-License-Identifier: Apache-2.0
// Two elements share a place where some steps along the axes, not all of them 0, add up to 0: a search for such steps.
#include "src/base/shared_place.hpp"

#include <algorithm>
#include <array>

namespace partita {
namespace {

__extension__ using Wide = __int128;
constexpr Wide kFar = Wide{1} << 100;  // farther than any memory, and small enough to be added to a product of 64 bits

struct Axis {
  int number = 0;
  int64_t extent = 1, stride = 0;
  Wide reach = 0;  ///< farthest that this axis and those behind it lead
};

class Search {
 public:
  Search(const Dims& dims, const Dims& strides) : steps_(dims.size(), 0) {
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d] > 1) axes_[count_++] = {d, dims[d], strides[d]};
    std::sort(axes_.begin(), axes_.begin() + count_, [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
    Wide reach = 0;
    for (size_t i = count_; i-- > 0;)
      axes_[i].reach = reach = std::min(kFar, reach + Wide{axes_[i].extent - 1} * axes_[i].stride);
  }

  /// Mostly each axis steps over all that lie inside it.
  bool nested() const {
    for (size_t i = 0; i < count_; ++i)
      if (axes_[i].stride <= reach_behind(i)) return false;
    return true;
  }

  bool run() { return find(0, 0, false); }
  const Dims& steps() const { return steps_; }

 private:
  Wide reach_behind(size_t i) const { return i + 1 < count_ ? axes_[i + 1].reach : Wide{0}; }

  /// Steps from axis `i` on that lead from `place` back to 0. Of two opposite ways the one whose first step is
  /// positive.
  bool find(size_t i, Wide place, bool moved) {
    if (i == count_) return place == 0 && moved;
    const Axis& axis = axes_[i];
    if (axis.stride == 0) {  // any step does
      if (place != 0) return false;
      if (!moved) steps_[axis.number] = 1;
      return true;
    }
    const Wide behind = reach_behind(i);
    const Wide least = moved ? -Wide{axis.extent - 1} : Wide{0};
    // place + step * stride must be in [-behind, behind]
    Wide step = std::max(least, divided_up(-behind - place, axis.stride));
    for (; step < axis.extent && place + step * axis.stride <= behind; ++step) {
      if (--tries_ < 0) return false;
      steps_[axis.number] = static_cast<int64_t>(step);
      if (find(i + 1, place + step * axis.stride, moved || step != 0)) return true;
    }
    steps_[axis.number] = 0;
    return false;
  }

  static Wide divided_up(Wide a, Wide b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

  std::array<Axis, kMaxRank> axes_{};  // of more than one element, the widest stride first
  size_t count_ = 0;
  Dims steps_;
  int tries_ = 1 << 20;
};

}  // namespace

std::optional<SharedPlace> shared_place(const Dims& dims, const Dims& strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return std::nullopt;
  Search search(dims, strides);
  if (search.nested() || !search.run()) return std::nullopt;
  SharedPlace found{search.steps(), search.steps()};
  for (int64_t& at : found.first) at = std::max<int64_t>(at, 0);
  for (int64_t& at : found.second) at = std::max<int64_t>(-at, 0);
  return found;
}

}  // namespace partita
