// SPDX-License-Identifier: Apache-2.0
// OpDef: everything Partita knows of an operator kind, in one row. Validation, default filling, JSON names, shape
// inference, `partita ops` and the docs are derived from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/expr.hpp"
#include "kernels/problem.hpp"
#include "partita/op.hpp"
#include "partita/status.hpp"
#include "src/base/attrs.hpp"
#include "src/ir/few.hpp"

namespace partita {

class OpView;
class ShapeContext;

/// A set of element types as bits by number.
struct DtypeSet {
  uint32_t bits = 0;
  constexpr DtypeSet() = default;
  constexpr DtypeSet(std::initializer_list<Dtype> types) {
    for (Dtype t : types) bits |= 1u << static_cast<int>(t);
  }
  constexpr bool has(Dtype t) const { return bits >> static_cast<int>(t) & 1u; }
  constexpr DtypeSet operator|(DtypeSet o) const {
    o.bits |= bits;
    return o;
  }
};

enum class Arity : uint8_t { one, optional, variadic };

struct PortDef {
  std::string_view name;
  std::string_view type;  ///< symbol in OpDef::types; empty: any type
  std::string_view text;
  Arity arity = Arity::one;
  /// For an s32 input whose content stands for an attribute (src_shape, axes, ..): that attribute. The input wins.
  Attr value_of = Attr{0};
  bool extension = false;  ///< oneDNN Graph does not have it
};

enum class AttrType : uint8_t { boolean, s64, f32, string, s64s, f32s };
std::string_view name_of(AttrType type);  ///< "bool", "s64", "f32", "string", "s64[]", "f32[]"

enum class Need : uint8_t { required, optional };

/// A default value that fits into a constant; monostate: absent stays absent.
using AttrLiteral = std::variant<std::monostate, bool, int64_t, float, std::string_view>;
AttrValue value_of(const AttrLiteral& literal);

struct AttrDef {
  Attr key{};
  AttrType type{};
  Need need = Need::optional;
  AttrLiteral fallback = {};
  Few<std::string_view, 8> allowed = {};  ///< for strings: exact tokens; empty: any text
  Few<std::string_view, 8> aliases = {};  ///< further spellings: entry i is accepted and means allowed[i]
  std::string_view text = {};
  bool extension = false;  ///< oneDNN Graph's operator does not have it, though another one may
};

/// Types that a symbol may be bound to; every port with the symbol has the same type.
struct TypeDef {
  std::string_view symbol;
  DtypeSet types;
  DtypeSet extension = {};  ///< taken as well, though oneDNN Graph's operator does not
  constexpr bool takes(Dtype t) const { return types.has(t) || extension.has(t); }
};

/// A rule over several parts of an operator. The sentence is the documentation and the error text; attributes and ports
/// it names in backquotes are added with the values found. `holds` returns true where a rank or dim is still unknown.
struct CheckDef {
  std::string_view id;
  std::string_view sentence;
  bool (*holds)(const OpView&) = nullptr;
  bool types_only = false;  ///< looks at element types alone, so it also shapes the list of type combinations
};

/// What an element-wise operator's expression is built from.
struct ExprInputs {
  std::span<const ExprBuilder::Value> in;  ///< one loaded value an input port
  const Attrs& attrs;
  int rank = 0;          ///< of the result
  bool integer = false;  ///< every input is s32: the values are 32-bit integers
};

/// How the inputs of an element-wise operator lie over its result: right-aligned (numpy), or 1-D ones along the channel
/// axis that data_format names (the last axis where per_channel_broadcast is false) and all others as in numpy.
enum class Operands : uint8_t { numpy, channel };

struct OpDef {
  OpKind kind{};
  std::string_view name;    ///< JSON and C++ spelling
  std::string_view c_name;  ///< dnnl_graph_op_<c_name>
  std::string_view summary;
  Few<PortDef, 6> inputs = {};
  Few<PortDef, 5> outputs = {};
  Few<AttrDef, 11> attrs = {};
  Few<TypeDef, 5> types = {};
  Few<CheckDef, 10> checks = {};
  /// Sets the shape of every output; may resolve attributes (auto_pad). Null for Wildcard and End.
  Status (*infer)(ShapeContext&) = nullptr;
  StepKind step = StepKind::none;
  /// Element-wise operators (step == loop): appends the computation to an expression and returns the result's value.
  ExprBuilder::Value (*expression)(ExprBuilder&, const ExprInputs&) = nullptr;
  Operands operands = Operands::numpy;
  bool commutative = false;  ///< inputs 0 and 1 may change places
  bool variadic_outputs = false;
  int max_variadic = 0;  ///< most inputs where the last input port is variadic; 0: no limit
  /// Where oneDNN documents fewer type combinations than are accepted: true for those. Null: all of them.
  bool (*documented)(const OpView&) = nullptr;
};

/// What oneDNN Graph does not have. Extensions have no defaults: they never appear unless they are given.
constexpr bool is_extension(OpKind kind) { return static_cast<uint16_t>(kind) >= kFirstExtension; }
constexpr bool is_extension(const AttrDef& attr) {
  return attr.extension || static_cast<uint16_t>(attr.key) >= kFirstExtension;
}

/// "`src`"; for one of a variadic port's tensors "`src_i` (input 2)".
std::string input_name(const OpDef& def, int i);
std::string output_name(const OpDef& def, int o);

/// Every operator, by number (src/ops/all.cpp).
std::span<const OpDef* const> all_ops();
/// Null for a number that is no operator.
const OpDef* find_op(OpKind kind);
/// For a kind that is known to exist.
const OpDef& op_def(OpKind kind);
/// Null where the operator has no such attribute.
const AttrDef* find_attr(const OpDef& def, Attr attr);

/// An operator under examination by a check: attributes with defaults filled, logical tensors as given.
class OpView {
 public:
  OpView(const op& o, const Attrs& attrs) : op_(o), attrs_(attrs) {}
  const Attrs& attrs() const { return attrs_; }
  /// The attribute is given as a list without entries, which `attrs` leaves out where it says as little as no
  /// attribute.
  bool is_empty_list(Attr attr) const;
  int inputs() const { return static_cast<int>(op_.inputs.size()); }
  int outputs() const { return static_cast<int>(op_.outputs.size()); }
  const logical_tensor& in(int i) const { return op_.inputs[static_cast<size_t>(i)]; }
  const logical_tensor& out(int i) const { return op_.outputs[static_cast<size_t>(i)]; }
  Dtype in_type(int i) const { return in(i).dtype; }
  Dtype out_type(int i) const { return out(i).dtype; }

 private:
  const op& op_;
  const Attrs& attrs_;
};

}  // namespace partita
