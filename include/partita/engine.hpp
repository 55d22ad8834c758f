// SPDX-License-Identifier: Apache-2.0
// engine, stream and allocator: where compiled partitions run and who gives them memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "partita/executor.hpp"
#include "partita/status.hpp"
#include "partita/types.hpp"

namespace partita {

/// Gives and takes the memory of every temporary and persistent buffer. Both functions must be thread-safe.
struct allocator {
  /// Returns null when there is no memory; `alignment` is a power of two.
  std::function<void*(size_t size, size_t alignment)> allocate;
  std::function<void(void*)> deallocate;

  /// The aligned allocation of the C++ library.
  static allocator standard();
};

struct engine_options {
  /// What is compiled gives the same bits whatever the number of threads it is compiled for and run on. Costs speed
  /// where oneDNN's primitives would split sums between threads (docs/numerics.md). PARTITA_DETERMINISTIC=1 in the
  /// environment sets it for every engine.
  bool deterministic = false;
};

/// The CPU with an allocator. A cheap copy; the allocator's functions must outlive what was compiled for the engine.
/// Memory for temporaries comes from an allocator of the caller's in every execution without a scratchpad. What the
/// standard one gave for that is kept for later executions on any engine that has it, as much as was in use at once;
/// forget_engine(0) gives back what is not.
class engine {
 public:
  /// With the standard allocator.
  explicit engine(EngineKind kind = EngineKind::cpu, engine_options options = {});
  engine(EngineKind kind, allocator memory, engine_options options = {});
  EngineKind kind() const { return kind_; }
  const allocator& memory() const { return memory_; }
  bool deterministic() const { return deterministic_; }
  /// Copies have the same. Every engine made with an allocator of the caller has one of its own, never given again; all
  /// others have 0. What is compiled for one identity is not handed out to another.
  uint64_t identity() const { return identity_; }

 private:
  EngineKind kind_;
  bool deterministic_ = false;
  allocator memory_;
  uint64_t identity_ = 0;
};

/// What compiled partitions make of tensors with the property constant (reordered weights, folded scales) is kept from
/// the first execution on, as long as all of it is no larger than the capacity, in megabytes (2^20 bytes); what does
/// not fit is made again by every execution. It is kept for the addresses of the constant tensors: who changes their
/// content must give it another address, or end the partition. 0, the initial value, keeps nothing. Setting a capacity
/// forgets what is kept. What belongs to a partition goes with its last handle and the last of what is compiled of it:
/// the same graph made again starts anew, also at the same addresses. Thread-safe. Errors: unimplemented for an engine
/// that does not exist, whose capacity is 0.
Status set_constant_cache_capacity(EngineKind kind, size_t megabytes);
size_t constant_cache_capacity(EngineKind kind);

/// Drops what the compiled-partition cache holds for engines of this identity. For callers whose allocator ends; what
/// is still in use lives on with its handles. 0: and the memory that engines with the standard allocator keep for
/// temporaries. Thread-safe.
void forget_engine(uint64_t identity);

/// An order of execution with its number of threads. Execution is synchronous; use one stream for each calling thread.
class stream {
 public:
  /// threads 0: as many as a partition was compiled for, which are those that OpenMP had for the thread that compiled
  /// it (omp_set_num_threads, OMP_NUM_THREADS). A larger number means the same: scratch memory is sized for those.
  explicit stream(engine on, int threads = 0) : engine_(std::move(on)), threads_(threads) {}
  /// Partita's own kernels run on the executor's threads, at most as many as a partition was compiled for; it must
  /// outlive the stream. oneDNN's primitives run on the calling thread.
  stream(engine on, executor& runs_on) : engine_(std::move(on)), threads_(0), executor_(&runs_on) {}
  const engine& on() const { return engine_; }
  int threads() const { return threads_; }
  /// Null: OpenMP.
  executor* runs_on() const { return executor_; }

 private:
  engine engine_;
  int threads_;
  executor* executor_ = nullptr;
};

}  // namespace partita
