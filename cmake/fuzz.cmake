# SPDX-License-Identifier: Apache-2.0
# One libFuzzer program for each file of tests/fuzz; `./dev fuzz SECONDS [TARGET]` runs them.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PARTITA_FUZZ needs clang; `./dev fuzz SECONDS` does the set-up")
endif()
include(cmake/test_support.cmake)
# Only where input is text do its comparisons tell the fuzzer what to try; elsewhere input is a list of decisions, and
# following each comparison takes as long as the work itself.
foreach(covered partita_objects partita_dnnl_graph)
  target_compile_options(${covered} PRIVATE -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp)
endforeach()
file(GLOB readers CONFIGURE_DEPENDS src/io/*.cpp)
set_source_files_properties(${readers} PROPERTIES COMPILE_OPTIONS -fsanitize-coverage=trace-cmp)

add_custom_target(fuzz_targets DEPENDS partita_cli)   # which tells the words of graph files
file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} ${source})
  add_dependencies(fuzz_targets fuzz_${name})
  fuzz_target_libraries(fuzz_${name} ${name})
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endforeach()
