// SPDX-License-Identifier: Apache-2.0
// The rule behind the patterns; entry: grouped_by_rule(). Every group gets a stage: a value between two groups either
// ties them (both may have one stage) or does not (the reader's stage is higher). A stage never falls along a value, so
// whatever of one stage is joined, no circle through other groups arises: nothing has to be searched.
#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>

#include "passes/claims.hpp"
#include "passes/patterns/sets.hpp"
#include "src/base/text.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

using namespace patterns;

/// A value with more readers (a learning rate, a mask for all layers) ties none of them: they would be one group.
constexpr size_t kMostReaders = 16;

enum class Role : uint8_t { memory_bound, compute, unknown };

constexpr RuleName kRuleNames[] = {
    {kConvolutionGradient, "convolution_gradient_neighbourhood", "gradients of a convolution"},
    {Convolution | ConvTranspose, "convolution_neighbourhood", "a convolution"},
    {MatMul, "matmul_neighbourhood", "a matrix product"},
    {kPoolBackward, "pool_backward_neighbourhood", "the gradient of a pooling"},
    {BatchNormTrainingBackward, "batch_norm_backward_neighbourhood", "the gradient of a batch normalisation"},
    {BatchNormForwardTraining, "batch_norm_neighbourhood", "a batch normalisation in training"},
    {kRowsBackward, "rows_backward_neighbourhood", "the gradient of a softmax or layer normalisation"},
    {kRows, "rows_neighbourhood", "a softmax, layer, RMS or group normalisation"},
    {kPool, "pool_neighbourhood", "a pooling"},
    {kResample, "resample_neighbourhood", "an interpolation or its gradient"},
    {kReduction | BiasAddBackward, "reduction_neighbourhood", "a reduction"},
    {kElementwise, "elementwise_neighbourhood", "element-wise operators"},
    {OpSet::all(), "movement_neighbourhood", "operators that move data"},
};

/// Disjoint sets of groups.
class Sets {
 public:
  explicit Sets(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int find(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int& up = parent_[static_cast<size_t>(i)];
      up = parent_[static_cast<size_t>(up)];
      i = up;
    }
    return i;
  }
  /// The set of `a` becomes part of that of `b`, which keeps its name.
  void join(int a, int b) { parent_[static_cast<size_t>(find(a))] = find(b); }

 private:
  std::vector<int> parent_;
};

class Rule {
 public:
  Rule(const FinalGraph& graph, const Claims& claims)
      : graph_(graph),
        claims_(claims),
        n_(claims.names.size()),
        stage_(n_, 0),
        first_of_stage_(n_, -1),
        sets_(n_),
        cut_sets_(n_),
        members_(n_),
        operators_(n_, 0),
        part_(n_, 0) {}

  Claims run(std::vector<PatternNote>* notes) {
    for (size_t g = 0; g < n_; ++g) roles_.push_back(role(static_cast<int>(g)));
    const std::vector<int> order = group_order(graph_, claims_.groups);
    for (int g : order) set_stage(g);
    for (int g : order) {
      members(sets_.find(g)).push_back(g);
      operators_[static_cast<size_t>(sets_.find(g))] += ops_of(g).size();
    }
    go_with_readers();
    bias_gradients_join();
    Claims result(graph_.ops.size());
    for (int s = 0; s < static_cast<int>(n_); ++s)
      if (!members(s).empty()) add(s, result);
    if (notes) explain(result, *notes);
    return result;
  }

 private:
  /// A value between two groups, as its reader sees it.
  struct Edge {
    int from, to;       // groups
    int maker, reader;  // operators
    int port;           // of the reader
  };

  OpKind kind(int op) const { return graph_.ops[static_cast<size_t>(op)].kind; }
  int group(int op) const { return claims_.groups.of[static_cast<size_t>(op)]; }
  const std::vector<int>& ops_of(int g) const { return claims_.groups.members[static_cast<size_t>(g)]; }
  const Value& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }

  Role role(int g) const {
    const auto& ops = ops_of(g);
    if (ops.size() > 1) return Role::compute;
    return kMemoryBound.has(kind(ops[0])) ? Role::memory_bound
           : kCompute.has(kind(ops[0]))   ? Role::compute
                                          : Role::unknown;
  }
  bool is(int g, Role role) const { return roles_[static_cast<size_t>(g)] == role; }

  template <class Visit>
  void each_input(int g, const Visit& visit) const {
    for (int i : ops_of(g)) {
      const auto& in = graph_.in[static_cast<size_t>(i)];
      for (size_t port = 0; port < in.size(); ++port) {
        const int maker = value(in[port]).producer;
        if (maker >= 0 && group(maker) != g) visit(Edge{group(maker), g, maker, i, static_cast<int>(port)});
      }
    }
  }

  template <class Visit>
  void each_reader(int g, const Visit& visit) const {
    for (int i : ops_of(g))
      for (int v : graph_.out[static_cast<size_t>(i)])
        for (const Use& use : value(v).uses)
          if (group(use.op) != g) visit(Edge{g, group(use.op), i, use.op, use.port});
  }

  /// Null: both ends of the value may be in one group.
  const char* barred(const Edge& e) const {
    if (is(e.from, Role::unknown) || is(e.to, Role::unknown)) return "nothing is known of a Wildcard";
    return reads_content(kind(e.reader), e.port) ? "the content of this input must be known when it is compiled"
                                                 : nullptr;
  }

  /// Null: the reader goes with what makes the value, if it may; otherwise why it does not.
  const char* untied(const Edge& e) const {
    if (const char* why = barred(e)) return why;
    if (kind(e.reader) == End) return nullptr;
    if (is(e.to, Role::compute)) return "no pattern joins it with what is before it";
    if (kWidening.has(kind(e.reader)) && kNarrowing.has(kind(e.maker)))
      return "integers are smaller to hand over than what it makes of them";
    const auto& uses = value(graph_.in[static_cast<size_t>(e.reader)][static_cast<size_t>(e.port)]).uses;
    return uses.size() > kMostReaders ? "too many operators read the value to fuse with all of them" : nullptr;
  }

  void set_stage(int g) {
    int& stage = stage_[static_cast<size_t>(g)];
    int& first = first_of_stage_[static_cast<size_t>(g)];
    each_input(g, [&](const Edge& e) {
      const bool tied = untied(e) == nullptr;
      const int needed = stage_[static_cast<size_t>(e.from)] + (tied ? 0 : 1);
      if (needed < stage || (needed == stage && first >= 0)) return;
      stage = needed;
      first = tied ? first_of_stage_[static_cast<size_t>(e.from)] : e.reader;
    });
    each_input(g, [&](const Edge& e) {
      if (!untied(e) && stage_[static_cast<size_t>(e.from)] == stage) sets_.join(e.from, g);
    });
  }

  std::vector<int>& members(int set) { return members_[static_cast<size_t>(set)]; }
  bool memory_bound(int set) { return count(set, Role::memory_bound) == members(set).size(); }
  size_t count(int set, Role role) {
    return static_cast<size_t>(
        std::count_if(members(set).begin(), members(set).end(), [&](int g) { return is(g, role); }));
  }

  void join(int from, int to) {
    operators_[static_cast<size_t>(to)] += operators_[static_cast<size_t>(from)];
    members(to).insert(members(to).end(), members(from).begin(), members(from).end());
    members(from).clear();
    sets_.join(from, to);
  }

  /// A set bound by memory goes with the only other set that reads its results. That set cannot lead back to it: such a
  /// way would end in a reader of these results, which lies in that set itself.
  void go_with_readers() {
    std::vector<int> sets;
    for (int s = 0; s < static_cast<int>(n_); ++s)
      if (!members(s).empty() && memory_bound(s)) sets.push_back(s);
    std::stable_sort(sets.begin(), sets.end(), [&](int a, int b) { return stage(a) > stage(b); });
    for (int s : sets)
      if (const Reader reader = only_reader(s); reader.set >= 0 && reader.refusal.empty()) join(s, reader.set);
  }

  /// The set that reads results of another one (-1: none does), and why that does not go there (empty: it may).
  struct Reader {
    int set = -1;
    std::string refusal;
  };

  static std::string too_large() { return str("a group has at most ", kRuleLimit, " operators"); }

  Reader only_reader(int set) {
    Reader reader;
    for (int g : members(set))
      each_reader(g, [&](const Edge& e) {
        const int to = sets_.find(e.to);
        if (to == set) return;
        if (reader.set >= 0 && reader.set != to)
          reader.refusal = "its results are read by several groups";
        else if (const char* why = barred(e); why && reader.refusal.empty())
          reader.refusal = why;
        reader.set = to;
      });
    if (reader.set < 0 || !reader.refusal.empty()) return reader;
    if (operators_[static_cast<size_t>(set)] + operators_[static_cast<size_t>(reader.set)] > kRuleLimit)
      reader.refusal = too_large();
    return reader;
  }

  /// Bias gradients of a tensor from outside go with the other gradients that read it, where nothing else ties them.
  void bias_gradients_join() {
    for (int s = 0; s < static_cast<int>(n_); ++s) {
      if (members(s).size() != 1 || !memory_bound(s)) continue;
      const int op = ops_of(members(s)[0])[0];
      const Value& src = value(graph_.in[static_cast<size_t>(op)].empty() ? 0 : graph_.in[static_cast<size_t>(op)][0]);
      if (!(kReduction | BiasAddBackward).has(kind(op)) || src.producer >= 0 || src.uses.size() > kMostReaders)
        continue;
      bool alone = true;
      each_input(members(s)[0], [&](const Edge&) { alone = false; });
      each_reader(members(s)[0], [&](const Edge&) { alone = false; });
      if (!alone) continue;
      for (const Use& use : src.uses)
        if (reads_diff_dst(use, src)) {
          join(s, sets_.find(group(use.op)));
          break;
        }
    }
  }

  /// A matrix product reads the gradient of its result where another one of its group does, too, be it flat or
  /// transposed.
  bool reads_diff_dst(const Use& use, const Value& src) const {
    switch (kind(use.op)) {
      case ConvolutionBackwardData:
      case ConvTransposeBackwardData: return use.port == 0;
      case ConvolutionBackwardWeights:
      case ConvTransposeBackwardWeights: return use.port == 1;
      case MatMul:
        return std::any_of(src.uses.begin(), src.uses.end(), [&](const Use& other) {
          return other.op != use.op && (MatMul | StaticReshape | StaticTranspose).has(kind(other.op)) &&
                 group(other.op) == group(use.op);
        });
      default: return false;
    }
  }

  std::string_view name_of_set(const std::vector<int>& groups) const {
    OpSet kinds;
    for (int g : groups) {
      if (ops_of(g).size() > 1) return claims_.names[static_cast<size_t>(g)];
      kinds = kinds | kind(ops_of(g)[0]);
    }
    if (groups.size() == 1) return kSingleOp;
    for (const RuleName& row : kRuleNames)
      if (!(kinds - (kinds - row.kinds)).empty()) return row.name;
    return kRuleNames[std::size(kRuleNames) - 1].name;
  }

  /// A set becomes a group; a large one several, cut along an order of its operators that follows chains.
  void add(int set, Claims& result) {
    if (operators_[static_cast<size_t>(set)] <= kRuleLimit) return claim(members(set), result);
    std::vector<int> part;
    size_t size = 0;
    for (int g : chain_order(members(set))) {
      if (!part.empty() && size + ops_of(g).size() > kRuleLimit) {
        claim_connected(part, result);
        part.clear();
        size = 0;
      }
      part.push_back(g);
      size += ops_of(g).size();
    }
    claim_connected(part, result);
  }

  void claim(const std::vector<int>& groups, Claims& result) {
    std::vector<int> ops;
    for (int g : groups) ops.insert(ops.end(), ops_of(g).begin(), ops_of(g).end());
    result.claim(graph_, std::move(ops), name_of_set(groups));
  }

  /// What a cut left unconnected becomes groups of its own.
  void claim_connected(const std::vector<int>& groups, Claims& result) {
    for (int g : groups) part_[static_cast<size_t>(g)] = parts_;
    Sets& sets = cut_sets_;
    for (int g : groups)
      each_input(g, [&](const Edge& e) {
        if (part_[static_cast<size_t>(e.from)] == parts_) sets.join(e.from, g);
      });
    std::map<int, std::vector<int>> connected;
    for (int g : groups) connected[sets.find(g)].push_back(g);
    for (const auto& [root, list] : connected) claim(list, result);
    ++parts_;
  }

  /// Producers first; what a group made ready last comes next, so chains stay together.
  std::vector<int> chain_order(const std::vector<int>& groups) {
    for (int g : groups) part_[static_cast<size_t>(g)] = parts_;
    const auto inside = [&](int g) { return part_[static_cast<size_t>(g)] == parts_; };
    std::vector<int> waiting(groups.size(), 0), ready, order;
    std::unordered_map<int, size_t> index;
    for (size_t k = 0; k < groups.size(); ++k) index[groups[k]] = k;
    for (size_t k = 0; k < groups.size(); ++k)
      each_input(groups[k], [&](const Edge& e) { waiting[k] += inside(e.from); });
    for (size_t k = groups.size(); k-- > 0;)
      if (waiting[k] == 0) ready.push_back(groups[k]);
    while (!ready.empty()) {
      const int g = ready.back();
      ready.pop_back();
      order.push_back(g);
      const size_t from = ready.size();
      each_reader(g, [&](const Edge& e) {
        if (inside(e.to) && --waiting[index.at(e.to)] == 0) ready.push_back(e.to);
      });
      std::reverse(ready.begin() + static_cast<long>(from), ready.end());
    }
    ++parts_;
    return order;
  }

  /// Says for each value between two groups of the result why they are not one.
  void explain(const Claims& result, std::vector<PatternNote>& notes) {
    for (int g = 0; g < static_cast<int>(n_); ++g)
      each_input(g, [&](const Edge& e) {
        const int from = result.groups.of[static_cast<size_t>(e.maker)],
                  to = result.groups.of[static_cast<size_t>(e.reader)];
        if (from == to) return;
        const partita::op& maker = graph_.ops[static_cast<size_t>(e.maker)];
        notes.push_back({graph_.ops[static_cast<size_t>(e.reader)].id,
                         kRule,
                         {static_cast<int>(result.groups.members[static_cast<size_t>(to)].size()),
                          str("not with ", place_of(maker), ": ", reason(e))}});
      });
  }

  std::string reason(const Edge& e) {
    if (sets_.find(e.from) == sets_.find(e.to)) return too_large();
    const bool goes_with_readers = memory_bound(sets_.find(e.from));
    if (const char* why = untied(e); why && !(is(e.to, Role::compute) && goes_with_readers)) return why;
    if (goes_with_readers) return only_reader(sets_.find(e.from)).refusal;
    const int first = first_of_stage_[static_cast<size_t>(e.to)];
    return str("it also waits for ", place_of(graph_.ops[static_cast<size_t>(first)]),
               ", which another group computes before");
  }

  int stage(int g) const { return stage_[static_cast<size_t>(g)]; }

  const FinalGraph& graph_;
  const Claims& claims_;
  const size_t n_;
  std::vector<Role> roles_;
  std::vector<int> stage_;           // of each group
  std::vector<int> first_of_stage_;  // of each group: the operator that began its stage on the way to it
  Sets sets_, cut_sets_;
  std::vector<std::vector<int>> members_;  // groups of each set
  std::vector<size_t> operators_;          // of each set
  std::vector<int> part_;                  // of each group: the number of the list it was last in
  int parts_ = 1;
};

}  // namespace

std::span<const RuleName> rule_names() { return kRuleNames; }

Claims grouped_by_rule(const FinalGraph& graph, const Claims& claims, std::vector<PatternNote>* notes) {
  return Rule(graph, claims).run(notes);
}

}  // namespace partita
