// SPDX-License-Identifier: Apache-2.0
// One case in one variant: prepare, check, measure.
#include <algorithm>
#include <new>

#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/text.hpp"
#include "tests/bench/case.hpp"
#include "tests/bench/memory_limit.hpp"
#include "tests/bench/partita_side.hpp"

namespace partita::bench {
namespace {

/// docs/numerics.md: what two correct programs may differ by, of the result's size.
double tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return 6e-2;
    case Dtype::f16: return 8e-3;
    default: return 2e-4;
  }
}

std::vector<Memory> filled_inputs(const Net& net) {
  std::vector<Memory> inputs;
  for (const Net::Input& input : net.inputs()) {
    const Shape& shape = net.shape(input.value);
    inputs.emplace_back(shape.bytes());
    fill(inputs.back().data(), shape, input.range, /*seed=*/static_cast<uint64_t>(input.value) + 1);
  }
  return inputs;
}

/// oneDNN's side of a case, with its own outputs.
class OneDnnSide {
 public:
  OneDnnSide(const Case& c, Variant variant, const Net& net, std::span<const Memory> inputs)
      : chain_(variant, places_of(net, inputs), made_places(net)) {
    c.chain(chain_);
  }
  Status run() {
    try {
      chain_.run();
    } catch (const dnnl::error& e) {
      return fail(Code::runtime_error, str("oneDNN: ", e.what()));
    }
    return {};
  }
  const Memory& output(size_t i) const { return outputs_[i]; }
  const std::vector<std::string>& kernels() const { return chain_.kernels(); }

 private:
  static std::vector<Chain::Place> places_of(const Net& net, std::span<const Memory> inputs) {
    std::vector<Chain::Place> places;
    for (size_t i = 0; i < inputs.size(); ++i) places.push_back({net.shape(net.inputs()[i].value), inputs[i].data()});
    return places;
  }
  std::vector<Chain::Place> made_places(const Net& net) {
    std::vector<Chain::Place> places;
    for (Value value : net.outputs()) {
      outputs_.emplace_back(net.shape(value).bytes());
      fill_with_nan(outputs_.back());
      places.push_back({net.shape(value), outputs_.back().data()});
    }
    return places;
  }

  std::vector<Memory> outputs_;
  Chain chain_;
};

Status check(const Case& c, const Net& net, const PartitaSide& partita, const Net& expected_net,
             const OneDnnSide& expected) {
  for (size_t i = 0; i < net.outputs().size(); ++i) {
    if (std::ranges::count(c.unchecked, static_cast<int>(i)) > 0) continue;
    const Shape& shape = net.shape(net.outputs()[i]);
    const Shape& expected_shape = expected_net.shape(expected_net.outputs()[i]);
    const std::string found = difference(partita.output(i).data(), shape.dtype, expected.output(i).data(),
                                         expected_shape.dtype, shape.elements(), tolerance_of(net.dtype()));
    if (!found.empty()) return fail(Code::runtime_error, str("output ", i, ": ", found));
  }
  return {};
}

/// Where oneDNN does not have the type, its results in f32 on the same inputs tell what is right.
Status check_in_f32(const Case& c, const Net& net, std::span<const Memory> inputs, const PartitaSide& partita,
                    Order order) {
  const Variant exact{Dtype::f32, order};
  Net wide(exact);
  c.graph(wide);
  std::vector<Memory> widened;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& from = net.shape(net.inputs()[i].value);
    widened.emplace_back(wide.shape(wide.inputs()[i].value).bytes());
    widen(inputs[i].data(), from.dtype, from.elements(), static_cast<float*>(widened.back().data()));
  }
  OneDnnSide side(c, exact, wide, widened);
  PT_TRY(side.run());
  return check(c, net, partita, wide, side);
}

void count_traffic(const Case& c, const Net& net, Row& row) {
  const auto bytes_of = [&](int input) { return net.shape(net.inputs()[static_cast<size_t>(input)].value).bytes(); };
  for (const Net::Input& input : net.inputs()) row.bytes_read += net.shape(input.value).bytes();
  for (int input : c.never_read) row.bytes_read -= bytes_of(input);
  for (Value value : net.outputs()) row.bytes_written += net.shape(value).bytes();
  row.fits_cache = row.bytes_read + row.bytes_written <= last_level_cache_bytes();
  for (int input : c.read_twice) row.bytes_read += bytes_of(input);
}

Status prepare_and_measure(const Case& c, const Settings& settings, Row& row) {
  Net net(row.variant);
  c.graph(net);
  count_traffic(c, net, row);
  const std::vector<Memory> inputs = filled_inputs(net);
  if (c.derive) c.derive(net, inputs);
  PT_ASSIGN(const PartitaSide partita, PartitaSide::make(net, inputs, settings.threads));
  row.partitions = partita.partitions();
  row.scratch_bytes = partita.scratch_bytes();
  row.partita_kernels = partita.kernels();
  PT_TRY(partita.run());

  std::unique_ptr<OneDnnSide> onednn;
  if (!c.chain) row.refused = "oneDNN has no such primitive";
  try {
    if (c.chain) onednn = std::make_unique<OneDnnSide>(c, row.variant, net, inputs);
    if (onednn) row.onednn_kernels = onednn->kernels();
  } catch (const dnnl::error& e) {
    row.refused = e.what();
  }
  if (onednn) {
    PT_TRY(onednn->run());
    PT_TRY(check(c, net, partita, net, *onednn));
  } else if (c.chain) {
    PT_TRY(check_in_f32(c, net, inputs, partita, row.variant.order));
  }

  const MemoryLimit limit(row.bytes_read, row.bytes_written, settings.threads);
  const CacheEviction eviction(settings.threads);
  std::vector<Contender> contenders;
  contenders.push_back({[&] { return partita.run(); }});
  contenders.push_back({[&] { return limit.run(), Status(); }});
  if (onednn) contenders.push_back({[&] { return onednn->run(); }});
  PT_TRY(measure(contenders, {settings.seconds, [&] { eviction.run(); }}));
  row.partita = timing_of(contenders[0].seconds);
  row.limit = timing_of(contenders[1].seconds);
  if (onednn) row.onednn = timing_of(contenders[2].seconds);
  return {};
}

}  // namespace

Row run_case(const Case& c, Variant variant, const Settings& settings) {
  Row row{.group = c.group, .name = c.name, .variant = variant};
  try {
    if (Status s = prepare_and_measure(c, settings, row); !s.ok()) row.error = s.text();
  } catch (const dnnl::error& e) {
    row.error = str("oneDNN refuses even f32, nothing to check against: ", e.what());
  } catch (const std::bad_alloc&) {
    row.error = "out of memory";
  }
  return row;
}

Row run_latency(const LatencyCase& c, const Settings& settings) {
  Row row{.group = c.group, .name = c.name, .small = true};
  std::vector<Contender> contenders(2);
  try {
    Status s = c.prepare(row, contenders[0], contenders[1]);
    if (s.ok()) s = measure(contenders, {settings.seconds, {}});
    if (!s.ok()) row.error = s.text();
  } catch (const dnnl::error& e) {
    row.error = str("oneDNN: ", e.what());
  }
  row.partita = timing_of(contenders[0].seconds);
  row.onednn = timing_of(contenders[1].seconds);
  return row;
}

}  // namespace partita::bench
