// SPDX-License-Identifier: Apache-2.0
// Text from parts: str(..) for messages, join for lists, nearest for "did you mean".
#pragma once

#include <cstdint>
#include <sstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partita/types.hpp"

namespace partita {

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);
/// "2,3,4", with "?" for an unknown dim.
std::string text_of(const Dims& dims);
/// An attribute's value as a person writes it: 1, 0.5, [1,2], true, "absent".
std::string text_of(const AttrValue& value);
/// Shortest text that reads back as the same f32, at most 9 digits; "inf", "-inf", "nan".
std::string text_of(float value);

/// The candidate nearest to `name` by edit distance, ", did you mean `X`?" ready to append; empty where none is near.
std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace partita
