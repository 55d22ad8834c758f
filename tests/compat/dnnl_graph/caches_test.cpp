// SPDX-License-Identifier: Apache-2.0
// The compiled-partition cache and the capacities, through the C interface. PARTITA_VERBOSE is set for this program:
// its lines tell hits from misses.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/compat/dnnl_graph/handles.hpp"

namespace partita::test {
namespace {

/// What is printed to stdout while `body` runs.
template <class Body>
std::string printed_by(Body&& body) {
  testing::internal::CaptureStdout();
  body();
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

size_t count_of(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

struct Seen {
  size_t misses, hits;
};
template <class Body>
Seen seen_by(Body&& body) {
  const std::string text = printed_by(body);
  return {count_of(text, "compile:cache_miss"), count_of(text, "compile:cache_hit")};
}

/// An operator with an id that no other test uses.
PartitionHandle relu(size_t id) { return partition_of(make_op(id, dnnl_graph_op_relu, {lt(0, {4})}, {lt(1, {4})})); }

void compile_relu(const PartitionHandle& p, const Engine& engine) {
  const Compiled c = make_compiled(p);
  EXPECT_STATUS(compile(p, c, {lt(0, {4})}, {lt(1, {4})}, engine), dnnl_success);
}

class Capacity {
 public:
  explicit Capacity(int wanted) {
    EXPECT_EQ(dnnl_graph_get_compiled_partition_cache_capacity(&before_), dnnl_success);
    EXPECT_EQ(dnnl_graph_set_compiled_partition_cache_capacity(wanted), dnnl_success);
  }
  ~Capacity() { EXPECT_EQ(dnnl_graph_set_compiled_partition_cache_capacity(before_), dnnl_success); }

 private:
  int before_ = 0;
};

TEST(dnnl_graph_cache, capacity_is_1024_and_may_be_set) {
  int capacity = 0;
  ASSERT_EQ(dnnl_graph_get_compiled_partition_cache_capacity(&capacity), dnnl_success);
  EXPECT_EQ(capacity, 1024);
  {
    const Capacity few(3);
    EXPECT_EQ(dnnl_graph_get_compiled_partition_cache_capacity(&capacity), dnnl_success);
    EXPECT_EQ(capacity, 3);
  }
  EXPECT_STATUS(dnnl_graph_get_compiled_partition_cache_capacity(nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_set_compiled_partition_cache_capacity(-1), dnnl_invalid_arguments);
}

TEST(dnnl_graph_cache, the_same_graph_built_anew_hits) {
  const Engine engine = make_engine();
  EXPECT_EQ(seen_by([&] { compile_relu(relu(1001), engine); }).misses, 1u);
  EXPECT_EQ(seen_by([&] { compile_relu(relu(1001), engine); }).hits, 1u);
  EXPECT_EQ(seen_by([&] { compile_relu(relu(1002), engine); }).misses, 1u) << "another operator id";
}

TEST(dnnl_graph_cache, capacity_0_keeps_nothing) {
  const Engine engine = make_engine();
  compile_relu(relu(1003), engine);
  const Capacity none(0);
  EXPECT_EQ(seen_by([&] { compile_relu(relu(1003), engine); }).misses, 1u);
}

TEST(dnnl_graph_cache, holds_the_engine_with_its_allocator) {
  const Allocator allocator = make_allocator(nullptr, nullptr);
  const Engine plain = make_engine();
  compile_relu(relu(1004), plain);
  dnnl_engine_t address = nullptr;
  {
    const Engine first = make_engine(allocator);
    address = first.get();
    EXPECT_EQ(seen_by([&] { compile_relu(relu(1004), first); }).misses, 1u);
    EXPECT_EQ(seen_by([&] { compile_relu(relu(1004), first); }).hits, 1u);
    const Engine second = make_engine(allocator);
    EXPECT_EQ(seen_by([&] { compile_relu(relu(1004), second); }).misses, 1u);
  }
  // Engines that come after one that is gone find nothing of it, at its address or elsewhere.
  std::vector<Engine> later;
  bool met = false;
  for (int k = 0; k < 64; ++k) {
    later.push_back(make_engine(allocator));
    met = met || later.back().get() == address;
    EXPECT_EQ(seen_by([&] { compile_relu(relu(1004), later.back()); }).misses, 1u);
  }
  RecordProperty("address_met_again", met);
}

TEST(dnnl_graph_cache, an_allocator_takes_its_engines_entries_along) {
  const Engine engine = [] {
    const Allocator allocator = make_allocator(nullptr, nullptr);
    Engine made = make_engine(allocator);
    compile_relu(relu(1005), made);
    return made;
  }();
  // Now the engine is one with the standard allocator.
  EXPECT_EQ(seen_by([&] { compile_relu(relu(1005), engine); }).misses, 1u);
}

TEST(dnnl_graph_cache, concurrent_compiles_of_one_key_build_once) {
  const Engine engine = make_engine();
  const PartitionHandle p = relu(1006);
  const Seen seen = seen_by([&] {
    std::vector<std::thread> threads;
    for (int k = 0; k < 8; ++k) threads.emplace_back([&] { compile_relu(p, engine); });
    for (std::thread& t : threads) t.join();
  });
  EXPECT_EQ(seen.misses, 1u);
  EXPECT_EQ(seen.hits, 7u);
}

TEST(dnnl_graph_cache, capacity_of_constant_tensors) {
  size_t megabytes = 7;
  int flag = 7;
  EXPECT_EQ(dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 0), dnnl_success);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache(&flag), dnnl_success);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 12), dnnl_success);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &megabytes), dnnl_success);
  EXPECT_EQ(megabytes, 12u);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_gpu, &megabytes), dnnl_success);
  EXPECT_EQ(megabytes, 0u);
  EXPECT_EQ(dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, SIZE_MAX), dnnl_success);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &megabytes), dnnl_success);
  EXPECT_EQ(megabytes, SIZE_MAX >> 20);
  EXPECT_EQ(dnnl_graph_set_constant_tensor_cache(0), dnnl_success);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &megabytes), dnnl_success);
  EXPECT_EQ(megabytes, 0u);
  EXPECT_EQ(dnnl_graph_set_constant_tensor_cache(1), dnnl_success);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache(&flag), dnnl_success);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(dnnl_graph_set_constant_tensor_cache(0), dnnl_success);
  EXPECT_STATUS(dnnl_graph_set_constant_tensor_cache(-1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_get_constant_tensor_cache(nullptr), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, nullptr), dnnl_invalid_arguments);
}

TEST(dnnl_graph_verbose, has_a_line_for_each_compile_and_execution) {
  const Engine engine = make_engine();
  const Stream stream = make_stream(engine);
  const PartitionHandle p = relu(1007);
  const Compiled c = make_compiled(p);
  float numbers[4] = {};
  const std::string text = printed_by([&] {
    EXPECT_STATUS(compile(p, c, {lt(0, {4})}, {lt(1, {4})}, engine), dnnl_success);
    const Tensor in = make_tensor(lt(0, {4}), engine, numbers), out = make_tensor(lt(1, {4}), engine, numbers);
    EXPECT_STATUS(execute(c, stream, {&in}, {&out}), dnnl_success);
  });
  size_t id = 0;
  EXPECT_EQ(dnnl_graph_partition_get_id(p.get(), &id), dnnl_success);
  const std::string head = "cpu," + std::to_string(id) + ",";
  EXPECT_EQ(count_of(text, "\n"), 2u) << text;
  EXPECT_EQ(text.find("partita_verbose,v1,graph,compile:cache_miss," + head), 0u) << text;
  EXPECT_NE(text.find("\npartita_verbose,v1,graph,exec," + head), text.npos) << text;
  EXPECT_EQ(count_of(text, "ReLU_1007"), 2u) << text;
  EXPECT_EQ(count_of(text, "in0_f32:0:strided:undef:4:1 out0_f32:1:strided:undef:4:1,fpm:strict,"), 2u) << text;
  EXPECT_NE(text.find(",scratchpad:library\n"), text.npos) << text;
}

class InEmptyFolder {
 public:
  InEmptyFolder() : before_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "partita_dump_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::current_path(folder_);
  }
  ~InEmptyFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  static std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(".")) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  static std::string text_of(const std::string& name) {
    std::ifstream in(name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path before_, folder_;
};

dnnl_status_t set_dump_mode(int mode) { return dnnl_graph_set_dump_mode(static_cast<dnnl_graph_dump_mode_t>(mode)); }

TEST(dnnl_graph_dump, writes_what_the_mode_says) {
  const InEmptyFolder folder;
  const Engine engine = make_engine();
  const auto run = [&](int mode) {
    ASSERT_EQ(set_dump_mode(mode), dnnl_success);
    const Graph g = make_graph();
    ASSERT_EQ(add(g, make_op(1, dnnl_graph_op_relu, {lt(0, {4})}, {unknown_lt(1)}, "first")), dnnl_success);
    ASSERT_EQ(add(g, make_op(2, dnnl_graph_op_abs, {unknown_lt(1)}, {unknown_lt(2)})), dnnl_success);
    const auto partitions = partitions_of(g);
    const Compiled c = make_compiled(partitions.at(0));
    EXPECT_STATUS(compile(partitions[0], c, {lt(0, {4})}, {unknown_lt(2)}, engine), dnnl_success);
    ASSERT_EQ(set_dump_mode(0), dnnl_success);
  };
  run(0);
  EXPECT_TRUE(InEmptyFolder::files().empty());
  const std::string told = printed_by([&] { run(2); });
  auto files = InEmptyFolder::files();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(count_of(told, "serialize graph to a json file graph-"), 2u) << told;
  EXPECT_EQ(files[0].find("graph-"), 0u);
  EXPECT_NE(files[0].find("-partitioning.json"), std::string::npos);
  EXPECT_NE(InEmptyFolder::text_of(files[0]).find("\"partition_id\""), std::string::npos);
  EXPECT_NE(InEmptyFolder::text_of(files[1]).find("\"first\""), std::string::npos);
  for (const auto& f : files) std::filesystem::remove(f);
  run(1);
  files = InEmptyFolder::files();
  ASSERT_EQ(files.size(), 1u);
  // Shapes are inferred: the inner tensor has four elements, too.
  const std::string text = InEmptyFolder::text_of(files[0]);
  EXPECT_EQ(text.find("-9223372036854775808"), text.npos) << text;
  EXPECT_STATUS(set_dump_mode(4), dnnl_invalid_arguments);
}

}  // namespace
}  // namespace partita::test
