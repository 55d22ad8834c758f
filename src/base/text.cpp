// SPDX-License-Identifier: Apache-2.0
// Lists, numbers and attribute values as text, and the nearest name for "did you mean".
#include "src/base/text.hpp"

#include <charconv>
#include <cmath>
#include <type_traits>

namespace partita {
namespace {

template <class List>
std::string joined(const List& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

template <class T>
std::string listed(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    if constexpr (std::is_same_v<T, float>) {
      out += text_of(values[i]);
    } else {
      out += std::to_string(values[i]);
    }
  }
  return out + "]";
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Insertions, deletions and replacements that turn a into b; upper and lower case count as equal.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) { return joined(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return joined(parts, separator);
}

std::string text_of(const Dims& dims) {
  std::string out;
  for (int i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ',';
    out += dims[i] == kUnknownDim ? "?" : std::to_string(dims[i]);
  }
  return dims.overflowed() ? out + ",.." : out;
}

std::string text_of(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) return "absent";
        else if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, int64_t>) return std::to_string(v);
        else if constexpr (std::is_same_v<T, float>) return text_of(v);
        else if constexpr (std::is_same_v<T, std::string>) return v;
        else return listed(v);
      },
      value);
}

std::string text_of(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general);
  return std::string(buffer, end.ptr);
}

std::string suggestion(std::string_view name, std::span<const std::string_view> candidates) {
  // A misspelling keeps most of the name; names from files may be of any length, and the distance costs their product.
  constexpr size_t kLongestName = 64;
  if (name.empty() || name.size() > kLongestName) return {};
  size_t best = std::max<size_t>(1, name.size() / 3) + 1;
  std::string_view nearest;
  for (std::string_view candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best && distance < candidate.size()) best = distance, nearest = candidate;
  }
  return nearest.empty() ? std::string() : str(", did you mean `", nearest, "`?");
}

}  // namespace partita
