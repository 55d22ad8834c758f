// SPDX-License-Identifier: Apache-2.0
// One small valid graph as text, and the same with one part exchanged: what the tests of the reader start from.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace partita {

inline constexpr std::string_view kSoftmaxJson = R"({
  "version": "3.7.2",
  "engine_kind": "cpu",
  "fpmath_mode": "strict",
  "graph": [
    {
      "id": 7,
      "name": "sm",
      "kind": "SoftMax",
      "attrs": {
        "axis": {"type": "s64", "value": 1},
        "mode": {"type": "string", "value": "none"}
      },
      "inputs": [
        {"id": 0, "dtype": "f32", "shape": [2, 3], "stride": [3, 1],
         "layout_type": "strided", "property_type": "variable"}
      ],
      "outputs": [
        {"id": 1, "dtype": "f32", "shape": [2, 3], "stride": [3, 1],
         "layout_type": "strided", "property_type": "undef"}
      ]
    }
  ]
}
)";

/// The text with the first `from` exchanged; `from` must be there.
inline std::string softmax_json_with(std::string_view from, std::string_view to) {
  std::string text(kSoftmaxJson);
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  if (at != text.npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace partita
