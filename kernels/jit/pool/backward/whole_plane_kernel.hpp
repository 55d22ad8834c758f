// SPDX-License-Identifier: Apache-2.0
// Code of gradients of maxima over whole planes: cells are never computed with, only compared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/jit/pool/backward/ranks.hpp"

namespace partita::jit {

/// Channel-first, planes of few cells one after the other: the first maximum of a plane is found in registers, and the
/// gradient stored there among zeros.
class PlaneRowsKernel : private RankCode {
 public:
  static constexpr int64_t kMostCells = 64;

  struct Call {
    const void *src, *gradients;
    void* dst;            ///< of the first plane
    std::byte* lines;     ///< streaming: scratch_bytes() of zeros, aligned to cache lines; they are zeros again behind
    int64_t repetitions;  ///< of together() planes
  };

  /// Results are zeros before, or, `streaming`, whole cache lines that are stored past the caches. Throws Xbyak::Error
  /// where there is no memory for code.
  PlaneRowsKernel(Dtype dtype, int64_t cells, bool streaming);
  void operator()(const Call& call) const { entry_(&call); }
  /// Planes of a repetition: as many as begin at a cache line together.
  int64_t together() const { return streaming_ ? vector_elements() : 1; }
  size_t scratch_bytes() const { return streaming_ ? static_cast<size_t>(2 * lines() * kCacheLine) : 0; }

 private:
  int64_t lines() const { return cells_; }  ///< of together() planes
  int64_t plane_bytes() const { return cells_ * element_bytes(); }
  int vectors() const { return static_cast<int>(ceil_div(cells_, int64_t{vector_elements()})); }
  void emit();
  void emit_plane(int64_t plane);
  void find_least();
  void find_place();
  void emit_line(int64_t line);

  int64_t cells_;
  bool streaming_;
  void (*entry_)(const Call*) = nullptr;
};

/// Channel-last, some vectors of channels cell by cell: while the first maxima of some are found, the results of others
/// are stored.
class PlaneColumnsKernel : private RankCode {
 public:
  static constexpr int kVectors = 8;

  struct Shape {
    int64_t cells, src_step, dst_step;  ///< bytes from cell to cell
    int channels;                       ///< at the most kVectors vectors
    bool streaming;                     ///< these are whole cache lines
  };
  struct Call {
    const void* src = nullptr;    ///< null: nothing is searched
    const void* ahead = nullptr;  ///< what will be searched next
    void* dst = nullptr;          ///< null: nothing is stored
    const void* gradients = nullptr;
    std::byte* places = nullptr;  ///< kVectors cache lines: of maxima that were found by the call before
  };

  /// Throws Xbyak::Error where there is no memory for code.
  PlaneColumnsKernel(Dtype dtype, const Shape& shape);
  void operator()(const Call& call) const { entry_(&call); }

 private:
  int vectors() const { return ceil_div(shape_.channels, vector_elements()); }
  bool is_partial(int vector) const { return shape_.channels < (vector + 1) * vector_elements(); }
  void emit(bool searches, bool stores);
  void emit_cells(int64_t cells, bool searches, bool stores);
  void search(int vector);
  void store(int vector);

  Shape shape_;
  void (*entry_)(const Call*) = nullptr;
};

}  // namespace partita::jit
