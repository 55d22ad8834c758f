// SPDX-License-Identifier: Apache-2.0
// Operators written down in tests.
#include "tests/support/op_text.hpp"

#include <cstdlib>
#include <sstream>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita::test {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

}  // namespace

logical_tensor tensor_of(std::string_view text, uint64_t id) {
  const size_t open = text.find('[');
  const Dtype dtype = dtype_named(text.substr(0, open)).value();
  if (open == text.npos) return logical_tensor(id, dtype);
  std::string list(text.substr(open + 1, text.size() - open - 2));
  Dims dims;
  std::istringstream in(list);
  for (std::string entry; std::getline(in, entry, ',');) {
    dims.push_back(entry == "?" ? kUnknownDim : std::strtoll(entry.c_str(), nullptr, 10));
  }
  return logical_tensor(id, dtype, dims);
}

op op_of(OpKind kind, const AttrList& attrs, std::string_view inputs, std::string_view outputs) {
  op o(7, kind, "x");
  uint64_t id = 0;
  for (const std::string& word : words(inputs)) o.add_input(tensor_of(word, id++));
  for (const std::string& word : words(outputs)) o.add_output(tensor_of(word, id++));
  for (const auto& [key, value] : attrs) o.set_attr(key, value);
  return o;
}

std::string text_of(const std::vector<logical_tensor>& tensors) {
  std::vector<std::string> parts;
  for (const logical_tensor& t : tensors) {
    parts.push_back(t.rank_known ? str(name_of(t.dtype), "[", partita::text_of(t.dims), "]")
                                 : std::string(name_of(t.dtype)));
  }
  return join(parts, " ");
}

}  // namespace partita::test
