// SPDX-License-Identifier: Apache-2.0
// Status: its text, the names of the codes, and the error that needs no memory.
#include "partita/status.hpp"

namespace partita {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::success: return "success";
    case Code::out_of_memory: return "out_of_memory";
    case Code::invalid_arguments: return "invalid_arguments";
    case Code::unimplemented: return "unimplemented";
    case Code::runtime_error: return "runtime_error";
    case Code::invalid_graph: return "invalid_graph";
    case Code::invalid_graph_op: return "invalid_graph_op";
    case Code::invalid_shape: return "invalid_shape";
    case Code::invalid_data_type: return "invalid_data_type";
  }
  return "unknown";
}

namespace {

/// Made without memory: the text fits into the string itself. Never destroyed, for statuses may outlive everything.
Error* no_memory() noexcept {
  union Forever {
    Forever() : error{Code::out_of_memory, "out of memory", {}, __FILE__, __LINE__} {}
    ~Forever() {}
    Error error;
  };
  static Forever forever;
  return &forever.error;
}

}  // namespace

void Status::Free::operator()(Error* error) const noexcept {
  if (error != no_memory()) delete error;
}

Status Status::out_of_memory() noexcept {
  Status status;
  status.error_.reset(no_memory());
  return status;
}

Status Status::at(std::string_view place) && {
  if (error_ && error_.get() != no_memory())
    error_->where.insert(0, error_->where.empty() ? std::string(place) : std::string(place) + ": ");
  return std::move(*this);
}

std::string Status::text() const {
  if (!error_) return "success";
  if (error_->where.empty()) return error_->message;
  return error_->where + ": " + error_->message;
}

}  // namespace partita
