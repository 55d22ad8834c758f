// SPDX-License-Identifier: Apache-2.0
// Backtracking matcher over chains; entry: match_at(). Chains are followed forwards from the first operator, side
// chains backwards from the value they feed.
#include "passes/match.hpp"

#include <algorithm>

#include "passes/patterns/sets.hpp"
#include "src/base/function_ref.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

using patterns::Item;
using patterns::Pat;
using patterns::Pattern;

constexpr int kNoValue = -1;
/// Attempts to place an operator before a pattern is given up at one start; far above what any sensible graph needs.
constexpr int kMaxAttempts = 2000;

const char* axis_text(int summed) { return summed == patterns::kSummedRows ? "rows" : "columns"; }

class Matcher {
 public:
  using Next = FunctionRef<bool(int value)>;

  Matcher(const FinalGraph& graph, const Pattern& pattern, const Groups& groups, Match& match, Refusal* refusal)
      : graph_(graph), pattern_(pattern), groups_(groups), match_(match), refusal_(refusal) {}

  bool run(int start) {
    start_ = start;
    return forward(pattern_.chain.items, 0, 0, kNoValue, [&](int value) { return end_chain(value, 0); });
  }

 private:
  const op& at(int i) const { return graph_.ops[static_cast<size_t>(i)]; }
  const Value& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }
  int result_of(int op_index) const {
    const auto& out = graph_.out[static_cast<size_t>(op_index)];
    return out.empty() ? kNoValue : out[0];
  }
  bool matched(int op_index) const {
    return std::find(match_.ops.begin(), match_.ops.end(), op_index) != match_.ops.end();
  }
  bool free(int op_index) const { return groups_.of[static_cast<size_t>(op_index)] < 0 && !matched(op_index); }

  /// Texts that are made only where a reason is kept: nearly all refusals are nobody's reading.
  struct PlaceText {
    const op& of;
    friend std::ostream& operator<<(std::ostream& out, const PlaceText& t) { return out << partita::place_of(t.of); }
  };
  struct KindsText {
    OpSet kinds;
    friend std::ostream& operator<<(std::ostream& out, const KindsText& t) { return out << partita::text_of(t.kinds); }
  };
  struct ValueText {
    const FinalGraph& graph;
    const Value& value;
    friend std::ostream& operator<<(std::ostream& out, const ValueText& t) {
      if (t.value.producer < 0) return out << "tensor " << t.value.desc.id;
      return out << "the result of " << partita::place_of(t.graph.ops[static_cast<size_t>(t.value.producer)]);
    }
  };
  struct PortText {
    int wanted;
    friend std::ostream& operator<<(std::ostream& out, const PortText& t) {
      if (t.wanted >= 0) return out << " at input " << t.wanted;
      return t.wanted == patterns::kAny ? out : out << " and sums over its " << axis_text(t.wanted);
    }
  };
  static PlaceText place_of(const op& o) { return {o}; }
  static KindsText text_of(OpSet kinds) { return {kinds}; }
  ValueText value_text(int v) const { return {graph_, value(v)}; }

  /// Keeps the reason of the attempt that got furthest. Of several one not to take a whole match, for with as many
  /// operators it came further; otherwise the last, for what is optional is tried first.
  template <class... Parts>
  bool refuse(const Parts&... parts) {
    const std::pair reached{static_cast<int>(match_.ops.size()), whole_};
    if (!refusal_ || reached < refused_at_) return false;
    refused_at_ = reached;
    *refusal_ = {reached.first, str(parts...)};
    return false;
  }

  /// A chain is complete: continue with the next one, which starts at a value by its name, or apply the general rules.
  bool end_chain(int last_value, size_t next_chain) {
    const size_t ends = match_.ends.size();
    if (last_value != kNoValue && value(last_value).producer >= 0) match_.ends.push_back(value(last_value).producer);
    const bool ok = next_chain < pattern_.with.size()
                        ? forward(pattern_.with[next_chain].items, 0, 0, kNoValue,
                                  [&, next_chain](int v) { return end_chain(v, next_chain + 1); })
                        : accept();
    if (!ok) match_.ends.resize(ends);
    return ok;
  }

  /// items[index..] from `v` on, `count` repetitions of items[index] done.
  bool forward(const std::vector<Item>& items, size_t index, int count, int v, Next next) {
    if (index == items.size()) return next(v);
    const Item& item = items[index];
    if (!item.bind.empty() || !item.same.empty())
      return named(item, v, [&](int w) { return forward(items, index + 1, 0, w, next); });
    const size_t names = match_.bound.size();
    auto repeat = [&](int w) {
      return own_names(item, names, [&] { return forward(items, index, count + 1, w, next); });
    };
    if (count < item.max) {
      for (const Pat& choice : item.either)
        if (forward(choice.items, 0, 0, v, repeat)) return true;
      if (item.either.empty() && place_reader(item, v, repeat)) return true;
    }
    if (count >= item.min) return forward(items, index + 1, 0, v, next);
    return false;
  }

  /// An operator of the item's kinds that reads `v` (the start operator where there is no value yet).
  bool place_reader(const Item& item, int v, Next next) {
    if (v == kNoValue) {
      if (!match_.ops.empty() || !item.kinds.has(at(start_).kind)) return false;
      return place(item, start_, -1, next);
    }
    bool any = false, own = false;
    for (const Use& use : value(v).uses) {
      if (!item.kinds.has(at(use.op).kind) || !is_port(item.at, use.op, use.port)) continue;
      (matched(use.op) ? own : any) = true;
      if (matched(use.op)) continue;
      if (groups_.of[static_cast<size_t>(use.op)] >= 0) {
        refuse(place_of(at(use.op)), " belongs to another partition");
        continue;
      }
      if (place(item, use.op, use.port, next)) return true;
    }
    if (!any && item.min > 0)
      refuse(own ? "no other " : "no ", text_of(item.kinds), " reads ", value_text(v), PortText{item.at});
    return false;
  }

  /// Whether the pattern's word for a port means this one.
  bool is_port(int wanted, int i, int port) const {
    if (wanted >= 0 || wanted == patterns::kAny) return wanted == patterns::kAny || wanted == port;
    if (at(i).kind != OpKind::MatMul) return false;
    const bool transposed =
        graph_.attrs[static_cast<size_t>(i)].flag(port == 0 ? Attr::transpose_a : Attr::transpose_b);
    return ((port == 0) == transposed) == (wanted == patterns::kSummedRows);
  }

  /// Puts operator `i` into the match, entered at `port` (-1: not from the chain), and matches what feeds its sides.
  bool place(const Item& item, int i, int port, Next next) {
    if (++attempts_ > kMaxAttempts) return refuse("gave up after ", kMaxAttempts, " attempts");
    match_.ops.push_back(i);
    auto done = [&] { return next(result_of(i)); };
    const bool swaps = op_def(at(i).kind).commutative && names_a_port(item);
    if (sides(item, i, port, 0, false, done) || (swaps && sides(item, i, port, 0, true, done))) return true;
    match_.ops.pop_back();
    return false;
  }

  bool sides(const Item& item, int i, int entry, size_t index, bool swapped, FunctionRef<bool()> done) {
    if (index == item.sides.size()) return done();
    const Pat& chain = item.sides[index].chain;
    int port = item.sides[index].port;
    const auto& in = graph_.in[static_cast<size_t>(i)];
    const auto feed = [&](int p) {
      return backward(chain.items, static_cast<int>(chain.items.size()) - 1, 0, in[static_cast<size_t>(p)],
                      [&](int) { return sides(item, i, entry, index + 1, swapped, done); });
    };
    if (port < patterns::kOther) {  // several inputs may be meant; what stops them is a better reason than this one
      refuse("no input is left whose ", axis_text(port), " ", place_of(at(i)), " sums over");
      for (int p = 0; p < static_cast<int>(in.size()); ++p)
        if (p != entry && is_port(port, i, p) && feed(p)) return true;
      return false;
    }
    if (port == patterns::kOther)
      port = free_port(item, i, entry, static_cast<int>(in.size()));
    else if (swapped && port < 2)
      port = 1 - port;
    if (port == entry) return false;
    if (port < 0 || port >= static_cast<int>(in.size())) {
      if (optional(chain)) return sides(item, i, entry, index + 1, swapped, done);
      return refuse(place_of(at(i)), " has no input ", port);
    }
    return feed(port);
  }

  /// The port that neither the chain nor a side takes.
  int free_port(const Item& item, int i, int entry, int ports) const {
    for (int p = 0; p < ports; ++p) {
      if (p != entry && !is_side(item, i, p)) return p;
    }
    return -1;
  }

  /// Otherwise swapped inputs are the same ones once more.
  static bool names_a_port(const Item& item) {
    return std::any_of(item.sides.begin(), item.sides.end(), [](const auto& s) { return s.port != patterns::kOther; });
  }

  static bool optional(const Pat& chain) {
    return std::all_of(chain.items.begin(), chain.items.end(), [](const Item& i) { return i.min == 0; });
  }

  /// items[..index] so that the last one produces `v`; `next` gets the value that feeds the chain.
  bool backward(const std::vector<Item>& items, int index, int count, int v, Next next) {
    if (index < 0) return next(v);
    const Item& item = items[static_cast<size_t>(index)];
    if (!item.bind.empty() || !item.same.empty())
      return named(item, v, [&](int) { return backward(items, index - 1, 0, v, next); });
    auto repeat = [&](int w) { return backward(items, index, count + 1, w, next); };
    if (count < item.max) {
      for (const Pat& choice : item.either)
        if (backward(choice.items, static_cast<int>(choice.items.size()) - 1, 0, v, repeat)) return true;
      if (item.either.empty() && place_producer(item, v, repeat)) return true;
    }
    if (count >= item.min) return backward(items, index - 1, 0, v, next);
    return false;
  }

  bool place_producer(const Item& item, int v, Next next) {
    const int p = v == kNoValue ? -1 : value(v).producer;
    if (p < 0 || !item.kinds.has(at(p).kind))
      return item.min > 0 && v != kNoValue &&
             refuse("tensor ", value(v).desc.id, " is not made by ", text_of(item.kinds));
    if (!free(p)) return matched(p) ? false : refuse(place_of(at(p)), " belongs to another partition");
    const auto& in = graph_.in[static_cast<size_t>(p)];
    bool any = false;
    for (int port = 0; port < static_cast<int>(in.size()); ++port) {
      if (item.at != patterns::kAny ? !is_port(item.at, p, port) : is_side(item, p, port)) continue;
      any = true;
      if (place(item, p, port, [&](int) { return next(in[static_cast<size_t>(port)]); })) return true;
    }
    // Sides feed every port: nothing stands before this operator.
    return !any && place(item, p, -1, [&](int) { return next(kNoValue); });
  }

  bool is_side(const Item& item, int i, int port) const {
    return std::any_of(item.sides.begin(), item.sides.end(),
                       [&](const auto& side) { return side.port != patterns::kOther && is_port(side.port, i, port); });
  }

  int bound(std::string_view name) const {
    for (const auto& [key, v] : match_.bound)
      if (key == name) return v;
    return kNoValue;
  }

  /// Names bound in one repetition of a chain are its own: the next one binds them anew.
  bool own_names(const Item& item, size_t names, FunctionRef<bool()> next) {
    if (item.either.empty() || item.max == 1) return next();
    const std::vector<std::pair<std::string_view, int>> own(match_.bound.begin() + static_cast<long>(names),
                                                            match_.bound.end());
    match_.bound.resize(names);
    if (next()) return true;
    match_.bound.insert(match_.bound.end(), own.begin(), own.end());
    return false;
  }

  bool named(const Item& item, int v, Next next) {
    const std::string_view name = item.bind.empty() ? item.same : item.bind;
    const int known = bound(name);
    if (known != kNoValue && v == kNoValue) return next(known);  // a chain that starts at the value
    if (known != kNoValue)
      return known == v ? next(v) : refuse("two places must read one value `", name, "` and do not");
    if (item.bind.empty() || v == kNoValue) return refuse("value `", name, "` is not known");
    match_.bound.emplace_back(item.bind, v);
    if (next(v)) return true;
    match_.bound.pop_back();
    return false;
  }

  /// The rules of every fusion.
  bool accept() {
    if (match_.ops.size() < 2) return match_.ops.empty() ? false : refuse("nothing beside it fits the pattern");
    const size_t drawn = match_.ops.size();
    whole_ = true;
    if (take_between() && inner_values_stay() && shapes_come_from_outside()) {
      const char* reason = pattern_.refuse ? pattern_.refuse(graph_, match_) : nullptr;
      if (!reason) return true;
      refuse(reason);
    }
    whole_ = false;
    match_.ops.resize(drawn);
    return false;
  }

  /// Takes in what stands on a way between two matched operators.
  bool take_between() {
    const Between found = between(graph_, match_.ops, groups_);
    if (found.too_many) return refuse("too many operators lie around the group");
    if (found.in_a_group) return refuse("the group would depend on itself through another partition");
    for (int i : found.ops)
      if (!patterns::kMemoryBound.has(at(i).kind))
        return refuse("the group would depend on itself through ", place_of(at(i)));
    match_.ops.insert(match_.ops.end(), found.ops.begin(), found.ops.end());
    return true;
  }

  bool inner_values_stay() {
    if (pattern_.inner_outputs) return true;
    for (int i : match_.ops) {
      const bool end = std::find(match_.ends.begin(), match_.ends.end(), i) != match_.ends.end();
      const int v = result_of(i);
      if (end || v == kNoValue) continue;
      for (const Use& use : value(v).uses)
        if (!matched(use.op) && at(use.op).kind != OpKind::End)  // that belongs to what it keeps
          return refuse("the result of ", place_of(at(i)), " is also used by ", place_of(at(use.op)));
    }
    return true;
  }

  /// The content of a shape input must come through a port of the partition.
  bool shapes_come_from_outside() {
    for (int i : match_.ops)
      for (int v : graph_.out[static_cast<size_t>(i)])
        for (const Use& use : value(v).uses)
          if (matched(use.op) && reads_content(at(use.op).kind, use.port))
            return refuse("the partition must be given the content of input ", use.port, " of ", place_of(at(use.op)));
    return true;
  }

  const FinalGraph& graph_;
  const Pattern& pattern_;
  const Groups& groups_;
  Match& match_;
  Refusal* refusal_;
  int start_ = 0;
  int attempts_ = 0;
  bool whole_ = false;  ///< every chain is there, and the rules of every fusion are applied
  std::pair<int, bool> refused_at_{0, false};
};

OpSet first_kinds(const std::vector<Item>& items) {
  OpSet set;
  for (const Item& item : items) {
    set = set | item.kinds;
    for (const Pat& choice : item.either) set = set | first_kinds(choice.items);
    if (item.min > 0 && (!item.kinds.empty() || !item.either.empty())) break;
  }
  return set;
}

}  // namespace

bool reads_content(OpKind kind, int port) {
  const auto& ports = op_def(kind).inputs;
  return static_cast<size_t>(port) < ports.size() && ports[static_cast<size_t>(port)].value_of != Attr{0};
}

bool match_at(const FinalGraph& graph, const Pattern& pattern, int start, const Groups& groups, Match& match,
              Refusal* refusal) {
  match = {};
  return Matcher(graph, pattern, groups, match, refusal).run(start);
}

OpSet start_kinds(const Pattern& pattern) { return first_kinds(pattern.chain.items); }

}  // namespace partita
