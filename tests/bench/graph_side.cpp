// SPDX-License-Identifier: Apache-2.0
// Memory of a side: lifetimes, one arena, tensors that lie over others.
#include "tests/bench/graph_side.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita::bench {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Memory that one or several tensors use, one after another.
struct Block {
  size_t bytes = 0, offset = 0;
  size_t first = 0, last = 0;  ///< calls
  bool meets(const Block& o) const { return first <= o.last && o.first <= last; }
};

/// Where tensors lie: at a graph input, at a result, or in a block.
class Places {
 public:
  Places(const FinalGraph& graph, const GraphInputs& inputs, std::span<const Part> parts)
      : graph_(graph), inputs_(inputs) {
    for (size_t p = 0; p < parts.size(); ++p)
      for (const logical_tensor& t : parts[p].in) last_read_[t.id] = p;
    for (size_t p = 0; p < parts.size(); ++p) {
      add(parts[p], p);
      if (parts[p].once) keep(parts[p], parts.size());
    }
    place_blocks();
  }

  size_t arena_bytes() const { return arena_bytes_; }
  const std::vector<logical_tensor>& results() const { return results_; }
  void* at(uint64_t id, std::byte* arena, const std::map<uint64_t, Storage>& results) const {
    if (const auto block = block_of_.find(id); block != block_of_.end()) return arena + blocks_[block->second].offset;
    const uint64_t root = root_of(id);
    const auto input = inputs_.find(root);
    return input != inputs_.end() ? input->second.data.get() : results.at(root).data.get();
  }

 private:
  uint64_t root_of(uint64_t id) const {
    const auto found = viewed_.find(id);
    return found == viewed_.end() ? id : root_of(found->second);
  }

  void add(const Part& part, size_t p) {
    if (!part.bind) {
      add_view(part);
      return;
    }
    for (const logical_tensor& t : part.out) {
      if (is_result(graph_, t.id)) {
        results_.push_back(t);
        continue;
      }
      const size_t last = std::max(p, last_read_.contains(t.id) ? last_read_.at(t.id) : p);
      if (const Block* shared = block_to_share(part, t, p); shared != nullptr) {
        const auto index = static_cast<size_t>(shared - blocks_.data());
        blocks_[index].last = std::max(blocks_[index].last, last);
        block_of_[t.id] = index;
      } else {
        block_of_[t.id] = blocks_.size();
        blocks_.push_back({aligned(t.size_bytes()), 0, p, last});
      }
    }
  }

  /// Nobody else may use the memory of constants, at no time.
  void keep(const Part& part, size_t end) {
    for (const logical_tensor& t : part.out)
      if (const auto block = block_of_.find(t.id); block != block_of_.end()) {
        blocks_[block->second].first = 0;
        blocks_[block->second].last = end;
      }
  }

  /// A view of a tensor lives in its memory, which it keeps alive.
  void add_view(const Part& part) {
    const uint64_t from = part.in[0].id, to = part.out[0].id;
    if (const auto block = block_of_.find(from); block != block_of_.end()) {
      Block& b = blocks_[block->second];
      if (last_read_.contains(to)) b.last = std::max(b.last, last_read_.at(to));
      block_of_[to] = block->second;
    } else {
      viewed_[to] = from;
    }
  }

  const Block* block_to_share(const Part& part, const logical_tensor& out, size_t p) const {
    for (const auto& [in, to] : part.may_share) {
      if (to != out.id) continue;
      const auto block = block_of_.find(in);
      if (block == block_of_.end()) continue;
      const Block& b = blocks_[block->second];
      const bool taken = std::any_of(part.out.begin(), part.out.end(), [&](const logical_tensor& t) {
        const auto at = block_of_.find(t.id);
        return at != block_of_.end() && at->second == block->second;
      });
      if (b.last == p && b.bytes >= aligned(out.size_bytes()) && !taken) return &b;
    }
    return nullptr;
  }

  /// Largest first, each at the lowest place that is free during its life.
  void place_blocks() {
    std::vector<size_t> order(blocks_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return blocks_[i].bytes; });
    for (size_t i = 0; i < order.size(); ++i) {
      Block& block = blocks_[order[i]];
      std::vector<std::pair<size_t, size_t>> taken;
      for (size_t j = 0; j < i; ++j)
        if (const Block& other = blocks_[order[j]]; other.meets(block))
          taken.emplace_back(other.offset, other.offset + other.bytes);
      std::ranges::sort(taken);
      for (const auto& [from, to] : taken) {
        if (block.offset + block.bytes <= from) break;
        block.offset = std::max(block.offset, to);
      }
      arena_bytes_ = std::max(arena_bytes_, block.offset + block.bytes);
    }
  }

  const FinalGraph& graph_;
  const GraphInputs& inputs_;
  std::map<uint64_t, size_t> last_read_;
  std::vector<Block> blocks_;
  std::map<uint64_t, size_t> block_of_;
  std::map<uint64_t, uint64_t> viewed_;  ///< a view of an input or a result, and what it views
  std::vector<logical_tensor> results_;
  size_t arena_bytes_ = 0;
};

Result<Storage> memory_of(size_t bytes) {
  Storage made(logical_tensor(0, Dtype::u8, Dims{static_cast<int64_t>(bytes)}));
  if (!made.data) return fail(Code::out_of_memory, str("no memory for ", bytes, " bytes"));
  return made;
}

}  // namespace

bool is_result(const FinalGraph& graph, uint64_t id) {
  return std::none_of(graph.values.begin(), graph.values.end(), [&](const Value& value) {
    return value.desc.id == id && std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
             return graph.ops[static_cast<size_t>(use.op)].kind != OpKind::End;
           });
  });
}

Result<GraphSide> GraphSide::make(const FinalGraph& graph, const GraphInputs& inputs, std::vector<Part> parts) {
  const Places places(graph, inputs, parts);
  GraphSide side;
  side.parts_ = std::move(parts);
  PT_ASSIGN(side.arena_, memory_of(places.arena_bytes()));
  size_t scratch = 0;
  for (const Part& part : side.parts_) scratch = std::max(scratch, aligned(part.scratch_bytes));
  PT_ASSIGN(side.scratch_, memory_of(scratch));
  for (const logical_tensor& t : places.results()) {
    side.results_[t.id] = Storage(t);
    if (!side.results_[t.id].data) return fail(Code::out_of_memory, str("no memory for tensor ", t.id));
  }
  auto* arena = static_cast<std::byte*>(side.arena_.data.get());
  for (const Part& part : side.parts_) {
    if (!part.bind) continue;
    Bound bound{{}, {}, side.scratch_.data.get()};
    for (const logical_tensor& t : part.in) bound.in.push_back(places.at(t.id, arena, side.results_));
    for (const logical_tensor& t : part.out) bound.out.push_back(places.at(t.id, arena, side.results_));
    PT_ASSIGN(Call call, part.bind(bound));
    if (part.once)
      PT_TRY(call());
    else
      side.calls_.push_back(std::move(call));
  }
  return side;
}

Status GraphSide::run() const {
  for (const Call& call : calls_) PT_TRY(call());
  return {};
}

}  // namespace partita::bench
