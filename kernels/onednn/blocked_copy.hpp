// SPDX-License-Identifier: Apache-2.0
// Reorders between a plain and a blocked layout as loops of generated code.
#pragma once

#include <dnnl.hpp>
#include <optional>

#include "kernels/kernel.hpp"

namespace partita::onednn {

/// Copies in[0], which lies as `from` says, to out[0], which lies as `to` says. Absent where both are blocked or one is
/// neither f32, f16 nor bf16, where blocks are padded, and where a reorder is faster or the target gets no generated
/// code: then a reorder does it.
std::optional<Run> blocked_copy(const dnnl::memory::desc& from, const dnnl::memory::desc& to, const Target& target);

}  // namespace partita::onednn
