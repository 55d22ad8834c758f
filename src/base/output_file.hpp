// SPDX-License-Identifier: Apache-2.0
// Files that the library writes of its own accord, because an environment variable asks for it: only into the working
// folder, and a disk that takes nothing harms nobody.
#pragma once

#include <string>
#include <string_view>

#include "partita/status.hpp"

namespace partita {

/// Writes the whole file or nothing: the text goes to a file beside it first, which then takes the name. What stands
/// there before (a symbolic link too) is replaced, never written through. Fails with runtime_error and the system's
/// reason; invalid_arguments where `name` is not a plain name in the working folder. A limit of file sizes is such a
/// failure too, not the end of the process.
Status write_file_here(const std::string& name, std::string_view text);

/// Appends one line, by one write, to a file that is made where it is missing. Symbolic links are refused. Otherwise as
/// above.
Status append_line_here(const std::string& name, std::string_view line);

}  // namespace partita
