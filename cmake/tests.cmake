# SPDX-License-Identifier: Apache-2.0
# One GoogleTest program for each folder of tests, the lint scripts, and the installed package.
enable_testing()
include(GoogleTest)
include(cmake/test_support.cmake)

# Removes those that are named jit_.. or look inside kernels/jit.
function(leave_out_tests_of_generated_code list)
  list(FILTER ${list} EXCLUDE REGEX "/jit_[a-z0-9_]+[.]cpp$")
  foreach(source IN LISTS ${list})
    file(STRINGS ${source} inside REGEX "#include \"kernels/jit/")
    if(inside)
      list(REMOVE_ITEM ${list} ${source})
    endif()
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()

foreach(folder unit api errors golden io kernels ops passes patterns runtime)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/${folder}/*.cpp)
  if(NOT PARTITA_JIT)
    leave_out_tests_of_generated_code(sources)
  endif()
  if(PARTITA_SANITIZE)
    list(FILTER sources EXCLUDE REGEX "/allocation_test[.]cpp$")   # replaces `new`, as sanitizers do
  endif()
  add_executable(${folder}_tests ${sources})
  target_link_libraries(${folder}_tests PRIVATE partita_test_support partita_objects GTest::gmock_main)
  if(folder STREQUAL "unit")
    target_precompile_headers(unit_tests PRIVATE <gtest/gtest.h> <algorithm> <functional> <map> <optional>)
  else()
    target_precompile_headers(${folder}_tests REUSE_FROM unit_tests)
  endif()
  gtest_discover_tests(${folder}_tests DISCOVERY_TIMEOUT 60 TEST_PREFIX ${folder}.
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endforeach()

# Replaces malloc, as sanitizers do. oneDNN keeps no primitives, so that each compilation makes them anew.
if(NOT PARTITA_SANITIZE)
  file(GLOB sources CONFIGURE_DEPENDS tests/faults/*.cpp)
  add_executable(faults_tests ${sources})
  target_link_libraries(faults_tests PRIVATE partita_test_support partita_objects GTest::gmock_main)
  gtest_discover_tests(faults_tests DISCOVERY_TIMEOUT 60 TEST_PREFIX faults.
                       PROPERTIES ENVIRONMENT ONEDNN_PRIMITIVE_CACHE_CAPACITY=0)
endif()

# The same graphs with less than the machine has: the results stay within tolerance of the references. The variable is
# read once a process, so each value is a run of its own.
foreach(isa avx2 any)
  add_test(NAME golden.data_graphs_with_max_isa_${isa}
           COMMAND golden_tests --gtest_brief=1 --gtest_filter=*/data_graph.agrees_*
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(golden.data_graphs_with_max_isa_${isa} PROPERTIES ENVIRONMENT "PARTITA_MAX_ISA=${isa}")
endforeach()

# The command is tested from outside.
target_compile_definitions(api_tests PRIVATE PARTITA_COMMAND="$<TARGET_FILE:partita_cli>")
add_dependencies(api_tests partita_cli)

file(GLOB lint_scripts CONFIGURE_DEPENDS tests/lint/*.sh)
foreach(script IN LISTS lint_scripts)
  cmake_path(GET script STEM name)
  add_test(NAME lint.${name} COMMAND ${script})
  set_tests_properties(lint.${name} PROPERTIES ENVIRONMENT "PARTITA_BUILD_DIR=${PROJECT_BINARY_DIR}")
endforeach()

# Skipped where there is no PyTorch.
add_test(NAME integration.pool_torch COMMAND ${PROJECT_SOURCE_DIR}/tests/integration/pool_torch.sh)
set_tests_properties(integration.pool_torch PROPERTIES SKIP_RETURN_CODE 77
                     ENVIRONMENT "PARTITA_BUILD_DIR=${PROJECT_BINARY_DIR}")

find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME integration.random_graphs COMMAND ${PROJECT_SOURCE_DIR}/tests/integration/random_graphs.sh)
  set_tests_properties(integration.random_graphs PROPERTIES ENVIRONMENT "PARTITA_BUILD_DIR=${PROJECT_BINARY_DIR}")
endif()

# Sanitized code would need a sanitized user.
if(NOT PARTITA_SANITIZE)
  add_test(NAME installed_package_builds_the_examples
           COMMAND ${CMAKE_COMMAND} -D build=${PROJECT_BINARY_DIR} -D examples=${PROJECT_SOURCE_DIR}/docs/examples
                   -D generator=${CMAKE_GENERATOR} -D compiler=${CMAKE_CXX_COMPILER}
                   -P ${PROJECT_SOURCE_DIR}/cmake/test_installed_package.cmake)
endif()

include(cmake/fuzz_replay.cmake)
include(cmake/compat_tests.cmake)
include(cmake/bench.cmake)

# The drop-in library is tested from outside, through its C interface and beside the libdnnl of the machine.
file(GLOB sources CONFIGURE_DEPENDS tests/compat/dnnl_graph/*.cpp)
add_executable(dnnl_graph_tests ${sources})
file(GLOB sources CONFIGURE_DEPENDS tests/compat/dnnl_graph/threadpool/*.cpp)
add_executable(dnnl_graph_threadpool_tests ${sources})
set_target_properties(dnnl_graph_threadpool_tests PROPERTIES ENABLE_EXPORTS ON)
set(dnnl_graph_programs dnnl_graph_tests dnnl_graph_threadpool_tests)
if(NOT PARTITA_SANITIZE)   # replaces malloc, as sanitizers do
  add_executable(dnnl_graph_memory_tests tests/compat/dnnl_graph/memory/out_of_memory_test.cpp
                 tests/faults/failing_memory.cpp)
  list(APPEND dnnl_graph_programs dnnl_graph_memory_tests)
endif()
foreach(program IN LISTS dnnl_graph_programs)
  target_include_directories(${program} PRIVATE include ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${program} PRIVATE PARTITA_VERSION="${PROJECT_VERSION}" ${dnnl_graph_definitions})
  target_link_libraries(${program} PRIVATE partita_dnnl_graph DNNL::dnnl GTest::gmock_main)
  if(PARTITA_SANITIZE)
    target_compile_options(${program} PRIVATE -fno-sanitize=enum)   # they give numbers that are no enumerators
  endif()
endforeach()
gtest_discover_tests(dnnl_graph_tests DISCOVERY_TIMEOUT 60 TEST_PREFIX compat. PROPERTIES ENVIRONMENT PARTITA_VERBOSE=1)
gtest_discover_tests(dnnl_graph_threadpool_tests DISCOVERY_TIMEOUT 60 TEST_PREFIX compat.
                     PROPERTIES ENVIRONMENT OMP_NUM_THREADS=3)

if(TARGET dnnl_graph_memory_tests)
  gtest_discover_tests(dnnl_graph_memory_tests DISCOVERY_TIMEOUT 60 TEST_PREFIX compat.)
endif()

add_executable(dnnl_graph_c_test tests/compat/dnnl_graph/c_test.c)
target_link_libraries(dnnl_graph_c_test PRIVATE partita_dnnl_graph DNNL::dnnl)
add_test(NAME compat.dnnl_graph_from_c COMMAND dnnl_graph_c_test)
add_test(NAME compat.dnnl_graph_dump_variable
         COMMAND ${PROJECT_SOURCE_DIR}/tests/compat/dnnl_graph/dump_variable.sh $<TARGET_FILE:dnnl_graph_c_test>)
set(c_programs dnnl_graph_c_test)
if(PARTITA_ONEDNN_ARCHIVE)
  add_executable(dnnl_graph_no_libdnnl_test tests/compat/dnnl_graph/no_libdnnl_test.c)
  target_link_libraries(dnnl_graph_no_libdnnl_test PRIVATE partita_dnnl_graph)
  add_test(NAME compat.dnnl_graph_without_libdnnl COMMAND dnnl_graph_no_libdnnl_test)
  list(APPEND c_programs dnnl_graph_no_libdnnl_test)
endif()
foreach(program IN LISTS c_programs)
  target_include_directories(${program} PRIVATE include)
  target_compile_definitions(${program} PRIVATE ${dnnl_graph_definitions})
  set_target_properties(${program} PROPERTIES C_STANDARD 11)
endforeach()

# Skipped where PyTorch or a libdnnl beside it is missing.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME integration.pytorch_fusion
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/integration/pytorch_fusion.py
                   $<TARGET_FILE:partita_dnnl_graph>)
  set_tests_properties(integration.pytorch_fusion PROPERTIES SKIP_RETURN_CODE 77)
endif()
