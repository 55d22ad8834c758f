// SPDX-License-Identifier: Apache-2.0
// One graph: both sides made, their results compared, their time taken in turns.
#include "tests/bench/graph_bench.hpp"

#include <algorithm>
#include <cmath>
#include <new>

#include "partita/engine.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/harness/graph_tensors.hpp"
#include "src/io/read_graph.hpp"
#include "src/ir/op_def.hpp"
#include "tests/bench/graph_sides.hpp"

namespace partita::bench {
namespace {

/// Shares a turn among many calls, so that what the other side left in the caches matters little.
constexpr double kSecondsOfTurn = 2e-3;
/// Two ways of rounding may differ by so much of the root mean square over a whole graph, where maxima and quantization
/// take steps; other work differs by more.
constexpr double kMostDifference = 0.1;
constexpr size_t kConstantCacheMegabytes = 4096;

bool bound_by_arithmetic(const op& o) {
  const StepKind step = op_def(o.kind).step;
  return is_product(step) || step == StepKind::convolution_backward_weights;
}

std::string group_of(const FinalGraph& graph) {
  const auto computes = [](const op& o) { return o.kind != OpKind::End && o.kind != OpKind::Wildcard; };
  if (std::count_if(graph.ops.begin(), graph.ops.end(), computes) <= 1) return "single operators";
  const bool training = std::any_of(graph.ops.begin(), graph.ops.end(), [](const op& o) {
    const std::string_view name = name_of(o.kind);
    return name.find("Backward") != std::string_view::npos || name == "BatchNormForwardTraining";
  });
  const bool products = std::any_of(graph.ops.begin(), graph.ops.end(), bound_by_arithmetic);
  if (!training) return "inference";
  return products ? "training with products" : "training bound by memory";
}

bool has_images(const FinalGraph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(), [](const op& o) {
    const StepKind step = op_def(o.kind).step;
    return bound_by_arithmetic(o) && step != StepKind::matmul;
  });
}

/// Root mean square of the difference over that of what is expected; elements that are nowhere finite do not count.
double difference(const Storage& got, const Storage& expected) {
  double sum = 0, size = 0;
  const Dims& dims = expected.desc.dims;
  for (int64_t i = 0, n = elements(dims); i < n; ++i) {
    const Dims at = coordinates(i, dims);
    int64_t mine = 0, theirs = 0;
    for (int d = 0; d < dims.size(); ++d) {
      mine += at[d] * got.desc.strides[d];
      theirs += at[d] * expected.desc.strides[d];
    }
    const double x = load_as_double(got.data.get(), got.desc.dtype, mine);
    const double y = load_as_double(expected.data.get(), expected.desc.dtype, theirs);
    if (!std::isfinite(y)) continue;
    if (!std::isfinite(x)) return x;
    sum += (x - y) * (x - y);
    size += y * y;
  }
  return sum == 0 ? 0 : std::sqrt(sum / size);
}

/// A result that differs alone may stand at the end of a long chain of gates and maxima; wrong work shows in many.
Status compare(const GraphSide& partita, const GraphSide& onednn) {
  size_t different = 0;
  std::string first;
  for (const auto& [id, expected] : onednn.results()) {
    const auto got = partita.results().find(id);
    if (got == partita.results().end()) return fail(Code::runtime_error, str("no partition makes tensor ", id));
    const double found = difference(got->second, expected);
    if (found <= kMostDifference) continue;
    if (++different == 1) first = str("tensor ", id, " differs from oneDNN's by ", found, " of its size");
  }
  if (different * 4 > onednn.results().size())
    return fail(Code::runtime_error, str(first, "; ", different, " of ", onednn.results().size(), " results do"));
  return {};
}

struct Baseline {
  GraphSide side;
  int own = 0;
};

Result<Baseline> baseline(const graph& g, const GraphInputs& inputs, int threads, InnerOrder order) {
  PT_ASSIGN(OneByOne made, onednn_parts(g, inputs, threads, order));
  PT_ASSIGN(GraphSide side, GraphSide::make(*g.form(), inputs, std::move(made.parts)));
  return Baseline{std::move(side), made.own};
}

Status prepare_and_measure(const std::string& file, const GraphSettings& settings, GraphRow& row) {
  PT_ASSIGN(ReadGraph source, read_graph_file(file));
  if (Status s = source.value.finalize(); !s.ok()) return with_line(std::move(s), source);
  const graph& g = source.value;
  const FinalGraph& form = *g.form();
  row.group = group_of(form);
  row.ops = static_cast<int>(form.ops.size());
  PT_TRY(set_constant_cache_capacity(EngineKind::cpu, kConstantCacheMegabytes));
  GraphTensors tensors(form);
  PT_TRY(tensors.fill_inputs(/*seed=*/1));
  const GraphInputs& inputs = tensors.all();

  PT_ASSIGN(auto parts, partita_parts(g, inputs, settings.threads));
  PT_ASSIGN(const GraphSide partita, GraphSide::make(form, inputs, std::move(parts)));
  row.partitions = partita.calls();
  row.partita_scratch = partita.peak_scratch_bytes();
  PT_TRY(partita.run());

  std::vector<Baseline> baselines;
  PT_ASSIGN(baselines.emplace_back(), baseline(g, inputs, settings.threads, InnerOrder::as_in_graph));
  if (has_images(form)) {
    PT_ASSIGN(baselines.emplace_back(), baseline(g, inputs, settings.threads, InnerOrder::channels_last));
  }
  PT_TRY(baselines[0].side.run());
  PT_TRY(compare(partita, baselines[0].side));

  std::vector<Contender> contenders;
  contenders.push_back({[&] { return partita.run(); }});
  for (const Baseline& b : baselines) contenders.push_back({[&b] { return b.side.run(); }});
  PT_TRY(measure(contenders, {settings.seconds, {}, settings.processor_time, kSecondsOfTurn}));
  row.partita = timing_of(contenders[0].seconds);
  for (size_t i = 0; i < baselines.size(); ++i) {
    const Timing timing = timing_of(contenders[i + 1].seconds);
    if (i > 0 && timing.median >= row.onednn.median) continue;
    row.onednn = timing;
    row.channels_last = i > 0;
    row.own = baselines[i].own;
    row.onednn_scratch = baselines[i].side.peak_scratch_bytes();
  }
  return {};
}

}  // namespace

GraphRow run_graph(const std::string& file, const std::string& name, const GraphSettings& settings) {
  GraphRow row{.group = "", .name = name};
  try {
    if (Status s = prepare_and_measure(file, settings, row); !s.ok()) row.error = s.text();
  } catch (const std::bad_alloc&) {
    row.error = "out of memory";
  }
  return row;
}

}  // namespace partita::bench
