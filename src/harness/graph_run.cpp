// SPDX-License-Identifier: Apache-2.0
// Runs the partitions of a graph one after another; tensors live as long as somebody reads them.
#include "src/harness/graph_run.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/harness/graph_tensors.hpp"
#include "src/harness/verify.hpp"

namespace partita {
namespace {

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

class GraphRun {
 public:
  GraphRun(graph& g, const RunSettings& settings)
      : graph_(g),
        settings_(settings),
        on_(EngineKind::cpu, {settings.deterministic}),
        stream_(on_, settings.threads) {}

  Result<GraphReport> run(const std::function<void(double)>& progress) {
    const ThreadScope threads(settings_.threads);
    PT_TRY(graph_.finalize());
    PT_ASSIGN(const auto partitions, graph_.get_partitions(settings_.policy));
    report_.ops = graph_.ops().size();
    tensors_.emplace(*graph_.form());
    PT_TRY(tensors_->fill_inputs(settings_.seed));
    for (const partition& p : partitions)
      for (const logical_tensor& port : p.input_ports()) ++readers_[port.id];
    for (size_t i = 0; i < partitions.size(); ++i) {
      PT_TRY(run_partition(partitions[i]).at(place(partitions[i])));
      if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(partitions.size()));
    }
    report_.verified = settings_.verify && report_.mismatch.empty();
    return std::move(report_);
  }

 private:
  static std::string place(const partition& p) {
    std::string ids;
    for (uint64_t id : p.ops()) ids += str(ids.empty() ? "" : ",", id);
    return str("partition of ops ", ids, " (", p.pattern(), ")");
  }

  Status run_partition(const partition& p) {
    PartitionReport r;
    r.id = p.id();
    r.ops = p.ops();
    for (const op& o : p.form()->ops) r.op_names.push_back(str(name_of(o.kind), " ", o.id));
    r.pattern = p.pattern();
    r.supported = p.supported();
    if (p.supported()) PT_TRY(compile_and_run(p, r));
    release_inputs(p);
    report_.compile_ms += r.compile_ms;
    report_.exec_ms += r.exec_ms;
    report_.partitions.push_back(std::move(r));
    return {};
  }

  Status compile_and_run(const partition& p, PartitionReport& r) {
    PT_ASSIGN(const BoundPartition bound, tensors_->bind(p, on_, settings_.open_layouts));
    r.compile_ms = bound.compile_ms;
    r.steps = bound.compiled.steps();
    r.scratch_bytes = bound.compiled.scratchpad_bytes();
    r.bytes = bound.bytes();
    PT_TRY(execute(bound, r));
    return settings_.verify ? verify(p, bound, r) : Status();
  }

  Status execute(const BoundPartition& bound, PartitionReport& r) {
    Storage scratch(logical_tensor(0, Dtype::u8, Dims{static_cast<int64_t>(r.scratch_bytes)}));
    if (!scratch.data) return fail(Code::out_of_memory, str("no memory for ", r.scratch_bytes, " bytes of scratch"));
    std::vector<double> times;
    for (int rep = 0; rep < std::max(1, settings_.reps); ++rep) {
      const double start = now_ms();
      PT_TRY(bound.compiled.execute(stream_, bound.inputs, bound.outputs, scratch.data.get()));
      times.push_back(now_ms() - start);
    }
    r.exec_ms = median(std::move(times));
    return {};
  }

  Status verify(const partition& p, const BoundPartition& bound, PartitionReport& r) {
    const Given given{bound.given_in, bound.given_out, bound.constants};
    PT_ASSIGN(const Verdict verdict, verify_results(*p.form(), given, tensors_->all()));
    r.max_error = verdict.max_error;
    if (!verdict.mismatch.empty() && report_.mismatch.empty()) report_.mismatch = str(place(p), ": ", verdict.mismatch);
    report_.max_error = std::isnan(r.max_error) ? r.max_error : std::max(report_.max_error, r.max_error);
    return {};
  }

  void release_inputs(const partition& p) {
    for (const logical_tensor& port : p.input_ports())
      if (--readers_[port.id] == 0) tensors_->release(port.id);
  }

  graph& graph_;
  RunSettings settings_;
  engine on_;
  stream stream_;
  std::optional<GraphTensors> tensors_;
  std::unordered_map<uint64_t, int> readers_;
  GraphReport report_;
};

}  // namespace

Result<GraphReport> run_graph(graph& g, const RunSettings& settings, const std::function<void(double)>& progress) {
  return GraphRun(g, settings).run(progress);
}

}  // namespace partita
