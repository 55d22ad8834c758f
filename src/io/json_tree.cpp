// SPDX-License-Identifier: Apache-2.0
// Builds the tree from the events of nlohmann's parser; lines are counted in the text it has consumed.
#include "src/io/json_tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/base/text.hpp"

namespace partita {
namespace {

using nlohmann::json;

/// Hands characters to the parser and tells through `reached` how far it is.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  const char** reached_;
};

/// Numbers that JSON does not have, as C++ streams and Python's json module print them, and the texts that stand for
/// them here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kBareNumbers = {{{"inf", "\"inf\""},
                                                                                        {"-inf", "\"-inf\""},
                                                                                        {"nan", "\"nan\""},
                                                                                        {"-nan", "\"nan\""},
                                                                                        {"Infinity", "\"inf\""},
                                                                                        {"-Infinity", "\"-inf\""},
                                                                                        {"NaN", "\"nan\""},
                                                                                        {"-NaN", "\"nan\""}}};

bool continues_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

/// The same text with such numbers as texts; empty where there are none. Lines stay what they are.
std::string with_quoted_numbers(std::string_view text) {
  std::string made;
  size_t copied = 0;
  bool in_text = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_text && c == '\\') {
      ++at;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && continues_word(c)) {
      size_t end = at;
      while (end < text.size() && continues_word(text[end])) ++end;
      const std::string_view word = text.substr(at, end - at);
      const auto found = std::ranges::find(kBareNumbers, word, &std::pair<std::string_view, std::string_view>::first);
      if (found != kBareNumbers.end()) {
        made.append(text.substr(copied, at - copied)).append(found->second);
        copied = end;
      }
      at = end - 1;
    }
  }
  if (copied > 0) made.append(text.substr(copied));
  return made;
}

/// The parser's own words without its prefixes: "[json.exception.parse_error.101] parse error at line 1, column 2: ..".
std::string reason_of(std::string_view what) {
  if (const size_t tag = what.find("] "); what.starts_with('[') && tag != what.npos) what.remove_prefix(tag + 2);
  if (const size_t column = what.find(", column "); what.starts_with("parse error at") && column != what.npos) {
    const size_t colon = what.find(": ", column);
    if (colon != what.npos) what.remove_prefix(colon + 2);
  }
  constexpr size_t kLongest = 200;  // it repeats the text last read, however long that is
  return what.size() <= kLongest ? std::string(what) : std::string(what.substr(0, kLongest)) + "..";
}

class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, std::string_view file)
      : counted_(text.data()), reached_(text.data()), file_(file) {}

  Result<JsonValue> build(std::string_view text) {
    const CountingIterator first(text.data(), &reached_), last(text.data() + text.size(), &reached_);
    if (json::sax_parse(first, last, this)) return std::move(root_);
    return std::move(failure_);
  }

  // The events, by the names nlohmann gives them. False ends the parse.
  bool null() { return add(std::monostate{}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(int64_t{value}, kNumber); }
  bool number_unsigned(json::number_unsigned_t value) {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return add(static_cast<int64_t>(value), kNumber);
    return add(uint64_t{value}, kNumber);
  }
  bool number_float(json::number_float_t value, const std::string&) { return add(double{value}, kNumber); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(size_t) { return open(JsonValue::Object{}); }
  bool start_array(size_t) { return open(JsonValue::List{}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto& members = std::get<JsonValue::Object>(open_.back()->data);
    if (members.size() >= kMaxJsonKeys) return refuse(str("an object has more than ", kMaxJsonKeys, " keys"));
    for (const JsonMember& m : members) {
      if (m.key == name) return refuse(str("the key `", name, "` stands twice in one object"));
    }
    members.push_back({std::move(name), {}});
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) {
    return refuse(str("not valid JSON: ", reason_of(error.what())));
  }

 private:
  enum Token { kNumber, kOther };

  /// The parser reads one character beyond a number to find its end; that one must not count.
  int line_now(Token token) {
    const char* end = token == kNumber && reached_ > counted_ ? reached_ - 1 : reached_;
    line_ += static_cast<int>(std::count(counted_, end, '\n'));
    counted_ = std::max(counted_, end);
    return line_;
  }

  bool refuse(const std::string& message) {
    failure_ = fail(Code::invalid_arguments, message).at(str(file_, ":", line_now(kOther)));
    return false;
  }

  template <class T>
  bool add(T value, Token token = kOther) {
    return place(JsonValue{std::move(value), line_now(token)}) != nullptr;
  }

  template <class T>
  bool open(T container) {
    if (open_.size() >= kMaxJsonDepth) return refuse(str("lists and objects are nested deeper than ", kMaxJsonDepth));
    JsonValue* placed = place(JsonValue{std::move(container), line_now(kOther)});
    if (placed) open_.push_back(placed);
    return placed != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Null where there are too many values. Pointers to open containers stay valid: only the innermost one grows.
  JsonValue* place(JsonValue value) {
    if (++values_ > kMaxJsonValues) return refuse(str("there are more than ", kMaxJsonValues, " values")), nullptr;
    if (open_.empty()) return &(root_ = std::move(value));
    if (auto* list = std::get_if<JsonValue::List>(&open_.back()->data)) return &list->emplace_back(std::move(value));
    return &(std::get<JsonValue::Object>(open_.back()->data).back().value = std::move(value));
  }

  const char* counted_;
  const char* reached_;
  int line_ = 1;
  size_t values_ = 0;
  std::string_view file_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  Status failure_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  const auto* members = as<Object>();
  if (!members) return nullptr;
  const auto it = std::find_if(members->begin(), members->end(), [&](const JsonMember& m) { return m.key == key; });
  return it == members->end() ? nullptr : &it->value;
}

std::string JsonValue::described() const {
  if (const bool* b = as<bool>()) return *b ? "true" : "false";
  if (const auto* i = as<int64_t>()) return str("the number ", *i);
  if (const auto* u = as<uint64_t>()) return str("the number ", *u);
  if (const double* d = as<double>()) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, *d);
    return str("the number ", std::string_view(buffer, static_cast<size_t>(end.ptr - buffer)));
  }
  if (as<std::string>()) return "a string";
  if (as<List>()) return "a list";
  return as<Object>() ? "an object" : "null";
}

Result<JsonValue> parse_json(std::string_view text, std::string_view file) {
  if (text.size() > kMaxJsonBytes) {
    const std::string message = str("the text has ", text.size(), " bytes, at most ", kMaxJsonBytes, " are read");
    return fail(Code::invalid_arguments, message).at(file);
  }
  const std::string quoted = with_quoted_numbers(text);
  const std::string_view read = quoted.empty() ? text : std::string_view(quoted);
  return TreeBuilder(read, file).build(read);
}

}  // namespace partita
