// SPDX-License-Identifier: Apache-2.0
// Random loops: generated code under every instruction set of the machine computes what the interpreter computes, and
// touches nothing outside its tensors.
#include "tests/fuzz/target.hpp"
#include "tests/support/random_loop.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita::test;
  prepare_target();
  Random random(std::span(data, size));
  switch (random.whole(0, 3)) {
    case 0: expect_generated_rows_agree(random_strided_loop(random), random, Closeness::equal); break;
    case 1: expect_generated_rows_agree(random_fold_loop(random).problem, random, Closeness::rounded); break;
    default: expect_generated_rows_agree(random_loop(random), random, Closeness::rounded);
  }
  return 0;
}
