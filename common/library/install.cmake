# What 'cmake --install' puts where, and what goes into the wheel. docs/library.md says how to use both.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(COURSE_GEMM_VERSION 1.0.0)  # pyproject.toml reads this line; exported.map has the first number too

if(SKBUILD)  # scikit-build-core: a wheel has no links, and CUDA's runtime is PyTorch's
  set_target_properties(course_gemm PROPERTIES INSTALL_RPATH "$ORIGIN/../nvidia/cu13/lib")
  install(TARGETS course_gemm LIBRARY DESTINATION course_gemm COMPONENT python)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/examples/torch_gemm.py DESTINATION course_gemm RENAME __init__.py COMPONENT python)
  return()
endif()

string(REGEX MATCH "^[0-9]+" major ${COURSE_GEMM_VERSION})
set_target_properties(course_gemm PROPERTIES VERSION ${COURSE_GEMM_VERSION} SOVERSION ${major} INSTALL_RPATH_USE_LINK_PATH ON)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/course_gemm)
install(TARGETS course_gemm EXPORT course_gemm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${include}/course_gemm.h ${include}/course_gemm_c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT course_gemm FILE course_gemmTargets.cmake NAMESPACE course_gemm:: DESTINATION ${package})
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/course_gemmConfig.cmake @ONLY CONTENT
"include(CMakeFindDependencyMacro)
find_dependency(CUDAToolkit)
include(\${CMAKE_CURRENT_LIST_DIR}/course_gemmTargets.cmake)
")
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/course_gemmConfigVersion.cmake
                                 VERSION ${COURSE_GEMM_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/course_gemmConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/course_gemmConfigVersion.cmake
        DESTINATION ${package})
