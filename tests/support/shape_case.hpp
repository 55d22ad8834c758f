// SPDX-License-Identifier: Apache-2.0
// Tables of shape inference: operator, attributes and input shapes -> output shapes, or the text of the refusal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/attrs.hpp"
#include "tests/support/op_text.hpp"

namespace partita::test {

struct ShapeCase {
  OpKind kind;
  AttrList attrs;
  std::string_view inputs;
  std::string_view given;     ///< outputs before
  std::string_view expected;  ///< outputs after, or ! and what the refusal says
};

struct Inferred {
  std::string text;  ///< outputs, or the failure
  Attrs attrs;
};

/// Verifies the operator, then infers its shapes.
Inferred infer(const op& o);
void expect_all(const std::vector<ShapeCase>& cases);

}  // namespace partita::test
