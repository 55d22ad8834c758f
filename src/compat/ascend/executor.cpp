// SPDX-License-Identifier: Apache-2.0
// Executors: leased by first calls, used up by second ones, recycled.
#include <deque>
#include <mutex>

#include "src/base/text.hpp"
#include "src/compat/ascend/objects.hpp"

using namespace partita;
using compat::ascend::no_memory;
using compat::ascend::report;

namespace partita::compat::ascend {
namespace {

using State = aclOpExecutor::State;

/// Memory of executors is never given back to the system, so that asking a used up one for its state is defined.
struct Executors {
  std::mutex mutex;
  std::deque<aclOpExecutor> all;
  std::vector<aclOpExecutor*> idle;
};

Executors& executors() {
  static Executors* const the_executors = new Executors;  // outlives whatever other libraries do at exit
  return *the_executors;
}

}  // namespace

aclOpExecutor* lease_executor() {
  Executors& e = executors();
  const std::lock_guard lock(e.mutex);
  if (e.idle.empty()) return &e.all.emplace_back();
  aclOpExecutor* executor = e.idle.back();
  e.idle.pop_back();
  return executor;
}

void give_back(aclOpExecutor* executor) {
  executor->program.reset();
  executor->state = State::spent;
  Executors& e = executors();
  const std::lock_guard lock(e.mutex);
  e.idle.push_back(executor);
}

aclnnStatus run(const char* call, void* workspace, uint64_t workspace_size, aclOpExecutor* executor) {
  const auto failed = [&](aclnnStatus code, const auto&... parts) { return report(code, str(call, ": ", parts...)); };
  if (!executor) return failed(ACLNN_ERR_PARAM_NULLPTR, "executor is null");
  aclOpExecutor& e = *executor;
  if (e.state == State::spent)
    return failed(ACLNN_ERR_PARAM_INVALID, "the executor was used up; aclSetAclOpExecutorRepeatable keeps one");
  if (e.call != call) return failed(ACLNN_ERR_PARAM_INVALID, "the executor is for ", e.call);
  const size_t needed = e.program ? e.program->scratchpad_bytes() : 0;
  if (workspace_size < needed)
    return failed(ACLNN_ERR_PARAM_INVALID, "workspaceSize is ", workspace_size, ", needed are ", needed, " bytes");
  if (needed > 0 && !workspace) return failed(ACLNN_ERR_PARAM_NULLPTR, "workspace is null");
  if (e.program) {
    std::array<const void*, 2> inputs{};
    const auto count = static_cast<size_t>(e.program->pooling().input_count);
    for (size_t i = 0; i < count; ++i) {
      const auto place = static_cast<size_t>(e.inputs[i]);
      inputs[i] = e.data[place];
      if (!inputs[i]) return failed(ACLNN_ERR_PARAM_NULLPTR, e.names[place], " has no data");
    }
    const auto last = static_cast<size_t>(e.tensors - 1);
    if (!e.data[last]) return failed(ACLNN_ERR_PARAM_NULLPTR, e.names[last], " has no data");
    const Status done = e.program->execute({inputs.data(), count}, e.data[last], needed ? workspace : nullptr);
    if (!done.ok()) return failed(ACLNN_ERR_RUNTIME_ERROR, done.text());
  }
  if (e.state == State::once) give_back(executor);
  return ACLNN_SUCCESS;
}

}  // namespace partita::compat::ascend

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) try {
  if (!executor) return report(ACLNN_ERR_INNER_NULLPTR, "aclSetAclOpExecutorRepeatable: executor is null");
  if (executor->state == aclOpExecutor::State::spent)
    return report(ACLNN_ERR_PARAM_INVALID, "aclSetAclOpExecutorRepeatable: the executor was used up");
  executor->state = aclOpExecutor::State::repeatable;
  return ACLNN_SUCCESS;
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) try {
  if (!executor) return ACLNN_SUCCESS;
  if (executor->state == aclOpExecutor::State::spent)
    return report(ACLNN_ERR_PARAM_INVALID, "aclDestroyAclOpExecutor: the executor was used up");
  compat::ascend::give_back(executor);
  return ACLNN_SUCCESS;
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) try {
  const auto failed = [](aclnnStatus code, const auto&... parts) {
    return report(code, str("aclSetTensorAddr: ", parts...));
  };
  if (!executor || !tensor) return failed(ACLNN_ERR_INNER_NULLPTR, executor ? "tensor" : "executor", " is null");
  if (executor->state != aclOpExecutor::State::repeatable)
    return failed(ACLNN_ERR_PARAM_INVALID, "the executor is not repeatable");
  if (index >= static_cast<size_t>(executor->tensors))
    return failed(ACLNN_ERR_PARAM_INVALID, "index is ", index, ", the call has ", executor->tensors, " tensors");
  tensor->storage = addr;
  executor->data[index] = tensor->data();
  return ACLNN_SUCCESS;
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}
