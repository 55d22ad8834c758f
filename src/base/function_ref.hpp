// SPDX-License-Identifier: Apache-2.0
// FunctionRef: a callable that somebody else owns, for parameters that are called before the call ends.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace partita {

template <class Signature>
class FunctionRef;

/// Costs two pointers and no memory of its own. Must not outlive the callable.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& callable)
      : callable_(std::addressof(callable)), call_([](const void* callable, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(const_cast<void*>(callable)))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  const void* callable_;
  R (*call_)(const void*, Args...);
};

}  // namespace partita
