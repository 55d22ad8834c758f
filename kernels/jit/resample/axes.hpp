// SPDX-License-Identifier: Apache-2.0
// One axis of a resampling (interpolation or adaptive average) as taps. The gradient's are those of the forward
// operator, turned around.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/jit/taps/axis_map.hpp"
#include "src/base/attrs.hpp"

namespace partita::jit {

/// `attrs` of an interpolation: mode and coordinate_transformation_mode.
AxisMap interpolation_map(int64_t from, int64_t to, const Attrs& attrs);

/// The means of an adaptive average pooling: place o of O over I sources takes [floor(oI/O), ceil((o+1)I/O)).
AxisMap adaptive_map(int64_t from, int64_t to);

/// Results first, first + step, .. and what each step adds to the sources' positions, where the axis is regular.
struct AxisStep {
  int64_t step = 1, shift = 0;
};

/// `position` of each source: its number among the stored ones.
AxisStep regular_step(const AxisMap& map, const Attrs& attrs, std::span<const int32_t> position);

/// The step that cuts the axis into fewer stretches: the regular one, or neighbours that read the same sources.
AxisStep stretch_step(const AxisMap& map, const Attrs& attrs, std::span<const int32_t> position);

/// Results first, first + step, .. (count of them) with the same number of taps, all moving by `shift` a step.
struct TapStretch {
  int64_t first = 0, count = 1;
  std::vector<int64_t> positions;  ///< of the first result's taps
  std::vector<float> weights;      ///< of tap k and result i: [k * count + i]
};

/// All results in [begin, end).
std::vector<TapStretch> tap_stretches(const AxisMap& map, int64_t begin, int64_t end, const AxisStep& step,
                                      std::span<const int32_t> position);

/// For each source (and one more) how many sources before it have a tap.
std::vector<int32_t> used_before(const AxisMap& map);

}  // namespace partita::jit
