// SPDX-License-Identifier: Apache-2.0
// The compiled-partition cache: least recently used, keyed by content, one build for equal concurrent requests.
#include <charconv>
#include <cstring>
#include <future>
#include <list>
#include <mutex>
#include <unordered_map>

#include "src/base/check.hpp"
#include "src/base/env.hpp"
#include "src/base/hash.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"

namespace partita {
namespace {

/// Everything a program depends on.
struct Key {
  std::vector<op> ops;
  std::vector<Attrs> attrs;
  std::vector<logical_tensor> inputs, outputs;
  std::vector<std::pair<uint64_t, std::vector<std::byte>>> constants;
  int threads = 0;
  FpMath fpmath = FpMath::strict;
  uint64_t hash = 0;

  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const { return key.hash; }
};

void add(Hasher& h, const logical_tensor& t) {
  h.add(t.id).add(static_cast<uint64_t>(t.dtype)).add(static_cast<uint64_t>(t.layout));
  for (int64_t d : t.dims) h.add(static_cast<uint64_t>(d));
  for (int64_t s : t.strides) h.add(static_cast<uint64_t>(s));
}

Key key_of(const Partition& p, const Given& given, int threads) {
  Key key;
  key.ops = p.ops;
  key.attrs = p.attrs;
  key.inputs.assign(given.inputs.begin(), given.inputs.end());
  key.outputs.assign(given.outputs.begin(), given.outputs.end());
  key.threads = threads;
  key.fpmath = p.fpmath;
  for (const tensor& c : given.constants) {
    if (c.data == nullptr || !c.desc.shape_known()) continue;
    std::vector<std::byte> content(c.desc.size_bytes());
    std::memcpy(content.data(), c.data, content.size());
    key.constants.emplace_back(c.desc.id, std::move(content));
  }
  Hasher h;
  h.add(p.content_hash).add(static_cast<uint64_t>(threads)).add(static_cast<uint64_t>(p.fpmath));
  for (const auto& t : key.inputs) add(h, t);
  for (const auto& t : key.outputs) add(h, t);
  for (const auto& [id, content] : key.constants)
    h.add(id).add(std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
  key.hash = h.value();
  return key;
}

constexpr size_t kDefaultCapacity = 1024;

size_t initial_capacity() {
  const std::optional<std::string>& text = env(Env::cache_capacity);
  size_t number = kDefaultCapacity;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

class Cache {
 public:
  using Entry = std::shared_future<std::shared_ptr<const Compiled>>;

  Result<Compiled> get(const Partition& p, const Given& given, int threads) {
    if (capacity() == 0) return compile_uncached(p, given, threads);
    Key key = key_of(p, given, threads);
    std::promise<std::shared_ptr<const Compiled>> promise;
    Entry entry;
    {
      const std::lock_guard lock(mutex_);
      if (auto found = entries_.find(key); found != entries_.end()) {
        order_.splice(order_.begin(), order_, found->second.place);
        entry = found->second.entry;
      } else {
        order_.push_front(key);
        entries_.emplace(key, Slot{promise.get_future().share(), order_.begin()});
        shrink();
      }
    }
    // A failed build is not kept: those who waited for it build for themselves and get the same error.
    if (entry.valid()) {
      if (auto compiled = entry.get()) return *compiled;
      return compile_uncached(p, given, threads);
    }
    auto made = compile_uncached(p, given, threads);
    promise.set_value(made.ok() ? std::make_shared<const Compiled>(*made) : nullptr);
    if (!made.ok()) forget(key);
    return made;
  }

  void set_capacity(size_t n) {
    const std::lock_guard lock(mutex_);
    capacity_ = n;
    shrink();
  }
  size_t capacity() {
    const std::lock_guard lock(mutex_);
    return capacity_;
  }

 private:
  struct Slot {
    Entry entry;
    std::list<Key>::iterator place;
  };

  void shrink() {
    while (order_.size() > capacity_) {
      entries_.erase(order_.back());
      order_.pop_back();
    }
  }

  void forget(const Key& key) {
    const std::lock_guard lock(mutex_);
    if (auto found = entries_.find(key); found != entries_.end()) {
      order_.erase(found->second.place);
      entries_.erase(found);
    }
  }

  std::mutex mutex_;
  size_t capacity_ = initial_capacity();
  std::list<Key> order_;  // most recently used first
  std::unordered_map<Key, Slot, KeyHash> entries_;
};

Cache& cache() {
  static Cache the_cache;
  return the_cache;
}

}  // namespace

Result<Compiled> compile(const Partition& partition, const Given& given, int threads) {
  const ThreadScope scope(threads);
  return cache().get(partition, given, thread_count());
}

void set_cache_capacity(size_t executables) { cache().set_capacity(executables); }
size_t cache_capacity() { return cache().capacity(); }

}  // namespace partita
