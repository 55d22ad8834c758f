// SPDX-License-Identifier: Apache-2.0
// Runs the partitions of a graph one after another; tensors live as long as somebody reads them.
#include "src/harness/graph_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/harness/compare.hpp"
#include "src/harness/fill.hpp"
#include "src/harness/reference_run.hpp"
#include "src/ir/finalize.hpp"

namespace partita {
namespace {

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

class GraphRun {
 public:
  GraphRun(graph& g, const RunSettings& settings) : graph_(g), settings_(settings), on_(), stream_(on_, settings.threads) {}

  Result<GraphReport> run(const std::function<void(double)>& progress) {
    const ThreadScope threads(settings_.threads);
    PT_TRY(graph_.finalize());
    PT_ASSIGN(const auto partitions, graph_.get_partitions(settings_.policy));
    report_.ops = graph_.ops().size();
    PT_TRY(fill_inputs());
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
  const FinalGraph& form() const { return *graph_.form(); }

  static std::string place(const partition& p) {
    std::string ids;
    for (uint64_t id : p.ops()) ids += str(ids.empty() ? "" : ",", id);
    return str("partition of ops ", ids, " (", p.pattern(), ")");
  }

  Status fill_inputs() {
    for (size_t v = 0; v < form().values.size(); ++v) {
      const Value& value = form().values[v];
      by_id_[value.desc.id] = static_cast<int>(v);
      if (value.producer >= 0) continue;
      logical_tensor desc = value.desc;
      if (!desc.shape_known())
        return fail(Code::invalid_shape, str("graph input ", desc.id, " (", desc.text(), ") needs a known shape"));
      if (!desc.strides_known()) desc = logical_tensor(desc.id, desc.dtype, desc.dims, Layout::strided, desc.property);
      Storage storage(desc);
      if (!storage.data) return fail(Code::out_of_memory, str("no memory for tensor ", desc.id, " (", desc.text(), ")"));
      PT_TRY(fill_input(form(), static_cast<int>(v), settings_.seed, storage));
      tensors_[desc.id] = std::move(storage);
    }
    return {};
  }

  /// Ports with what is known by now: strides of what was computed, the given shape of what will be.
  std::vector<logical_tensor> described(const std::vector<logical_tensor>& ports, bool made) const {
    std::vector<logical_tensor> list;
    for (const logical_tensor& port : ports) {
      logical_tensor t = made ? tensors_.at(port.id).desc : port;
      if (t.layout == Layout::undef) t.layout = Layout::any;
      list.push_back(t);
    }
    return list;
  }

  /// Shape inputs come from outside with known content.
  std::vector<tensor> known_content(const partition& p) const {
    std::vector<tensor> list;
    for (const logical_tensor& port : p.input_ports())
      if (port.dtype == Dtype::s32 && form().values[static_cast<size_t>(by_id_.at(port.id))].producer < 0)
        list.push_back(tensors_.at(port.id).as_tensor());
    return list;
  }

  Status run_partition(const partition& p) {
    PartitionReport r;
    r.id = p.id();
    r.ops = p.ops();
    for (const op& o : p.form()->ops) r.op_names.push_back(str(name_of(o.kind), " ", o.id));
    r.pattern = p.pattern();
    r.supported = p.supported();
    if (p.supported()) PT_TRY(compile_and_run(p, r));
    else if (!p.output_ports().empty()) return fail(Code::unimplemented, p.reason());
    release_inputs(p);
    report_.compile_ms += r.compile_ms;
    report_.exec_ms += r.exec_ms;
    report_.partitions.push_back(std::move(r));
    return {};
  }

  Status compile_and_run(const partition& p, PartitionReport& r) {
    const auto in = described(p.input_ports(), true), out = described(p.output_ports(), false);
    const auto constants = known_content(p);
    const double start = now_ms();
    PT_ASSIGN(const compiled_partition compiled, p.compile(in, out, on_, constants));
    r.compile_ms = now_ms() - start;
    r.steps = compiled.steps();
    r.scratch_bytes = compiled.scratchpad_bytes();
    std::vector<tensor> inputs, outputs;
    for (const logical_tensor& t : compiled.inputs()) inputs.push_back(tensors_.at(t.id).as_tensor());
    for (const logical_tensor& t : compiled.outputs()) {
      Storage storage(t);
      if (!storage.data) return fail(Code::out_of_memory, str("no memory for tensor ", t.id, " (", t.text(), ")"));
      outputs.push_back(storage.as_tensor());
      tensors_[t.id] = std::move(storage);
    }
    for (const auto* side : {&inputs, &outputs})
      for (const tensor& t : *side) r.bytes += t.desc.size_bytes();
    PT_TRY(execute(compiled, inputs, outputs, r));
    return settings_.verify ? verify(p, {in, out, constants}, r) : Status();
  }

  Status execute(const compiled_partition& compiled, std::span<const tensor> in, std::span<const tensor> out, PartitionReport& r) {
    Storage scratch(logical_tensor(0, Dtype::u8, Dims{static_cast<int64_t>(r.scratch_bytes)}));
    if (!scratch.data) return fail(Code::out_of_memory, str("no memory for ", r.scratch_bytes, " bytes of scratch"));
    std::vector<double> times;
    for (int rep = 0; rep < std::max(1, settings_.reps); ++rep) {
      const double start = now_ms();
      PT_TRY(compiled.execute(stream_, in, out, scratch.data.get()));
      times.push_back(now_ms() - start);
    }
    r.exec_ms = median(std::move(times));
    return {};
  }

  Status verify(const partition& p, const Given& given, PartitionReport& r) {
    PT_ASSIGN(const Tensors expected, run_reference(*p.form(), given, tensors_));
    const double tolerance = tolerance_of(*p.form());
    for (const auto& [id, storage] : expected) {
      const Difference d = compare(tensors_.at(id), storage, tolerance);
      r.max_error = std::isnan(d.max_error) ? d.max_error : std::max(r.max_error, d.max_error);
      if (d.wrong > 0 && report_.mismatch.empty())
        report_.mismatch = str(place(p), ": output tensor ", id, " (", storage.desc.text(), "): ", d.first);
    }
    report_.max_error = std::isnan(r.max_error) ? r.max_error : std::max(report_.max_error, r.max_error);
    return {};
  }

  void release_inputs(const partition& p) {
    for (const logical_tensor& port : p.input_ports())
      if (--readers_[port.id] == 0) tensors_.erase(port.id);
  }

  graph& graph_;
  RunSettings settings_;
  engine on_;
  stream stream_;
  Tensors tensors_;
  std::unordered_map<uint64_t, int> by_id_;
  std::unordered_map<uint64_t, int> readers_;
  GraphReport report_;
};

}  // namespace

Result<GraphReport> run_graph(graph& g, const RunSettings& settings, const std::function<void(double)>& progress) {
  return GraphRun(g, settings).run(progress);
}

}  // namespace partita
