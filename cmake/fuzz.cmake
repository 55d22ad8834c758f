# SPDX-License-Identifier: Apache-2.0
# One libFuzzer program for each file of tests/fuzz; `./dev fuzz SECONDS` runs them.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PARTITA_FUZZ needs clang; `./dev fuzz SECONDS` does the set-up")
endif()
target_compile_options(partita_objects PRIVATE -fsanitize=fuzzer-no-link)

add_custom_target(fuzz_targets)
file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} ${source})
  add_dependencies(fuzz_targets fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE partita_objects)
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endforeach()
