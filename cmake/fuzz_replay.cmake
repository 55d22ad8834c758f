# SPDX-License-Identifier: Apache-2.0
# The fuzz targets as plain programs, with any compiler: what fuzzers found (tests/reproducers/<target>) stays fixed.
file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_replay_${name} ${source} tests/fuzz/replay/main.cpp)
  fuzz_target_libraries(fuzz_replay_${name} ${name})
  add_test(NAME fuzz.${name}_reproducers
           COMMAND fuzz_replay_${name} ${PROJECT_SOURCE_DIR}/tests/reproducers/${name})
endforeach()
