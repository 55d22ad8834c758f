// SPDX-License-Identifier: Apache-2.0
// Typed reads of JSON values; every failure tells what was expected and what was found.
#include "src/io/read_values.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

constexpr std::string_view kTensorKeys[] = {"id",          "dtype",         "shape",     "stride",
                                            "layout_type", "property_type", "layout_id", "rank"};
constexpr std::string_view kAttrKeys[] = {"type", "value"};
constexpr std::string_view kAttrTypes[] = {"bool", "s64", "s64[]", "f32", "f32[]", "string"};

/// The enumerator in [0, last] with that name.
template <class E>
std::optional<E> named(std::string_view name, E last) {
  for (int number = 0; number <= static_cast<int>(last); ++number) {
    const std::string_view own = name_of(static_cast<E>(number));
    if (own == name && own != "unknown") return static_cast<E>(number);
  }
  return std::nullopt;
}

std::string other_name(std::string_view what, std::string_view name, std::span<const std::string_view> known) {
  const std::string near = suggestion(name, known);
  return str("unknown ", what, " `", name, "`", near.empty() ? ", known are " + join(known, ", ") : near);
}

template <class E>
std::vector<std::string_view> names_up_to(E last) {
  std::vector<std::string_view> names;
  for (int number = 0; number <= static_cast<int>(last); ++number) {
    const std::string_view own = name_of(static_cast<E>(number));
    if (own != "unknown") names.push_back(own);
  }
  return names;
}

bool is_marker(const Dims& dims) { return dims.size() == 1 && dims[0] == kUnknownDim; }

}  // namespace

Status JsonReader::wrong(const JsonValue& at, std::string message, Code code) {
  line_ = at.line;
  return fail(code, std::move(message));
}

Status JsonReader::here(const JsonValue& at, Status status) {
  line_ = at.line;
  return status;
}

Status JsonReader::expected(const JsonValue& at, std::string_view what) {
  return wrong(at, str("expected ", what, ", found ", at.described()));
}

Status JsonReader::only_keys(const JsonValue& object, std::span<const std::string_view> known) {
  const auto* members = object.as<JsonValue::Object>();
  if (!members) return expected(object, "an object");
  for (const JsonMember& m : *members) {
    if (std::find(known.begin(), known.end(), m.key) != known.end()) continue;
    return wrong(m.value, other_name("key", m.key, known));
  }
  return {};
}

Result<const JsonValue*> JsonReader::member(const JsonValue& object, std::string_view key) {
  if (const JsonValue* v = object.find(key)) return v;
  return wrong(object, str("the key `", key, "` is missing"));
}

Result<int64_t> JsonReader::integer(const JsonValue& v) {
  if (const auto* i = v.as<int64_t>()) return *i;
  const double* d = v.as<double>();
  if (v.as<uint64_t>() || (d && std::fabs(*d) >= 0x1p63)) return expected(v, "an integer of 64 bits");
  return expected(v, "an integer");
}

Result<uint64_t> JsonReader::id(const JsonValue& v) {
  if (const auto* u = v.as<uint64_t>()) return *u;
  PT_ASSIGN(const int64_t number, integer(v));
  if (number < 0) return expected(v, "an id (not negative)");
  return static_cast<uint64_t>(number);
}

Result<float> JsonReader::number(const JsonValue& v) {
  double value = 0;
  if (const auto* i = v.as<int64_t>()) {
    value = static_cast<double>(*i);
  } else if (const auto* u = v.as<uint64_t>()) {
    value = static_cast<double>(*u);
  } else if (const double* d = v.as<double>()) {
    value = *d;
  } else if (const auto* s = v.as<std::string>()) {
    // JSON has no such numbers; this is how graph_to_json writes them.
    if (*s == "inf") return std::numeric_limits<float>::infinity();
    if (*s == "-inf") return -std::numeric_limits<float>::infinity();
    if (*s == "nan") return std::numeric_limits<float>::quiet_NaN();
    return expected(v, "a number");
  } else {
    return expected(v, "a number");
  }
  const float rounded = static_cast<float>(value);
  if (std::isinf(rounded)) return expected(v, "a number that fits f32");
  return rounded;
}

Result<bool> JsonReader::boolean(const JsonValue& v) {
  if (const bool* b = v.as<bool>()) return *b;
  const auto* i = v.as<int64_t>();
  if (i && (*i == 0 || *i == 1)) return *i == 1;
  return expected(v, "true, false, 0 or 1");
}

Result<std::string> JsonReader::text(const JsonValue& v) {
  if (const auto* s = v.as<std::string>()) return *s;
  return expected(v, "a string");
}

Result<const JsonValue::List*> JsonReader::list(const JsonValue& v) {
  if (const auto* l = v.as<JsonValue::List>()) return l;
  return expected(v, "a list");
}

Result<Dims> JsonReader::dims(const JsonValue& v) {
  PT_ASSIGN(const JsonValue::List* entries, list(v));
  if (entries->size() > static_cast<size_t>(kMaxRank)) {
    return wrong(v, str("expected at most ", kMaxRank, " entries, found ", entries->size()));
  }
  Dims out;
  for (const JsonValue& entry : *entries) {
    PT_ASSIGN(const int64_t number, integer(entry));
    if (number < 0 && number != kUnknownDim) {
      return expected(entry, str("an entry >= 0 (or ", kUnknownDim, " where it is unknown)"));
    }
    out.push_back(number);
  }
  return out;
}

Result<AttrValue> JsonReader::attribute(const JsonValue& v) {
  PT_TRY(only_keys(v, kAttrKeys));
  PT_ASSIGN(const JsonValue* type, member(v, "type"));
  PT_ASSIGN(const JsonValue* value, member(v, "value"));
  return value_of_type(*type, *value);
}

Result<AttrValue> JsonReader::value_of_type(const JsonValue& type, const JsonValue& value) {
  PT_ASSIGN(const std::string name, text(type).at("`type`"));
  const auto wrap = [](auto result) -> Result<AttrValue> {
    if (!result.ok()) return std::move(result).take_status();
    return AttrValue(std::move(result).value());
  };
  if (name == "bool") return wrap(boolean(value));
  if (name == "s64") return wrap(integer(value));
  if (name == "f32") return wrap(number(value));
  if (name == "string") return wrap(text(value));
  if (name != "s64[]" && name != "f32[]") {
    return wrong(type, other_name("type", name, kAttrTypes));
  }
  PT_ASSIGN(const JsonValue::List* entries, list(value));
  std::vector<int64_t> integers;
  std::vector<float> floats;
  for (const JsonValue& entry : *entries) {
    if (name == "s64[]") {
      PT_ASSIGN(integers.emplace_back(), integer(entry));
    } else {
      PT_ASSIGN(floats.emplace_back(), number(entry));
    }
  }
  if (name == "s64[]") return AttrValue(std::move(integers));
  return AttrValue(std::move(floats));
}

Result<logical_tensor> JsonReader::tensor(const JsonValue& v) {
  PT_TRY(only_keys(v, kTensorKeys));
  logical_tensor t;
  PT_ASSIGN(const JsonValue* own_id, member(v, "id"));
  PT_ASSIGN(t.id, id(*own_id).at("`id`"));
  if (const JsonValue* dtype = v.find("dtype")) {
    PT_ASSIGN(const std::string name, text(*dtype).at("`dtype`"));
    const std::optional<Dtype> known = dtype_named(name);
    if (!known) return wrong(*dtype, other_name("data type", name, names_up_to(Dtype::s64))).at("`dtype`");
    t.dtype = *known;
  }
  if (const JsonValue* property = v.find("property_type")) {
    PT_ASSIGN(const std::string name, text(*property).at("`property_type`"));
    const std::optional<Property> known = named(name, Property::host_scalar);
    if (!known) {
      return wrong(*property, other_name("property", name, names_up_to(Property::host_scalar))).at("`property_type`");
    }
    t.property = *known;
  }
  PT_TRY(read_shape(v, t));
  PT_TRY(read_layout(v, t));
  if (t.shape_known() && t.size_bytes() > static_cast<size_t>(std::numeric_limits<int64_t>::max())) {
    return wrong(v, str("the tensor is too large: ", t.text()));
  }
  return t;
}

Status JsonReader::read_shape(const JsonValue& v, logical_tensor& t) {
  const JsonValue* shape = v.find("shape");
  const JsonValue* rank = v.find("rank");
  if (shape) {
    PT_ASSIGN(t.dims, dims(*shape).at("`shape`"));
  }
  // Dumps write the marker alone for whatever is not fully known; `rank` tells the one-dimensional tensor apart.
  t.rank_known = shape && (rank || !is_marker(t.dims));
  if (rank) {
    PT_ASSIGN(const int64_t number, integer(*rank).at("`rank`"));
    if (number != t.dims.size()) {
      return wrong(*rank, str("expected the number of entries of `shape`, ", t.dims.size(), ", found ", number))
          .at("`rank`");
    }
  }
  if (!t.rank_known) t.dims = {};
  return {};
}

Status JsonReader::read_layout(const JsonValue& v, logical_tensor& t) {
  const JsonValue* stride = v.find("stride");
  t.layout = Layout::strided;
  if (const JsonValue* layout = v.find("layout_type")) {
    PT_ASSIGN(const std::string name, text(*layout).at("`layout_type`"));
    const std::optional<Layout> known = named(name, Layout::opaque);
    if (!known) return wrong(*layout, other_name("layout", name, names_up_to(Layout::opaque))).at("`layout_type`");
    t.layout = *known;
  }
  const JsonValue* layout_id = v.find("layout_id");
  if (t.layout == Layout::opaque) {
    if (!layout_id) return wrong(v, "an opaque tensor needs the key `layout_id`");
    PT_ASSIGN(t.layout_id, id(*layout_id).at("`layout_id`"));
  } else if (layout_id) {
    return wrong(*layout_id, str("only an opaque tensor has the key `layout_id`, this one is ", name_of(t.layout)));
  }
  // Frameworks leave the layout of inner tensors open, yet strides, where given, say it.
  if (t.layout == Layout::undef && stride) t.layout = Layout::strided;
  return read_strides(stride, t).at("`stride`");
}

Status JsonReader::read_strides(const JsonValue* stride, logical_tensor& t) {
  Dims given;
  if (stride) {
    PT_ASSIGN(given, dims(*stride));
  }
  if (t.layout != Layout::strided) return {};
  const bool shape_open = !t.rank_known || !all_known(t.dims);
  if (!stride) {
    t.strides = shape_open ? Dims(t.rank(), kUnknownDim) : dense_strides(t.dims);
    return {};
  }
  const bool one_marker = is_marker(given);
  if (!one_marker && (!t.rank_known || given.size() != t.rank())) {
    const std::string wanted = t.rank_known ? str(t.rank(), " entries") : str("[", kUnknownDim, "]");
    return wrong(*stride, str("expected ", wanted, " as in `shape`, found ", given.size()));
  }
  t.strides = one_marker ? Dims(t.rank(), kUnknownDim) : given;
  return {};
}

}  // namespace partita
