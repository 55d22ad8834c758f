// SPDX-License-Identifier: Apache-2.0
// Code for processors that read streams alone, or for others, on any machine.
#pragma once

#include "src/base/cpu.hpp"

namespace partita::test {

/// While it lives, reads_streams_alone() is `alone`.
class StreamsAlone {
 public:
  explicit StreamsAlone(bool alone) { assume_streams_alone(alone); }
  StreamsAlone(const StreamsAlone&) = delete;
  StreamsAlone& operator=(const StreamsAlone&) = delete;
  ~StreamsAlone() { assume_streams_alone(before_); }

 private:
  bool before_ = reads_streams_alone();
};

}  // namespace partita::test
