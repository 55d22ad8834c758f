// SPDX-License-Identifier: Apache-2.0
// The calls of the careless client.
#include "tests/fuzz/c_interface/client.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "tests/fuzz/target.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/sample.hpp"

namespace partita::test {
namespace {

/// Made once: it is libdnnl's.
dnnl_stream_t stream_of_all() {
  static dnnl_stream_t made = [] {
    dnnl_stream_t handle = nullptr;
    if (dnnl_stream_create(&handle, engine_of_all(), dnnl_stream_default_flags) != dnnl_success) std::abort();
    return handle;
  }();
  return made;
}

template <class List>
void erase_at(List& list, size_t at) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

dnnl_engine_t engine_of_all() {
  static dnnl_engine_t made = [] {
    dnnl_engine_t handle = nullptr;
    if (dnnl_engine_create(&handle, dnnl_cpu, 0) != dnnl_success) std::abort();
    return handle;
  }();
  return made;
}

bool answered(dnnl_status_t status) {
  if (status == dnnl_success) return true;
  if (status < 0 || status > dnnl_invalid_data_type) stop_unless_empty("a status that there is not");
  if (*partita_last_error() == '\0') stop_unless_empty("a failure without text");
  return false;
}

CClient::CClient(Random& random) : random_(random) {}

CClient::~CClient() {
  for (const Compiled& c : compiled_) answered(dnnl_graph_compiled_partition_destroy(c.handle));
  for (const Tensor& t : tensors_) answered(dnnl_graph_tensor_destroy(t.handle));
  for (auto* p : partitions_) answered(dnnl_graph_partition_destroy(p));
  for (auto* o : ops_) answered(dnnl_graph_op_destroy(o));
  for (auto* g : graphs_) answered(dnnl_graph_graph_destroy(g));
}

void CClient::call() {
  switch (random_.whole(0, 23)) {
    case 0: return make_graph();
    case 1:
    case 2:
    case 3: return add_sample();
    case 4:
    case 5: return add_random_op();
    case 6: return settle_graph();
    case 7:
    case 8: return take_partitions();
    case 9: return make_partition_of_op();
    case 10: return ask_partition();
    case 11:
    case 12:
    case 13: return compile();
    case 14:
    case 15:
    case 16: return execute();
    case 17: return ask_compiled();
    case 18: return ask_logical_tensor();
    case 19: return ask_tensor();
    case 20: return set_capacities();
    case 21: return pass_nulls();
    default: return destroy_one();
  }
}

int64_t CClient::number(int64_t right) {
  if (!careless()) return right;
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const int64_t next = right == kMost ? right : right + 1, before = right == kLeast ? right : right - 1;
  return random_.pick<int64_t>({0, 1, -1, 2, next, before, 12, 13, 1 << 16, int64_t{1} << 31, int64_t{1} << 62, kLeast,
                                kLeast + 1, kMost, random_.whole(-300, 300)});
}

int64_t CClient::dim() { return number(random_.pick<int64_t>({1, 2, 3, 4, 6, 8, 0, 17})); }

// Graphs and operators.

void CClient::make_graph() {
  dnnl_graph_graph_t made = nullptr;
  const auto kind = static_cast<dnnl_engine_kind_t>(number(dnnl_cpu));
  const auto mode = static_cast<dnnl_fpmath_mode_t>(number(random_.whole(0, 4)));
  const bool plain = random_.coin();
  const auto status =
      plain ? dnnl_graph_graph_create(&made, kind) : dnnl_graph_graph_create_with_fpmath_mode(&made, kind, mode);
  if (answered(status)) graphs_.push_back(made);
}

/// The operators of a graph that is right but for what is spoilt.
void CClient::add_sample() {
  if (graphs_.empty() || random_.whole(0, 7) == 0) make_graph();
  auto* g = any(graphs_);
  const std::vector<op> sketch = random_.coin() ? sample(random_.one_of(sampled_patterns()), random_)
                                                : random_graph(random_, static_cast<int>(random_.whole(1, 8))).ops;
  for (const op& o : sketch) {
    ops_.push_back(op_of(o));
    answered(dnnl_graph_add_op(g, ops_.back()));
  }
  if (!random_.coin()) return;
  answered(dnnl_graph_graph_finalize(g));
  answered(dnnl_graph_graph_filter(g, dnnl_graph_partition_policy_fusion));
}

void CClient::add_random_op() {
  ops_.push_back(random_op());
  answered(dnnl_graph_add_op(any(graphs_), careless() ? any(ops_) : ops_.back()));
}

dnnl_graph_op_t CClient::op_of(const op& from) {
  dnnl_graph_op_t made = nullptr;
  const auto id = careless() ? static_cast<size_t>(number(1)) : from.id;
  if (!answered(dnnl_graph_op_create(&made, id, static_cast<dnnl_graph_op_kind_t>(from.kind), from.name.c_str())))
    std::abort();
  for (const logical_tensor& t : from.inputs) {
    const Lt given = lt_of(t);
    if (!careless()) answered(dnnl_graph_op_add_input(made, &given));
  }
  for (const logical_tensor& t : from.outputs) {
    const Lt given = lt_of(t);
    if (!careless()) answered(dnnl_graph_op_add_output(made, &given));
  }
  for (const auto& [name, value] : from.attrs())
    if (!careless()) set_attr(made, name, value);
  if (careless()) set_random_attr(made);
  return made;
}

void CClient::set_attr(dnnl_graph_op_t made, Attr name, const AttrValue& value) {
  const auto number = static_cast<dnnl_graph_op_attr_t>(name);
  if (const bool* flag = std::get_if<bool>(&value)) {
    const uint8_t byte = *flag;
    answered(dnnl_graph_op_set_attr_bool(made, number, &byte, 1));
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    answered(dnnl_graph_op_set_attr_s64(made, number, whole, 1));
  } else if (const auto* real = std::get_if<float>(&value)) {
    answered(dnnl_graph_op_set_attr_f32(made, number, real, 1));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    answered(dnnl_graph_op_set_attr_str(made, number, text->c_str(), text->size()));
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    std::vector<int64_t> numbers = *list;
    for (int64_t& n : numbers) n = this->number(n);
    answered(dnnl_graph_op_set_attr_s64(made, number, numbers.data(), numbers.size()));
  } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
    answered(dnnl_graph_op_set_attr_f32(made, number, floats->data(), floats->size()));
  }
}

void CClient::set_random_attr(dnnl_graph_op_t made) {
  const auto name =
      random_.pick<int64_t>({random_.whole(1, 6), 0x20, random_.whole(0x30, 0x32), random_.whole(0x40, 0x4e),
                             random_.whole(0x60, 0x68), random_.whole(0x80, 0x88), random_.whole(-1, 0x110)});
  switch (random_.whole(0, 3)) {
    case 0: {
      const std::vector<float> list(static_cast<size_t>(random_.whole(0, 13)),
                                    random_.pick({0.5f, -1.0f, 0.0f, 1e38f}));
      return set_attr(made, static_cast<Attr>(name), list.empty() ? AttrValue(0.5f) : AttrValue(list));
    }
    case 1: return set_attr(made, static_cast<Attr>(name), random_.coin());
    case 2: {
      std::vector<int64_t> list(static_cast<size_t>(random_.whole(1, 13)));
      for (int64_t& n : list) n = dim();
      return set_attr(made, static_cast<Attr>(name), list);
    }
    default:
      return set_attr(made, static_cast<Attr>(name),
                      std::string(random_.pick({"NXC", "NCX", "None", "OIX", "nearest", "per_group", "", "x\xff"})));
  }
}

dnnl_graph_op_t CClient::random_op() {
  dnnl_graph_op_t made = nullptr;
  const auto kind = static_cast<dnnl_graph_op_kind_t>(number(random_.whole(0, 90)));
  if (!answered(dnnl_graph_op_create(&made, static_cast<size_t>(random_.whole(0, 99)), kind, ""))) std::abort();
  const Lt first = random_lt();
  for (int64_t n = random_.whole(0, 6); n > 0; --n) {
    const Lt t = random_.coin() ? first : random_lt();
    answered(dnnl_graph_op_add_input(made, &t));
  }
  for (int64_t n = random_.whole(0, 3); n > 0; --n) {
    Lt t = random_.coin() ? first : random_lt();
    t.id = static_cast<size_t>(random_.whole(0, 40));
    answered(dnnl_graph_op_add_output(made, &t));
  }
  for (int64_t n = random_.whole(0, 5); n > 0; --n) set_random_attr(made);
  return made;
}

void CClient::settle_graph() {
  auto* g = any(graphs_);
  int flag = 0;
  uint8_t done = 0;
  size_t count = 0;
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
  switch (random_.whole(0, 5)) {
    case 0:
      answered(dnnl_graph_graph_set_fpmath_mode(g, static_cast<dnnl_fpmath_mode_t>(number(random_.whole(0, 4))),
                                                random_.coin()));
      break;
    case 1: answered(dnnl_graph_graph_get_fpmath_mode(g, &mode, &flag)); break;
    case 2: answered(dnnl_graph_graph_is_finalized(g, &done)); break;
    case 3: answered(dnnl_graph_graph_get_partition_num(g, &count)); break;
    default: answered(dnnl_graph_graph_finalize(g));
  }
}

// Partitions.

void CClient::take_partitions() {
  auto* g = any(graphs_);
  if (!careless()) answered(dnnl_graph_graph_finalize(g));
  answered(dnnl_graph_graph_filter(g, static_cast<dnnl_graph_partition_policy_t>(number(random_.whole(1, 2)))));
  size_t count = 0;
  if (!answered(dnnl_graph_graph_get_partition_num(g, &count))) return;
  if (careless()) count = static_cast<size_t>(random_.whole(0, 64));
  std::vector<dnnl_graph_partition_t> made(count, nullptr);
  if (answered(dnnl_graph_graph_get_partitions(g, count, made.data())))
    partitions_.insert(partitions_.end(), made.begin(), made.end());
}

void CClient::make_partition_of_op() {
  dnnl_graph_partition_t made = nullptr;
  if (answered(
          dnnl_graph_partition_create_with_op(&made, any(ops_), static_cast<dnnl_engine_kind_t>(number(dnnl_cpu)))))
    partitions_.push_back(made);
}

std::vector<dnnl_graph_logical_tensor_t> CClient::ports(dnnl_graph_partition_t p, bool inputs) {
  size_t count = 0;
  const auto counted = inputs ? dnnl_graph_partition_get_input_ports_num(p, &count)
                              : dnnl_graph_partition_get_output_ports_num(p, &count);
  if (!answered(counted)) return {};
  if (careless()) count = static_cast<size_t>(random_.whole(0, 64));
  std::vector<Lt> list(count + 1);
  const auto status = inputs ? dnnl_graph_partition_get_input_ports(p, count, list.data())
                             : dnnl_graph_partition_get_output_ports(p, count, list.data());
  list.resize(answered(status) ? count : 0);
  return list;
}

void CClient::ask_partition() {
  auto* p = any(partitions_);
  size_t count = 0, id = 0;
  uint8_t supported = 0;
  int kind = 0;
  dnnl_engine_kind_t engine = dnnl_cpu;
  answered(dnnl_graph_partition_get_id(p, &id));
  answered(dnnl_graph_partition_get_kind(p, &kind));
  answered(dnnl_graph_partition_is_supported(p, &supported));
  answered(dnnl_graph_partition_get_engine_kind(p, &engine));
  if (!answered(dnnl_graph_partition_get_op_num(p, &count))) return;
  if (careless()) count = static_cast<size_t>(random_.whole(0, 64));
  std::vector<size_t> ids(count + 1);
  answered(dnnl_graph_partition_get_ops(p, count, ids.data()));
}

void CClient::compile() {
  auto* p = any(partitions_);
  Compiled made{nullptr, ports(p, true), ports(p, false)};
  if (!compiled_.empty() && careless()) {
    made.handle = random_.one_of(compiled_).handle;  // again, for something else
  } else if (!answered(dnnl_graph_compiled_partition_create(&made.handle, p))) {
    return;
  }
  const bool again = std::ranges::any_of(compiled_, [&](const Compiled& c) { return c.handle == made.handle; });
  std::vector<const Lt*> in, out;
  for (auto* side : {&made.inputs, &made.outputs})
    for (Lt& t : *side) {
      if (t.layout_type == dnnl_graph_layout_type_undef) t.layout_type = dnnl_graph_layout_type_any;
      spoil(t);
      auto& list = side == &made.inputs ? in : out;
      list.push_back(random_.whole(0, 63) == 0 ? nullptr : &t);
    }
  const bool compiled =
      answered(dnnl_graph_partition_compile(p, made.handle, in.size(), in.data(), out.size(), out.data(),
                                            random_.whole(0, 31) == 0 ? nullptr : engine_of_all()));
  if (!again) return compiled_.push_back(std::move(made));
  for (Compiled& c : compiled_)
    if (c.handle == made.handle && compiled) c = made;
}

void CClient::ask_compiled() {
  if (compiled_.empty()) return;
  const Compiled& c = random_.one_of(compiled_);
  Lt found;
  size_t pairs = 0;
  const dnnl_graph_inplace_pair_t* list = nullptr;
  answered(dnnl_graph_compiled_partition_query_logical_tensor(c.handle, static_cast<size_t>(number(100)), &found));
  answered(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(c.handle, &found));
  if (!answered(dnnl_graph_compiled_partition_get_inplace_ports(c.handle, &pairs, &list))) return;
  for (size_t i = 0; i < pairs; ++i)
    if (list[i].input_id == list[i].output_id) stop_unless_empty("a tensor in place of itself");
}

/// Tensors for what the partition says its ports are, in the order in which they were given to compile.
void CClient::execute() {
  if (compiled_.empty()) return;
  const Compiled& c = random_.one_of(compiled_);
  std::vector<Tensor> made;
  std::vector<const_dnnl_graph_tensor_t> in, out;
  for (const auto* side : {&c.inputs, &c.outputs})
    for (const Lt& given : *side) {
      Lt t = given, known;
      if (answered(dnnl_graph_compiled_partition_query_logical_tensor(c.handle, given.id, &known)) && !careless())
        t = known;
      if (careless()) spoil(t);
      made.push_back(tensor_for(t));
      (side == &c.inputs ? in : out).push_back(careless() ? nullptr : made.back().handle);
    }
  if (careless()) std::swap(in, out);
  if (careless() && !in.empty()) in.pop_back();
  Lt scratch;
  Tensor scratchpad;
  if (random_.coin() && answered(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(c.handle, &scratch)))
    scratchpad = tensor_for(scratch);
  const_dnnl_graph_tensor_t none = nullptr;
  answered(dnnl_graph_compiled_partition_execute_v2(c.handle, stream_of_all(), in.size(),
                                                    in.empty() ? &none : in.data(), out.size(),
                                                    out.empty() ? &none : out.data(), scratchpad.handle));
  answered(dnnl_graph_tensor_destroy(scratchpad.handle));
  for (Tensor& t : made) {
    if (tensors_.size() < 8 && random_.whole(0, 7) == 0)
      tensors_.push_back(std::move(t));
    else
      answered(dnnl_graph_tensor_destroy(t.handle));
  }
}

// The rest.

void CClient::set_capacities() {
  int capacity = 0;
  size_t size = 0;
  const auto kind = static_cast<dnnl_engine_kind_t>(number(dnnl_cpu));
  switch (random_.whole(0, 3)) {
    case 0:
      answered(dnnl_graph_set_compiled_partition_cache_capacity(static_cast<int>(number(random_.whole(0, 64)))));
      answered(dnnl_graph_get_compiled_partition_cache_capacity(&capacity));
      break;
    case 1:
      answered(dnnl_graph_set_constant_tensor_cache(static_cast<int>(number(1))));
      answered(dnnl_graph_get_constant_tensor_cache(&capacity));
      break;
    default:
      answered(dnnl_graph_set_constant_tensor_cache_capacity(kind, static_cast<size_t>(number(random_.whole(0, 8)))));
      answered(dnnl_graph_get_constant_tensor_cache_capacity(kind, &size));
  }
}

/// Each function with one of its pointers missing.
void CClient::pass_nulls() {
  size_t n = 0;
  void* data = nullptr;
  float f = 0;
  int64_t i = 0;
  uint8_t b = 0;
  const Lt t = random_lt();
  auto* g = any(graphs_);
  auto* o = any(ops_);
  auto* p = any(partitions_);
  answered(dnnl_graph_graph_create(nullptr, dnnl_cpu));
  answered(dnnl_graph_add_op(g, nullptr));
  answered(dnnl_graph_add_op(nullptr, o));
  answered(dnnl_graph_graph_get_partitions(g, 1, nullptr));
  answered(dnnl_graph_graph_is_finalized(g, nullptr));
  answered(dnnl_graph_graph_get_partition_num(g, nullptr));
  answered(dnnl_graph_op_create(nullptr, 0, dnnl_graph_op_relu, ""));
  answered(dnnl_graph_op_create(&o, 0, dnnl_graph_op_relu, nullptr));
  o = any(ops_);
  answered(dnnl_graph_op_add_input(o, nullptr));
  answered(dnnl_graph_op_add_output(nullptr, &t));
  answered(dnnl_graph_op_set_attr_f32(nullptr, dnnl_graph_op_attr_alpha, &f, 1));
  answered(dnnl_graph_op_set_attr_s64(o, dnnl_graph_op_attr_axis, nullptr, 1));
  answered(dnnl_graph_op_set_attr_bool(o, dnnl_graph_op_attr_use_dst, &b, static_cast<size_t>(number(1))));
  answered(dnnl_graph_op_set_attr_s64(o, dnnl_graph_op_attr_axes, &i, 0));
  answered(dnnl_graph_op_set_attr_str(o, dnnl_graph_op_attr_mode, "", 0));
  answered(dnnl_graph_op_get_id(o, nullptr));
  answered(dnnl_graph_op_get_kind(nullptr, nullptr));
  answered(dnnl_graph_partition_create_with_op(nullptr, o, dnnl_cpu));
  answered(dnnl_graph_partition_get_id(p, nullptr));
  answered(dnnl_graph_partition_get_op_num(nullptr, &n));
  answered(dnnl_graph_partition_get_input_ports(p, 1, nullptr));
  answered(dnnl_graph_partition_compile(p, nullptr, 0, nullptr, 0, nullptr, engine_of_all()));
  answered(dnnl_graph_compiled_partition_create(nullptr, p));
  answered(dnnl_graph_compiled_partition_execute(nullptr, stream_of_all(), 0, nullptr, 0, nullptr));
  answered(dnnl_graph_tensor_create(nullptr, &t, engine_of_all(), nullptr));
  answered(dnnl_graph_tensor_create_scalar(nullptr, &t, &f));
  answered(dnnl_graph_tensor_get_data_handle(nullptr, &data));
  answered(dnnl_graph_logical_tensor_get_mem_size(nullptr, &n));
  answered(dnnl_graph_logical_tensor_is_equal(&t, nullptr, &b));
  answered(dnnl_graph_get_compiled_partition_cache_capacity(nullptr));
}

void CClient::destroy_one() {
  const auto place = [&](size_t size) { return static_cast<size_t>(random_.whole(0, static_cast<int64_t>(size) - 1)); };
  switch (random_.whole(0, 4)) {
    case 0:
      if (graphs_.empty()) return;
      if (const size_t at = place(graphs_.size()); answered(dnnl_graph_graph_destroy(graphs_[at])))
        erase_at(graphs_, at);
      return;
    case 1:
      if (ops_.empty()) return;
      if (const size_t at = place(ops_.size()); answered(dnnl_graph_op_destroy(ops_[at]))) erase_at(ops_, at);
      return;
    case 2:
      if (partitions_.empty()) return;
      if (const size_t at = place(partitions_.size()); answered(dnnl_graph_partition_destroy(partitions_[at])))
        erase_at(partitions_, at);
      return;
    case 3:
      if (compiled_.empty()) return;
      if (const size_t at = place(compiled_.size());
          answered(dnnl_graph_compiled_partition_destroy(compiled_[at].handle)))
        erase_at(compiled_, at);
      return;
    default:
      if (tensors_.empty()) return;
      if (const size_t at = place(tensors_.size()); answered(dnnl_graph_tensor_destroy(tensors_[at].handle)))
        erase_at(tensors_, at);
  }
}

}  // namespace partita::test
