// SPDX-License-Identifier: Apache-2.0
// End and Wildcard, which compute nothing: the one keeps a tensor visible, the other stands for an unknown operator.
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"

namespace partita {
namespace {

bool is_float(const OpView& v) { return kFloats.has(v.in_type(0)); }
bool none(const OpView&) { return false; }

}  // namespace

constexpr OpDef kEnd = {
    .kind = OpKind::End,
    .name = "End",
    .c_name = "end",
    .summary = "Keeps its input visible outside the graph; computes nothing.",
    .inputs = {{"src", "T", "the tensor to keep"}},
    // Whatever an operator may have as a result can be kept: indices, comparisons, quantized tensors.
    .types = {{"T",
               {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::s8, Dtype::u8, Dtype::s32, Dtype::undef},
               {Dtype::s64, Dtype::boolean, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s4, Dtype::u4}}},
    .documented = is_float,
};

constexpr OpDef kWildcard = {
    .kind = OpKind::Wildcard,
    .name = "Wildcard",
    .c_name = "wildcard",
    .summary = "Stands for an operator that only the framework knows; never compiled, and nothing is fused across it.",
    .inputs = {{"src", "", "any tensors", Arity::variadic}},
    .outputs = {{"dst", "", "any tensors", Arity::variadic}},
    .variadic_outputs = true,
    .documented = none,
};

}  // namespace partita
