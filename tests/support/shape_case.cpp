// SPDX-License-Identifier: Apache-2.0
// Tables of shape inference.
#include "tests/support/shape_case.hpp"

#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "src/ir/shape_context.hpp"
#include "src/ir/verify_op.hpp"

namespace partita::test {

Inferred infer(const op& o) {
  Result<Attrs> attrs = verify_op(o);
  if (!attrs.ok()) return {attrs.status().text(), {}};
  std::vector<logical_tensor> outputs = o.outputs;
  const Status status = infer_shapes(op_def(o.kind), *attrs, o.inputs, outputs);
  return {status.ok() ? text_of(outputs) : status.text(), *attrs};
}

void expect_all(const std::vector<ShapeCase>& cases) {
  for (const ShapeCase& c : cases) {
    SCOPED_TRACE(std::string(name_of(c.kind)) + "(" + std::string(c.inputs) + ") -> " + std::string(c.given));
    const Inferred got = infer(op_of(c.kind, c.attrs, c.inputs, c.given));
    if (c.expected.starts_with('!')) {
      EXPECT_NE(got.text.find(c.expected.substr(1)), got.text.npos) << got.text;
    } else {
      EXPECT_EQ(got.text, c.expected);
    }
  }
}

}  // namespace partita::test
