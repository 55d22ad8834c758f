// SPDX-License-Identifier: Apache-2.0
// Random operators, mostly wrong ones: each is refused with a text, or its inferred shapes are valid and stay the same
// when they are given back.
#include <gtest/gtest.h>

#include "src/ir/shape_context.hpp"
#include "src/ir/verify_op.hpp"
#include "tests/support/op_text.hpp"
#include "tests/support/random.hpp"

namespace partita::test {
namespace {

class RandomOps {
 public:
  explicit RandomOps(uint64_t seed) : random_(seed) {}

  op next() {
    const OpDef& def = *all_ops()[static_cast<size_t>(random_.whole(0, kOpKinds - 1))];
    op o(1, def.kind);
    like_ = dims(static_cast<int>(random_.whole(0, 5)));
    for (const PortDef& port : def.inputs) {
      if (port.arity != Arity::optional || random_.coin()) o.add_input(tensor(def, port));
    }
    for (const PortDef& port : def.outputs) {
      if (port.arity == Arity::optional && random_.coin()) break;
      o.add_output(random_.coin() ? tensor(def, port) : logical_tensor(1, type(def, port)));
    }
    for (const AttrDef& attr : def.attrs) {
      if (attr.need == Need::required || random_.coin()) o.set_attr(attr.key, value(attr));
    }
    return o;
  }

 private:
  int64_t number() {
    constexpr int64_t kOdd[] = {-1, 0, 1 << 16, int64_t{1} << 40, std::numeric_limits<int64_t>::max(), -7};
    return random_.whole(0, 19) == 0 ? kOdd[random_.whole(0, 5)] : random_.whole(0, 4);
  }
  int64_t dim() { return std::max<int64_t>(0, number()); }
  Dims dims(int rank) {
    Dims d;
    for (int i = 0; i < rank; ++i) d.push_back(dim());
    return d;
  }
  Dtype type(const OpDef& def, const PortDef& port) {
    const auto* row = std::ranges::find(def.types, port.type, &TypeDef::symbol);
    if (row == def.types.end() || row->types.has(Dtype::f32)) return Dtype::f32;
    int number = 0;
    while (!row->types.has(static_cast<Dtype>(number))) ++number;
    return static_cast<Dtype>(number);
  }
  /// Often of one shape for all ports, often a vector, else anything.
  logical_tensor tensor(const OpDef& def, const PortDef& port) {
    const int64_t choice = random_.whole(0, 3);
    Dims d = choice < 2 ? like_ : choice == 2 ? dims(1) : dims(static_cast<int>(random_.whole(0, 5)));
    if (choice == 2 && !like_.empty()) d[0] = like_.back();
    return logical_tensor(1, type(def, port), d);
  }
  AttrValue value(const AttrDef& attr) {
    const auto count = static_cast<size_t>(random_.whole(0, 5) ? std::max(like_.size() - 2, 0) : random_.whole(0, 13));
    switch (attr.type) {
      case AttrType::boolean: return random_.coin();
      case AttrType::s64: return number();
      case AttrType::f32: return static_cast<float>(number());
      case AttrType::string: return std::string(attr.allowed[static_cast<size_t>(random_.whole(0, 1))]);
      case AttrType::s64s: {
        Ints list(count);
        for (int64_t& entry : list) entry = number();
        return list;
      }
      case AttrType::f32s: return Floats(count, static_cast<float>(number()));
    }
    return {};
  }

  Random random_;
  Dims like_;
};

/// True where the operator was accepted.
bool check(const op& o) {
  Result<Attrs> attrs = verify_op(o);
  if (!attrs.ok()) {
    EXPECT_EQ(attrs.status().code(), Code::invalid_graph_op);
    EXPECT_FALSE(attrs.status().text().empty());
    return false;
  }
  std::vector<logical_tensor> outputs = o.outputs;
  const Status status = infer_shapes(op_def(o.kind), *attrs, o.inputs, outputs);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), Code::invalid_shape);
    EXPECT_FALSE(status.text().empty());
    return false;
  }
  for (const logical_tensor& t : outputs) {
    for (int64_t d : t.dims) EXPECT_TRUE(d >= 0 || d == kUnknownDim) << t.text();
  }
  const std::vector<logical_tensor> before = outputs;
  const Attrs resolved = *attrs;
  const Status again = infer_shapes(op_def(o.kind), *attrs, o.inputs, outputs);
  EXPECT_TRUE(again.ok()) << again.text();
  EXPECT_EQ(text_of(outputs), text_of(before));
  EXPECT_EQ(*attrs, resolved);
  return true;
}

TEST(random_operators, are_refused_or_have_stable_shapes) {
  const uint64_t seed = 20261121;
  RandomOps random(seed);
  int accepted = 0;
  for (int n = 0; n < 20000; ++n) {
    const op o = random.next();
    accepted += check(o) ? 1 : 0;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", number " << n << ": " << place_of(o) << " "
                                              << text_of(o.inputs) << " -> " << text_of(o.outputs);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 19000);
}

}  // namespace
}  // namespace partita::test
