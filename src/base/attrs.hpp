// SPDX-License-Identifier: Apache-2.0
// Attrs: an operator's attribute values by number, with typed reads.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "partita/op.hpp"

namespace partita {

/// Sorted by attribute number. The typed reads demand that the attribute is there with that type (checked before).
class Attrs {
 public:
  Attrs() = default;
  explicit Attrs(const std::vector<std::pair<Attr, AttrValue>>& sorted) : values_(sorted) {}

  bool has(Attr attr) const;
  /// monostate where absent.
  const AttrValue& get(Attr attr) const;
  void set(Attr attr, AttrValue value);

  bool flag(Attr attr) const { return std::get<bool>(get(attr)); }
  int64_t i64(Attr attr) const { return std::get<int64_t>(get(attr)); }
  float f32(Attr attr) const { return std::get<float>(get(attr)); }
  const std::string& text(Attr attr) const { return std::get<std::string>(get(attr)); }
  const std::vector<int64_t>& ints(Attr attr) const { return std::get<std::vector<int64_t>>(get(attr)); }
  const std::vector<float>& floats(Attr attr) const { return std::get<std::vector<float>>(get(attr)); }
  /// The list, or an empty one where absent.
  Dims dims(Attr attr) const;
  bool flag_or(Attr attr, bool fallback) const { return has(attr) ? flag(attr) : fallback; }
  int64_t i64_or(Attr attr, int64_t fallback) const { return has(attr) ? i64(attr) : fallback; }
  float f32_or(Attr attr, float fallback) const { return has(attr) ? f32(attr) : fallback; }
  /// True where the attribute is a string and equals `value`.
  bool is(Attr attr, std::string_view value) const;

  const std::vector<std::pair<Attr, AttrValue>>& all() const { return values_; }
  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  std::vector<std::pair<Attr, AttrValue>> values_;
};

}  // namespace partita
