# SPDX-License-Identifier: Apache-2.0
# The doors: shared libraries with the C interfaces of others (src/compat/<name>, include/partita/compat/<name>). Each
# exports what tests/lint/exports/<library>.txt lists and nothing else.
file(GLOB compat_sources CONFIGURE_DEPENDS src/compat/*.cpp)
add_library(partita_compat OBJECT ${compat_sources})
target_link_libraries(partita_compat PUBLIC partita_objects)

# Makes the linker keep every symbol but the listed ones to the library itself.
function(export_only_listed_symbols library)
  set(list ${PROJECT_SOURCE_DIR}/tests/lint/exports/${library}.txt)
  set(script ${PROJECT_BINARY_DIR}/${library}.map)
  file(STRINGS ${list} symbols REGEX "^[^#]")
  list(JOIN symbols "; " symbols)
  file(CONFIGURE OUTPUT ${script} CONTENT "{ global: ${symbols}; local: *; };\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  target_link_options(${library} PRIVATE -Wl,--version-script=${script})
  if(NOT PARTITA_SANITIZE)   # sanitizers' own symbols are found only when a program is linked
    target_link_options(${library} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${script})
endfunction()

# door(NAME LIBRARY): the target LIBRARY, known as partita::NAME.
function(door name library)
  file(GLOB sources CONFIGURE_DEPENDS src/compat/${name}/*.cpp)
  add_library(${library} SHARED ${sources} $<TARGET_OBJECTS:partita_compat> $<TARGET_OBJECTS:partita_objects>)
  add_library(partita::${name} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                        INSTALL_RPATH_USE_LINK_PATH ON)
  target_include_directories(${library}
    PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include
    INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/partita/compat/${name}>
              $<INSTALL_INTERFACE:include/partita/compat/${name}>)
  target_link_libraries(${library} PRIVATE ${dependencies})
  if(PARTITA_SANITIZE)
    target_compile_options(${library} PRIVATE -fno-sanitize=enum)   # a client's C compiler lets any number be one
  endif()
  export_only_listed_symbols(${library})
  install(TARGETS ${library} EXPORT partita_targets)
endfunction()

door(ascend partita_ascend)
door(infiniop partita_infiniop)

# The custom operators of ONNX Runtime are built where its C headers are.
find_path(PARTITA_ONNXRUNTIME_INCLUDE onnxruntime_c_api.h PATH_SUFFIXES onnxruntime onnxruntime/core/session
          DOC "Folder of onnxruntime_c_api.h; not found: libpartita_ort.so is not built")
if(PARTITA_ONNXRUNTIME_INCLUDE)
  door(onnxruntime partita_ort)
  target_include_directories(partita_ort SYSTEM PRIVATE ${PARTITA_ONNXRUNTIME_INCLUDE})
endif()
