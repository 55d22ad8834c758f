// SPDX-License-Identifier: Apache-2.0
// JSON text as a small tree whose values remember their line, within limits that keep hostile text harmless.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "partita/status.hpp"

namespace partita {

inline constexpr size_t kMaxJsonBytes = size_t{1} << 30;
inline constexpr size_t kMaxJsonDepth = 64;
/// Numbers, texts, lists and objects together; a graph of 100000 operators has about 6 million.
inline constexpr size_t kMaxJsonValues = size_t{1} << 24;
inline constexpr size_t kMaxJsonKeys = 256;  ///< in one object

struct JsonMember;

struct JsonValue {
  using List = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;
  /// Integers are uint64_t only beyond int64_t, and double beyond that.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, List, Object> data;
  int line = 0;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  /// The member's value; null where there is none, or where this is no object.
  const JsonValue* find(std::string_view key) const;
  /// What it is, for messages: "a string", "the number 0.5", "a list".
  std::string described() const;
};

struct JsonMember {
  std::string key;
  JsonValue value;  ///< its line is that of the value, the key's may be earlier
};

/// A failure's place is "file:line".
Result<JsonValue> parse_json(std::string_view text, std::string_view file);

}  // namespace partita
