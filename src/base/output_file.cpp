// SPDX-License-Identifier: Apache-2.0
// Writing of files in the working folder.
#include "src/base/output_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// While it lives, a write beyond the limit of file sizes fails with EFBIG instead of ending the process.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    blocks_ = pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  ~NoSizeSignal() {
    if (!blocks_) return;
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &at_once);  // takes the one that we have caused
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false, blocks_ = false;
};

/// A file descriptor.
class File {
 public:
  File(const std::string& name, int flags) : file_(open(name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0644)) {}
  ~File() { close_now(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool ok() const { return file_ >= 0; }
  /// False, and errno, where not all was written.
  bool write_all(std::string_view text) const {
    const NoSizeSignal guard;
    while (!text.empty()) {
      const ssize_t done = write(file_, text.data(), text.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      text.remove_prefix(static_cast<size_t>(done));
    }
    return true;
  }
  bool close_now() {
    const int file = std::exchange(file_, -1);
    return file < 0 || close(file) == 0;
  }

 private:
  int file_;
};

Status check_name(const std::string& name) {
  if (!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
      name.find('\0') == std::string::npos)
    return {};
  return fail(Code::invalid_arguments, str("`", name, "` is no name of a file in the working folder"));
}

Status cannot_write(const std::string& name, int error) {
  return fail(Code::runtime_error, str(name, " cannot be written: ", std::strerror(error)));
}

}  // namespace

Status write_file_here(const std::string& name, std::string_view text) {
  PT_TRY(check_name(name));
  static std::atomic<uint64_t> last = 0;
  const std::string beside = str(".", name, ".", getpid(), ".", ++last);
  File file(beside, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return cannot_write(name, errno);
  if (file.write_all(text) && file.close_now() && std::rename(beside.c_str(), name.c_str()) == 0) return {};
  const int error = errno;
  unlink(beside.c_str());
  return cannot_write(name, error);
}

Status append_line_here(const std::string& name, std::string_view line) {
  PT_TRY(check_name(name));
  const std::string text = str(line, "\n");
  File file(name, O_WRONLY | O_CREAT | O_APPEND);
  if (!file.ok()) return cannot_write(name, errno);
  if (file.write_all(text) && file.close_now()) return {};
  return cannot_write(name, errno);
}

}  // namespace partita
