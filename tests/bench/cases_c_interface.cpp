// SPDX-License-Identifier: Apache-2.0
// What calls through the C interface of libpartita_dnnl_graph.so cost above the same calls through the C++ interface.
#include <oneapi/dnnl/dnnl_common.h>

#include <memory>

#include "partita/dnnl_graph.h"
#include "partita/partita.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

using Lt = dnnl_graph_logical_tensor_t;

Status checked(dnnl_status_t status) {
  if (status == dnnl_success) return {};
  return fail(static_cast<Code>(status), partita_last_error());
}

template <class T>
Status status_of(const Result<T>& result) {
  return result.ok() ? Status() : fail(result.status().code(), result.status().text());
}

Lt dense(size_t id, const Dims& dims) {
  Lt t{};
  dnnl_graph_logical_tensor_init_with_dims(&t, id, dnnl_f32, dims.size(), dims.begin(), dnnl_graph_layout_type_strided,
                                           dnnl_graph_tensor_property_undef);
  return t;
}

logical_tensor direct(const Lt& t) {
  return {t.id, Dtype::f32, Dims(std::span<const int64_t>(t.dims, static_cast<size_t>(t.ndims)))};
}

/// Everything that is made for one row, and destroyed with it. Each operator is in a graph of the C++ interface, too.
struct Client {
  partita::graph twin;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_graph_graph_t graph = nullptr;
  std::vector<dnnl_graph_partition_t> partitions;
  dnnl_graph_compiled_partition_t compiled = nullptr;
  std::vector<dnnl_graph_tensor_t> tensors;
  std::vector<float> memory;

  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    for (auto t : tensors) dnnl_graph_tensor_destroy(t);
    if (compiled) dnnl_graph_compiled_partition_destroy(compiled);
    for (auto p : partitions) dnnl_graph_partition_destroy(p);
    if (graph) dnnl_graph_graph_destroy(graph);
    if (stream) dnnl_stream_destroy(stream);
    if (engine) dnnl_engine_destroy(engine);
  }

  Status open() {
    PT_TRY(checked(dnnl_engine_create(&engine, dnnl_cpu, 0)));
    PT_TRY(checked(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags)));
    return checked(dnnl_graph_graph_create(&graph, dnnl_cpu));
  }
  Status add(size_t id, dnnl_graph_op_kind_t kind, const std::vector<Lt>& in, const Lt& out) {
    dnnl_graph_op_t op = nullptr;
    PT_TRY(checked(dnnl_graph_op_create(&op, id, kind, "")));
    for (const Lt& t : in) dnnl_graph_op_add_input(op, &t);
    dnnl_graph_op_add_output(op, &out);
    Status added = checked(dnnl_graph_add_op(graph, op));
    dnnl_graph_op_destroy(op);
    PT_TRY(std::move(added));
    partita::op same(id, static_cast<OpKind>(kind), {}, {direct(out)});
    for (const Lt& t : in) same.inputs.push_back(direct(t));
    return twin.add_op(same);
  }
  Status finalize() {
    PT_TRY(checked(dnnl_graph_graph_finalize(graph)));
    return twin.finalize();
  }
  /// The only partition of the twin.
  Result<partita::partition> twin_partition() {
    PT_ASSIGN(const auto all, twin.get_partitions());
    if (all.size() != 1) return fail(Code::runtime_error, str(all.size(), " partitions in place of one"));
    return all[0];
  }
  Status partition() {
    size_t count = 0;
    PT_TRY(checked(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion)));
    PT_TRY(checked(dnnl_graph_graph_get_partition_num(graph, &count)));
    for (auto p : partitions) dnnl_graph_partition_destroy(p);
    partitions.assign(count, nullptr);
    return checked(dnnl_graph_graph_get_partitions(graph, count, partitions.data()));
  }
  Status compile(const std::vector<Lt>& in, const Lt& out) {
    std::vector<const Lt*> inputs;
    for (const Lt& t : in) inputs.push_back(&t);
    const Lt* output = &out;
    if (!compiled) PT_TRY(checked(dnnl_graph_compiled_partition_create(&compiled, partitions[0])));
    return checked(
        dnnl_graph_partition_compile(partitions[0], compiled, inputs.size(), inputs.data(), 1, &output, engine));
  }
};

/// ReLU of 16 elements, executed.
LatencyCase execution() {
  return {kDoors, "execute ReLU of 16 elements, through C",
          [](Row& row, Contender& through_c, Contender& direct_side) -> Status {
            const auto client = std::make_shared<Client>();
            const Lt in = dense(0, {16}), out = dense(1, {16});
            PT_TRY(client->open());
            PT_TRY(client->add(1, dnnl_graph_op_relu, {in}, out));
            PT_TRY(client->finalize());
            PT_TRY(client->partition());
            PT_TRY(client->compile({in}, out));
            client->memory.assign(32, -1);
            client->tensors.resize(2);
            PT_TRY(checked(dnnl_graph_tensor_create(&client->tensors[0], &in, client->engine, client->memory.data())));
            PT_TRY(checked(
                dnnl_graph_tensor_create(&client->tensors[1], &out, client->engine, client->memory.data() + 16)));
            row.partitions = 1;
            through_c.run = [client] {
              const_dnnl_graph_tensor_t from = client->tensors[0], to = client->tensors[1];
              const dnnl_status_t done =
                  dnnl_graph_compiled_partition_execute(client->compiled, client->stream, 1, &from, 1, &to);
              return done == dnnl_success ? Status() : checked(done);
            };
            PT_ASSIGN(const auto group, client->twin_partition());
            const engine cpu;
            PT_ASSIGN(const auto compiled, group.compile(group.input_ports(), group.output_ports(), cpu));
            direct_side.run = [client, compiled, on = partita::stream(cpu),
                               from = tensor(direct(in), client->memory.data()),
                               to = tensor(direct(out), client->memory.data() + 16)] {
              return compiled.execute(on, std::span(&from, 1), std::span(&to, 1));
            };
            return {};
          }};
}

/// Multiply and Add, compiled again and again.
LatencyCase cache_hit() {
  return {kDoors, "compile Multiply > Add, cached, through C",
          [](Row& row, Contender& through_c, Contender& direct_side) -> Status {
            const auto client = std::make_shared<Client>();
            const Dims dims{64, 1024};
            const std::vector<Lt> in = {dense(0, dims), dense(1, dims), dense(3, dims)};
            const Lt product = dense(2, dims), out = dense(4, dims);
            PT_TRY(client->open());
            PT_TRY(client->add(1, dnnl_graph_op_multiply, {in[0], in[1]}, product));
            PT_TRY(client->add(2, dnnl_graph_op_add, {product, in[2]}, out));
            PT_TRY(client->finalize());
            PT_TRY(client->partition());
            row.partitions = static_cast<int>(client->partitions.size());
            through_c.run = [client, in, out] { return client->compile(in, out); };
            PT_ASSIGN(const auto group, client->twin_partition());
            direct_side.run = [client, group, cpu = engine(), inputs = group.input_ports(),
                               outputs = group.output_ports()] {
              return status_of(group.compile(inputs, outputs, cpu));
            };
            return {};
          }};
}

/// A residual network of matrix multiplications, normalisations and element-wise operators, 500 in all.
LatencyCase partitioning() {
  return {kDoors, "partition 500 operators, through C",
          [](Row& row, Contender& through_c, Contender& direct_side) -> Status {
            const auto client = std::make_shared<Client>();
            const Dims square{64, 64};
            size_t tensor = 0, id = 0;
            const auto next = [&] { return dense(++tensor, square); };
            PT_TRY(client->open());
            Lt x = next();
            while (id < 500) {
              const Lt product = next(), biased = next(), active = next(), scaled = next(), sum = next();
              PT_TRY(client->add(++id, dnnl_graph_op_matmul, {x, next()}, product));
              PT_TRY(client->add(++id, dnnl_graph_op_add, {product, next()}, biased));
              PT_TRY(client->add(++id, dnnl_graph_op_gelu, {biased}, active));
              PT_TRY(client->add(++id, dnnl_graph_op_multiply, {active, next()}, scaled));
              PT_TRY(client->add(++id, dnnl_graph_op_add, {scaled, x}, sum));
              x = sum;
            }
            PT_TRY(client->finalize());
            PT_TRY(client->partition());
            row.partitions = static_cast<int>(client->partitions.size());
            through_c.run = [client] { return client->partition(); };
            direct_side.run = [client] { return status_of(client->twin.get_partitions()); };
            return {};
          }};
}

}  // namespace

std::vector<LatencyCase> c_interface_cases() { return {execution(), cache_hit(), partitioning()}; }

}  // namespace partita::bench
