// SPDX-License-Identifier: Apache-2.0
// A copy is a loop like any other, so it is as fast as what generates their code.
#include "kernels/float_copy.hpp"

#include "src/base/check.hpp"

namespace partita {

Result<Run> float_copy(const TensorDesc& from, const TensorDesc& to, const Target& target) {
  const Problem loop = copy_loop(from, to);
  PT_ASSIGN(const Picked picked, pick_kernel(loop, target));
  return picked.kernel->make(loop, target);
}

}  // namespace partita
