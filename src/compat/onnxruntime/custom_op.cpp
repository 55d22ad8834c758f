// SPDX-License-Identifier: Apache-2.0
// The function table of an operator, and the table of operators that is registered with a session.
#include "src/compat/onnxruntime/custom_op.hpp"

#include <iterator>

#include "src/base/check.hpp"
#include "src/base/guarded.hpp"

namespace partita::compat::onnxruntime {
namespace {

const CustomOp& self(const OrtCustomOp* op) { return *static_cast<const CustomOp*>(op); }

/// A kernel and the name of its operator for messages.
struct NamedKernel {
  const char* name;
  std::unique_ptr<NodeKernel> kernel;
};

OrtStatus* ORT_API_CALL create(const OrtCustomOp* op, const OrtApi*, const OrtKernelInfo* info, void** kernel) {
  const Status done = guarded([&]() -> Status {
    PT_ASSIGN(auto made, self(op).make(info, self(op).type));
    *kernel = new NamedKernel{self(op).name, std::move(made)};
    return {};
  });
  return ort_status(done, self(op).name);
}

OrtStatus* ORT_API_CALL compute(void* kernel, OrtKernelContext* context) {
  auto& named = *static_cast<NamedKernel*>(kernel);
  return ort_status(guarded([&] { return named.kernel->compute(context); }), named.name);
}

void ORT_API_CALL destroy(void* kernel) { delete static_cast<NamedKernel*>(kernel); }

ONNXTensorElementDataType type_at(const CustomOp::Types& types, size_t index) {
  return index < types.size() ? types[index] : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}
size_t count(const CustomOp::Types& types) { return types.empty() ? 1 : types.size(); }
OrtCustomOpInputOutputCharacteristic characteristic(const CustomOp::Types& types) {
  return types.empty() ? INPUT_OUTPUT_VARIADIC : INPUT_OUTPUT_REQUIRED;
}

}  // namespace

CustomOp::CustomOp(const char* name, ONNXTensorElementDataType type, Types in, Types out, Make make)
    : OrtCustomOp{}, name(name), type(type), inputs(std::move(in)), outputs(std::move(out)), make(make) {
  version = ORT_API_VERSION;
  GetName = [](const OrtCustomOp* op) { return self(op).name; };
  GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  GetInputType = [](const OrtCustomOp* op, size_t i) { return type_at(self(op).inputs, i); };
  GetInputTypeCount = [](const OrtCustomOp* op) { return count(self(op).inputs); };
  GetOutputType = [](const OrtCustomOp* op, size_t i) { return type_at(self(op).outputs, i); };
  GetOutputTypeCount = [](const OrtCustomOp* op) { return count(self(op).outputs); };
  GetInputCharacteristic = [](const OrtCustomOp* op, size_t) { return characteristic(self(op).inputs); };
  GetOutputCharacteristic = [](const OrtCustomOp* op, size_t) { return characteristic(self(op).outputs); };
  GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  GetVariadicInputMinArity = GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 1; };
  GetVariadicInputHomogeneity = GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 0; };
  CreateKernelV2 = create;
  KernelComputeV2 = compute;
  KernelDestroy = destroy;
  GetStartVersion = [](const OrtCustomOp*) { return 1; };
  GetEndVersion = [](const OrtCustomOp*) { return std::numeric_limits<int>::max(); };
}

namespace {

constexpr auto kS64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
constexpr ONNXTensorElementDataType kFloats[] = {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16};

/// The gradients stand where the runtime's own training operators stand, and beside PartitaGraph.
constexpr const char* kDomains[] = {"com.microsoft", "partita"};

struct Domains {
  std::vector<std::unique_ptr<CustomOp>> ops;
  std::vector<OrtCustomOpDomain*> domains;
};

Result<Domains> make_domains() {
  Domains made;
  for (const ONNXTensorElementDataType t : kFloats) {
    made.ops.push_back(
        std::make_unique<CustomOp>("MaxPoolGrad", t, CustomOp::Types{t, kS64}, CustomOp::Types{t}, make_max_pool_grad));
    made.ops.push_back(std::make_unique<CustomOp>("AveragePoolGrad", t, CustomOp::Types{t}, CustomOp::Types{t},
                                                  make_average_pool_grad));
  }
  const size_t gradients = made.ops.size();
  made.ops.push_back(std::make_unique<CustomOp>("PartitaGraph", ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                                                CustomOp::Types{}, CustomOp::Types{}, make_graph));
  for (const char* name : kDomains) {
    OrtCustomOpDomain* domain = nullptr;
    PT_TRY(taken(ort().CreateCustomOpDomain(name, &domain)));
    made.domains.push_back(domain);
    const size_t ops = std::string_view(name) == "partita" ? made.ops.size() : gradients;
    for (size_t i = 0; i < ops; ++i) PT_TRY(taken(ort().CustomOpDomain_Add(domain, made.ops[i].get())));
  }
  return made;
}

}  // namespace
}  // namespace partita::compat::onnxruntime

/// What ONNX Runtime calls after it loaded the library. Operators and domains live as long as the process: sessions
/// keep pointers to them.
extern "C" __attribute__((visibility("default"))) OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options,
                                                                                            const OrtApiBase* base) {
  using namespace partita::compat::onnxruntime;
  static const partita::Result<Domains>* const made = [base] {
    const OrtApi* api = base->GetApi(ORT_API_VERSION);
    if (!api) return static_cast<partita::Result<Domains>*>(nullptr);
    set_ort(api);
    return new partita::Result<Domains>(partita::guarded(make_domains));
  }();
  if (!made) {
    const OrtApi* oldest = base->GetApi(1);
    return oldest->CreateStatus(ORT_NOT_IMPLEMENTED, "Partita was built for a later ONNX Runtime than this one");
  }
  if (!made->ok()) return ort_status(made->status(), "RegisterCustomOps");
  for (OrtCustomOpDomain* domain : made->value().domains)
    if (OrtStatus* failed = ort().AddCustomOpDomain(options, domain)) return failed;
  return nullptr;
}
