// SPDX-License-Identifier: Apache-2.0
// Sequences of calls of the C interface in any order, with whatever numbers a client may get wrong: null pointers,
// numbers that are no enumerators, shapes and counts that do not fit. Every call answers; a failure has a text. Only
// what no library can notice is left out: handles that were destroyed, and lists shorter than their count says.

#include "tests/fuzz/c_interface/client.hpp"
#include "tests/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita::test;
  prepare_target();
  Random random(std::span(data, size));
  CClient client(random);
  for (int64_t calls = random.whole(1, 60); calls > 0; --calls) client.call();
  return 0;
}
