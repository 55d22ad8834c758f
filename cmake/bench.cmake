# SPDX-License-Identifier: Apache-2.0
# partita_bench, which `./dev bench` runs, and a test that it still prints its table.
file(GLOB bench_sources CONFIGURE_DEPENDS tests/bench/*.cpp)
add_executable(partita_bench ${bench_sources})
set_target_properties(partita_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(partita_bench PRIVATE partita_dnnl_graph partita_objects partita::ascend partita::infiniop
                      CLI11::CLI11 benchmark::benchmark)

add_test(NAME bench.smallest_case
         COMMAND ${CMAKE_COMMAND} -D bench=$<TARGET_FILE:partita_bench> -D scratch=${PROJECT_BINARY_DIR}/bench_test
                 -P ${PROJECT_SOURCE_DIR}/tests/bench/smallest_case.cmake)
