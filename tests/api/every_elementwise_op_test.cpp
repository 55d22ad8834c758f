// SPDX-License-Identifier: Apache-2.0
// Every operator with an expression, in every combination of types it accepts: compiled partitions against references
// on random shapes (no axis and no element too) and layouts. The list of operators is the registry.
#include <gtest/gtest.h>

#include "partita/partita.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "src/harness/reference_run.hpp"
#include "src/ir/verify_op.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

struct Typed {
  std::string_view symbol;
  Dtype dtype;
};

/// Calls body(types) for every way to bind the symbols of the operator.
template <class Body>
void each_types(const OpDef& def, size_t symbol, std::vector<Typed>& bound, const Body& body) {
  size_t known = 0;
  for (const TypeDef& t : def.types) known += t.symbol.empty() ? 0 : 1;
  if (symbol == known) return body(bound);
  const TypeDef& type = def.types[symbol];
  for (int number = 0; number < 32; ++number) {
    if (!type.types.has(static_cast<Dtype>(number))) continue;
    bound.push_back({type.symbol, static_cast<Dtype>(number)});
    each_types(def, symbol + 1, bound, body);
    bound.pop_back();
  }
}

Dtype type_of(const PortDef& port, const std::vector<Typed>& bound) {
  for (const Typed& t : bound)
    if (t.symbol == port.type) return t.dtype;
  return Dtype::f32;
}

AttrValue value_for(const AttrDef& attr, Random& random) {
  switch (attr.type) {
    case AttrType::boolean: return random.coin();
    case AttrType::s64: return random.whole(-2, 1);
    case AttrType::f32:
      return attr.key == Attr::min   ? -0.25f
             : attr.key == Attr::max ? 0.5f
                                     : static_cast<float>(random.pick({0.5, 1.0, 2.0}));
    case AttrType::string: {
      std::vector<std::string_view> allowed(attr.allowed.begin(), attr.allowed.end());
      return std::string(allowed[static_cast<size_t>(random.whole(0, static_cast<int64_t>(allowed.size()) - 1))]);
    }
    default: return {};
  }
}

Dims random_dims(Random& random) {
  Dims dims;
  for (int64_t rank = random.whole(0, 4); rank > 0; --rank)
    dims.push_back(random.whole(0, 12) == 0 ? 0 : random.whole(1, 5));
  if (!dims.empty() && random.whole(0, 7) == 0) dims.back() = random.whole(250, 530);  // more than one run
  return dims;
}

logical_tensor tensor_like(uint64_t id, Dtype dtype, const Dims& dims, Random& random) {
  const TensorDesc desc = any_desc(dtype, dims, random);
  return logical_tensor(id, dtype, dims, desc.strides);
}

/// Shapes equal, broadcast, or one number a channel; verify_op refuses the draws that do not fit.
op random_op(const OpDef& def, const std::vector<Typed>& types, Random& random) {
  op o(1, def.kind);
  const Dims dims = random_dims(random);
  const bool by_channel = def.operands == Operands::channel && !dims.empty() && random.whole(0, 3) > 0;
  const int64_t channels = dims.empty() ? 1 : random.coin() || dims.size() < 2 ? dims.back() : dims[1];
  for (size_t port = 0; port < def.inputs.size(); ++port) {
    Dims own = dims;
    const int64_t choice = random.whole(0, 3);
    if (port > 0 && by_channel)
      own = {channels};
    else if (choice == 0)
      for (int64_t& d : own) d = random.coin() ? 1 : d;
    else if (choice == 1 && !own.empty())
      own.erase(0);
    o.add_input(tensor_like(port, type_of(def.inputs[port], types), own, random));
  }
  for (const AttrDef& attr : def.attrs)
    if (attr.need == Need::required || random.coin()) o.set_attr(attr.key, value_for(attr, random));
  return o.add_output(logical_tensor(9, type_of(def.outputs[0], types), Layout::any));
}

Storage random_storage(const logical_tensor& t, Random& random) {
  Storage storage(t);
  const bool whole = is_integer(t.dtype);
  for (int64_t i = 0, n = static_cast<int64_t>(storage.bytes * 8) / bits_of(t.dtype); i < n; ++i)
    store_from_double(storage.data.get(), t.dtype, i,
                      t.dtype == Dtype::boolean ? static_cast<double>(random.whole(0, 1))
                      : whole                   ? static_cast<double>(random.whole(-1000, 1000))
                                                : random.real(0.1, 2) * (random.whole(0, 3) ? 1 : -1));
  return storage;
}

/// Only what both leave out: roots and logarithms of negative numbers are NaN on both sides.
bool nowhere_finite(const Difference& d) {
  return d.wrong > 0 && std::isnan(d.max_error) && d.first.starts_with("the reference");
}

/// True where the drawn operator was valid and has been compared.
bool check(const op& o, Random& random) {
  const auto single = partition::of(o);
  if (!single.ok()) return false;
  std::vector<logical_tensor> outputs = o.outputs;
  auto compiled = single->compile(o.inputs, outputs, engine());
  if (!compiled.ok()) {
    EXPECT_EQ(compiled.status().code(), Code::invalid_shape) << compiled.status().text();
    return false;
  }
  const logical_tensor& found = compiled->outputs()[0];
  if (random.coin()) outputs[0] = tensor_like(9, found.dtype, Dims(found.dims), random);
  compiled = single->compile(o.inputs, outputs, engine());
  EXPECT_TRUE(compiled.ok()) << compiled.status().text();
  Tensors inputs;
  std::vector<tensor> in;
  for (const logical_tensor& t : o.inputs) {
    inputs[t.id] = random_storage(t, random);
    in.push_back(inputs[t.id].as_tensor());
  }
  const Storage got(compiled->outputs()[0]);
  const Status status =
      compiled->execute(stream(engine(), static_cast<int>(random.whole(1, 2))), in, std::vector{got.as_tensor()});
  EXPECT_TRUE(status.ok()) << status.text();
  const auto expected = run_reference(*single->form(), {o.inputs, outputs, {}}, inputs);
  EXPECT_TRUE(expected.ok()) << expected.status().text();
  if (!status.ok() || !expected.ok()) return false;
  const Difference d = compare(got, expected->at(9), tolerance_of(*single->form()));
  EXPECT_TRUE(d.wrong == 0 || nowhere_finite(d)) << d.first;
  return true;
}

TEST(every_elementwise_op, computes_what_its_reference_does) {
  for (const OpDef* def : all_ops()) {
    if (!def->expression) continue;
    int compared = 0;
    std::vector<Typed> bound;
    each_types(*def, 0, bound, [&](const std::vector<Typed>& types) {
      for (uint64_t seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
        Random random(seed);
        const op o = random_op(*def, types, random);
        std::string trace = str(def->name, " seed ", seed, ":");
        for (const logical_tensor& t : o.inputs) trace += " " + t.text();
        SCOPED_TRACE(trace + " -> " + std::string(name_of(o.outputs[0].dtype)));
        compared += check(o, random) ? 1 : 0;
      }
    });
    EXPECT_GE(compared, 20) << def->name;
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace partita::test
