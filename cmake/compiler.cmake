# SPDX-License-Identifier: Apache-2.0
# How all of Partita's code is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14))
  message(FATAL_ERROR "Partita needs g++ >= 12 or clang >= 14, "
                      "but ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_compile_options(-Wall -Wextra -Wpedantic)
if(PARTITA_WERROR)
  add_compile_options(-Werror)
endif()

# Hardening: what a mistake in native code is stopped by. Sanitizers bring their own.
if(NOT PARTITA_SANITIZE)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection)
  add_compile_definitions($<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:_FORTIFY_SOURCE=2> _GLIBCXX_ASSERTIONS)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)   # also because the static library ends up in other people's shared ones
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)   # without it CMake builds programs but does not link them position-independent

foreach(sanitizer IN LISTS PARTITA_SANITIZE)
  add_compile_options(-fsanitize=${sanitizer} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizer})
endforeach()
if(PARTITA_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized)   # false alarms: g++ 12 loses track of variants in sanitized code
endif()

# With ccache nothing is precompiled: it would have to be told to take precompiled headers for what they are.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms about precompiled headers, which g++ 12 takes for ours.
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()
