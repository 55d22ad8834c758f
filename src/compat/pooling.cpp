// SPDX-License-Identifier: Apache-2.0
// Poolings of the doors: as operators, as keys of a table, as calls.
#include "src/compat/pooling.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "src/base/check.hpp"
#include "src/base/hash.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"

namespace partita::compat {
namespace {

constexpr uint64_t kOutput = 16;  ///< tensor id; inputs are numbered from 0

logical_tensor described(uint64_t id, const View& view) { return {id, view.dtype, view.dims, view.strides}; }

std::vector<int64_t> list(const Dims& dims) { return {dims.begin(), dims.end()}; }

bool has_windows(OpKind kind) {
  return kind != OpKind::AdaptiveAvgPoolBackward && kind != OpKind::MaxPoolIndicesBackward;
}
bool is_average(OpKind kind) { return kind == OpKind::AvgPool || kind == OpKind::AvgPoolBackward; }
bool is_maximum(OpKind kind) { return kind == OpKind::MaxPool || kind == OpKind::MaxPoolBackward; }
bool is_forward(OpKind kind) { return kind == OpKind::AvgPool || kind == OpKind::MaxPool; }

void set_windows(op& o, const Pooling& p) {
  o.set_attr(Attr::kernel, list(p.kernel)).set_attr(Attr::strides, list(p.strides));
  o.set_attr(Attr::pads_begin, list(p.pads_begin)).set_attr(Attr::pads_end, list(p.pads_end));
  if (p.ceil) o.set_attr(Attr::rounding_type, std::string("ceil"));
  if (is_maximum(p.kind)) o.set_attr(Attr::dilations, list(p.dilations));
  if (!is_average(p.kind)) return;
  o.set_attr(Attr::exclude_pad, p.divisor == Divisor::valid);
  if (p.divisor == Divisor::padded_box) o.set_attr(Attr::exclude_overhang, true);
  if (p.divisor_override != 0) o.set_attr(Attr::divisor_override, p.divisor_override);
}

op operator_of(const Pooling& p) {
  op o(0, p.kind);
  o.set_attr(Attr::data_format, std::string("NCX"));
  if (has_windows(p.kind)) set_windows(o, p);
  if (p.kind == OpKind::MaxPoolIndicesBackward)
    o.set_attr(Attr::index_base, std::string(p.index_base == IndexBase::plane ? "plane" : "tensor"));
  if (!is_forward(p.kind) && p.kind != OpKind::MaxPoolBackward) o.set_attr(Attr::src_shape, list(p.output.dims));
  for (int i = 0; i < p.input_count; ++i)
    o.add_input(described(static_cast<uint64_t>(i), p.inputs[static_cast<size_t>(i)]));
  o.add_output(described(kOutput, p.output));
  return o;
}

/// What a program is looked up by, where it lies: results of compilation depend on the number of threads.
struct Request {
  const Pooling& pooling;
  int threads;
};

/// The same, kept.
struct Key {
  Pooling pooling;
  int threads;
  operator Request() const { return {pooling, threads}; }
};

struct KeyEqual {
  using is_transparent = void;
  bool operator()(const Request& a, const Request& b) const { return a.threads == b.threads && a.pooling == b.pooling; }
};

struct KeyHash {
  using is_transparent = void;
  size_t operator()(const Request& key) const {
    const Pooling& p = key.pooling;
    Hasher h;
    h.add(static_cast<uint64_t>(p.kind) | static_cast<uint64_t>(p.output.dtype) << 32);
    h.add(static_cast<uint64_t>(p.ceil) | static_cast<uint64_t>(p.divisor) << 8 |
          static_cast<uint64_t>(key.threads) << 16);
    return h.add(p.kernel).add(p.strides).add(p.pads_begin).add(p.output.dims).add(p.inputs[0].dims).value();
  }
};

/// Programs by what they do. It is emptied when it has as many entries as the compiled-partition cache may have, where
/// the programs themselves are kept by age.
class Table {
 public:
  std::shared_ptr<const PoolingProgram> find(const Request& key) const {
    const std::shared_lock lock(mutex_);
    const auto at = programs_.find(key);
    return at == programs_.end() ? nullptr : at->second;
  }
  void keep(const Request& key, std::shared_ptr<const PoolingProgram> program) {
    const std::unique_lock lock(mutex_);
    if (programs_.size() >= cache_capacity()) programs_.clear();
    if (cache_capacity() > 0) programs_.insert_or_assign(Key{key.pooling, key.threads}, std::move(program));
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const PoolingProgram>, KeyHash, KeyEqual> programs_;
};

Table& table() {
  static Table the_table;
  return the_table;
}

const engine& cpu() {
  static const engine the_cpu;
  return the_cpu;
}

const stream& default_stream() {
  static const stream the_stream(cpu());
  return the_stream;
}

}  // namespace

View with_batch(View view) {
  const int64_t stride = std::max<int64_t>(span_of(view.dims, view.strides), 1);
  view.dims.insert(0, 1);
  view.strides.insert(0, stride);
  return view;
}

int64_t window_count(int64_t cells, int64_t kernel, int64_t stride, int64_t pad_begin, int64_t pad_end,
                     int64_t dilation, LastWindow rule) {
  const int64_t room = cells + pad_begin + pad_end - ((kernel - 1) * dilation + 1);
  if (room < 0) return 0;
  if (rule == LastWindow::dropped) return room / stride + 1;
  const int64_t count = (room + stride - 1) / stride + 1;
  return rule == LastWindow::kept_inside && (count - 1) * stride >= cells + pad_begin ? count - 1 : count;
}

Result<std::shared_ptr<const PoolingProgram>> PoolingProgram::of(const Pooling& pooling) {
  const Request key{pooling, thread_count()};
  if (auto found = table().find(key)) return found;
  const op single = operator_of(pooling);
  PT_ASSIGN(const partition alone, partition::of(single));
  if (!alone.supported()) return fail(Code::unimplemented, alone.reason());
  auto made = std::make_shared<PoolingProgram>();
  PT_ASSIGN(made->compiled_, alone.compile(single.inputs, single.outputs, cpu()));
  made->pooling_ = pooling;
  PT_ASSERT(std::ranges::equal(made->compiled_.inputs(), single.inputs, {}, &logical_tensor::id, &logical_tensor::id));
  table().keep(key, made);
  return std::shared_ptr<const PoolingProgram>(std::move(made));
}

Status PoolingProgram::execute(std::span<const void* const> inputs, void* output, void* scratchpad) const {
  PT_ASSERT(static_cast<int>(inputs.size()) == pooling_.input_count);
  return compiled_.execute_at(default_stream(), inputs, {&output, 1}, scratchpad);
}

}  // namespace partita::compat
