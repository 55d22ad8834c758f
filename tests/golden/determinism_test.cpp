// SPDX-License-Identifier: Apache-2.0
// The same bits for every number of threads, from cold and warm caches, in place or not, in the caller's scratchpad or
// the library's: every partition whose steps are all Partita's own, and on a deterministic engine every partition.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <span>

#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"
#include "src/harness/prepared_graph.hpp"
#include "src/io/read_graph.hpp"
#include "tests/support/graph_files.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

const std::string kData = PARTITA_SOURCE_DIR "/tests/data", kCorpus = PARTITA_SOURCE_DIR "/../shared/corpus";

/// One way to compile and run.
struct Way {
  int threads;
  bool own_scratchpad, in_place;
};
constexpr Way kPlain = {1, false, false};
constexpr Way kOthers[] = {{2, true, false}, {3, false, true}, {8, true, true}};

bool all_ours(const compiled_partition& compiled) {
  for (const step_info& step : compiled.steps())
    if (step.kernel.find("onednn") != step.kernel.npos) return false;
  return true;
}

std::string text_of(const compiled_partition& compiled, const Way& way) {
  std::string text = str(way.threads, " threads", way.own_scratchpad ? ", scratchpad of the caller" : "",
                         way.in_place ? ", in place" : "", ":");
  for (const step_info& step : compiled.steps()) text += str(" [", step.text, "] ", step.kernel);
  return text;
}

/// Lays inputs over the outputs that may share their memory. `made` has room for the larger of the two.
void share_memory(const compiled_partition& compiled, std::vector<tensor>& in, Tensors& made,
                  std::vector<tensor>& out) {
  std::set<uint64_t> used;
  for (const auto& [from, to] : compiled.inplace_ports()) {
    const auto target = std::find_if(out.begin(), out.end(), [to = to](const tensor& t) { return t.desc.id == to; });
    if (target == out.end() || used.contains(from) || used.contains(to)) continue;
    for (tensor& source : in) {
      if (source.desc.id != from) continue;
      Storage shared(source.desc.size_bytes() > target->desc.size_bytes() ? source.desc : target->desc);
      std::memcpy(shared.data.get(), source.data, source.desc.size_bytes());
      shared.desc = target->desc;
      shared.bytes = target->desc.size_bytes();
      source.data = target->data = shared.data.get();
      made[to] = std::move(shared);
      used.insert({from, to});
      break;
    }
  }
}

Tensors executed(const PreparedGraph::Part& part, const compiled_partition& compiled, const engine& on, Way way) {
  Tensors made;
  std::vector<tensor> out, in = part.bound.inputs;
  for (const logical_tensor& t : compiled.outputs()) out.push_back((made[t.id] = Storage(t)).as_tensor());
  if (way.in_place) share_memory(compiled, in, made, out);
  Storage scratch(logical_tensor(0, Dtype::u8, Dims{static_cast<int64_t>(compiled.scratchpad_bytes())}));
  const Status status =
      compiled.execute(stream(on, way.threads), in, out, way.own_scratchpad ? scratch.data.get() : nullptr);
  EXPECT_TRUE(status.ok()) << status.text();
  return made;
}

Result<compiled_partition> compiled_for(const PreparedGraph::Part& part, const engine& on, int threads) {
  const ThreadScope scope(threads);
  return part.group.compile(part.bound.given_in, part.bound.given_out, on, part.bound.constants);
}

/// Without caches, and with them: made anew, found again, with constants made at the first execution and kept for the
/// second.
class CachesScope {
 public:
  explicit CachesScope(bool on) : programs_(cache_capacity()) {
    if (!on) set_cache_capacity(0);
    EXPECT_TRUE(set_constant_cache_capacity(EngineKind::cpu, on ? 1024 : 0).ok());
  }
  ~CachesScope() {
    set_cache_capacity(programs_);
    EXPECT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 0).ok());
  }
  CachesScope(const CachesScope&) = delete;
  CachesScope& operator=(const CachesScope&) = delete;

 private:
  size_t programs_;
};

const engine& free_engine() {
  static const engine on;
  return on;
}

const engine& deterministic_engine() {
  static const engine on(EngineKind::cpu, {.deterministic = true});
  return on;
}

/// Nothing but primitives of oneDNN differs for a deterministic engine, so a partition without them needs none.
const engine& engine_for(const PreparedGraph::Part& part) {
  return all_ours(part.bound.compiled) ? free_engine() : deterministic_engine();
}

void expect_same_bits(const PreparedGraph::Part& part, std::span<const Way> ways) {
  const engine& on = engine_for(part);
  Tensors expected;
  {
    const CachesScope off(false);
    const auto compiled = compiled_for(part, on, 1);
    ASSERT_TRUE(compiled.ok()) << compiled.status().text();
    expected = executed(part, *compiled, on, kPlain);
  }
  for (const Way& way : ways) {
    const CachesScope caches(true);
    const auto cold = compiled_for(part, on, way.threads), warm = compiled_for(part, on, way.threads);
    ASSERT_TRUE(cold.ok() && warm.ok()) << cold.status().text();
    EXPECT_EQ(bit_difference(executed(part, *cold, on, way), expected), "") << "cold, " << text_of(*cold, way);
    EXPECT_EQ(bit_difference(executed(part, *warm, on, way), expected), "") << "warm, " << text_of(*warm, way);
  }
}

enum class Ways : uint8_t { all, in_turn };

/// Each partition on the inputs that one thread made, so that a difference is found where it arises.
void expect_same_bits(const std::string& file, Ways ways) {
  auto read = read_graph_file(file);
  if (!read.ok()) GTEST_SKIP() << "refused, which other tests look at: " << read.status().text();
  auto prepared = PreparedGraph::make(read->value, Policy::fusion, 1);
  if (!prepared.ok()) GTEST_SKIP() << "refused, which other tests look at: " << prepared.status().text();
  const Status status = prepared->execute();
  ASSERT_TRUE(status.ok()) << status.text();
  size_t turn = file.size();
  for (const PreparedGraph::Part& part : prepared->parts()) {
    if (!part.group.supported()) continue;
    SCOPED_TRACE(str("partition ", part.group.pattern(), " of op ", part.group.ops()[0]));
    const std::span<const Way> others(kOthers);
    expect_same_bits(part, ways == Ways::all ? others : others.subspan(turn++ % others.size(), 1));
  }
}

class determinism_of_data : public testing::TestWithParam<std::string> {};
class determinism_of_corpus : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(determinism_of_corpus);

TEST_P(determinism_of_data, to_the_bit) { expect_same_bits(kData + "/" + GetParam(), Ways::all); }
TEST_P(determinism_of_corpus, to_the_bit) { expect_same_bits(kCorpus + "/" + GetParam(), Ways::in_turn); }

INSTANTIATE_TEST_SUITE_P(tests_data, determinism_of_data, testing::ValuesIn(json_files(kData)), file_test_name);
INSTANTIATE_TEST_SUITE_P(shared, determinism_of_corpus, testing::ValuesIn(json_files(kCorpus)), file_test_name);

TEST(determinism, has_a_corpus) {
  if (json_files(kCorpus).empty()) GTEST_SKIP() << "no corpus at " << kCorpus << ": only tests/data is tested";
}

TEST(determinism, is_part_of_the_key_of_compiled_partitions) {
  auto read = read_graph_file(kData + "/op/MatMul.json");
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_TRUE(read->value.finalize().ok());
  const auto partitions = read->value.get_partitions();
  ASSERT_TRUE(partitions.ok());
  const partition& p = partitions->at(0);
  const Given given{p.input_ports(), p.output_ports(), {}};
  const engine free, deterministic(EngineKind::cpu, {.deterministic = true});
  EXPECT_FALSE(free.deterministic());
  EXPECT_TRUE(deterministic.deterministic());
  EXPECT_EQ(free.identity(), deterministic.identity());
  const auto one = compile(*p.form(), given, 1, free), other = compile(*p.form(), given, 1, deterministic);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->executable, other->executable);
  EXPECT_EQ(compile(*p.form(), given, 1, deterministic)->executable, other->executable);
}

}  // namespace
}  // namespace partita::test
