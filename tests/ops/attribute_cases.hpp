// SPDX-License-Identifier: Apache-2.0
// For each attribute of each operator a problem on which its value matters, or the reason why it never does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace partita::test {

/// What a change of the attribute changes.
enum class Effect {
  values,   ///< numbers of results that keep their shapes
  shapes,   ///< the results' shapes
  refusal,  ///< whether the operator is accepted
  nothing,  ///< not a bit; `why` tells the reason
};

struct AttributeCase {
  std::string op;         ///< graph text of one operator; the attribute has its default value here, where it has one
  std::string attribute;  ///< its name
  std::vector<std::string> others;  ///< other values; each shows the effect
  Effect effect = Effect::values;
  std::string_view why = {};
};

std::vector<AttributeCase> attribute_cases();

}  // namespace partita::test
