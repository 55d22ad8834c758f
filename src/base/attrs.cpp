// SPDX-License-Identifier: Apache-2.0
// Attrs: look-up and change in the sorted list of attribute values.
#include "src/base/attrs.hpp"

#include <algorithm>

#include "src/base/check.hpp"

namespace partita {
namespace {

template <class List>
auto place_for(List& values, Attr attr) {
  return std::lower_bound(values.begin(), values.end(), attr,
                          [](const auto& entry, Attr wanted) { return entry.first < wanted; });
}

}  // namespace

bool Attrs::has(Attr attr) const { return !std::holds_alternative<std::monostate>(get(attr)); }

const AttrValue& Attrs::get(Attr attr) const {
  static const AttrValue kAbsent;
  const auto it = place_for(values_, attr);
  return it != values_.end() && it->first == attr ? it->second : kAbsent;
}

void Attrs::set(Attr attr, AttrValue value) {
  const auto it = place_for(values_, attr);
  const bool found = it != values_.end() && it->first == attr;
  if (std::holds_alternative<std::monostate>(value)) {
    if (found) values_.erase(it);
  } else if (found) {
    it->second = std::move(value);
  } else {
    values_.insert(it, {attr, std::move(value)});
  }
}

Dims Attrs::dims(Attr attr) const {
  if (!has(attr)) return {};
  const std::vector<int64_t>& list = ints(attr);
  PT_ASSERT(list.size() <= static_cast<size_t>(kMaxRank));
  return Dims(list);
}

bool Attrs::is(Attr attr, std::string_view value) const {
  const auto* text = std::get_if<std::string>(&get(attr));
  return text && *text == value;
}

}  // namespace partita
