// SPDX-License-Identifier: Apache-2.0
// What shape inputs say.
#include "src/ir/subgraph.hpp"

#include "src/base/dtype.hpp"

namespace partita {

int64_t shape_entry(const logical_tensor& t, const void* data, int64_t i) {
  return static_cast<int64_t>(load_as_double(data, t.dtype, i * (t.rank() ? t.strides[0] : 0)));
}

}  // namespace partita
