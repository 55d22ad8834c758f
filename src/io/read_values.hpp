// SPDX-License-Identifier: Apache-2.0
// Typed reads of JSON values: numbers, dims, names, attribute values, tensors.
#pragma once

#include <span>
#include <string_view>

#include "partita/logical_tensor.hpp"
#include "partita/status.hpp"
#include "src/io/json_tree.hpp"

namespace partita {

/// Makes failures and remembers the line of the last one, so that the caller can put the file in front.
class JsonReader {
 public:
  int failed_line() const { return line_; }
  Status wrong(const JsonValue& at, std::string message, Code code = Code::invalid_arguments);
  /// A failure found elsewhere that belongs to this value's line.
  Status here(const JsonValue& at, Status status);
  Status expected(const JsonValue& at, std::string_view what);

  Status only_keys(const JsonValue& object, std::span<const std::string_view> known);
  /// The member, or a failure at the object.
  Result<const JsonValue*> member(const JsonValue& object, std::string_view key);
  Result<int64_t> integer(const JsonValue& v);
  Result<uint64_t> id(const JsonValue& v);
  Result<float> number(const JsonValue& v);
  Result<bool> boolean(const JsonValue& v);
  Result<std::string> text(const JsonValue& v);
  Result<const JsonValue::List*> list(const JsonValue& v);
  /// Entries >= 0 or the unknown marker, at most kMaxRank.
  Result<Dims> dims(const JsonValue& v);
  /// {"type": .., "value": ..}
  Result<AttrValue> attribute(const JsonValue& v);
  Result<logical_tensor> tensor(const JsonValue& v);

 private:
  Status read_shape(const JsonValue& v, logical_tensor& t);
  Status read_layout(const JsonValue& v, logical_tensor& t);
  Status read_strides(const JsonValue* stride, logical_tensor& t);
  Result<AttrValue> value_of_type(const JsonValue& type, const JsonValue& value);

  int line_ = 0;
};

}  // namespace partita
