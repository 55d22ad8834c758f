// SPDX-License-Identifier: Apache-2.0
// Status: its text, and the names of the codes.
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

std::string Status::text() const {
  if (!error_) return "success";
  if (error_->where.empty()) return error_->message;
  return error_->where + ": " + error_->message;
}

}  // namespace partita
