# SPDX-License-Identifier: Apache-2.0
# Finds what Partita is built on. `dependencies` are linked, `header_dependencies` leave nothing to link.

# oneDNN: the one that PARTITA_ONEDNN_ROOT names, else the system's, else the own build in the user's cache.
set(PARTITA_ONEDNN_ROOT "" CACHE PATH "Prefix of an own oneDNN >= 3.5; empty: look for one")
if(DEFINED ENV{PARTITA_ONEDNN_ROOT} AND NOT PARTITA_ONEDNN_ROOT STREQUAL "$ENV{PARTITA_ONEDNN_ROOT}")
  set_property(CACHE PARTITA_ONEDNN_ROOT PROPERTY VALUE "$ENV{PARTITA_ONEDNN_ROOT}")
  unset(dnnl_DIR CACHE)
endif()
if(PARTITA_ONEDNN_ROOT)
  find_package(dnnl 3.5 CONFIG QUIET PATHS "${PARTITA_ONEDNN_ROOT}" NO_DEFAULT_PATH)
else()
  if(dnnl_DIR MATCHES "/partita/onednn-")   # found by an earlier run; its recipe may have changed since
    unset(dnnl_DIR CACHE)
  endif()
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/cmake/build_onednn.sh --find
                  OUTPUT_VARIABLE own_onednn OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(dnnl 3.5 CONFIG QUIET PATHS "${own_onednn}")
endif()
if(NOT dnnl_FOUND)
  message(FATAL_ERROR "No oneDNN >= 3.5 (PARTITA_ONEDNN_ROOT: '${PARTITA_ONEDNN_ROOT}'). `./dev build` sets one up on "
                      "Debian; elsewhere install it, or name its prefix in PARTITA_ONEDNN_ROOT.")
endif()

find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(spdlog REQUIRED CONFIG)
find_package(nlohmann_json 3.10 REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(benchmark REQUIRED CONFIG)
set(dependencies DNNL::dnnl OpenMP::OpenMP_CXX spdlog::spdlog)
set(header_dependencies nlohmann_json::nlohmann_json)
if(PARTITA_JIT)
  find_package(xbyak REQUIRED CONFIG)
  list(APPEND header_dependencies xbyak::xbyak)
endif()
