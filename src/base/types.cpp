// SPDX-License-Identifier: Apache-2.0
// The names of data types, layouts, properties and math modes, as graph files spell them.
#include "partita/types.hpp"

namespace partita {

std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::undef: return "undef";
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::f32: return "f32";
    case Dtype::s32: return "s32";
    case Dtype::s8: return "s8";
    case Dtype::u8: return "u8";
    case Dtype::f64: return "f64";
    case Dtype::boolean: return "boolean";
    case Dtype::f8_e5m2: return "f8_e5m2";
    case Dtype::f8_e4m3: return "f8_e4m3";
    case Dtype::s4: return "s4";
    case Dtype::u4: return "u4";
    case Dtype::s64: return "s64";
  }
  return "unknown";
}

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::undef: return "undef";
    case Layout::any: return "any";
    case Layout::strided: return "strided";
    case Layout::opaque: return "opaque";
  }
  return "unknown";
}

std::string_view name_of(Property property) {
  switch (property) {
    case Property::undef: return "undef";
    case Property::variable: return "variable";
    case Property::constant: return "constant";
    case Property::host_scalar: return "host_scalar";
  }
  return "unknown";
}

std::string_view name_of(FpMath mode) {
  switch (mode) {
    case FpMath::strict: return "strict";
    case FpMath::bf16: return "bf16";
    case FpMath::f16: return "f16";
    case FpMath::any: return "any";
    case FpMath::tf32: return "tf32";
  }
  return "unknown";
}

}  // namespace partita
