// SPDX-License-Identifier: Apache-2.0
// Stencil: machine code that combines the taps of windows along folded rows and evaluates an expression on each
// result.
#pragma once

#include <memory>
#include <vector>

#include "kernels/expr.hpp"
#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"

namespace partita::jit {

/// Rows that windows lie over: a result combines the taps of all of them. A tap lies `taps[t]` elements behind the
/// result's first place; the places of one result and the next are one element apart, or two.
struct StencilShape {
  RowShape rows;                            ///< of the results; operands that the expression loads and stores
  Fold fold = Fold::none;                   ///< sum or max
  Dtype dtype = Dtype::f32;                 ///< of the rows that are combined
  int64_t sources = 1;                      ///< of these rows, at the most Stencil::kMaxSources
  std::vector<int64_t> taps;                ///< ascending
  std::vector<int64_t> fetched = {};        ///< those of them that read memory first, so that it is fetched ahead
  int fetched_ahead = kPrefetchFromMemory;  ///< by so many bytes
  int64_t fresh_sources = 1;                ///< of the sources, the last ones: so many read memory first
  bool every_second = false;                ///< f32 with reading beyond alone
  bool reads_beyond = false;  ///< whole vectors of f32 are read, up to Stencil::kOverread floats behind a row
  int64_t row_bytes = 0;      ///< from the rows under one row of results to those under the next

  /// Whether a tap of a source reads memory first.
  bool is_fresh(int64_t source, int64_t tap) const;
  /// How such taps are fetched where so many elements of a row go together. Where these are all, memory is read in its
  /// order, which some processors do by themselves.
  Fetching fetching_of(int64_t together) const;
};

/// Addresses as in RowCall; `sources` are those of the first rows that are combined.
struct StencilCall {
  const void* const* sources;
  const void* const* in;
  void* const* out;
  int64_t rows;
};

/// A row's whole vectors of `lanes` elements in equal groups, at the most `most` vectors each: vectors of a group. They
/// are combined tap by tap, so that memory is read in longer stretches.
int vectors_of_group(int64_t length, int lanes, int64_t most);

class Stencil : private Emitter {
 public:
  static constexpr int64_t kOverread = 32;
  static constexpr int64_t kMaxSources = 4;
  /// The register with the address of a source.
  static Xbyak::Reg64 source(int64_t k);

  /// `lanes`: its skeleton value is the combination. Throws Xbyak::Error where there is no memory for code.
  Stencil(Isa isa, const Lanes& lanes, const StencilShape& shape);
  void operator()(const StencilCall& call) const { entry_(&call); }

 private:
  void emit_row(Body& body);
  int vectors_together() const;
  BodyHooks hooks_for(int count);
  BodyHooks hooks_for(int count, int vector, bool combined);
  void combine(Xbyak::Xmm sum, int count);
  void combine_together();
  void combine_tap(Xbyak::Xmm sum, const Xbyak::RegExp& from, int count, bool& first);
  void combine_pairs(Xbyak::Xmm sum);
  void take(Xbyak::Xmm sum, Xbyak::Xmm part, bool& first);
  void pick_second(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, bool odd);

  StencilShape shape_;
  int together_;     // vectors_of_group
  int temporaries_;  // first of the registers that combinations use
  int sums_;         // first of those of the vectors together
  Xbyak::Label even_, odd_;
  void (*entry_)(const StencilCall*) = nullptr;
};

/// The stencil that puts `value` through `back`: `expr` makes it of the skeleton value, which is the combination. The
/// operands `back_in` that `back` loads are the first ones of shape.rows.in, its outputs those of shape.rows.out.
std::unique_ptr<const Stencil> make_stencil(Isa isa, const StencilShape& shape, Expr expr, ExprBuilder::Value value,
                                            const Expr& back, const std::vector<int>& back_in);

}  // namespace partita::jit
