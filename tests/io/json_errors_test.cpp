// SPDX-License-Identifier: Apache-2.0
// Bad graph files: each is refused with the line, the place, what was expected and what was found.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "partita/json.hpp"
#include "src/io/json_tree.hpp"
#include "src/io/read_graph.hpp"
#include "tests/io/softmax_json.hpp"

namespace partita {
namespace {

std::string error_of(std::string_view text) {
  const Result<graph> read = graph_from_json(text, "m.json");
  return read.ok() ? "no error" : read.status().text();
}

struct Case {
  std::string_view from, to, message;
};

void expect_errors(std::span<const Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(error_of(softmax_json_with(c.from, c.to)), c.message) << c.to;
}

TEST(json_errors, the_text_they_start_from_is_valid) { EXPECT_EQ(error_of(kSoftmaxJson), "no error"); }

TEST(json_errors, values_of_another_type_are_named) {
  const Case cases[] = {
      {R"("s64", "value": 1)", R"("s64", "value": "1")",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected an integer, found a string"},
      {R"("s64", "value": 1)", R"("s64", "value": 1.5)",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected an integer, found the number 1.5"},
      {R"("s64", "value": 1)", R"("s64", "value": [1])",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected an integer, found a list"},
      {R"("s64", "value": 1)", "\"s64\", \"value\":\n\n null",
       "m.json:13: op 7 'sm' (SoftMax): attribute `axis`: expected an integer, found null"},
      {R"("value": "none")", R"("value": 3)",
       "m.json:12: op 7 'sm' (SoftMax): attribute `mode`: expected a string, found the number 3"},
      {R"({"type": "s64", "value": 1})", "1",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected an object, found the number 1"},
      {R"("version": "3.7.2")", R"("version": 3)", "m.json:2: `version`: expected a string, found the number 3"},
      {R"("id": 7)", R"("id": "7")",
       "m.json:7: op number 1 of the file 'sm' (SoftMax): `id`: expected an integer, found a string"},
      {R"("name": "sm")", R"("name": true)", "m.json:8: op 7 (SoftMax): `name`: expected a string, found true"},
      {R"("kind": "SoftMax")", R"("kind": {})", "m.json:9: op 7 'sm': `kind`: expected a string, found an object"},
      {R"("dtype": "f32")", R"("dtype": 3)",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `dtype`: expected a string, found the number 3"},
      {R"("shape": [2, 3])", R"("shape": 6)",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `shape`: expected a list, found the number 6"},
      {R"("shape": [2, 3])", R"("shape": [2, "3"])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `shape`: expected an integer, found a string"},
  };
  expect_errors(cases);
}

TEST(json_errors, numbers_out_of_range_are_refused) {
  const Case cases[] = {
      {R"("s64", "value": 1)", R"("s64", "value": 9223372036854775808)",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected an integer of 64 bits, found the number "
       "9223372036854775808"},
      {R"("s64", "value": 1)", R"("s64", "value": 99999999999999999999)",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected an integer of 64 bits, found the number 1e+20"},
      {R"("s64", "value": 1)", R"("f32", "value": 1e39)",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected a number that fits f32, found the number 1e+39"},
      {R"("s64", "value": 1)", R"("f32", "value": 1e999)",
       "m.json:11: not valid JSON: number overflow parsing '1e999'"},
      {R"("s64", "value": 1)", R"("bool", "value": 2)",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: expected true, false, 0 or 1, found the number 2"},
      {R"("id": 7)", R"("id": -7)",
       "m.json:7: op -7 'sm' (SoftMax): `id`: expected an id (not negative), found the number -7"},
      {R"({"id": 0)", R"({"id": -1)",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `id`: expected an id (not negative), found the number -1"},
      {R"("shape": [2, 3])", R"("shape": [2, -1])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `shape`: expected an entry >= 0 (or -9223372036854775808 where it is "
       "unknown), found the number -1"},
      {R"("stride": [3, 1])", R"("stride": [3, -1])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `stride`: expected an entry >= 0 (or -9223372036854775808 where it is "
       "unknown), found the number -1"},
      {R"("shape": [2, 3])", R"("shape": [1,1,1,1,1,1,1,1,1,1,1,1,1])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `shape`: expected at most 12 entries, found 13"},
      {R"("stride": [3, 1])", R"("stride": [3, 1, 1])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `stride`: expected 2 entries as in `shape`, found 3"},
      {R"("shape": [2, 3], "stride": [3, 1])", R"("shape": [-9223372036854775808], "stride": [3, 1])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `stride`: expected [-9223372036854775808] as in `shape`, found 2"},
      {R"("shape": [2, 3])", R"("shape": [4611686018427387904, 4])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: the tensor is too large: f32[4611686018427387904,4]"},
      {R"("stride": [3, 1])", R"("stride": [9223372036854775807, 1])",
       "m.json:15: op 7 'sm' (SoftMax): input 0: the tensor is too large: f32[2,3]"},
  };
  expect_errors(cases);
}

TEST(json_errors, unknown_names_come_with_a_suggestion_or_the_list) {
  const Case cases[] = {
      {R"("kind": "SoftMax")", R"("kind": "Softmaxx")",
       "m.json:9: op 7 'sm' (Softmaxx): unknown operator kind `Softmaxx`, did you mean `SoftMax`?"},
      {R"("kind": "SoftMax")", R"("kind": "BiasAddBackprop")",
       "m.json:9: op 7 'sm' (BiasAddBackprop): unknown operator kind `BiasAddBackprop`, did you mean "
       "`BiasAddBackward`?"},
      {R"("kind": "SoftMax")", R"("kind": "Quicksort12345")",
       "m.json:9: op 7 'sm' (Quicksort12345): unknown operator kind `Quicksort12345`"},
      {R"("axis": {)", R"("axes_": {)",
       "m.json:11: op 7 'sm' (SoftMax): SoftMax has no attribute `axes_`, it has axis, mode"},
      {R"("axis": {)", R"("axiss": {)",
       "m.json:11: op 7 'sm' (SoftMax): SoftMax has no attribute `axiss`, it has axis, mode, did you mean `axis`?"},
      {R"("type": "s64")", R"("type": "i64")",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: unknown type `i64`, did you mean `s64`?"},
      {R"("type": "s64")", R"("type": "complex")",
       "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: unknown type `complex`, known are bool, s64, s64[], f32, "
       "f32[], string"},
      {R"("dtype": "f32")", R"("dtype": "f31")",
       "m.json:15: op 7 'sm' (SoftMax): input 0: `dtype`: unknown data type `f31`, did you mean `f32`?"},
      {R"("layout_type": "strided")", R"("layout_type": "blocked")",
       "m.json:16: op 7 'sm' (SoftMax): input 0: `layout_type`: unknown layout `blocked`, known are undef, any, "
       "strided, opaque"},
      {R"("property_type": "undef")", R"("property_type": "const")",
       "m.json:20: op 7 'sm' (SoftMax): output 0: `property_type`: unknown property `const`, known are undef, "
       "variable, constant, host_scalar"},
      {R"("fpmath_mode": "strict")", R"("fpmath_mode": "fast")",
       "m.json:4: `fpmath_mode`: expected strict, bf16, f16, any or tf32, found `fast`"},
      {R"("engine_kind": "cpu")", R"("engine_kind": "tpu")",
       "m.json:3: `engine_kind`: expected any, cpu or gpu, found `tpu`"},
      {R"("version": "3.7.2")", R"("fpmath_mode_apply_to_int": "yes")",
       "m.json:2: `fpmath_mode_apply_to_int`: expected true or false, found `yes`"},
  };
  expect_errors(cases);
}

TEST(json_errors, unknown_missing_and_repeated_keys_are_refused) {
  const Case cases[] = {
      {R"("version")", R"("versoin")", "m.json:2: unknown key `versoin`, did you mean `version`?"},
      {R"("version")", R"("author")",
       "m.json:2: unknown key `author`, known are version, engine_kind, fpmath_mode, fpmath_mode_apply_to_int, "
       "input_ports, "
       "output_ports, graph"},
      {R"("attrs": {)", R"("attributes": {)",
       "m.json:10: op 7 'sm' (SoftMax): unknown key `attributes`, known are id, name, kind, attrs, inputs, outputs"},
      {R"("dtype": "f32")", R"("data_type": "f32")",
       "m.json:15: op 7 'sm' (SoftMax): input 0: unknown key `data_type`, known are id, dtype, shape, stride, "
       "layout_type, "
       "property_type, layout_id, rank"},
      {R"("dtype": "f32")", R"("dtyp": "f32")",
       "m.json:15: op 7 'sm' (SoftMax): input 0: unknown key `dtyp`, did you mean `dtype`?"},
      {R"("type": "s64", )", "", "m.json:11: op 7 'sm' (SoftMax): attribute `axis`: the key `type` is missing"},
      {R"("id": 7,)", "", "m.json:6: op number 1 of the file 'sm' (SoftMax): the key `id` is missing"},
      {R"({"id": 0, )", "{", "m.json:15: op 7 'sm' (SoftMax): input 0: the key `id` is missing"},
      {R"("name": "sm",)", R"("name": "a", "name": "b",)", "m.json:8: the key `name` stands twice in one object"},
      {R"("stride": [3, 1])", R"("shape": [3, 1])", "m.json:15: the key `shape` stands twice in one object"},
      {R"("layout_type": "strided")", R"("layout_type": "opaque")",
       "m.json:15: op 7 'sm' (SoftMax): input 0: an opaque tensor needs the key `layout_id`"},
      {R"("layout_type": "strided")", R"("layout_id": 3)",
       "m.json:16: op 7 'sm' (SoftMax): input 0: only an opaque tensor has the key `layout_id`, this one is strided"},
      {R"("property_type": "variable")", R"("rank": 3)",
       "m.json:16: op 7 'sm' (SoftMax): input 0: `rank`: expected the number of entries of `shape`, 2, found 3"},
  };
  expect_errors(cases);
  EXPECT_EQ(error_of("{}"), "m.json:1: the key `graph` is missing");
  EXPECT_EQ(error_of("[]"), "m.json:1: expected an object, found a list");
  EXPECT_EQ(error_of("\n{\"graph\": {}}"), "m.json:2: `graph`: expected a list, found an object");
  EXPECT_EQ(error_of("{\"graph\": [7]}"), "m.json:1: op number 1 of the file: expected an object, found the number 7");
  EXPECT_EQ(error_of("{\"input_ports\": [1, -2], \"graph\": []}"),
            "m.json:1: `input_ports`: expected an id (not negative), found the number -2");
}

TEST(json_errors, what_is_no_json_is_refused_at_its_line) {
  EXPECT_EQ(error_of(""),
            "m.json:1: not valid JSON: syntax error while parsing value - unexpected end of input; expected '[', '{', "
            "or a literal");
  for (std::string_view from : {"\"kind\": \"SoftMax\",", "[2, 3]", "\"outputs\": ["}) {
    const std::string whole(kSoftmaxJson);
    const std::string cut = whole.substr(0, whole.find(from) + from.size() - 2);
    const auto line = 1 + std::count(cut.begin(), cut.end(), '\n');
    const std::string error = error_of(cut);
    EXPECT_TRUE(error.starts_with("m.json:" + std::to_string(line) + ": not valid JSON: ")) << error;
  }
  const std::string trailing = error_of(std::string(kSoftmaxJson) + "x");
  EXPECT_TRUE(trailing.starts_with("m.json:25: not valid JSON: ")) << trailing;
  const std::string comma = error_of(softmax_json_with("\"name\": \"sm\",", "\"name\": \"sm\",,"));
  EXPECT_TRUE(comma.starts_with("m.json:8: not valid JSON: ")) << comma;
  const std::string utf8 = error_of(softmax_json_with("\"sm\"", "\"\xff\xfe\""));
  EXPECT_TRUE(utf8.starts_with("m.json:8: not valid JSON: ")) << utf8;
  const std::string endless = error_of("{\"graph\": \"" + std::string(100000, 'a'));
  EXPECT_LT(endless.size(), 300u);
}

TEST(json_errors, every_truncation_of_a_file_is_refused) {
  const std::string whole(kSoftmaxJson);
  for (size_t size = 0; size + 2 < whole.size(); ++size) {
    const std::string error = error_of(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(error.starts_with("m.json:")) << size << " " << error;
  }
}

TEST(json_errors, depth_size_and_keys_are_limited) {
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "m.json:1: expected an object, found a list");
  EXPECT_EQ(error_of(std::string(65, '[')), "m.json:1: lists and objects are nested deeper than 64");
  EXPECT_EQ(error_of(std::string(10'000'000, '[')), "m.json:1: lists and objects are nested deeper than 64");
  std::string keys = "{";
  for (size_t i = 0; i <= kMaxJsonKeys; ++i) keys += "\"k" + std::to_string(i) + "\":\n0,";
  EXPECT_EQ(error_of(keys), "m.json:257: an object has more than 256 keys");
  const std::string_view too_long(kSoftmaxJson.data(), kMaxJsonBytes + 1);  // refused before it is read
  EXPECT_EQ(error_of(too_long), "m.json: the text has 1073741825 bytes, at most 1073741824 are read");
}

TEST(json_errors, operators_that_do_not_fit_are_named_with_their_line) {
  const Case cases[] = {
      {R"("s64", "value": 1)", R"("s64", "value": 2)",
       "m.json:6: op 7 'sm' (SoftMax): `axis` must be in [-rank, rank): axis=2, src is f32[2,3]"},
  };
  for (const Case& c : cases) {
    const std::string error = error_of(softmax_json_with(c.from, c.to));
    EXPECT_TRUE(error.starts_with("m.json:6: op 7 'sm' (SoftMax): `axis`")) << error;
  }
  const std::string twice = softmax_json_with(
      "\"graph\": [",
      "\"graph\": [\n" +
          std::string(kSoftmaxJson)
              .substr(kSoftmaxJson.find("    {\n"), kSoftmaxJson.rfind("  ]") - kSoftmaxJson.find("    {\n")) +
          ",");
  EXPECT_EQ(error_of(twice), "m.json:24: op 7 'sm' (SoftMax): another operator has the id 7");
}

TEST(json_errors, a_failing_finalize_can_be_given_its_line) {
  std::string two = softmax_json_with("    }\n  ]\n", R"(    },
    {
      "id": 8, "kind": "ReLU",
      "inputs": [{"id": 1, "dtype": "f32", "shape": [2, 4], "layout_type": "strided"}],
      "outputs": [{"id": 2, "dtype": "f32", "shape": [2, 4], "layout_type": "strided"}]
    }
  ]
)");
  Result<ReadGraph> read = read_graph(two, "m.json");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->lines, (std::vector<int>{6, 23}));
  Status finalized = read->value.finalize();
  ASSERT_FALSE(finalized.ok());
  const std::string text = with_line(std::move(finalized), *read).text();
  EXPECT_TRUE(text.starts_with("m.json:23: op 8 (ReLU): ")) << text;
  EXPECT_EQ(with_line(fail(Code::runtime_error, "x"), *read).text(), "m.json: x");
  EXPECT_TRUE(with_line(Status(), *read).ok());
}

TEST(json_errors, files_that_cannot_be_read_say_why) {
  const Result<graph> missing = graph_from_json_file("/nonexistent/m.json");
  EXPECT_EQ(missing.status().text(), "/nonexistent/m.json: cannot be read: No such file or directory");
  EXPECT_EQ(missing.status().code(), Code::runtime_error);
  const std::string folder = std::filesystem::temp_directory_path().string();
  EXPECT_EQ(graph_from_json_file(folder).status().text(), folder + ": cannot be read: Is a directory");
}

TEST(json_errors, a_read_file_is_named_in_messages) {
  const std::string path = testing::TempDir() + "partita_bad.json";
  std::ofstream(path) << "{\n\"graph\": 3}";
  EXPECT_EQ(graph_from_json_file(path).status().text(), path + ":2: `graph`: expected a list, found the number 3");
  std::ofstream(path) << kSoftmaxJson;
  EXPECT_TRUE(graph_from_json_file(path).ok());
  std::filesystem::remove(path);
}

TEST(json_errors, hold_the_kind_of_failure) {
  EXPECT_EQ(graph_from_json("{").status().code(), Code::invalid_arguments);
  EXPECT_EQ(graph_from_json(softmax_json_with("\"SoftMax\"", "\"Nothing\"")).status().code(), Code::invalid_graph_op);
  EXPECT_EQ(graph_from_json(softmax_json_with("\"value\": 1", "\"value\": 9")).status().code(), Code::invalid_graph_op);
}

}  // namespace
}  // namespace partita
