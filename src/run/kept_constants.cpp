// SPDX-License-Identifier: Apache-2.0
// The constant cache: its capacity, and the blocks of all executables.
#include "src/run/kept_constants.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <utility>

#include "src/base/text.hpp"

namespace partita {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

/// What the process keeps, and whose it is.
struct Cache {
  std::mutex mutex;
  std::set<KeptConstants*> owners;
  std::atomic<size_t> megabytes = 0;
  std::atomic<size_t> bytes = 0;  ///< of all living blocks

  bool reserve(size_t wanted) {
    const size_t limit = megabytes > std::numeric_limits<size_t>::max() / kMegabyte ? std::numeric_limits<size_t>::max()
                                                                                    : megabytes * kMegabyte;
    size_t now = bytes;
    do {
      if (wanted > limit || now > limit - wanted) return false;
    } while (!bytes.compare_exchange_weak(now, now + wanted));
    return true;
  }
};

/// A graph for any engine runs on the CPU.
bool exists(EngineKind kind) { return kind == EngineKind::cpu || kind == EngineKind::any; }

Cache& cache() {
  static Cache& the_cache = *new Cache;  // outlives every executable, also static ones
  return the_cache;
}

/// A share of the capacity, given back with it.
class Reservation {
 public:
  /// Of no bytes where there is no room.
  explicit Reservation(size_t wanted) : bytes_(cache().reserve(wanted) ? wanted : 0) {}
  Reservation(Reservation&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() { cache().bytes -= bytes_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

}  // namespace

class KeptConstants::Block {
 public:
  /// Takes over what is reserved.
  Block(std::span<const void* const> addresses, Reservation reserved, const allocator& memory)
      : addresses_(addresses.begin(), addresses.end()),
        reserved_(std::move(reserved)),
        memory_(memory),
        data_(static_cast<std::byte*>(memory.allocate(reserved_.bytes(), 64))) {}
  ~Block() {
    if (data_) memory_.deallocate(data_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  bool is_of(std::span<const void* const> addresses) const { return std::ranges::equal(addresses_, addresses); }
  std::byte* data() const { return data_; }

 private:
  std::vector<const void*> addresses_;
  Reservation reserved_;
  allocator memory_;
  std::byte* data_;
};

KeptConstants::KeptConstants() {
  const std::lock_guard lock(cache().mutex);
  cache().owners.insert(this);
}

KeptConstants::~KeptConstants() {
  const std::lock_guard lock(cache().mutex);
  cache().owners.erase(this);
}

std::byte* KeptConstants::data_of(const Block& block) { return block.data(); }

std::shared_ptr<const KeptConstants::Block> KeptConstants::found(std::span<const void* const> addresses) const {
  const std::shared_lock lock(mutex_);
  for (const auto& block : blocks_)
    if (block->is_of(addresses)) return block;
  return nullptr;
}

std::shared_ptr<const KeptConstants::Block> KeptConstants::get(std::span<const void* const> addresses, size_t bytes,
                                                               const allocator& memory,
                                                               FunctionRef<Status(std::byte*)> fill) {
  if (cache().megabytes == 0) return nullptr;
  if (auto block = found(addresses)) return block;
  const std::lock_guard making(making_);
  if (auto block = found(addresses)) return block;
  const uint64_t before = clears();
  Reservation reserved(bytes);
  if (reserved.bytes() == 0) return nullptr;
  auto block = std::make_shared<const Block>(addresses, std::move(reserved), memory);
  if (block->data() == nullptr || !fill(block->data()).ok()) return nullptr;
  const std::unique_lock lock(mutex_);
  if (clears_ == before) blocks_.push_back(block);
  return block;
}

uint64_t KeptConstants::clears() const {
  const std::shared_lock lock(mutex_);
  return clears_;
}

void KeptConstants::clear() {
  const std::unique_lock lock(mutex_);
  ++clears_;
  blocks_.clear();
}

Status set_constant_cache_capacity(EngineKind kind, size_t megabytes) {
  if (!exists(kind))
    return fail(Code::unimplemented, str("there is no engine of kind ", static_cast<int32_t>(kind), ", only the CPU"));
  const std::lock_guard lock(cache().mutex);
  cache().megabytes = megabytes;
  for (KeptConstants* owner : cache().owners) owner->clear();
  return {};
}

size_t constant_cache_capacity(EngineKind kind) { return exists(kind) ? cache().megabytes.load() : 0; }

}  // namespace partita
