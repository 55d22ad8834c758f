# SPDX-License-Identifier: Apache-2.0
# What tests and fuzz targets share: makers of random graphs and problems, guarded memory, runs of whole graphs.
include_guard(GLOBAL)   # tests and fuzz targets may be built in one folder
find_package(GTest REQUIRED CONFIG)

file(GLOB_RECURSE support CONFIGURE_DEPENDS tests/support/*.cpp)
add_library(partita_test_support OBJECT ${support})
target_link_libraries(partita_test_support PUBLIC partita_objects GTest::gmock)
target_compile_definitions(partita_test_support PUBLIC PARTITA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# What a target of tests/fuzz is made of, beside its file: the folder of its name. The one of the C interface is a client of the drop-in library, too.
function(fuzz_target_libraries program name)
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}/*.cpp)
  target_sources(${program} PRIVATE ${parts})
  target_link_libraries(${program} PRIVATE partita_test_support partita_objects GTest::gtest)
  if(name STREQUAL "c_interface")
    target_link_libraries(${program} PRIVATE partita_dnnl_graph)
    target_compile_definitions(${program} PRIVATE ${dnnl_graph_definitions})
    if(PARTITA_SANITIZE)
      target_compile_options(${program} PRIVATE -fno-sanitize=enum)   # it gives numbers that are no enumerators
    endif()
  endif()
endfunction()
