// SPDX-License-Identifier: Apache-2.0
// The pool's interface is a C++ class of oneDNN's public headers; declared here with the same virtual functions in the
// same order, for the headers belong to builds with that runtime.
#include "src/compat/dnnl_graph/threadpool.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>

namespace partita::abi {

/// Classes of clients take its place, so the compiler must not think that it knows every one that derives from it.
class __attribute__((visibility("default"))) ThreadPool {
 public:
  virtual int get_num_threads() const = 0;
  virtual bool get_in_parallel() const = 0;
  virtual void parallel_for(int n, const std::function<void(int, int)>& fn) = 0;
  virtual uint64_t get_flags() const = 0;
  static constexpr uint64_t kAsynchronous = 1;

 protected:
  ~ThreadPool() = default;
};

int PoolExecutor::threads() const {
  const auto* pool = static_cast<const ThreadPool*>(pool_);
  return pool->get_in_parallel() ? 1 : std::max(1, pool->get_num_threads());
}

void PoolExecutor::run(int parts, const std::function<void(int)>& part) {
  auto* pool = static_cast<ThreadPool*>(pool_);
  if (!(pool->get_flags() & ThreadPool::kAsynchronous)) return pool->parallel_for(parts, [&](int k, int) { part(k); });
  // Such a pool returns before the work is done. The last part may outlive the wait by a moment: it shares the latch.
  const auto left = std::make_shared<std::latch>(parts);
  pool->parallel_for(parts, [&part, left](int k, int) {
    part(k);
    left->count_down();
  });
  left->wait();
}

}  // namespace partita::abi
