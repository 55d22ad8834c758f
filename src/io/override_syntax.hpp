// SPDX-License-Identifier: Apache-2.0
// The texts of overrides taken apart. Failures start with "--option, character N".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partita/logical_tensor.hpp"
#include "partita/op.hpp"
#include "partita/status.hpp"
#include "src/ir/op_def.hpp"

namespace partita {

/// A part of an option's text that knows where it stands.
struct Piece {
  std::string_view option;  ///< "--in-shapes"
  std::string_view text;
  size_t at = 0;  ///< characters before it

  Status wrong(std::string message, Code code = Code::invalid_arguments) const;
  Piece from(size_t begin, size_t count = std::string_view::npos) const;
  std::vector<Piece> split(char separator) const;
};

/// "ID:rest"
struct Entry {
  uint64_t id = 0;
  Piece whole;
  Piece rest;
};

/// Entries joined by '+'. A '+' that no "ID:" follows belongs to its entry: 1e+05 is a number.
Result<std::vector<Entry>> parse_entries(std::string_view option, std::string_view text);

struct ShapeText {
  std::optional<Dims> dims;
  std::optional<Dims> strides;
  std::optional<Piece> tag;
};

/// "2x3", "-" (scalar), "0" (one axis of nothing), each with "*acb" or "*3x1"; "*acb" alone keeps the dims.
Result<ShapeText> parse_shape(const Piece& piece);
/// Dense strides with the axes in the order of the letters; x stands for all axes that are not named.
Result<Dims> strides_of_tag(const Piece& tag, const Dims& dims);

struct AttrText {
  Piece name;
  Piece value;
};
/// "name:value*name:value"
Result<std::vector<AttrText>> parse_attr_texts(const Piece& piece);
Result<AttrValue> parse_attr(AttrType type, const Piece& value);

Result<int64_t> parse_integer(const Piece& piece);
Result<bool> parse_bool(const Piece& piece);

}  // namespace partita
