// SPDX-License-Identifier: Apache-2.0
// A block of an axis is an axis of its own: then both layouts have strides.
#include "kernels/onednn/blocked_copy.hpp"

#include "kernels/kernel.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;

std::optional<Dtype> copied_as(memory::data_type type) {
  switch (type) {
    case memory::data_type::f32: return Dtype::f32;
    case memory::data_type::f16: return Dtype::f16;
    case memory::data_type::bf16: return Dtype::bf16;
    default: return std::nullopt;
  }
}

bool is_whole(const memory::desc& desc) {
  return desc.get_format_kind() == memory::format_kind::blocked && desc.get_padded_dims() == desc.get_dims() &&
         desc.get_submemory_offset() == 0;
}

/// Blocks of 16-bit elements in which two of one axis lie beside each other for every one of another axis, as products
/// of pairs want them. Generated code makes them of rows along that other axis; in all other orders it moves elements
/// one by one, up to ten times slower than a reorder.
bool interleaves_columns(const memory::desc& from, const memory::desc& blocked) {
  const memory::dims sizes = blocked.get_inner_blks(), axes = blocked.get_inner_idxs();
  if (sizes.size() < 2 || sizes.back() != 2 || memory::data_type_size(from.get_data_type()) != 2) return false;
  return from.get_inner_nblks() > 0 || from.get_strides()[static_cast<size_t>(axes[axes.size() - 2])] != 1;
}

/// The axes of `desc` cut by the blocks of `blocked`: first what remains of each axis, then the blocks, outermost
/// first.
TensorDesc cut(Dtype dtype, const memory::desc& desc, const memory::desc& blocked) {
  const memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  const memory::dims sizes = blocked.get_inner_blks(), axes = blocked.get_inner_idxs();
  const bool has_blocks = desc.get_inner_nblks() > 0;
  TensorDesc made{dtype, {}, {}, 0};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    int64_t block = 1;
    for (size_t j = 0; j < sizes.size(); ++j)
      if (axes[j] == static_cast<int64_t>(axis)) block *= sizes[j];
    made.dims.push_back(dims[axis] / block);
    made.strides.push_back(strides[axis] * (has_blocks ? 1 : block));
  }
  for (size_t j = 0; j < sizes.size(); ++j) {
    int64_t stride = has_blocks ? 1 : strides[static_cast<size_t>(axes[j])];
    for (size_t inner = j + 1; inner < sizes.size(); ++inner)
      if (has_blocks || axes[inner] == axes[j]) stride *= sizes[inner];
    made.dims.push_back(sizes[j]);
    made.strides.push_back(stride);
  }
  return made;
}

}  // namespace

std::optional<Run> blocked_copy(const memory::desc& from, const memory::desc& to, const Target& target) {
  const std::optional<Dtype> dtype = copied_as(from.get_data_type());
  if (target.isa == Isa::any || !dtype) return {};
  if (from.get_data_type() != to.get_data_type() || !is_whole(from) || !is_whole(to)) return {};
  if (from.get_inner_nblks() > 0 && to.get_inner_nblks() > 0) return {};
  const memory::desc& blocked = from.get_inner_nblks() > 0 ? from : to;
  if (interleaves_columns(from, blocked)) return {};
  if (from.get_ndims() + blocked.get_inner_nblks() > kMaxRank) return {};
  const Problem loop = copy_loop(cut(*dtype, from, blocked), cut(*dtype, to, blocked));
  if (elements(loop.out[0].dims) == 0) return {};
  const auto picked = pick_kernel(loop, target);
  if (!picked.ok() || picked->kernel->slow) return {};
  Result<Run> run = picked->kernel->make(loop, target);
  if (!run.ok()) return {};
  return std::move(run).value();
}

}  // namespace partita::onednn
