// SPDX-License-Identifier: Apache-2.0
// Xbyak under a name of our own. oneDNN has another version of it inside; where both are linked into one library, the
// linker would take their inline functions for the same.
#pragma once

#define Xbyak partita_xbyak
#include <xbyak/xbyak.h>
