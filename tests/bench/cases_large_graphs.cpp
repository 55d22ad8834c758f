// SPDX-License-Identifier: Apache-2.0
// What graphs of many operators cost before anything is compiled: loading, saving, finalizing and partitioning. The
// contender is the same work on ten graphs of a tenth of the size, so a ratio of 1 is linear growth.
#include <benchmark/benchmark.h>

#include <memory>

#include "partita/json.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

constexpr int kSmaller = 10;

/// Layers of attention and a feed-forward part, each on the result of the one before it.
class Layers {
 public:
  explicit Layers(size_t count) {
    logical_tensor x = tensor({kTokens, kWidth});
    while (ops_.size() < count) x = feed_forward(attention(x));
    ops_.resize(count);
  }
  const std::vector<op>& ops() const { return ops_; }

 private:
  static constexpr int64_t kTokens = 16, kWidth = 32;

  logical_tensor tensor(const Dims& dims) { return logical_tensor(next_id_++, Dtype::f32, dims); }

  logical_tensor add(OpKind kind, const std::vector<logical_tensor>& in, const Dims& dims) {
    op made(ops_.size() + 1, kind, in, {tensor(dims)}, str(name_of(kind), "_", ops_.size()));
    if (kind == OpKind::MatMul && dims[1] == kTokens) made.set_attr(Attr::transpose_b, true);
    if (kind == OpKind::SoftMax) made.set_attr(Attr::axis, int64_t{-1});
    ops_.push_back(std::move(made));
    return ops_.back().outputs[0];
  }
  logical_tensor product(const logical_tensor& x) {
    return add(OpKind::MatMul, {x, tensor({kWidth, kWidth})}, {kTokens, kWidth});
  }

  logical_tensor attention(const logical_tensor& x) {
    const Dims scores{kTokens, kTokens}, rows{kTokens, kWidth};
    const logical_tensor q = product(x), k = product(x), v = product(x);
    const logical_tensor scaled = add(OpKind::Multiply, {add(OpKind::MatMul, {q, k}, scores), tensor({1})}, scores);
    const logical_tensor weights = add(OpKind::SoftMax, {scaled}, scores);
    return add(OpKind::Add, {product(add(OpKind::MatMul, {weights, v}, rows)), x}, rows);
  }

  logical_tensor feed_forward(const logical_tensor& x) {
    const Dims rows{kTokens, kWidth};
    const logical_tensor inner = add(OpKind::GELU, {add(OpKind::Add, {product(x), tensor({kWidth})}, rows)}, rows);
    return add(OpKind::Add, {add(OpKind::Add, {product(inner), tensor({kWidth})}, rows), x}, rows);
  }

  uint64_t next_id_ = 0;
  std::vector<op> ops_;
};

Result<graph> graph_of(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops) PT_TRY(g.add_op(o));
  return g;
}

Status partition_all(const std::vector<op>& ops, int* partitions) {
  PT_ASSIGN(graph g, graph_of(ops));
  PT_TRY(g.finalize());
  PT_ASSIGN(const auto found, g.get_partitions());
  *partitions = static_cast<int>(found.size());
  return {};
}

LatencyCase partitioning(size_t count) {
  return {kLargeGraphs, str("add, finalize, partition ", count, " operators"),
          [=](Row& row, Contender& whole, Contender& tenths) -> Status {
            const auto large = std::make_shared<Layers>(count), small = std::make_shared<Layers>(count / kSmaller);
            PT_TRY(partition_all(large->ops(), &row.partitions));
            whole.run = [large] {
              int partitions = 0;
              return partition_all(large->ops(), &partitions);
            };
            tenths.run = [small]() -> Status {
              int partitions = 0;
              for (int i = 0; i < kSmaller; ++i) PT_TRY(partition_all(small->ops(), &partitions));
              return {};
            };
            return {};
          }};
}

LatencyCase loading(size_t count) {
  return {kLargeGraphs, str("JSON of ", count, " operators to a graph"),
          [=](Row&, Contender& whole, Contender& tenths) -> Status {
            PT_ASSIGN(const graph large, graph_of(Layers(count).ops()));
            PT_ASSIGN(const graph small, graph_of(Layers(count / kSmaller).ops()));
            const auto text = std::make_shared<std::string>(graph_to_json(large)),
                       part = std::make_shared<std::string>(graph_to_json(small));
            whole.run = [text] { return graph_from_json(*text).take_status(); };
            tenths.run = [part]() -> Status {
              for (int i = 0; i < kSmaller; ++i) PT_TRY(graph_from_json(*part).take_status());
              return {};
            };
            return {};
          }};
}

LatencyCase saving(size_t count) {
  return {kLargeGraphs, str("a graph of ", count, " operators to JSON"),
          [=](Row&, Contender& whole, Contender& tenths) -> Status {
            PT_ASSIGN(graph large, graph_of(Layers(count).ops()));
            PT_ASSIGN(graph small, graph_of(Layers(count / kSmaller).ops()));
            const auto kept = std::make_shared<graph>(std::move(large)),
                       part = std::make_shared<graph>(std::move(small));
            whole.run = [kept] {
              benchmark::DoNotOptimize(graph_to_json(*kept).size());
              return Status();
            };
            tenths.run = [part] {
              for (int i = 0; i < kSmaller; ++i) benchmark::DoNotOptimize(graph_to_json(*part).size());
              return Status();
            };
            return {};
          }};
}

}  // namespace

std::vector<LatencyCase> large_graph_cases() {
  return {partitioning(10000), partitioning(100000), loading(10000), loading(100000), saving(10000), saving(100000)};
}

}  // namespace partita::bench
