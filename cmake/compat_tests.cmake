# SPDX-License-Identifier: Apache-2.0
# The tests of the doors: each is a client of the library, and of the C++ interface beside it.
function(door_tests name)
  file(GLOB sources CONFIGURE_DEPENDS tests/compat/${name}/*.cpp)
  add_executable(compat_${name}_tests ${sources})
  target_link_libraries(compat_${name}_tests PRIVATE partita_test_support partita_compat partita_objects
                        GTest::gmock_main ${ARGN})
  target_sources(compat_${name}_tests PRIVATE $<TARGET_OBJECTS:partita_compat>)
  if(PARTITA_SANITIZE)
    target_compile_options(compat_${name}_tests PRIVATE -fno-sanitize=enum)   # they give numbers that are no enumerators
  endif()
  gtest_discover_tests(compat_${name}_tests DISCOVERY_TIMEOUT 60 TEST_PREFIX compat_${name}.
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

door_tests(ascend partita::ascend)
door_tests(infiniop partita::infiniop)

# Clients may be written in C.
foreach(name ascend infiniop)
  set(folder ${PROJECT_SOURCE_DIR}/include/partita/compat/${name})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${folder}/*.h)
  list(TRANSFORM headers PREPEND "-include")
  add_test(NAME compat_${name}.headers_are_c
           COMMAND ${CMAKE_CXX_COMPILER} -x c -std=c11 -fsyntax-only -Wall -Wextra -Wpedantic -Werror ${headers}
                   /dev/null)
endforeach()

# What of the operators needs no ONNX Runtime is tested everywhere, the sessions where Python has it.
door_tests(onnxruntime)
target_sources(compat_onnxruntime_tests PRIVATE src/compat/onnxruntime/pool_gradient.cpp
               src/compat/onnxruntime/graph_program.cpp)
if(TARGET partita_ort)
  find_package(Python3 COMPONENTS Interpreter)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import numpy, onnxruntime" RESULT_VARIABLE no_onnxruntime
                  OUTPUT_QUIET ERROR_QUIET)
  if(NOT no_onnxruntime AND NOT PARTITA_SANITIZE)
    add_test(NAME compat_onnxruntime.sessions
             COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/compat/onnxruntime/session_test.py)
    add_test(NAME compat_onnxruntime.example
             COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/docs/examples/onnxruntime_pool_gradient.py)
    set_tests_properties(compat_onnxruntime.sessions compat_onnxruntime.example PROPERTIES
                         ENVIRONMENT "PARTITA_ORT_LIBRARY=$<TARGET_FILE:partita_ort>")
  endif()
endif()
