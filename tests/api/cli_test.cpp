// SPDX-License-Identifier: Apache-2.0
// The partita command from outside: exit codes, messages, and the form of what it prints.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "partita/json.hpp"
#include "partita/registry.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kData = PARTITA_SOURCE_DIR "/tests/data";

struct Ran {
  int exit_code = -1;
  std::string out, err;
};

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class cli : public testing::Test {
 protected:
  cli() { fs::create_directories(folder_); }
  ~cli() override { fs::remove_all(folder_); }

  /// `environment`: "NAME=value ".
  Ran partita(const std::string& arguments, const std::string& environment = {}) {
    const std::string err = (folder_ / "stderr").string();
    FILE* pipe = popen((environment + "\"" PARTITA_COMMAND "\" " + arguments + " 2>\"" + err + "\"").c_str(), "r");
    Ran ran;
    if (!pipe) return ran;
    std::array<char, 4096> block;
    while (const size_t got = fread(block.data(), 1, block.size(), pipe)) ran.out.append(block.data(), got);
    const int status = pclose(pipe);
    ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ran.err = content_of(err);
    return ran;
  }
  std::string written(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  const fs::path folder_ = fs::temp_directory_path() /
                           ("partita_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
                            "_" + std::to_string(getpid()));
};

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(json::parse(line, nullptr, /*allow_exceptions=*/false));
  return lines;
}

void expect_an_error(const Ran& ran, const std::string& text) {
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.err.starts_with("partita: ")) << ran.err;
  EXPECT_NE(ran.err.find(text), std::string::npos) << ran.err;
}

TEST_F(cli, without_arguments_prints_help_and_fails) {
  const Ran ran = partita("");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find("explain"), std::string::npos);
}

TEST_F(cli, prints_its_version) {
  const Ran ran = partita("--version");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "partita " PARTITA_VERSION "\n");
}

TEST_F(cli, every_command_has_help_with_an_example) {
  for (const char* command : {"run", "check", "explain", "show", "ops", "bench", "docs"}) {
    const Ran ran = partita(std::string(command) + " --help");
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_NE(ran.out.find("Example"), std::string::npos) << command;
    EXPECT_NE(ran.out.find(std::string("  partita ") + command), std::string::npos) << ran.out;
  }
}

TEST_F(cli, names_the_command_or_operator_that_was_meant) {
  expect_an_error(partita("explian"), "`explian` is no command, did you mean `explain`?");
  expect_an_error(partita("ops SoftMaxx"), "did you mean `SoftMax`?");
  expect_an_error(partita("show --in-shapes 99:2x3 " + kData + "/op/Abs.json"), "--in-shapes");
  expect_an_error(partita("run --policy=none " + kData + "/op/ReLU.json"), "none not in {fusion,debug}");
  expect_an_error(partita("run --format=xml " + kData + "/op/ReLU.json"), "--format");
}

TEST_F(cli, run_prints_one_json_object_a_file) {
  const Ran ran = partita("run --format=json --verify " + kData + "/op/ReLU.json " + kData + "/op/Tanh.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const auto lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 2u) << ran.out;
  const json& first = lines[0];
  EXPECT_EQ(first["file"], kData + "/op/ReLU.json");
  EXPECT_EQ(first["ops"], 2);
  EXPECT_EQ(first["verified"], true);
  EXPECT_TRUE(first["max_error"].is_number());
  EXPECT_TRUE(first["error"].is_null());
  EXPECT_TRUE(first["compile_ms"].is_number() && first["exec_ms"].is_number());
  ASSERT_EQ(first["partitions"].size(), 2u);
  const json& partition = first["partitions"][0];
  EXPECT_TRUE(partition["id"].is_number_unsigned());
  EXPECT_EQ(partition["ops"], json::array({1}));
  EXPECT_EQ(partition["pattern"], "single_op");
  EXPECT_EQ(partition["supported"], true);
  EXPECT_EQ(partition["kernels"].size(), 1u);
  EXPECT_EQ(partition["bytes"], 2 * 2 * 3 * 4 * 5 * 4);
  EXPECT_TRUE(partition["compile_ms"].is_number() && partition["exec_ms"].is_number());
}

TEST_F(cli, run_says_null_where_nothing_was_verified) {
  const auto lines = lines_of(partita("run --format=json " + kData + "/op/ReLU.json").out);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0]["verified"].is_null());
  EXPECT_TRUE(lines[0]["max_error"].is_null());
}

TEST_F(cli, a_failing_file_does_not_stop_the_others) {
  const std::string bad = written("bad.json", "{\"graph\": [");
  const Ran ran = partita("run --format=json --verify " + bad + " " + kData + "/op/ReLU.json");
  expect_an_error(ran, bad + ":1");
  const auto lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0]["error"].is_string());
  EXPECT_TRUE(lines[0]["verified"].is_null());
  EXPECT_EQ(lines[1]["verified"], true);
}

/// Large numbers that cancel, which references add up in f64, kernels in f32. To be run operator by operator: fused,
/// the error of the bound excuses that of what is made of it.
constexpr std::string_view kCancelling =
    "%1: f32[64] = Clamp(%0: f32[64]) {min=0.3, max=0.3}; %2 = HardSigmoid(%1) {alpha=1e6, beta=-3e5}";

TEST_F(cli, run_exits_with_1_where_a_result_differs_from_the_reference) {
  const std::string file = written("wrong.json", graph_to_json(*graph_of(kCancelling)));
  EXPECT_EQ(partita("run " + file).exit_code, 0) << "nothing was compared";
  EXPECT_EQ(partita("run --verify " + file).exit_code, 0);
  const Ran table = partita("run --verify --policy=debug " + file);
  EXPECT_EQ(table.exit_code, 1) << table.err;
  EXPECT_NE(table.out.find("WRONG: partition of ops 2 (single_op): output tensor 2 (f32[64]): element "),
            std::string::npos)
      << table.out;
  const auto lines =
      lines_of(partita("run --verify --policy=debug --format=json " + file + " " + kData + "/op/ReLU.json").out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["verified"], false);
  EXPECT_GT(lines[0]["max_error"], 0);
  EXPECT_NE(lines[0]["error"].get<std::string>().find(", expected "), std::string::npos) << lines[0];
  EXPECT_EQ(lines[1]["verified"], true);
}

TEST_F(cli, an_error_weighs_more_than_a_wrong_result) {
  const std::string wrong = written("wrong.json", graph_to_json(*graph_of(kCancelling)));
  const std::string bad = written("bad.json", "{");
  EXPECT_EQ(partita("run --verify --policy=debug " + wrong + " " + kData + "/op/ReLU.json").exit_code, 1);
  EXPECT_EQ(partita("run --verify --policy=debug " + bad + " " + wrong).exit_code, 2);
  EXPECT_EQ(partita("run --verify " + wrong + " " + bad).exit_code, 2);
}

TEST_F(cli, run_shows_a_table_with_what_was_fused) {
  const Ran ran = partita("run --verify " + kData + "/pattern/pool_backward_neighbourhood.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* part :
       {"fused as", "pool_backward_neighbourhood", "ReLUBackward 1, MaxPoolBackward 2, Add 3, Multiply 4",
        "4 operators in 1 partition", "agrees with the reference"})
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
  EXPECT_EQ(ran.err, "");  // no progress bar where stderr is no terminal
}

TEST_F(cli, runs_each_operator_alone_with_the_debug_policy) {
  const auto lines =
      lines_of(partita("run --format=json --policy=debug " + kData + "/pattern/pool_backward_neighbourhood.json").out);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["partitions"].size(), 4u);
}

TEST_F(cli, a_folder_means_the_graphs_below_it) {
  const Ran ran = partita("check " + kData + "/pattern");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("/attention.json: ok\n"), std::string::npos) << ran.out;
  expect_an_error(partita("check " + folder_.string()), "no *.json file");
}

TEST_F(cli, changes_apply_before_the_graph_is_used) {
  const Ran ran = partita("show --mb 7 --dt f16 " + kData + "/op/Abs.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("f16[7,3,4,5]"), std::string::npos) << ran.out;
  const Ran shaped = partita("show --in-shapes 0:7x3 " + kData + "/op/Abs.json");
  EXPECT_EQ(shaped.exit_code, 0) << shaped.err;
  EXPECT_NE(shaped.out.find("f32[7,3]"), std::string::npos) << shaped.out;
}

TEST_F(cli, check_tells_what_is_wrong_and_where) {
  const std::string relu = content_of(kData + "/op/ReLU.json");
  const std::string bad =
      written("bad.json", std::string(relu).replace(relu.find("\"kind\": \"ReLU\""), 14, "\"kind\": \"ReLUU\""));
  expect_an_error(partita("check " + bad),
                  "bad.json:8: op 1 'relu_1' (ReLUU): unknown operator kind `ReLUU`, did you mean `ReLU`?");
  const size_t shape = relu.find("[2, 3, 4, 5]", relu.find("outputs"));
  const std::string wrong = written("wrong.json", std::string(relu).replace(shape, 12, "[2, 3, 4, 6]"));
  expect_an_error(partita("check " + wrong), "f32[2,3,4,6]");
  expect_an_error(partita("check " + folder_.string() + "/none.json"), "No such file");
}

TEST_F(cli, explain_shows_steps_kernels_and_refusals) {
  const Ran ran = partita("explain " + kData + "/pattern/pool_backward_neighbourhood.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* part :
       {"partition 1 of 1: pool_backward_neighbourhood", "in front:", "behind:", "kernel max_pool_backward_"})
    EXPECT_NE(ran.out.find(part), std::string::npos) << ran.out;
  const Ran strided = partita("explain " + kData + "/dtype/strided_inputs.json");
  EXPECT_NE(strided.out.find("      not loop_any_"), std::string::npos) << strided.out;
  const Ran mlp = partita("explain " + kData + "/training/mlp.json");
  for (const char* part :
       {"    not attention, 3 operators matched: no SoftMax reads the result of op 8 'gelubackward_8' (GELUBackward)\n",
        "    not with op 2 'biasadd_2' (BiasAdd): it also waits for op 7 'matmul_7' (MatMul), "})
    EXPECT_NE(mlp.out.find(part), std::string::npos) << mlp.out;
}

TEST_F(cli, show_writes_json_that_reads_back_and_a_drawing) {
  const std::string file = kData + "/training/conv_block.json";
  const auto again = graph_from_json(partita("show --format=json " + file).out);
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again->ops(), graph_from_json_file(file)->ops());
  EXPECT_TRUE(partita("show --format=dot " + file).out.starts_with("digraph"));
  EXPECT_NE(partita("show " + file).out.find("= Convolution("), std::string::npos);
}

TEST_F(cli, ops_lists_describes_and_prints_json) {
  const Ran list = partita("ops");
  EXPECT_EQ(std::count(list.out.begin(), list.out.end(), '\n'), kOpKinds);
  EXPECT_EQ(partita("ops MaxPool").out, describe_op(OpKind::MaxPool));
  const json registry = json::parse(partita("ops --format=json").out, nullptr, false);
  ASSERT_TRUE(registry.contains("ops"));
  EXPECT_EQ(registry["ops"].size(), static_cast<size_t>(kOpKinds));
}

TEST_F(cli, bench_measures_graphs) {
  const Ran ran = partita("bench --json --min-time 0.001 --threads 1 " + kData + "/op/ReLU.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const json result = json::parse(ran.out, nullptr, false);
  ASSERT_TRUE(result.contains("benchmarks")) << ran.out;
  EXPECT_GT(result["benchmarks"][0]["GB/s"].get<double>(), 0);
  EXPECT_EQ(result["benchmarks"][0]["time_unit"], "ms");
  EXPECT_EQ(partita("bench --min-time 0.001 " + folder_.string() + "/none.json").exit_code, 2);
}

TEST_F(cli, switches_of_the_environment_are_on_off_or_told_to_be_neither) {
  const std::string run = "run " + kData + "/op/ReLU.json";
  for (const char* on : {"1", "true", "on"}) {
    const Ran ran = partita(run, std::string("PARTITA_VERBOSE=") + on + " ");
    EXPECT_NE(ran.out.find("partita_verbose,v1,graph,exec"), std::string::npos) << on;
    EXPECT_EQ(ran.err, "") << on;
  }
  for (const char* off : {"0", "false", "off"}) {
    const Ran ran = partita(run, std::string("PARTITA_VERBOSE=") + off + " ");
    EXPECT_EQ(ran.out.find("partita_verbose"), std::string::npos) << off;
    EXPECT_EQ(ran.err, "") << off;
  }
  for (const char* name : {"PARTITA_VERBOSE", "PARTITA_DETERMINISTIC"}) {
    const Ran ran = partita(run, std::string(name) + "=yes ");
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_EQ(ran.out.find("partita_verbose"), std::string::npos);
    EXPECT_EQ(ran.err, std::string("partita: ") + name + " takes 1, true, on; 0, false, off; `yes` is ignored\n");
  }
}

TEST_F(cli, values_of_the_environment_that_mean_nothing_are_told) {
  const std::string run = "run " + kData + "/op/ReLU.json ";
  EXPECT_EQ(
      partita(run, "DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY=5k ").err,
      "partita: DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY takes a number (1024 where not set); `5k` is ignored\n");
  EXPECT_EQ(partita(run, "PARTITA_MAX_ISA=sse ").err,
            "partita: PARTITA_MAX_ISA takes any, avx2, avx512; `sse` is ignored\n");
  EXPECT_EQ(partita(run, "PARTITA_FORCE_KERNEL=loop_any_interprter ").err,
            "partita: PARTITA_FORCE_KERNEL takes the name of a kernel; `loop_any_interprter` is ignored, did you mean "
            "`loop_any_interpreter`?\n");
  const Ran forced = partita(run + "--format=json", "PARTITA_FORCE_KERNEL=loop_any_interpreter ");
  EXPECT_EQ(forced.err, "");
  EXPECT_NE(forced.out.find("loop_any_interpreter"), std::string::npos) << forced.out;
  // Another step's kernel is no mistake: it forces nothing here.
  EXPECT_EQ(partita(run, "PARTITA_FORCE_KERNEL=matmul_any_ref ").err, "");
}

TEST_F(cli, docs_writes_pages_that_say_they_are_generated) {
  EXPECT_EQ(partita("docs " + (folder_ / "pages").string()).exit_code, 0);
  for (const char* page : {"ops.md", "patterns.md", "kernels.md", "environment.md", "cli.md"})
    EXPECT_TRUE(content_of(folder_ / "pages" / page).starts_with("<!-- Generated by `partita docs`")) << page;
  EXPECT_EQ(partita("docs /dev/null/pages").exit_code, 2);
}

}  // namespace
}  // namespace partita::test
