// SPDX-License-Identifier: Apache-2.0
// Exceptions as statuses.
#include "src/base/guarded.hpp"

#include <new>
#include <stdexcept>

#include "src/base/text.hpp"

namespace partita {
Status status_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  } catch (const std::length_error&) {  // more than a container can have
    return Status::out_of_memory();
  } catch (const std::exception& e) {
    return guarded([&]() -> Status { return fail(Code::runtime_error, str("an exception was thrown: ", e.what())); });
  } catch (...) {
    return guarded([]() -> Status { return fail(Code::runtime_error, "an exception was thrown, of unknown type"); });
  }
}

}  // namespace partita
