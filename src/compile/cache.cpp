// SPDX-License-Identifier: Apache-2.0
// The compiled-partition cache: least recently used, keyed by content (and, where constants are kept, by the
// partition), one build for equal concurrent requests.
#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "src/base/check.hpp"
#include "src/base/env.hpp"
#include "src/base/guarded.hpp"
#include "src/base/hash.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"
#include "src/run/arena.hpp"

namespace partita {
namespace {

std::string_view content_of(const tensor& constant) {
  return {static_cast<const char*>(constant.data), constant.desc.size_bytes()};
}

bool counts(const tensor& constant) { return constant.data != nullptr && constant.desc.shape_known(); }

/// Whether a program keeps what it makes of constants. What is kept is known by their addresses, at which another graph
/// with the same operators may have other constants: such programs belong to one partition.
bool keeps_constants(const Given& given, const CompileOptions& options) {
  return options.keeps_constants &&
         std::ranges::any_of(given.inputs, [](const logical_tensor& t) { return t.property == Property::constant; });
}

/// Everything a program depends on, where it lies.
struct Request {
  const Partition& partition;
  const Given& given;
  CompileOptions options;
  uint64_t engine;
  bool keeps;
  uint64_t hash;

  Request(const Partition& p, const Given& given, const CompileOptions& options, uint64_t engine)
      : partition(p), given(given), options(options), engine(engine), keeps(keeps_constants(given, options)) {
    Hasher h;
    if (keeps) h.add(p.id);
    h.add(p.content_hash).add(engine).add(static_cast<uint64_t>(options.threads)).add(static_cast<uint64_t>(p.fpmath));
    h.add(static_cast<uint64_t>(options.keeps_constants)).add(static_cast<uint64_t>(options.deterministic));
    for (const auto* side : {&given.inputs, &given.outputs})
      for (const logical_tensor& t : *side) {
        h.add(t.id ^ static_cast<uint64_t>(t.dtype) << 56 ^ static_cast<uint64_t>(t.layout) << 48);
        h.add(t.dims).add(t.strides);
      }
    for (const tensor& c : given.constants)
      if (counts(c)) h.add(c.desc.id).add(content_of(c));
    hash = h.value();
  }
};

/// The same, kept.
class Key {
 public:
  explicit Key(const Request& r)
      : hash_(r.hash),
        partition_(r.partition.id),
        keeps_(r.keeps),
        ops_(r.partition.ops),
        attrs_(r.partition.attrs),
        inputs_(r.given.inputs.begin(), r.given.inputs.end()),
        outputs_(r.given.outputs.begin(), r.given.outputs.end()),
        options_(r.options),
        engine_(r.engine),
        fpmath_(r.partition.fpmath) {
    for (const tensor& c : r.given.constants)
      if (counts(c)) constants_.emplace_back(c.desc.id, content_of(c));
  }

  uint64_t hash() const { return hash_; }
  uint64_t engine() const { return engine_; }
  bool belongs_to(uint64_t partition) const { return keeps_ && partition_ == partition; }

  friend bool operator==(const Key&, const Key&) = default;

  bool is(const Request& r) const {
    const Partition& p = r.partition;
    return hash_ == r.hash && options_ == r.options && engine_ == r.engine && fpmath_ == p.fpmath &&
           std::ranges::equal(inputs_, r.given.inputs) && std::ranges::equal(outputs_, r.given.outputs) &&
           (partition_ == p.id || (!keeps_ && ops_ == p.ops && attrs_ == p.attrs)) && has(r.given.constants);
  }

 private:
  bool has(std::span<const tensor> constants) const {
    size_t k = 0;
    for (const tensor& c : constants) {
      if (!counts(c)) continue;
      if (k == constants_.size() || constants_[k].first != c.desc.id || constants_[k].second != content_of(c))
        return false;
      ++k;
    }
    return k == constants_.size();
  }

  uint64_t hash_, partition_;
  bool keeps_;
  std::vector<op> ops_;
  std::vector<Attrs> attrs_;
  std::vector<logical_tensor> inputs_, outputs_;
  std::vector<std::pair<uint64_t, std::string>> constants_;
  CompileOptions options_;
  uint64_t engine_;
  FpMath fpmath_;
};

/// Requests are looked up without a key being made of them.
struct KeyHash {
  using is_transparent = void;
  size_t operator()(const Key& key) const { return key.hash(); }
  size_t operator()(const Request& request) const { return request.hash; }
};
struct KeyEqual {
  using is_transparent = void;
  bool operator()(const Key& a, const Key& b) const { return a == b; }
  bool operator()(const Request& a, const Key& b) const { return b.is(a); }
  bool operator()(const Key& a, const Request& b) const { return a.is(b); }
};

constexpr size_t kDefaultCapacity = 1024;

/// Hits share the lock; what they change of an entry is atomic.
class Cache {
 public:
  Result<Compiled> get(const Partition& p, const Given& given, const CompileOptions& options, uint64_t engine,
                       bool* hit) {
    bool unasked = false;
    bool& found_one = hit ? *hit : unasked;
    found_one = false;
    if (capacity_.load(std::memory_order_relaxed) == 0) return compile_uncached(p, given, options);
    const Request request(p, given, options, engine);
    Entry entry;
    {
      const std::shared_lock lock(mutex_);
      entry = found(request);
    }
    found_one = entry.valid();
    if (entry.valid()) return awaited(entry, request);
    std::promise<std::shared_ptr<const Compiled>> promise;
    {
      const std::unique_lock lock(mutex_);
      entry = found(request);
      if (!entry.valid()) {
        entries_.try_emplace(Key(request), promise.get_future().share(), ++clock_);
        shrink();
      }
    }
    found_one = entry.valid();
    if (entry.valid()) return awaited(entry, request);
    // Whatever happens, those who wait must hear of it.
    auto made = guarded([&]() -> Result<std::shared_ptr<const Compiled>> {
      PT_ASSIGN(Compiled compiled, compile_uncached(p, given, options));
      return std::make_shared<const Compiled>(std::move(compiled));
    });
    promise.set_value(made.ok() ? *made : nullptr);
    if (made.ok()) return **made;
    forget(request);
    return std::move(made).take_status();
  }

  void forget_engine(uint64_t identity) {
    const std::unique_lock lock(mutex_);
    std::erase_if(entries_, [&](const auto& e) { return e.first.engine() == identity; });
  }

  void forget_partition(uint64_t id) {
    const std::unique_lock lock(mutex_);
    std::erase_if(entries_, [&](const auto& e) { return e.first.belongs_to(id); });
  }

  void set_capacity(size_t n) {
    const std::unique_lock lock(mutex_);
    capacity_ = n;
    shrink();
  }
  size_t capacity() const { return capacity_; }

 private:
  using Entry = std::shared_future<std::shared_ptr<const Compiled>>;
  struct Slot {
    Slot(Entry made, uint64_t now) : entry(std::move(made)), used(now) {}
    Entry entry;
    std::atomic<uint64_t> used;  ///< the clock at its last use
  };

  /// Not valid where there is none. Under the lock.
  Entry found(const Request& request) {
    const auto at = entries_.find(request);
    if (at == entries_.end()) return {};
    at->second.used.store(++clock_, std::memory_order_relaxed);
    return at->second.entry;
  }

  /// A failed build is not kept: those who waited for it build for themselves and get the same error.
  static Result<Compiled> awaited(const Entry& entry, const Request& request) {
    if (const auto& compiled = entry.get()) return *compiled;
    return compile_uncached(request.partition, request.given, request.options);
  }

  /// The least recently used ones go. Under the lock, alone.
  void shrink() {
    while (entries_.size() > capacity_)
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }

  void forget(const Request& request) {
    const std::unique_lock lock(mutex_);
    if (const auto at = entries_.find(request); at != entries_.end()) entries_.erase(at);
  }

  std::shared_mutex mutex_;
  std::atomic<size_t> capacity_ = env_number(Env::cache_capacity).value_or(kDefaultCapacity);
  std::atomic<uint64_t> clock_ = 0;
  std::unordered_map<Key, Slot, KeyHash, KeyEqual> entries_;
};

Cache& cache() {
  static Cache& the_cache = *new Cache;  // never destroyed: clients end what they hold when the process ends
  return the_cache;
}

}  // namespace

Result<Compiled> compile(const Partition& partition, const Given& given, int threads, const engine& on, bool* hit) {
  const ThreadScope scope(threads);
  const CompileOptions options{.threads = thread_count(), .deterministic = on.deterministic()};
  return cache().get(partition, given, options, on.identity(), hit);
}

void forget_engine(uint64_t identity) {
  cache().forget_engine(identity);
  if (identity == 0) ArenaPool::standard().release();
}

void forget_partition(uint64_t id) {
  if (constant_cache_capacity(EngineKind::cpu) > 0) cache().forget_partition(id);  // else nothing is kept
}

void set_cache_capacity(size_t executables) { cache().set_capacity(executables); }
size_t cache_capacity() { return cache().capacity(); }

}  // namespace partita
