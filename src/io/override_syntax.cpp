// SPDX-License-Identifier: Apache-2.0
// The grammar of overrides; nothing here knows a graph.
#include "src/io/override_syntax.hpp"

#include <charconv>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// True where `text` starts with "ID:".
bool starts_entry(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  return digits > 0 && digits < text.size() && text[digits] == ':';
}

template <class T>
std::optional<T> number_from(std::string_view text) {
  T value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<Dims> parse_extents(const Piece& piece, std::string_view what) {
  Dims out;
  for (const Piece& part : piece.split('x')) {
    const std::optional<int64_t> extent = number_from<int64_t>(part.text);
    if (!extent || *extent < 0) return part.wrong(str("expected ", what, ", found `", part.text, "`"));
    if (out.size() == kMaxRank) return piece.wrong(str("expected at most ", kMaxRank, " axes"));
    out.push_back(*extent);
  }
  return out;
}

template <class T>
Result<AttrValue> parse_list(const Piece& value, std::string_view what) {
  std::vector<T> out;
  if (value.text.empty()) return AttrValue(out);
  for (const Piece& part : value.split('x')) {
    const std::optional<T> number = number_from<T>(part.text);
    if (!number) return part.wrong(str("expected ", what, ", found `", part.text, "`"));
    out.push_back(*number);
  }
  return AttrValue(std::move(out));
}

}  // namespace

Status Piece::wrong(std::string message, Code code) const {
  return fail(code, std::move(message)).at(str(option, ", character ", at + 1));
}

Piece Piece::from(size_t begin, size_t count) const { return {option, text.substr(begin, count), at + begin}; }

std::vector<Piece> Piece::split(char separator) const {
  std::vector<Piece> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.push_back(from(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

Result<std::vector<Entry>> parse_entries(std::string_view option, std::string_view text) {
  std::vector<Entry> entries;
  const Piece all{option, text, 0};
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = begin;
    while (end < text.size() && !(text[end] == '+' && starts_entry(text.substr(end + 1)))) ++end;
    const Piece whole = all.from(begin, end - begin);
    const size_t colon = whole.text.find(':');
    const std::optional<uint64_t> id = number_from<uint64_t>(whole.text.substr(0, colon));
    if (colon == whole.text.npos || !id) return whole.wrong(str("expected `ID:..`, found `", whole.text, "`"));
    entries.push_back({*id, whole, whole.from(colon + 1)});
    begin = end + 1;
  }
  return entries;
}

Result<ShapeText> parse_shape(const Piece& piece) {
  ShapeText out;
  const size_t star = piece.text.find('*');
  const Piece shape = piece.from(0, star);
  if (shape.text == "-") {
    out.dims = Dims{};
  } else if (!shape.text.empty() || star == piece.text.npos) {
    PT_ASSIGN(out.dims, parse_extents(shape, "a dim, as in 2x3x4"));
  }
  if (star == piece.text.npos) return out;
  const Piece layout = piece.from(star + 1);
  if (layout.text.empty()) return layout.wrong("expected a tag, as in acdb, or strides, as in 6x1, after `*`");
  if (is_digit(layout.text[0])) {
    PT_ASSIGN(out.strides, parse_extents(layout, "a stride, as in 6x1"));
  } else {
    out.tag = layout;
  }
  return out;
}

Result<Dims> strides_of_tag(const Piece& tag, const Dims& dims) {
  const int rank = dims.size();
  const auto wrong_letters = [&] {
    return tag.wrong(str("expected the letters of ", rank, " axes, each once, found `", tag.text,
                         "` (blocked layouts have no strides)"));
  };
  std::vector<int> order;  // axes from the outermost inwards
  for (char c : tag.text) {
    if (c == 'x') {
      for (int axis = 0; axis < rank; ++axis) {
        if (tag.text.find(static_cast<char>('a' + axis)) == tag.text.npos) order.push_back(axis);
      }
    } else if (c >= 'a' && c < 'a' + rank) {
      order.push_back(c - 'a');
    } else {
      return wrong_letters();
    }
  }
  Dims strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (strides[order[i]] != 0) return wrong_letters();
    strides[order[i]] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(1, dims[order[i]]), &stride)) {
      return tag.wrong(str("a tensor of [", text_of(dims), "] is too large"));
    }
  }
  if (order.size() != static_cast<size_t>(rank)) return wrong_letters();
  return strides;
}

Result<std::vector<AttrText>> parse_attr_texts(const Piece& piece) {
  std::vector<AttrText> out;
  for (const Piece& part : piece.split('*')) {
    const size_t colon = part.text.find(':');
    if (colon == part.text.npos || colon == 0) return part.wrong(str("expected `name:value`, found `", part.text, "`"));
    out.push_back({part.from(0, colon), part.from(colon + 1)});
  }
  return out;
}

Result<AttrValue> parse_attr(AttrType type, const Piece& value) {
  switch (type) {
    case AttrType::boolean: {
      PT_ASSIGN(const bool flag, parse_bool(value));
      return AttrValue(flag);
    }
    case AttrType::s64: {
      PT_ASSIGN(const int64_t number, parse_integer(value));
      return AttrValue(number);
    }
    case AttrType::f32: {
      const std::optional<float> number = number_from<float>(value.text);
      if (!number) return value.wrong(str("expected a number, found `", value.text, "`"));
      return AttrValue(*number);
    }
    case AttrType::string:
      return AttrValue(std::string(value.text));
    case AttrType::s64s:
      return parse_list<int64_t>(value, "integers, as in 1x1");
    case AttrType::f32s:
      return parse_list<float>(value, "numbers, as in 0.5x1");
  }
  return value.wrong("unknown attribute type");
}

Result<int64_t> parse_integer(const Piece& piece) {
  if (const std::optional<int64_t> number = number_from<int64_t>(piece.text)) return *number;
  return piece.wrong(str("expected an integer, found `", piece.text, "`"));
}

Result<bool> parse_bool(const Piece& piece) {
  if (piece.text == "true" || piece.text == "1") return true;
  if (piece.text == "false" || piece.text == "0") return false;
  return piece.wrong(str("expected true, false, 0 or 1, found `", piece.text, "`"));
}

}  // namespace partita
