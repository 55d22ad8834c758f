// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how every call of Partita tells success from failure. What answers with one of them throws
// nothing; the exceptions of the C++ library where there is no memory become Code::out_of_memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace partita {

/// What kind of failure it was; the numbers are those of the oneDNN Graph C ABI.
enum class Code : int32_t {
  success = 0,
  out_of_memory = 1,
  invalid_arguments = 2,
  unimplemented = 3,
  runtime_error = 5,
  invalid_graph = 7,
  invalid_graph_op = 8,
  invalid_shape = 9,
  invalid_data_type = 10,
};

/// The enumerator's name, e.g. "invalid_shape".
std::string_view name_of(Code code);

/// `where` reads from the outermost place inwards ("model.json:41: op 7 'sm' (SoftMax)"); file and line are Partita's
/// own.
struct Error {
  Code code = Code::runtime_error;
  std::string message;
  std::string where;
  const char* file = "";
  int line = 0;
};

/// Success (a null pointer), or one Error. Safe to move between threads.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error e) : error_(new Error(std::move(e))) {}
  /// Code::out_of_memory. Takes no memory itself, so that it can always be made; `at` leaves it as it is.
  static Status out_of_memory() noexcept;

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Code code() const { return error_ ? error_->code : Code::success; }
  /// Only for a failed status.
  const Error& error() const { return *error_; }
  /// "where: message", or "success".
  std::string text() const;

  /// Adds the place as the error travels up; the caller names only what it knows.
  Status at(std::string_view place) &&;

 private:
  /// The error of out_of_memory() is shared and never freed.
  struct Free {
    void operator()(Error* error) const noexcept;
  };
  std::unique_ptr<Error, Free> error_;
};

/// A failed Status that remembers where in Partita it was made.
inline Status fail(Code code, std::string message, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return Error{code, std::move(message), {}, file, line};
}

/// A value or the Error that kept it from being made.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  /// Only where ok(). From a temporary Result the value is moved out, so that it may be kept or looped over.
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

  Status take_status() && { return std::move(status_); }
  Result at(std::string_view place) && {
    status_ = std::move(status_).at(place);
    return std::move(*this);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace partita
