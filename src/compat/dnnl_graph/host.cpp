// SPDX-License-Identifier: Apache-2.0
// Finds functions of the process's libdnnl: among the global symbols, else in any loaded library that has them (a
// Python module's libraries are not global).
#include "src/compat/dnnl_graph/host.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita::abi::host {
namespace {

struct Search {
  const char* name;
  void* found = nullptr;
};

int look_into(dl_phdr_info* library, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  if (library->dlpi_name == nullptr || *library->dlpi_name == '\0') return 0;
  void* handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  search->found = dlsym(handle, search->name);
  dlclose(handle);  // the library stays: others hold it
  return search->found != nullptr;
}

void* symbol(const char* name) {
  if (void* global = dlsym(RTLD_DEFAULT, name)) return global;
  Search search{name};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

/// A function that is looked up until it is found: libdnnl may be loaded later than this library.
template <class F>
class Function;
template <class... Args>
class Function<dnnl_status_t(Args...)> {
 public:
  constexpr explicit Function(const char* name) : name_(name) {}
  bool exists() { return find() != nullptr; }

  Status operator()(Args... args) {
    const auto f = find();
    if (!f)
      return fail(Code::runtime_error, str("the process has no libdnnl whose engines could be used (no ", name_, ")"));
    if (const dnnl_status_t status = f(args...); status != dnnl_success)
      return fail(static_cast<Code>(status), str(name_, " of libdnnl answers ", static_cast<int>(status)));
    return {};
  }

 private:
  using Pointer = dnnl_status_t (*)(Args...);
  Pointer find() {
    Pointer f = pointer_.load(std::memory_order_relaxed);
    if (f) return f;
    f = reinterpret_cast<Pointer>(symbol(name_));
    pointer_.store(f, std::memory_order_relaxed);
    return f;
  }

  const char* name_;
  std::atomic<Pointer> pointer_ = nullptr;
};

constinit Function<dnnl_status_t(dnnl_engine_t*, dnnl_engine_kind_t, size_t)> engine_create{"dnnl_engine_create"};
constinit Function<dnnl_status_t(dnnl_engine_t)> engine_destroy{"dnnl_engine_destroy"};
constinit Function<dnnl_status_t(dnnl_engine_t, dnnl_engine_kind_t*)> engine_get_kind{"dnnl_engine_get_kind"};
constinit Function<dnnl_status_t(dnnl_stream_t, dnnl_engine_t*)> stream_get_engine{"dnnl_stream_get_engine"};
constinit Function<dnnl_status_t(dnnl_fpmath_mode_t*)> get_default_fpmath_mode{"dnnl_get_default_fpmath_mode"};
constinit Function<dnnl_status_t(dnnl_stream_t, void**)> stream_get_threadpool{
    "dnnl_threadpool_interop_stream_get_threadpool"};

}  // namespace

Result<dnnl_engine_t> make_engine(dnnl_engine_kind_t kind, size_t index) {
  dnnl_engine_t engine = nullptr;
  PT_TRY(engine_create(&engine, kind, index));
  return engine;
}

void destroy_engine(dnnl_engine_t engine) { (void)engine_destroy(engine).ok(); }

Result<dnnl_engine_kind_t> kind_of(dnnl_engine_t engine) {
  dnnl_engine_kind_t kind{};
  PT_TRY(engine_get_kind(engine, &kind));
  return kind;
}

Result<dnnl_engine_t> engine_of(dnnl_stream_t stream) {
  dnnl_engine_t engine = nullptr;
  PT_TRY(stream_get_engine(stream, &engine));
  return engine;
}

FpMath default_math_mode() {
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
  if (!get_default_fpmath_mode.exists() || !get_default_fpmath_mode(&mode).ok()) return FpMath::strict;
  return static_cast<FpMath>(mode);
}

bool has_threadpools() {
  // Looked for once libdnnl is there: a miss is remembered, for it is asked at every execution.
  static const bool found = stream_get_threadpool.exists();
  return found;
}

void* threadpool_of(dnnl_stream_t stream) {
  void* pool = nullptr;
  return stream_get_threadpool(stream, &pool).ok() ? pool : nullptr;
}

}  // namespace partita::abi::host
