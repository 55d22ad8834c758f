// SPDX-License-Identifier: Apache-2.0
// Whether oneDNN works on this machine.
#pragma once

namespace partita::onednn {

/// Null, or why nothing of oneDNN may be used. Some virtual machines do not tell the sizes of their caches, which
/// oneDNN takes for caches of one byte: it plans blocks for them that leave elements out of reorders, or divides by
/// zero (its issue 5313 has the same on AArch64). Our own build is mended (cmake/onednn_cache_size.cpp). Asked once, of
/// a small reorder; warns then.
const char* refuse_machine();

}  // namespace partita::onednn
