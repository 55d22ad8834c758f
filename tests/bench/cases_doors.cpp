// SPDX-License-Identifier: Apache-2.0
// What a call through the C interface of another library costs above the C++ interface: a small average's gradient.
#include <algorithm>
#include <array>
#include <memory>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "infiniop.h"
#include "partita/partita.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

const Dims kSource{1, 2, 8, 8}, kPooled{1, 2, 4, 4};
constexpr size_t kSourceCells = 128, kPooledCells = 32;

/// The same gradient through the C++ interface, compiled beforehand.
struct Direct {
  std::array<float, kPooledCells> gradient{};
  std::array<float, kSourceCells> result{}, other_result{};  ///< of the C++ interface, of the door
  compiled_partition compiled;
  std::vector<std::byte> scratchpad;
  std::array<tensor, 1> in, out;
  engine cpu;
  stream on{cpu};

  Status prepare() {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i);
    const logical_tensor dy(0, Dtype::f32, kPooled), dx(1, Dtype::f32, kSource);
    const std::vector<int64_t> twos{2, 2}, zeros{0, 0};
    op pool(0, OpKind::AvgPoolBackward, {dy}, {dx});
    pool.set_attr(Attr::kernel, twos).set_attr(Attr::strides, twos);
    pool.set_attr(Attr::pads_begin, zeros).set_attr(Attr::pads_end, zeros);
    pool.set_attr(Attr::exclude_pad, true).set_attr(Attr::data_format, std::string("NCX"));
    pool.set_attr(Attr::src_shape, std::vector<int64_t>(kSource.begin(), kSource.end()));
    PT_ASSIGN(const partition alone, partition::of(pool));
    PT_ASSIGN(compiled, alone.compile(pool.inputs, pool.outputs, cpu));
    scratchpad.resize(compiled.scratchpad_bytes() + 64);
    in[0] = {dy, gradient.data()};
    out[0] = {dx, result.data()};
    return run();
  }
  void* aligned_scratchpad() {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratchpad.data()) + 63) / 64 * 64);
  }
  Status run() { return compiled.execute(on, in, out, aligned_scratchpad()); }
  Status check() const {
    return std::ranges::equal(result, other_result) ? Status() : fail(Code::runtime_error, "the results differ");
  }
};

Status ascend_status(aclnnStatus code) {
  return code == ACLNN_SUCCESS ? Status() : fail(Code::runtime_error, aclGetRecentErrMsg());
}

/// What a client keeps between calls: its tensors, lists and workspace.
struct Ascend {
  explicit Ascend(Direct& direct) {
    const auto tensor_of = [](const Dims& dims, void* data) {
      return aclCreateTensor(dims.begin(), 4, ACL_FLOAT, nullptr, 0, ACL_FORMAT_NCHW, dims.begin(), 4, data);
    };
    const std::array<int64_t, 2> twos{2, 2}, zeros{0, 0};
    gradient = tensor_of(kPooled, direct.gradient.data());
    result = tensor_of(kSource, direct.other_result.data());
    kernel = aclCreateIntArray(twos.data(), 2);
    padding = aclCreateIntArray(zeros.data(), 2);
  }
  ~Ascend() {
    for (const aclTensor* t : {gradient, result}) aclDestroyTensor(t);
    for (const aclIntArray* a : {kernel, padding}) aclDestroyIntArray(a);
  }
  Ascend(const Ascend&) = delete;
  Ascend& operator=(const Ascend&) = delete;

  Status first() {
    return ascend_status(aclnnAvgPool2dBackwardGetWorkspaceSize(gradient, result, kernel, kernel, padding, false, true,
                                                                0, 0, result, &size, &executor));
  }
  Status second(Direct& direct) {
    return ascend_status(aclnnAvgPool2dBackward(direct.aligned_scratchpad(), size, executor, nullptr));
  }
  aclTensor *gradient, *result;
  aclIntArray *kernel, *padding;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
};

LatencyCase through_ascend(const char* name, bool both_calls) {
  return {kDoors, name, [=](Row& row, Contender& door, Contender& direct_side) -> Status {
            const auto direct = std::make_shared<Direct>();
            PT_TRY(direct->prepare());
            const auto client = std::make_shared<Ascend>(*direct);
            PT_TRY(client->first());
            if (!both_calls) PT_TRY(ascend_status(aclSetAclOpExecutorRepeatable(client->executor)));
            PT_TRY(client->second(*direct));
            PT_TRY(direct->check());
            row.partitions = 1;
            door.run = [=]() -> Status {
              if (both_calls) PT_TRY(client->first());
              return client->second(*direct);
            };
            direct_side.run = [=] { return direct->run(); };
            return {};
          }};
}

Status infini_status(infiniStatus_t status) {
  return status == INFINI_STATUS_SUCCESS ? Status()
                                         : fail(Code::runtime_error, str("infiniop status ", static_cast<int>(status)));
}

LatencyCase through_infiniop() {
  return {kDoors, "infiniop: execution", [](Row& row, Contender& door, Contender& direct_side) -> Status {
            const auto direct = std::make_shared<Direct>();
            PT_TRY(direct->prepare());
            infiniopHandle_t handle = nullptr;
            infiniopTensorDescriptor_t dy = nullptr, dx = nullptr;
            infiniopAvgPoolBackwardDescriptor_t made = nullptr;
            const std::array<size_t, 4> small{1, 2, 4, 4}, large{1, 2, 8, 8};
            std::array<size_t, 2> twos{2, 2}, zeros{0, 0};
            PT_TRY(infini_status(infiniopCreateHandle(&handle)));
            PT_TRY(infini_status(infiniopCreateTensorDescriptor(&dy, 4, small.data(), nullptr, INFINI_DTYPE_F32)));
            PT_TRY(infini_status(infiniopCreateTensorDescriptor(&dx, 4, large.data(), nullptr, INFINI_DTYPE_F32)));
            PT_TRY(infini_status(infiniopCreateAvgPoolBackwardDescriptor(handle, &made, dx, dy, dx, twos.data(),
                                                                         twos.data(), zeros.data(), false)));
            PT_TRY(infini_status(infiniopDestroyTensorDescriptor(dy)));
            PT_TRY(infini_status(infiniopDestroyTensorDescriptor(dx)));
            PT_TRY(infini_status(infiniopDestroyHandle(handle)));
            const std::shared_ptr<InfiniopDescriptor> desc(made, infiniopDestroyAvgPoolBackwardDescriptor);
            size_t size = 0;
            PT_TRY(infini_status(infiniopGetAvgPoolBackwardWorkspaceSize(desc.get(), &size)));
            door.run = [=] {
              return infini_status(infiniopAvgPoolBackward(desc.get(), direct->aligned_scratchpad(), size,
                                                           direct->other_result.data(), direct->gradient.data(),
                                                           nullptr, nullptr));
            };
            PT_TRY(door.run());
            PT_TRY(direct->check());
            row.partitions = 1;
            direct_side.run = [=] { return direct->run(); };
            return {};
          }};
}

}  // namespace

std::vector<LatencyCase> door_cases() {
  return {through_ascend("ascend: both calls", /*both_calls=*/true),
          through_ascend("ascend: second call, executor kept", /*both_calls=*/false), through_infiniop()};
}

}  // namespace partita::bench
