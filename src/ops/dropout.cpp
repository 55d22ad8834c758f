// SPDX-License-Identifier: Apache-2.0
// Dropout: zeroes elements at random, repeatably by seed and offset.
#include "src/base/shape.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool scalars(const OpView& v) {
  for (int i = 1; i < v.inputs(); ++i) {
    if (v.in(i).shape_known() && checked_elements(v.in(i).dims) != int64_t{1}) return false;
  }
  return true;
}

}  // namespace

constexpr OpDef kDropout = {
    .kind = OpKind::Dropout,
    .name = "Dropout",
    .c_name = "dropout",
    .summary = "Zeroes each element with the given probability and divides the others by the probability to stay.",
    .inputs = {{"src", "T", "values"},
               {"seed", "T_seed", "start of the random numbers, one element"},
               {"offset", "T_offset", "position in the random numbers, one element"},
               {"probability", "T_p", "probability to become zero, one element"}},
    .outputs = {{"dst", "T", "results, with the shape of src"},
                {"mask", "T_mask", "1 where an element stays, 0 where it is dropped", Arity::optional}},
    .types =
        {{"T", kFloats}, {"T_seed", {Dtype::s64}}, {"T_offset", {Dtype::s64}}, {"T_p", kF32}, {"T_mask", {Dtype::u8}}},
    .checks = {{"scalars", "`seed`, `offset` and `probability` must hold one element each", scalars}},
    .infer = same_shape,
    .step = StepKind::dropout,
};

}  // namespace partita
