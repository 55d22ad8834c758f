// SPDX-License-Identifier: Apache-2.0
// What a call costs where there is next to nothing to compute: executing and compiling small partitions.
#include <benchmark/benchmark.h>

#include <memory>

#include "src/base/check.hpp"
#include "src/compile/compile.hpp"
#include "tests/bench/case.hpp"
#include "tests/bench/partita_side.hpp"

namespace partita::bench {
namespace {

using dnnl::algorithm;

/// While it lives neither library keeps what it compiled.
class NoCaches {
 public:
  NoCaches() : partita_(cache_capacity()), onednn_(dnnl::get_primitive_cache_capacity()) {
    set_cache_capacity(0);
    dnnl::set_primitive_cache_capacity(0);
  }
  ~NoCaches() {
    set_cache_capacity(partita_);
    dnnl::set_primitive_cache_capacity(onednn_);
  }
  NoCaches(const NoCaches&) = delete;
  NoCaches& operator=(const NoCaches&) = delete;

 private:
  size_t partita_;
  int onednn_;
};

/// A small graph and the chain for it, with the memory of both.
struct Small {
  using Graph = void (*)(Net&);
  using Primitives = void (*)(Chain&);

  Small(Graph graph, Primitives primitives) : write_chain(primitives) {
    graph(net);
    for (const Net::Input& input : net.inputs()) {
      const Shape& shape = net.shape(input.value);
      inputs.emplace_back(shape.bytes());
      fill(inputs.back().data(), shape, input.range, /*seed=*/1);
      places_in.push_back({shape, inputs.back().data()});
    }
    for (Value value : net.outputs()) {
      outputs.emplace_back(net.shape(value).bytes());
      places_out.push_back({net.shape(value), outputs.back().data()});
    }
  }
  Chain chain() const {
    Chain made(kVariant, places_in, places_out);
    write_chain(made);
    return made;
  }

  static constexpr Variant kVariant{Dtype::f32, Order::nxc};
  Net net{kVariant};
  Primitives write_chain;
  std::vector<Memory> inputs, outputs;
  std::vector<Chain::Place> places_in, places_out;
};

void relu16(Net& n) { n.output(n.op(OpKind::ReLU, {n.input({16})}, {16})); }
void relu16(Chain& c) { c.eltwise(algorithm::eltwise_relu, c.in(0), c.out(0)); }

void multiply_add(Net& n) {
  const Dims dims{64, 1024};
  const Value product = n.op(OpKind::Multiply, {n.input(dims), n.input(dims)}, dims);
  n.output(n.op(OpKind::Add, {product, n.input(dims)}, dims));
}
void multiply_add(Chain& c) {
  c.multiply(c.in(0), c.in(1), c.out(0));
  c.add(c.out(0), c.in(2), c.out(0));
}

const Dims kWide{1, 16, 56, 56};
constexpr Window kStem = {.kernel = 3, .stride = 2, .pad = 1};

void pool_relu(Net& n) {
  const Value pooled =
      n.op(OpKind::AvgPoolBackward, {n.input(kStem.pooled(kWide))}, kWide, pool_attributes(kStem, true));
  n.output(n.op(OpKind::ReLUBackward, {n.input(kWide), pooled}, kWide));
}
void pool_relu(Chain& c) {
  c.average_pool_backward(c.in(0), kStem, c.out(0));
  c.relu_backward(c.in(1), c.out(0), c.out(0));
}

void max_pool_relu(Net& n) {
  const Value source = n.input(kWide);
  const Value pooled =
      n.op(OpKind::MaxPoolBackward, {source, n.input(kStem.pooled(kWide))}, kWide, pool_attributes(kStem, false));
  n.output(n.op(OpKind::ReLUBackward, {source, pooled}, kWide));
}
void max_pool_relu(Chain& c) {
  c.max_pool_backward(c.in(0), c.in(1), kStem, c.out(0));
  c.relu_backward(c.in(0), c.out(0), c.out(0));
}

LatencyCase execution(const char* name, Small::Graph graph, Small::Primitives primitives) {
  return {kLatencies, name, [=](Row& row, Contender& partita, Contender& onednn) -> Status {
            const auto small = std::make_shared<Small>(graph, primitives);
            PT_ASSIGN(PartitaSide side, PartitaSide::make(small->net, small->inputs, /*threads=*/0));
            const auto compiled = std::make_shared<PartitaSide>(std::move(side));
            const auto chain = std::make_shared<Chain>(small->chain());
            PT_TRY(compiled->run());
            chain->run();
            for (size_t i = 0; i < small->outputs.size(); ++i) {
              const Shape& shape = small->places_out[i].shape;
              const std::string found = difference(compiled->output(i).data(), shape.dtype, small->outputs[i].data(),
                                                   shape.dtype, shape.elements(), /*tolerance=*/1e-6);
              if (!found.empty()) return fail(Code::runtime_error, found);
            }
            row.partitions = compiled->partitions();
            row.partita_kernels = compiled->kernels();
            row.onednn_kernels = chain->kernels();
            partita.run = [compiled, small] { return compiled->run(); };
            onednn.run = [chain, small] { return chain->run(), Status(); };
            return {};
          }};
}

LatencyCase compilation(const char* name, Small::Graph graph, Small::Primitives primitives, bool cached) {
  return {kLatencies, name, [=](Row& row, Contender& partita, Contender& onednn) -> Status {
            const auto small = std::make_shared<Small>(graph, primitives);
            PT_ASSIGN(const partita::graph built, small->net.build());
            PT_ASSIGN(const std::vector<partition> groups, built.get_partitions(Policy::fusion));
            if (groups.size() != 1) return fail(Code::runtime_error, "the graph must be one partition");
            row.partitions = 1;
            row.onednn_kernels = small->chain().kernels();
            const auto uncached = cached ? nullptr : std::make_shared<NoCaches>();
            partita.run = [small, uncached, group = groups.front(), cpu = engine()] {
              const auto compiled = group.compile(group.input_ports(), group.output_ports(), cpu);
              benchmark::DoNotOptimize(&compiled);
              return compiled.ok() ? Status() : fail(Code::runtime_error, compiled.status().text());
            };
            onednn.run = [small, uncached] {
              const Chain chain = small->chain();
              benchmark::DoNotOptimize(&chain);
              return Status();
            };
            return {};
          }};
}

}  // namespace

std::vector<LatencyCase> latency_cases() {
  return {
      execution("execute ReLU of 16 elements", relu16, relu16),
      compilation("compile Multiply > Add", multiply_add, multiply_add, /*cached=*/false),
      compilation("compile avg 3x3 backward > ReLU", pool_relu, pool_relu, /*cached=*/false),
      compilation("compile max 3x3 backward > ReLU", max_pool_relu, max_pool_relu, /*cached=*/false),
      compilation("compile Multiply > Add, cached", multiply_add, multiply_add, /*cached=*/true),
  };
}

}  // namespace partita::bench
