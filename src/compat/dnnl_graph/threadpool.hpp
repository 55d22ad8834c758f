// SPDX-License-Identifier: Apache-2.0
// A client's thread pool as an executor.
#pragma once

#include "partita/executor.hpp"

namespace partita::abi {

/// For the time of one execution on the calling thread. `pool` is a dnnl::threadpool_interop::threadpool_iface.
class PoolExecutor final : public executor {
 public:
  explicit PoolExecutor(void* pool) : pool_(pool) {}
  /// 1 where the calling thread is itself one of the pool's that runs a part.
  int threads() const override;
  void run(int parts, const std::function<void(int)>& part) override;

 private:
  void* pool_;
};

}  // namespace partita::abi
