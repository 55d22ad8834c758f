// SPDX-License-Identifier: Apache-2.0
// Compiling partitions and executing them. The C interface matches tensors by position, so a compiled partition keeps
// for each port of its program where in the given lists its tensor stands.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/constant_capacity.hpp"
#include "src/compat/dnnl_graph/dump.hpp"
#include "src/compat/dnnl_graph/engines.hpp"
#include "src/compat/dnnl_graph/host.hpp"
#include "src/compat/dnnl_graph/logical_tensors.hpp"
#include "src/compat/dnnl_graph/partitions.hpp"
#include "src/compat/dnnl_graph/tensors.hpp"
#include "src/compat/dnnl_graph/threadpool.hpp"

using namespace partita;
using namespace partita::abi;

namespace {

/// A port of the program.
struct Port {
  uint64_t id;
  Dtype dtype;
  size_t place;           ///< in the list that was given to compile
  size_t bytes;           ///< of its memory; 0 where the shape is known only at execution
  bool takes_given_desc;  ///< the tensor's own dims are needed
};

/// In place for as many as most partitions have; only what is added is made.
template <class T>
class List {
 public:
  explicit List(size_t most) : in_place_(most <= kFew) {
    if (!in_place_) many_.reserve(most);
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  /// Adds what `make` returns; at most as often as was said.
  template <class Make>
  void add(Make&& make) {
    if (in_place_)
      new (few() + size_++) T(make());
    else
      many_.push_back(make());
  }
  operator std::span<const T>() { return in_place_ ? std::span<const T>(few(), size_) : std::span<const T>(many_); }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  static constexpr size_t kFew = 12;

  T* few() { return reinterpret_cast<T*>(few_); }

  alignas(T) std::byte few_[kFew * sizeof(T)];
  std::vector<T> many_;
  size_t size_ = 0;
  bool in_place_;
};

constexpr size_t kAlignment = 64;

}  // namespace

struct dnnl_graph_compiled_partition {
  explicit dnnl_graph_compiled_partition(partition p) : group(std::move(p)) {}

  partition group;
  std::optional<compiled_partition> program;
  std::vector<Port> inputs, outputs;
  bool takes_descs = false;  ///< one of the ports does
  size_t given_inputs = 0, given_outputs = 0;
  std::vector<dnnl_graph_inplace_pair_t> inplace;
};

namespace {

Status check_engine(const partition& p, dnnl_engine_t engine) {
  PT_ASSIGN(const dnnl_engine_kind_t kind, host::kind_of(engine));
  if (kind == dnnl_cpu && p.engine_kind() == EngineKind::cpu) return {};
  if (kind == dnnl_cpu && p.engine_kind() == EngineKind::any) return {};
  return fail(Code::invalid_arguments,
              str("the graph is for engines of kind ", static_cast<int>(p.engine_kind()), ", this engine is of kind ",
                  static_cast<int>(kind), "; Partita runs on CPU engines"));
}

Status convert(size_t num, const dnnl_graph_logical_tensor_t** given, const char* side, List<logical_tensor>& into) {
  for (size_t i = 0; i < num; ++i) {
    if (!given[i]) return fail(Code::invalid_arguments, str("`", side, "` ", i, " is null"));
    PT_TRY(check_rank(*given[i]));
    into.add([&] { return from_c(*given[i]); });
  }
  return {};
}

void describe(const std::vector<logical_tensor>& ports, std::span<const logical_tensor> given,
              std::vector<Port>& made) {
  made.clear();
  for (const logical_tensor& t : ports) {
    const auto at = std::ranges::find(given, t.id, &logical_tensor::id);
    const bool known = t.shape_known();
    made.push_back({t.id, t.dtype, static_cast<size_t>(at - given.begin()), known ? t.size_bytes() : 0, !known});
  }
}

Status compile(dnnl_graph_compiled_partition& into, const partition& p, std::span<const logical_tensor> in,
               std::span<const logical_tensor> out, const engine& on) {
  into.program.reset();
  if (dumps(Dump::subgraph)) dump_subgraph(p, in, out);
  PT_ASSIGN(into.program, p.compile(in, out, on));
  into.group = p;
  describe(into.program->inputs(), in, into.inputs);
  describe(into.program->outputs(), out, into.outputs);
  const auto takes_desc = [](const Port& port) { return port.takes_given_desc; };
  into.takes_descs = std::ranges::any_of(into.inputs, takes_desc) || std::ranges::any_of(into.outputs, takes_desc);
  into.given_inputs = in.size();
  into.given_outputs = out.size();
  into.inplace.clear();
  for (const auto& [from, to] : into.program->inplace_ports()) into.inplace.push_back({from, to});
  return {};
}

Status check_lists(const dnnl_graph_compiled_partition& p, size_t num_inputs, size_t num_outputs) {
  if (num_inputs >= p.given_inputs && num_outputs >= p.given_outputs) return {};
  return fail(Code::invalid_arguments, str("the partition was compiled for ", p.given_inputs, " inputs and ",
                                           p.given_outputs, " outputs, found ", num_inputs, " and ", num_outputs));
}

/// Bytes that the program reads or writes of the port: by the tensor's own dims where only those are known, of the
/// port's type all the same.
size_t needed_bytes(const Port& port, const dnnl_graph_tensor& t) {
  if (!port.takes_given_desc) return port.bytes;
  dnnl_graph_logical_tensor_t desc = t.desc;
  desc.data_type = static_cast<dnnl_data_type_t>(port.dtype);
  const size_t bytes = bytes_of(desc);
  return bytes == kUnknownSize ? 0 : bytes;  // what is missing is told where shapes are checked
}

Status misfit(const Port& port, const_dnnl_graph_tensor_t t, const char* side) {
  if (!t) return fail(Code::invalid_arguments, str("`", side, "` ", port.place, " is null"));
  return fail(Code::invalid_arguments, str(side, " ", port.place, " (tensor ", port.id, ") has ", t->bytes, " bytes, ",
                                           needed_bytes(port, *t), " are needed"));
}

template <class Bound>
Bound of_port(const Port& port, const dnnl_graph_tensor& t) {
  if constexpr (std::is_same_v<Bound, tensor>) {
    tensor bound;
    if (port.takes_given_desc) bound.desc = from_c(t.desc);
    bound.desc.id = port.id;
    bound.desc.dtype = port.dtype;
    bound.data = t.data;
    return bound;
  } else {
    return t.data;
  }
}

/// The tensors of the ports, or their addresses, in the program's order.
template <class Bound>
Status bind(const std::vector<Port>& ports, const const_dnnl_graph_tensor_t* given, const char* side,
            List<Bound>& into) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const const_dnnl_graph_tensor_t t = given[ports[i].place];
    if (!t || t->bytes < needed_bytes(ports[i], *t)) return misfit(ports[i], t, side);
    into.add([&] { return of_port<Bound>(ports[i], *t); });
  }
  return {};
}

/// The user's buffer, moved to the alignment that the program needs; null: the engine's allocator gives one.
Result<void*> aligned_scratchpad(const compiled_partition& program, const_dnnl_graph_tensor_t scratchpad) {
  const size_t bytes = program.scratchpad_bytes();
  if (!scratchpad || bytes == 0) return nullptr;
  if (!scratchpad->data) return fail(Code::invalid_arguments, "`scratchpad` has no data");
  if (scratchpad->bytes < bytes + kAlignment)
    return fail(Code::invalid_arguments,
                str("`scratchpad` has ", scratchpad->bytes, " bytes, ", bytes + kAlignment, " are needed"));
  const auto address = reinterpret_cast<uintptr_t>(scratchpad->data);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

/// What a call of execute gives, its counts checked.
struct Arguments {
  const const_dnnl_graph_tensor_t *inputs, *outputs;
  void* scratchpad;
};

Status execute_on(const partita::stream& on, const dnnl_graph_compiled_partition& p, const Arguments& given) {
  if (p.takes_descs) {
    List<tensor> in(p.inputs.size()), out(p.outputs.size());
    PT_TRY(bind(p.inputs, given.inputs, "inputs", in));
    PT_TRY(bind(p.outputs, given.outputs, "outputs", out));
    return p.program->execute(on, in, out, given.scratchpad);
  }
  List<const void*> in(p.inputs.size());
  List<void*> out(p.outputs.size());
  PT_TRY(bind(p.inputs, given.inputs, "inputs", in));
  PT_TRY(bind(p.outputs, given.outputs, "outputs", out));
  return p.program->execute_at(on, in, out, given.scratchpad);
}

Status execute(const dnnl_graph_compiled_partition& p, dnnl_stream_t stream, size_t num_inputs,
               const const_dnnl_graph_tensor_t* inputs, size_t num_outputs, const const_dnnl_graph_tensor_t* outputs,
               const_dnnl_graph_tensor_t scratchpad) {
  if (!p.program) return fail(Code::invalid_arguments, "the partition is not compiled");
  PT_ASSIGN(const dnnl_engine_t handle, host::engine_of(stream));
  PT_TRY(check_engine(p.group, handle));
  PT_TRY(check_lists(p, num_inputs, num_outputs));
  PT_ASSIGN(void* const scratch, aligned_scratchpad(*p.program, scratchpad));
  const Arguments given{inputs, outputs, scratch};
  if (!host::has_threadpools()) return execute_on(partita::stream(*engine_at(handle)), p, given);
  void* pool = host::threadpool_of(stream);
  if (!pool) return execute_on(partita::stream(*engine_at(handle), 1), p, given);
  PoolExecutor executor(pool);
  return execute_on(partita::stream(*engine_at(handle), executor), p, given);
}

}  // namespace

dnnl_status_t dnnl_graph_partition_compile(dnnl_graph_partition_t p, dnnl_graph_compiled_partition_t compiled_partition,
                                           size_t in_num, const dnnl_graph_logical_tensor_t** inputs, size_t out_num,
                                           const dnnl_graph_logical_tensor_t** outputs, dnnl_engine_t engine) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"compiled_partition", compiled_partition}, {"engine", engine}}));
    if (in_num > 0) PT_TRY(need({{"inputs", inputs}}));
    if (out_num > 0) PT_TRY(need({{"outputs", outputs}}));
    if (!p->value.supported())
      return fail(Code::invalid_arguments, str("the partition is not supported: ", p->value.reason()));
    PT_TRY(check_engine(p->value, engine));
    List<logical_tensor> in(in_num), out(out_num);
    PT_TRY(convert(in_num, inputs, "inputs", in));
    PT_TRY(convert(out_num, outputs, "outputs", out));
    constant_capacity(dnnl_cpu);  // what the environment says of it counts from the first compilation on
    return compile(*compiled_partition, p->value, in, out, *engine_at(engine));
  });
}

dnnl_status_t dnnl_graph_compiled_partition_create(dnnl_graph_compiled_partition_t* made, dnnl_graph_partition_t p) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"compiled_partition", made}, {"partition", p}}));
    *made = new dnnl_graph_compiled_partition(p->value);
    return {};
  });
}

dnnl_status_t dnnl_graph_compiled_partition_execute(const_dnnl_graph_compiled_partition_t p, dnnl_stream_t stream,
                                                    size_t num_inputs, const_dnnl_graph_tensor_t* inputs,
                                                    size_t num_outputs, const_dnnl_graph_tensor_t* outputs) {
  return dnnl_graph_compiled_partition_execute_v2(p, stream, num_inputs, inputs, num_outputs, outputs, nullptr);
}

dnnl_status_t dnnl_graph_compiled_partition_execute_v2(const_dnnl_graph_compiled_partition_t p, dnnl_stream_t stream,
                                                       size_t num_inputs, const_dnnl_graph_tensor_t* inputs,
                                                       size_t num_outputs, const_dnnl_graph_tensor_t* outputs,
                                                       const_dnnl_graph_tensor_t scratchpad) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"compiled_partition", p}, {"stream", stream}, {"inputs", inputs}, {"outputs", outputs}}));
    return execute(*p, stream, num_inputs, inputs, num_outputs, outputs, scratchpad);
  });
}

dnnl_status_t dnnl_graph_compiled_partition_destroy(dnnl_graph_compiled_partition_t p) {
  delete p;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_compiled_partition_query_logical_tensor(const_dnnl_graph_compiled_partition_t p, size_t tid,
                                                                 dnnl_graph_logical_tensor_t* lt) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"compiled_partition", p}, {"lt", lt}}));
    const auto found = p->program ? p->program->query_logical_tensor(tid) : Result<logical_tensor>(logical_tensor());
    *lt = p->program && found.ok() ? to_c(*found) : blank_c();  // clients ask for ids that are no ports
    return {};
  });
}

dnnl_status_t dnnl_graph_compiled_partition_get_inplace_ports(const_dnnl_graph_compiled_partition_t p,
                                                              size_t* num_inplace_pairs,
                                                              const dnnl_graph_inplace_pair_t** inplace_pairs) {
  return answer_of([&]() -> Status {
    PT_TRY(
        need({{"compiled_partition", p}, {"num_inplace_pairs", num_inplace_pairs}, {"inplace_pairs", inplace_pairs}}));
    *num_inplace_pairs = p->inplace.size();
    *inplace_pairs = p->inplace.data();
    return {};
  });
}

dnnl_status_t dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(const_dnnl_graph_compiled_partition_t p,
                                                                          dnnl_graph_logical_tensor_t* lt) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"compiled_partition", p}, {"lt", lt}}));
    const size_t bytes = p->program ? p->program->scratchpad_bytes() : 0;
    *lt = to_c(logical_tensor(kNoId, Dtype::u8, Dims{static_cast<int64_t>(bytes == 0 ? 0 : bytes + kAlignment)},
                              Layout::strided, Property::variable));
    return {};
  });
}
