// SPDX-License-Identifier: Apache-2.0
// Building of patterns from their parts.
#include "passes/pattern.hpp"

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita {

std::string text_of(OpSet set) {
  constexpr size_t kShown = 4;
  std::vector<std::string_view> names;
  for (int k = 0; k < kOpKinds; ++k)
    if (set.has(op_kind_at(k))) names.push_back(name_of(op_kind_at(k)));
  if (names.size() > kShown) {
    names.resize(kShown);
    names.push_back("..");
  }
  return join(names, "|");
}

namespace patterns {
namespace {

Pat repeated(Pat chain, int min, int max) {
  if (chain.items.size() == 1 && chain.items[0].min == 1 && chain.items[0].max == 1) {
    chain.items[0].min = min;
    chain.items[0].max = max;
    return chain;
  }
  Item item;
  item.either = {std::move(chain)};
  item.min = min;
  item.max = max;
  return Pat{{std::move(item)}};
}

}  // namespace

Pat Pat::in(int port, Pat producer) && {
  PT_ASSERT(!items.empty());
  items.back().sides.push_back({port, std::move(producer)});
  return std::move(*this);
}

Pat Pat::other(Pat producer) && { return std::move(*this).in(kOther, std::move(producer)); }

Pat Pat::at(int port) && {
  PT_ASSERT(!items.empty());
  items.back().at = port;
  return std::move(*this);
}

Pat op(OpSet kinds) {
  Item item;
  item.kinds = kinds;
  return Pat{{std::move(item)}};
}

Pat maybe(OpSet kinds) { return repeated(op(kinds), 0, 1); }
Pat maybe(Pat chain) { return repeated(std::move(chain), 0, 1); }
Pat many(OpSet kinds) { return repeated(op(kinds), 0, kMany); }
Pat many(Pat chain) { return repeated(std::move(chain), 0, kMany); }
Pat some(OpSet kinds) { return repeated(op(kinds), 1, kMany); }

Pat either(std::vector<Pat> chains) {
  Item item;
  item.either = std::move(chains);
  return Pat{{std::move(item)}};
}

Pat bind(std::string_view name) {
  Item item;
  item.bind = name;
  return Pat{{std::move(item)}};
}

Pat same(std::string_view name) {
  Item item;
  item.same = name;
  return Pat{{std::move(item)}};
}

Pat operator>>(Pat a, Pat b) {
  for (Item& item : b.items) a.items.push_back(std::move(item));
  return a;
}

}  // namespace patterns
}  // namespace partita
