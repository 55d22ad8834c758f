// SPDX-License-Identifier: Apache-2.0
// What stands behind the Ascend door's handles, and how its calls report failures.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "partita/compat/ascend/acl/acl.h"
#include "src/compat/pooling.hpp"

struct aclTensor {
  partita::Dims dims, strides;
  aclDataType type;
  aclFormat format;
  int64_t offset;  ///< in elements
  void* storage;

  /// Address of the view's first element; null where there is no storage.
  void* data() const;
};

struct aclIntArray {
  std::vector<int64_t> values;
};

/// Everything the second call needs. Executors are recycled (executors.hpp), so that one that was used up is known.
struct aclOpExecutor {
  enum class State { spent, once, repeatable };
  static constexpr int kMostTensors = 4;

  State state = State::spent;
  const char* call = nullptr;  ///< name of the second call, the one literal that both calls of an operator use
  std::shared_ptr<const partita::compat::PoolingProgram> program;  ///< null where the result is empty
  /// The tensors of the first call: name and data; the output is the last one.
  int tensors = 0;
  std::array<const char*, kMostTensors> names{};
  std::array<void*, kMostTensors> data{};
  std::array<int, 2> inputs{};  ///< which of the tensors are the program's inputs
};

namespace partita::compat::ascend {

/// Keeps the text for aclGetRecentErrMsg and returns the code.
int32_t report(int32_t code, std::string text);
/// The same for what a call catches: nothing is thrown to C, and containers throw where there is no memory.
int32_t no_memory(int32_t code) noexcept;
const char* recent_error();

/// A recycled executor, or a new one. Thread-safe.
aclOpExecutor* lease_executor();
/// What `executor` held is released; it stays known as used up until it is leased again.
void give_back(aclOpExecutor* executor);

/// Runs what the first call prepared, for the second call named `call`.
aclnnStatus run(const char* call, void* workspace, uint64_t workspace_size, aclOpExecutor* executor);

}  // namespace partita::compat::ascend
