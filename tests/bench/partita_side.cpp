// SPDX-License-Identifier: Apache-2.0
// Through the public interface only: what is measured is what a framework gets.
#include "tests/bench/partita_side.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita::bench {

Result<PartitaSide> PartitaSide::make(const Net& net, std::span<const Memory> inputs, int threads) {
  PT_ASSIGN(const graph built, net.build());
  PT_ASSIGN(const std::vector<partition> groups, built.get_partitions(Policy::fusion));
  const engine cpu;
  PartitaSide side(cpu, threads);
  std::vector<void*> places(static_cast<size_t>(net.values()), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) places[static_cast<size_t>(net.inputs()[i].value)] = inputs[i].data();
  for (const partition& group : groups)
    if (!group.output_ports().empty()) PT_TRY(side.add(group, net, places));

  size_t scratch = 0;
  for (const Part& part : side.parts_) scratch = std::max(scratch, part.compiled.scratchpad_bytes());
  side.scratch_ = Memory(scratch);
  for (Value value : net.outputs()) {
    const auto made = std::ranges::find(side.made_, value, &std::pair<Value, size_t>::first);
    if (made == side.made_.end()) return fail(Code::runtime_error, str("no partition makes tensor ", value));
    side.outputs_.push_back(made->second);
  }
  return side;
}

Status PartitaSide::add(const partition& group, const Net& net, std::vector<void*>& places) {
  if (!group.supported()) return fail(Code::unimplemented, group.reason());
  PT_ASSIGN(compiled_partition compiled, group.compile(group.input_ports(), group.output_ports(), stream_.on()));
  Part part{std::move(compiled), {}, {}};
  for (const logical_tensor& port : part.compiled.inputs()) part.inputs.emplace_back(port, places[port.id]);
  for (const logical_tensor& port : part.compiled.outputs()) {
    const Value value = static_cast<Value>(port.id);
    made_.emplace_back(value, owned_.size());
    owned_.emplace_back(net.shape(value).bytes());
    fill_with_nan(owned_.back());
    places[port.id] = owned_.back().data();
    part.outputs.emplace_back(port, places[port.id]);
  }
  parts_.push_back(std::move(part));
  return {};
}

Status PartitaSide::run() const {
  for (const Part& part : parts_) PT_TRY(part.compiled.execute(stream_, part.inputs, part.outputs, scratch_.data()));
  return {};
}

size_t PartitaSide::scratch_bytes() const {
  size_t bytes = scratch_.bytes();
  for (size_t i = 0; i < owned_.size(); ++i)
    if (std::ranges::count(outputs_, i) == 0) bytes += owned_[i].bytes();
  return bytes;
}

std::vector<std::string> PartitaSide::kernels() const {
  std::vector<std::string> names;
  for (const Part& part : parts_)
    for (const step_info& step : part.compiled.steps()) names.push_back(step.kernel);
  return names;
}

}  // namespace partita::bench
