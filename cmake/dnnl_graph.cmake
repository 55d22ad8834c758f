# SPDX-License-Identifier: Apache-2.0
# libpartita_dnnl_graph.so: Partita behind the C interface of oneDNN Graph (docs/dnnl_graph.md). It exports that interface
# and nothing else. Where oneDNN is there as a static library (the own build has one), the copy that Partita computes
# with is inside and hidden, and the process may have any libdnnl 3.x beside it. Else it shares the process's libdnnl.
include(CheckCXXSourceCompiles)

file(GLOB dnnl_graph_sources CONFIGURE_DEPENDS src/compat/dnnl_graph/*.cpp)
set(dnnl_graph_exports ${PROJECT_SOURCE_DIR}/src/compat/dnnl_graph/exports.map)
add_library(partita_dnnl_graph SHARED ${dnnl_graph_sources} $<TARGET_OBJECTS:partita_objects>)
set_target_properties(partita_dnnl_graph PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                      LINK_DEPENDS ${dnnl_graph_exports})
target_include_directories(partita_dnnl_graph PRIVATE include ${PROJECT_SOURCE_DIR}
                           $<TARGET_PROPERTY:DNNL::dnnl,INTERFACE_INCLUDE_DIRECTORIES>)
# Functions that oneDNN's headers declare are visible as in oneDNN's own library; with ours they are anyhow.
target_compile_definitions(partita_dnnl_graph PRIVATE PARTITA_VERSION="${PROJECT_VERSION}" DNNL_DLL DNNL_DLL_EXPORTS)
target_link_libraries(partita_dnnl_graph PRIVATE ${header_dependencies} OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS})
target_link_options(partita_dnnl_graph PRIVATE -Wl,--version-script=${dnnl_graph_exports} -Wl,-Bsymbolic
                    -Wl,--exclude-libs,ALL -Wl,-z,noexecstack)   # oneDNN has assembly that does not say so itself
if(PARTITA_SANITIZE)
  # A client's C compiler lets any number be an enumerator, and thread pools are of the client's classes.
  target_compile_options(partita_dnnl_graph PRIVATE -fno-sanitize=enum,vptr)
else()
  target_link_options(partita_dnnl_graph PRIVATE -Wl,-z,defs)   # sanitizers come with the executable
endif()

# The archive beside the shared library; of the same version, for its headers are used.
get_target_property(onednn_library DNNL::dnnl LOCATION)
cmake_path(GET onednn_library PARENT_PATH onednn_folder)
if(NOT PARTITA_ONEDNN_ARCHIVE OR NOT EXISTS ${PARTITA_ONEDNN_ARCHIVE})
  unset(PARTITA_ONEDNN_ARCHIVE CACHE)
endif()
find_file(PARTITA_ONEDNN_ARCHIVE libdnnl.a PATHS ${onednn_folder} NO_DEFAULT_PATH DOC "oneDNN as a static library")
if(PARTITA_ONEDNN_ARCHIVE)
  target_link_libraries(partita_dnnl_graph PRIVATE ${PARTITA_ONEDNN_ARCHIVE})
else()
  message(STATUS "libpartita_dnnl_graph.so: no libdnnl.a in ${onednn_folder}, so it shares the process's libdnnl")
  target_link_libraries(partita_dnnl_graph PRIVATE DNNL::dnnl)
endif()

# oneDNN's headers with the graph part, but older than this type.
set(CMAKE_REQUIRED_LIBRARIES DNNL::dnnl)
check_cxx_source_compiles("#include <oneapi/dnnl/dnnl_graph.h>\nint main() {}" PARTITA_ONEDNN_HAS_GRAPH)
check_cxx_source_compiles("#include <oneapi/dnnl/dnnl_graph.h>\ndnnl_graph_dump_mode_t mode; int main() {}"
                          PARTITA_ONEDNN_HAS_DUMP_MODE)
unset(CMAKE_REQUIRED_LIBRARIES)
if(PARTITA_ONEDNN_HAS_GRAPH AND NOT PARTITA_ONEDNN_HAS_DUMP_MODE)
  set(dnnl_graph_definitions PARTITA_DNNL_GRAPH_LACKS_DUMP_MODE)
  target_compile_definitions(partita_dnnl_graph PRIVATE ${dnnl_graph_definitions})
endif()
