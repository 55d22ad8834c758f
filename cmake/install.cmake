# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the package that find_package(partita) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/partita)

install(TARGETS partita EXPORT partita_targets)
install(EXPORT partita_targets NAMESPACE partita:: DESTINATION ${package_dir} FILE partita-targets.cmake)
install(DIRECTORY include/partita TYPE INCLUDE)
install(TARGETS partita_dnnl_graph LIBRARY)
set_target_properties(partita_dnnl_graph PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
if(TARGET partita_cli)
  # oneDNN may live outside the loader's folders.
  set_target_properties(partita_cli PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS partita_cli)
endif()
set_target_properties(partita PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)

configure_package_config_file(cmake/partita-config.cmake.in ${PROJECT_BINARY_DIR}/partita-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/partita-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/partita-config.cmake ${PROJECT_BINARY_DIR}/partita-config-version.cmake
        DESTINATION ${package_dir})
