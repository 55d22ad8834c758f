// SPDX-License-Identifier: Apache-2.0
// Compiling and executing partitions through the C++ interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "partita/partita.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"
#include "tests/support/graph_text.hpp"

namespace partita {
namespace {

using test::final_graph_of;

partition only_partition(std::string_view text) {
  const auto partitions = final_graph_of(text).get_partitions();
  EXPECT_EQ(partitions->size(), 1u);
  return (*partitions)[0];
}

Result<compiled_partition> compiled_of(const partition& p, std::span<const tensor> constants = {}) {
  return p.compile(p.input_ports(), p.output_ports(), engine(), constants);
}

const logical_tensor kPlain(0, Dtype::f32, Dims{4});

TEST(execute, finds_tensors_by_id_in_any_order) {
  const partition p = only_partition("%2: f32[4] = Subtract(%0: f32[4], %1: f32[4])");
  const auto c = compiled_of(p);
  ASSERT_TRUE(c.ok()) << c.status().text();
  float a[4] = {5, 6, 7, 8}, b[4] = {1, 2, 3, 4}, d[4];
  const std::vector<tensor> in = {{logical_tensor(1, Dtype::f32, Dims{4}), b},
                                  {logical_tensor(0, Dtype::f32, Dims{4}), a}};
  const std::vector<tensor> out = {{logical_tensor(2, Dtype::f32, Dims{4}), d}};
  const Status s = c->execute(stream(engine()), in, out);
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(d[3], 4);
}

/// A model that is loaded again may find its weights where those of the one before were.
TEST(execute, constants_of_another_graph_at_the_same_address_are_its_own) {
  ASSERT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 64).ok());
  std::vector<float> x(4 * 64, 1), weights(64 * 48), y(4 * 48);
  for (const float weight : {1.0f, 2.0f}) {
    std::ranges::fill(weights, weight);
    const partition p = only_partition("%2: f32[4,48] = MatMul(%0: f32[4,64], %1: f32[64,48])");
    std::vector<logical_tensor> inputs = p.input_ports();
    inputs[1].property = Property::constant;
    for (int repetition = 0; repetition < 2; ++repetition) {
      const auto c = p.compile(inputs, p.output_ports(), engine());
      ASSERT_TRUE(c.ok()) << c.status().text();
      const std::vector<const void*> in = {x.data(), weights.data()};
      const std::vector<void*> out = {y.data()};
      ASSERT_TRUE(c->execute_at(stream(engine()), in, out).ok());
      EXPECT_EQ(y[0], 64 * weight);
    }
  }
  ASSERT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 0).ok());
}

TEST(execute, refuses_missing_tensors_data_and_other_shapes) {
  const partition p = only_partition("%1: f32[4] = ReLU(%0: f32[4])");
  const auto c = compiled_of(p);
  ASSERT_TRUE(c.ok());
  float x[8] = {};
  const stream s{engine()};
  const std::vector<tensor> in = {{kPlain, x}}, out = {{logical_tensor(1, Dtype::f32, Dims{4}), x + 4}}, none;
  EXPECT_EQ(c->execute(s, none, out).text(), "no input tensor 0 (f32[4]) is given");
  EXPECT_EQ(c->execute(s, in, none).text(), "no output tensor 1 (f32[4]) is given");
  EXPECT_EQ(c->execute(s, std::vector<tensor>{{kPlain, nullptr}}, out).text(), "input tensor 0 has no data");
  EXPECT_EQ(c->execute(s, std::vector<tensor>{{logical_tensor(0, Dtype::f32, Dims{8}), x}}, out).text(),
            "input tensor 0 is f32[8], but was compiled as f32[4]");
  EXPECT_EQ(c->execute(s, std::vector<tensor>{{logical_tensor(0, Dtype::f32, Dims{4}, Dims{2}), x}}, out).text(),
            "input tensor 0 has strides [2], but was compiled with [1]");
}

TEST(execute_at, takes_addresses_in_the_order_of_the_ports) {
  const auto c = compiled_of(only_partition("%2: f32[4] = Subtract(%0: f32[4], %1: f32[4])"));
  ASSERT_TRUE(c.ok()) << c.status().text();
  float x[2][4] = {{5, 6, 7, 8}, {1, 2, 3, 4}}, d[4];
  std::vector<const void*> in;
  for (const logical_tensor& port : c->inputs()) in.push_back(x[port.id]);
  const std::vector<void*> out = {d};
  const Status s = c->execute_at(stream(engine()), in, out);
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(d[3], 4);
}

TEST(execute_at, refuses_another_number_of_addresses_and_null) {
  const auto c = compiled_of(only_partition("%1: f32[4] = ReLU(%0: f32[4])"));
  ASSERT_TRUE(c.ok());
  float x[8] = {};
  const stream s{engine()};
  const std::vector<const void*> in = {x}, null_in = {nullptr};
  const std::vector<void*> out = {x + 4}, two = {x, x + 4};
  EXPECT_EQ(c->execute_at(s, {}, out).text(), "0 input addresses are given, the partition has 1 inputs");
  EXPECT_EQ(c->execute_at(s, in, two).text(), "2 output addresses are given, the partition has 1 outputs");
  EXPECT_EQ(c->execute_at(s, null_in, out).text(), "input tensor 0 has no data");
  EXPECT_EQ(compiled_partition().execute_at(s, in, out).text(), "the compiled partition is empty");
}

TEST(compiled_partition, made_by_default_is_empty) {
  const compiled_partition empty;
  EXPECT_TRUE(empty.inputs().empty());
  EXPECT_TRUE(empty.outputs().empty());
  EXPECT_TRUE(empty.inplace_ports().empty());
  EXPECT_TRUE(empty.steps().empty());
  EXPECT_EQ(empty.scratchpad_bytes(), 0u);
  EXPECT_EQ(empty.query_logical_tensor(0).status().code(), Code::invalid_arguments);
  EXPECT_EQ(empty.execute(stream(engine()), {}, {}).text(), "the compiled partition is empty");
}

TEST(compile, refuses_tensors_with_more_dims_than_there_are) {
  const partition p = only_partition("%1: f32 = ReLU(%0: f32)");
  const std::vector<logical_tensor> many = {logical_tensor(0, Dtype::f32, Dims(13, 2))},
                                    in = {logical_tensor(0, Dtype::f32, Dims{2})},
                                    out = {logical_tensor(1, Dtype::f32, Layout::any)},
                                    many_out = {logical_tensor(1, Dtype::f32, Dims(13, 2), Layout::any)};
  EXPECT_EQ(p.compile(many, out, engine()).status().text(),
            "input tensor 0 (f32[2,2,2,2,2,2,2,2,2,2,2,2,..]): a tensor has at most 12 dims, more were given");
  EXPECT_EQ(p.compile(in, many_out, engine()).status().code(), Code::invalid_arguments);
  const partition highest = only_partition("%1: f32 = ReLU(%0: f32)");
  const std::vector<logical_tensor> twelve = {logical_tensor(0, Dtype::f32, Dims(12, 2))};
  const auto c = highest.compile(twelve, out, engine());
  ASSERT_TRUE(c.ok()) << c.status().text();
  std::vector<float> x(1 << 12), y(1 << 12);
  const Status s = c->execute(stream(engine()), std::vector<tensor>{{many[0], x.data()}},
                              std::vector<tensor>{{c->outputs()[0], y.data()}});
  EXPECT_EQ(s.code(), Code::invalid_arguments) << s.text();
}

TEST(compile, needs_a_known_tensor_for_every_port) {
  const partition p = only_partition("%1: f32 = ReLU(%0: f32[4])");
  const engine e;
  const std::vector<logical_tensor> none,
      unknown = {logical_tensor(0, Dtype::f32, Layout::strided)}, in = {logical_tensor(0, Dtype::f32, Dims{4})},
      out = {logical_tensor(1, Dtype::f32, Layout::any)}, wrong = {logical_tensor(1, Dtype::f32, Dims{5})};
  EXPECT_EQ(p.compile(none, out, e).status().text(), "no tensor is given for input port 0 (f32[4])");
  EXPECT_EQ(p.compile(unknown, out, e).status().code(), Code::invalid_arguments);
  EXPECT_EQ(p.compile(in, wrong, e).status().code(), Code::invalid_shape);
  const auto c = p.compile(in, out, e);
  ASSERT_TRUE(c.ok()) << c.status().text();
  const auto found = c->query_logical_tensor(1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->text(), "f32[4]");
  EXPECT_EQ(found->strides, Dims{1});
  EXPECT_EQ(c->query_logical_tensor(7).status().code(), Code::invalid_arguments);
}

TEST(compile, refuses_a_layout_it_did_not_make) {
  const partition p = only_partition("%1: f32[4] = ReLU(%0: f32[4])");
  logical_tensor opaque(0, Dtype::f32, Dims{4});
  opaque.layout = Layout::opaque;
  opaque.layout_id = 77;
  EXPECT_EQ(p.compile(std::vector{opaque}, p.output_ports(), engine()).status().text(),
            "input tensor 0 (f32[4]): layout id 77 was not made by Partita");
}

TEST(compile, follows_user_strides_of_inputs_and_outputs) {
  const partition p = only_partition("%1: f32[2,3] = Square(%0: f32[2,3])");
  const logical_tensor in(0, Dtype::f32, Dims{2, 3}, Dims{1, 2}), out(1, Dtype::f32, Dims{2, 3}, Dims{4, 1});
  const auto c = p.compile(std::vector{in}, std::vector{out}, engine());
  ASSERT_TRUE(c.ok()) << c.status().text();
  float x[6] = {1, 4, 2, 5, 3, 6}, y[8];
  std::fill(std::begin(y), std::end(y), -1.0f);
  ASSERT_TRUE(c->execute(stream(engine()), std::vector<tensor>{{in, x}}, std::vector<tensor>{{out, y}}).ok());
  const float expected[8] = {1, 4, 9, -1, 16, 25, 36, -1};
  EXPECT_TRUE(std::equal(std::begin(y), std::end(y), expected));
}

TEST(execute, works_in_place_where_the_pair_is_reported) {
  const partition p = only_partition("%1: f32[4] = ReLU(%0: f32[4]); %3: f32[4] = Add(%1, %2: f32[4])");
  const auto c = compiled_of(p);
  ASSERT_TRUE(c.ok());
  const auto pairs = c->inplace_ports();
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].second, 3u);
  float x[4] = {-1, 2, -3, 4}, y[4] = {10, 20, 30, 40};
  float* shared = pairs[0].first == 0 ? x : y;
  const std::vector<tensor> in = {{logical_tensor(0, Dtype::f32, Dims{4}), x},
                                  {logical_tensor(2, Dtype::f32, Dims{4}), y}};
  ASSERT_TRUE(
      c->execute(stream(engine()), in, std::vector<tensor>{{logical_tensor(3, Dtype::f32, Dims{4}), shared}}).ok());
  EXPECT_EQ(shared[0], 10);
  EXPECT_EQ(shared[1], 22);
}

TEST(execute, takes_temporaries_from_the_users_allocator_or_the_scratchpad) {
  const partition p = only_partition(
      "%2: f32[4,4] = MatMul(%0: f32[4,4], %1: f32[4,4]); %3: f32[4,4] = SoftMax(%2) {axis=1}; "
      "%4: f32[4,4] = MatMul(%3, %5: f32[4,4])");
  static std::atomic<int> taken, given;
  taken = given = 0;
  const engine e(EngineKind::cpu, {[](size_t n, size_t a) -> void* {
                                     ++taken;
                                     return std::aligned_alloc(a, (n + a - 1) / a * a);
                                   },
                                   [](void* q) {
                                     ++given;
                                     std::free(q);
                                   }});
  const auto c = p.compile(p.input_ports(), p.output_ports(), e);
  ASSERT_TRUE(c.ok()) << c.status().text();
  ASSERT_GT(c->scratchpad_bytes(), 0u);
  std::vector<float> a(16, 1.0f), b(16, 2.0f), d(16);
  const std::vector<tensor> in = {{p.input_ports()[0], a.data()},
                                  {p.input_ports()[1], b.data()},
                                  {p.input_ports()[2], b.data()}},
                            out = {{p.output_ports()[0], d.data()}};
  ASSERT_TRUE(c->execute(stream(e), in, out).ok());
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(given, 1);
  EXPECT_EQ(d[5], 2);
  void* scratch = std::aligned_alloc(64, (c->scratchpad_bytes() + 63) / 64 * 64);
  ASSERT_TRUE(c->execute(stream(e), in, out, scratch).ok());
  EXPECT_EQ(taken, 1);
  // Kernels would store whole vectors into it: it is left alone.
  ASSERT_TRUE(c->execute(stream(e), in, out, static_cast<std::byte*>(scratch) + 4).ok());
  EXPECT_EQ(taken, 2);
  std::free(scratch);
  const engine poor(EngineKind::cpu, {[](size_t, size_t) -> void* { return nullptr; }, [](void*) {}});
  EXPECT_EQ(c->execute(stream(poor), in, out).code(), Code::out_of_memory);
}

constexpr std::string_view kAvgPoolBackward =
    "%2 = AvgPoolBackward(%0: f32[1,1,2,2], %1: s32[4]) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], "
    "pads_end=[0,0], "
    "exclude_pad=true, data_format=NCX}";

TEST(shape_input, is_used_at_compile_time_where_it_is_constant) {
  const partition p = only_partition(kAvgPoolBackward);
  const int32_t shape[4] = {1, 1, 4, 4};
  const std::vector<tensor> constants = {{logical_tensor(1, Dtype::s32, Dims{4}), const_cast<int32_t*>(shape)}};
  const auto c =
      p.compile(p.input_ports(), std::vector{logical_tensor(2, Dtype::f32, Layout::any)}, engine(), constants);
  ASSERT_TRUE(c.ok()) << c.status().text();
  EXPECT_EQ(c->query_logical_tensor(2)->text(), "f32[1,1,4,4]");
}

TEST(shape_input, is_compared_with_a_given_output_shape_at_execution) {
  const partition p = only_partition(kAvgPoolBackward);
  const logical_tensor out(2, Dtype::f32, Dims{1, 1, 4, 4});
  const auto c = p.compile(p.input_ports(), std::vector{out}, engine());
  ASSERT_TRUE(c.ok()) << c.status().text();
  float dy[4] = {4, 8, 12, 16}, dx[16];
  int32_t shape[4] = {1, 1, 4, 4};
  const std::vector<tensor> in = {{p.input_ports()[0], dy}, {p.input_ports()[1], shape}};
  ASSERT_TRUE(c->execute(stream(engine()), in, std::vector<tensor>{{out, dx}}).ok());
  EXPECT_EQ(dx[0], 1);
  EXPECT_EQ(dx[15], 4);
  const std::vector<const void*> in_at = {dy, shape};
  const std::vector<void*> out_at = {dx};
  EXPECT_TRUE(c->execute_at(stream(engine()), in_at, out_at).ok());
  shape[3] = 5;
  EXPECT_EQ(c->execute_at(stream(engine()), in_at, out_at).code(), Code::invalid_shape);
  const Status s = c->execute(stream(engine()), in, std::vector<tensor>{{out, dx}});
  EXPECT_EQ(s.code(), Code::invalid_shape);
  EXPECT_EQ(s.text(), "op 1 (AvgPoolBackward): `src_shape` says [1,1,4,5], the partition was compiled for [1,1,4,4]");
}

TEST(shape_input, may_arrive_only_at_execution) {
  const partition p = only_partition(kAvgPoolBackward);
  const auto c = p.compile(p.input_ports(), std::vector{logical_tensor(2, Dtype::f32, Layout::any)}, engine());
  ASSERT_TRUE(c.ok()) << c.status().text();
  EXPECT_FALSE(c->query_logical_tensor(2)->shape_known());
  float dy[4] = {4, 8, 12, 16}, dx[16];
  int32_t shape[4] = {1, 1, 4, 4};
  const std::vector<tensor> in = {{p.input_ports()[0], dy}, {p.input_ports()[1], shape}};
  const Status s =
      c->execute(stream(engine()), in, std::vector<tensor>{{logical_tensor(2, Dtype::f32, Dims{1, 1, 4, 4}), dx}});
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(dx[15], 4);
  EXPECT_EQ(c->execute(stream(engine()), in, std::vector<tensor>{{logical_tensor(2, Dtype::f32), dx}}).code(),
            Code::invalid_arguments);
  const std::vector<const void*> in_at = {dy, shape};
  const std::vector<void*> out_at = {dx};
  EXPECT_EQ(c->execute_at(stream(engine()), in_at, out_at).code(),
            Code::invalid_arguments);  // whose shape nobody knows
}

/// Whether the cache has a program for this engine.
bool is_compiled(const partition& p, const Given& given, int threads, const engine& on) {
  bool hit = false;
  EXPECT_TRUE(compile(*p.form(), given, threads, on, &hit).ok());
  return hit;
}

TEST(shape_input, that_arrives_at_execution_is_compiled_for_the_engine_of_compile) {
  const partition p = only_partition(kAvgPoolBackward);
  const engine deterministic(EngineKind::cpu, {.deterministic = true});
  const auto c = p.compile(p.input_ports(), std::vector{logical_tensor(2, Dtype::f32, Layout::any)}, deterministic);
  ASSERT_TRUE(c.ok()) << c.status().text();
  float dy[4] = {4, 8, 12, 16}, dx[20];
  int32_t shape[4] = {1, 1, 5, 4};
  const std::vector<logical_tensor> made = {logical_tensor(2, Dtype::f32, Dims{1, 1, 5, 4})};
  const std::vector<tensor> in = {{p.input_ports()[0], dy}, {p.input_ports()[1], shape}}, constants = {in[1]};
  const Status s = c->execute(stream(engine()), in, std::vector<tensor>{{made[0], dx}});
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_TRUE(is_compiled(p, {p.input_ports(), made, constants}, 0, deterministic));
  EXPECT_FALSE(is_compiled(p, {p.input_ports(), made, constants}, 0, engine()));
}

TEST(execute, without_a_team_runs_what_was_compiled_for_the_engine_of_compile) {
  const partition p = only_partition(
      "%2: f32 = Dequantize(%0: u8[64,64]) {scales=[0.5], zps=[0]}; %3: f32 = Dequantize(%1: s8[64,64]) {scales=[0.5], "
      "zps=[0]}; %4: f32[64,64] = MatMul(%2, %3)");
  const engine deterministic(EngineKind::cpu, {.deterministic = true});
  const Given given{p.input_ports(), p.output_ports(), {}};
  std::vector<int8_t> a(64 * 64, 2), b(64 * 64, 3);
  std::vector<float> d(64 * 64);
  const std::vector<tensor> in = {{p.input_ports()[0], a.data()}, {p.input_ports()[1], b.data()}},
                            out = {{p.output_ports()[0], d.data()}};
  const ThreadScope two(2);
  const auto c = p.compile(p.input_ports(), p.output_ports(), deterministic);
  ASSERT_TRUE(c.ok()) << c.status().text();
  const auto made = compile(*p.form(), given, 2, deterministic);
  ASSERT_TRUE(made.ok()) << made.status().text();
  if (made->executable->team == 1) GTEST_SKIP() << "no product of integers here that is bound to its threads";
  Status s;
#pragma omp parallel num_threads(2)
#pragma omp single
  s = c->execute(stream(engine()), in, out);
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(d[17], 96);
  EXPECT_TRUE(is_compiled(p, given, 1, deterministic)) << "by the execution";
  EXPECT_FALSE(is_compiled(p, given, 1, engine()));
}

TEST(shape_input, of_a_reduction_names_the_axes) {
  const partition p = only_partition("%2 = ReduceSum(%0: f32[2,3], %1: s32[1]) {keep_dims=false}");
  int32_t axes[1] = {1};
  float x[6] = {1, 2, 3, 4, 5, 6}, y[2];
  const std::vector<tensor> in = {{p.input_ports()[0], x}, {p.input_ports()[1], axes}};
  const auto c = p.compile(p.input_ports(), std::vector{logical_tensor(2, Dtype::f32, Layout::any)}, engine());
  ASSERT_TRUE(c.ok()) << c.status().text();
  const Status s = c->execute(stream(engine()), in, std::vector<tensor>{{logical_tensor(2, Dtype::f32, Dims{2}), y}});
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(y[1], 15);
}

TEST(compile, empty_tensors_give_empty_results) {
  const partition p = only_partition("%1: f32[0,3] = ReLU(%0: f32[0,3])");
  const auto c = compiled_of(p);
  ASSERT_TRUE(c.ok()) << c.status().text();
  EXPECT_TRUE(c->execute(stream(engine()), std::vector<tensor>{{p.input_ports()[0], nullptr}},
                         std::vector<tensor>{{p.output_ports()[0], nullptr}})
                  .ok());
}

TEST(compile, reductions_of_empty_tensors_give_what_they_start_from) {
  const std::pair<const char*, float> cases[] = {
      {"%1: f32[] = ReduceSum(%0: f32[0,3]) {axes=[0,1]}", 0.f},
      {"%1: f32[1] = ReduceL2(%0: f32[0]) {axes=[0], keep_dims=true}", 0.f},
      {"%1: f32[] = ReduceProd(%0: f32[3,0]) {axes=[0,1]}", 1.f},
      {"%1: f32[] = ReduceMax(%0: f32[0]) {axes=[0]}", -std::numeric_limits<float>::infinity()},
      {"%1: f32[1] = BiasAddBackward(%0: f32[0,5,1])", 0.f},
  };
  for (const auto& [text, expected] : cases) {
    const partition p = only_partition(text);
    const auto c = compiled_of(p);
    ASSERT_TRUE(c.ok()) << c.status().text();
    float result = std::nanf("");
    const Status s = c->execute(stream(engine()), std::vector<tensor>{{p.input_ports()[0], nullptr}},
                                std::vector<tensor>{{p.output_ports()[0], &result}});
    ASSERT_TRUE(s.ok()) << s.text();
    EXPECT_EQ(result, expected) << text;
  }
}

TEST(compile, batch_normalisation_of_nothing_has_statistics_that_are_no_numbers) {
  for (const char* dims : {"0,4,3", "2,4,0"}) {
    const std::string t = "f32[" + std::string(dims) + "]";
    const partition p = only_partition(
        "%1: " + t + ", %6: f32[4], %7: f32[4], %8: f32[4], %9: f32[4] = " + "BatchNormForwardTraining(%0: " + t +
        ", %2: f32[4], %3: f32[4], %4: f32[4], " + "%5: f32[4]) {epsilon=0.001, data_format=NCX}");
    const auto c = compiled_of(p);
    ASSERT_TRUE(c.ok()) << c.status().text();
    float vectors[8][4] = {};
    std::vector<tensor> in, out;
    size_t next = 0;
    for (const logical_tensor& port : p.input_ports())
      in.emplace_back(port, port.elements() == 0 ? nullptr : vectors[next++]);
    for (const logical_tensor& port : p.output_ports())
      out.emplace_back(port, port.elements() == 0 ? nullptr : vectors[next++]);
    const Status s = c->execute(stream(engine()), in, out);
    ASSERT_TRUE(s.ok()) << s.text();
    for (size_t v = 4; v < 8; ++v)
      for (const float number : vectors[v]) EXPECT_TRUE(std::isnan(number)) << dims;
  }
}

TEST(cache, equal_requests_share_one_program_and_capacity_zero_builds_anew) {
  const std::string text = "%1: f32[4] = ReLU(%0: f32[4])";
  const partition a = only_partition(text), b = only_partition(text);
  const Given given{a.input_ports(), a.output_ports(), {}};
  const auto first = compile(*a.form(), given, 1), second = compile(*b.form(), given, 1),
             other = compile(*b.form(), given, 2);
  EXPECT_EQ(first->executable, second->executable);
  EXPECT_NE(first->executable, other->executable);
  const size_t before = cache_capacity();
  set_cache_capacity(0);
  EXPECT_NE(compile(*a.form(), given, 1)->executable, first->executable);
  set_cache_capacity(1);
  const auto third = compile(*a.form(), given, 1);
  EXPECT_EQ(compile(*a.form(), given, 1)->executable, third->executable);
  EXPECT_TRUE(compile(*a.form(), given, 2).ok());  // pushes the other one out
  EXPECT_NE(compile(*a.form(), given, 1)->executable, third->executable);
  set_cache_capacity(before);
}

TEST(cache, concurrent_equal_requests_build_once) {
  const partition p = only_partition("%1: f32[6,5] = ReLU(%0: f32[6,5])");
  std::vector<std::shared_ptr<const Executable>> made(8);
  std::vector<std::thread> threads;
  for (auto& executable : made)
    threads.emplace_back([&] {
      executable = compile(*p.form(), {p.input_ports(), p.output_ports(), {}}, 1)->executable;
    });
  for (auto& t : threads) t.join();
  for (const auto& executable : made) EXPECT_EQ(executable, made[0]);
}

TEST(cache, tells_requests_apart_by_tensors_and_the_content_of_constants) {
  const partition p = only_partition(kAvgPoolBackward);
  const std::vector<logical_tensor> any = {logical_tensor(2, Dtype::f32, Layout::any)};
  const auto with_shape = [&](int32_t size) {
    int32_t shape[4] = {1, 1, size, size};
    const std::vector<tensor> constants = {{p.input_ports()[1], shape}};
    return compile(*p.form(), {p.input_ports(), any, constants}, 1)->executable;
  };
  EXPECT_EQ(with_shape(4), with_shape(4));
  EXPECT_NE(with_shape(4), with_shape(5));
  const std::vector<logical_tensor> four = {logical_tensor(2, Dtype::f32, Dims{1, 1, 4, 4})},
                                    strided = {logical_tensor(2, Dtype::f32, Dims{1, 1, 4, 4}, Dims{64, 64, 8, 1})};
  const auto dense = compile(*p.form(), {p.input_ports(), four, {}}, 1)->executable;
  EXPECT_NE(dense, with_shape(4));
  EXPECT_NE(dense, compile(*p.form(), {p.input_ports(), strided, {}}, 1)->executable);
}

TEST(cache, keeps_what_was_used_last) {
  const partition p = only_partition("%1: f32[7] = ReLU(%0: f32[7])");
  const auto executable = [&](int threads) {
    return compile(*p.form(), {p.input_ports(), p.output_ports(), {}}, threads)->executable;
  };
  const size_t before = cache_capacity();
  set_cache_capacity(2);
  const auto one = executable(1), two = executable(2);
  EXPECT_EQ(executable(1), one);
  EXPECT_TRUE(executable(3));  // pushes out the program for two threads
  EXPECT_EQ(executable(1), one);
  EXPECT_NE(executable(2), two);
  set_cache_capacity(before);
}

TEST(cache, engines_with_allocators_have_programs_of_their_own_until_they_are_forgotten) {
  const partition p = only_partition("%1: f32[9] = ReLU(%0: f32[9])");
  const engine first(EngineKind::cpu, allocator::standard()), second(EngineKind::cpu, allocator::standard());
  const engine copy = first;
  EXPECT_EQ(engine().identity(), engine().identity());
  EXPECT_EQ(copy.identity(), first.identity());
  EXPECT_NE(first.identity(), second.identity());
  EXPECT_NE(first.identity(), engine().identity());
  bool hit = false;
  const auto executable = [&](const engine& on) {
    return compile(*p.form(), {p.input_ports(), p.output_ports(), {}}, 1, on, &hit)->executable;
  };
  const auto kept = executable(first);
  EXPECT_FALSE(hit);
  EXPECT_EQ(executable(copy), kept);
  EXPECT_TRUE(hit);
  EXPECT_NE(executable(second), kept);
  EXPECT_FALSE(hit);
  EXPECT_NE(executable(engine()), kept);
  forget_engine(first.identity());
  EXPECT_NE(executable(first), kept);
  EXPECT_FALSE(hit);
  executable(second);
  EXPECT_TRUE(hit);
}

TEST(cache, failures_are_not_kept) {
  const partition p = only_partition("%1: f32 = ReLU(%0: f32[4])");
  const std::vector<logical_tensor> wrong = {logical_tensor(1, Dtype::f32, Dims{5})};
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(compile(*p.form(), {p.input_ports(), wrong, {}}, 1).status().code(), Code::invalid_shape);
}

TEST(execute, one_compiled_partition_runs_on_many_threads_at_once) {
  const partition p = only_partition("%2: f32[8,8] = MatMul(%0: f32[8,8], %1: f32[8,8]); %3: f32[8,8] = Exp(%2)");
  const auto c = compiled_of(p);
  ASSERT_TRUE(c.ok());
  std::atomic<int> wrong = 0;
  auto work = [&](float scale) {
    std::vector<float> a(64, scale), b(64, 0.01f), d(64);
    const std::vector<tensor> in = {{p.input_ports()[0], a.data()}, {p.input_ports()[1], b.data()}},
                              out = {{p.output_ports()[0], d.data()}};
    for (int i = 0; i < 50; ++i) {
      if (!c->execute(stream(engine(), 1), in, out).ok()) ++wrong;
      if (std::fabs(d[17] - std::exp(scale * 0.08f)) > 1e-4f) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) threads.emplace_back(work, static_cast<float>(t));
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace partita
