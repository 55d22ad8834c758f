# SPDX-License-Identifier: Apache-2.0
# partita_bench, which `./dev bench` runs, and a test that it still prints its table.
file(GLOB bench_sources CONFIGURE_DEPENDS tests/bench/*.cpp)
add_executable(partita_bench ${bench_sources})
set_target_properties(partita_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(partita_bench PRIVATE partita_dnnl_graph partita_objects partita::ascend partita::infiniop
                      CLI11::CLI11 benchmark::benchmark)
target_precompile_headers(partita_bench PRIVATE <dnnl.hpp> <algorithm> <functional> <map> <string>)

# Networks as published, which `partita_bench graphs` measures beside the small ones of tests/data/models.
find_package(Python3 COMPONENTS Interpreter QUIET)
set(bench_models ${PROJECT_BINARY_DIR}/bench_models/networks)
target_compile_definitions(partita_bench PRIVATE PARTITA_BENCH_MODELS="${bench_models}"
                           PARTITA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
if(Python3_FOUND)
  file(GLOB model_scripts CONFIGURE_DEPENDS tests/data/*.py)
  add_custom_command(OUTPUT ${bench_models}/resnet50_training.json
                     COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/data/make_models.py ${bench_models}
                             --batch 1 --image 224 --width 1 --depth 0 --tokens 128 --hidden 512
                     DEPENDS ${model_scripts} VERBATIM)
  add_custom_target(partita_bench_models DEPENDS ${bench_models}/resnet50_training.json)
  add_dependencies(partita_bench partita_bench_models)
endif()

add_test(NAME bench.smallest_case
         COMMAND ${CMAKE_COMMAND} -D bench=$<TARGET_FILE:partita_bench> -D scratch=${PROJECT_BINARY_DIR}/bench_test
                 -D graph=${PROJECT_SOURCE_DIR}/tests/data/training/conv_block.json
                 -P ${PROJECT_SOURCE_DIR}/tests/bench/smallest_case.cmake)
