# Functions of this build: what is compiled how.
#
#   course_library(NAME SOURCES...)   host code, never instrumented
#   course_kernels(TARGET)            TARGET's sources hold kernels: nvcc compiles them, or g++/clang with the interpreter's hooks
#   course_hopper_kernels(TARGET)     the same, of kernels with instructions of Hopper alone: nvcc compiles them for no other GPU
#   course_test(NAME SOURCES...)      a doctest program
#   course_kernel_test(NAME SOURCES...)  one whose sources hold kernels
#   course_step(NAME [TUNED] NEEDS CAPABILITY ["WHAT FOR"])
#                                     a step: steps/NAME -> library step_NAME, program bin/NAME; TUNED: its tiles are candidates
#   course_peer(NAME FOLDER)          somebody else's kernels behind a step's contract: FOLDER -> program bin/NAME, on demand only
#
# CAPABILITY is what a GPU must have: 80 is compute capability 8.0 or higher, 90a is 9.0 and no other. tools/command/machine/needs.py
# reads these calls too, so each stands in a line by itself.
include(${CMAKE_CURRENT_LIST_DIR}/architectures.cmake)

# ------------------------------------------------------------------------------------------------------------ toolchains
if(COURSE_GPU)
  set(CMAKE_CUDA_ARCHITECTURES ${COURSE_GPU_ARCHITECTURES})
  if(COURSE_GPU_ARCHITECTURES STREQUAL "native")  # CMake's own "native" knows no 90a, which wgmma needs
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      message(FATAL_ERROR "COURSE_GPU_ARCHITECTURES=native, but nvidia-smi finds no GPU; name the architectures, for example 80-real")
    endif()
    string(REGEX REPLACE "[.\r]" "" capabilities "${capabilities}")
    string(REGEX REPLACE "\n" ";" capabilities "${capabilities}")
    list(REMOVE_DUPLICATES capabilities)
    list(TRANSFORM capabilities REPLACE "^90$" "90a")
    list(TRANSFORM capabilities APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  endif()
  foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES COURSE_TUNED_ARCHITECTURES)
    if(NOT architecture MATCHES "^[0-9]+[af]?(-real|-virtual)?$")  # which steps "all" can run is not known here
      message(FATAL_ERROR "'${architecture}' is no architecture: name some, for example 80-real;90a-real")
    endif()
  endforeach()
  # sm_86 and sm_89 have nothing that the course uses and sm_80 lacks: nvcc's front end, half of the time, works once for all of them.
  set(course_like_sm_80)
  if("80-real" IN_LIST CMAKE_CUDA_ARCHITECTURES)
    foreach(like 86 89)
      if("${like}-real" IN_LIST CMAKE_CUDA_ARCHITECTURES)
        list(REMOVE_ITEM CMAKE_CUDA_ARCHITECTURES ${like}-real)
        list(APPEND course_like_sm_80 "--generate-code=arch=compute_80,code=[sm_${like}]")
      endif()
    endforeach()
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's flag
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED GLOBAL)  # a project around this one links what the library links
else()
  find_path(COURSE_CUDA_HEADERS cuda_runtime.h
            HINTS "${COURSE_CUDA_INCLUDE_DIR}" ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include REQUIRED
            DOC "CUDA's headers: from the toolkit, or from PyPI's wheels as tools/course installs them")
  find_library(COURSE_BOOST_CONTEXT NAMES boost_context REQUIRED DOC "Debian: libboost-context-dev")
  find_library(COURSE_LIBDW NAMES dw REQUIRED DOC "Debian: libdw-dev")
endif()
find_package(Threads REQUIRED)
if(NOT COURSE_LIBRARY_ALONE)
  find_path(COURSE_DOCTEST doctest/doctest.h REQUIRED DOC "Debian: doctest-dev")
  find_path(COURSE_CLI11 CLI/CLI.hpp REQUIRED DOC "Debian: libcli11-dev")
  find_path(COURSE_JSON nlohmann/json.hpp REQUIRED DOC "Debian: nlohmann-json3-dev")
endif()

# -------------------------------------------------------------------------------------------------------------- warnings
add_library(course_warnings INTERFACE)
target_include_directories(course_warnings INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(course_warnings INTERFACE $<IF:$<BOOL:${COURSE_GPU}>,COURSE_ON_GPU,COURSE_ON_INTERPRETER>=1)
set(host_warnings -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-psabi)  # #pragma unroll is nvcc's and clang's
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND host_warnings -Wno-restrict)  # false alarms on std::string in g++ 12 (GCC bug 105651)
endif()
string(REPLACE ";" "," nvcc_host_warnings "${host_warnings}")
if(NOT COURSE_LIBRARY_ALONE)  # whoever only uses it has a compiler that nobody tried
  target_compile_options(course_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${host_warnings}>
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=${nvcc_host_warnings}>")
endif()

# Kernels that a learner edits: what an edit leaves unused is worth a warning, but no reason not to run it. Those that are shipped have
# none (tools/cmake/unused.py). nvcc cannot warn of some things while others are errors, so it is silent.
add_library(edited_kernels INTERFACE)
set(unused -Wno-error=unused -Wno-error=unused-variable -Wno-error=unused-but-set-variable -Wno-error=unused-parameter
  -Wno-error=unused-but-set-parameter -Wno-error=unused-function -Wno-error=unused-local-typedefs -Wno-error=unused-value)
string(REPLACE ";" "," nvcc_unused "${unused}")
target_compile_options(edited_kernels INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:${unused}>
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--diag-suppress=177,550 -Xcompiler=${nvcc_unused}>")

# CUDA's headers: as system headers, so that their warnings are not ours.
add_library(course_cuda_headers INTERFACE)
if(COURSE_GPU)
  target_link_libraries(course_cuda_headers INTERFACE CUDA::cudart)
else()
  target_include_directories(course_cuda_headers SYSTEM INTERFACE ${COURSE_CUDA_HEADERS})
endif()

# ------------------------------------------------------------------------------------------------ instrumented kernels
# Why each flag, see docs/interpreter.md, "How kernels are compiled".
set(interpreter_hooks -fsanitize=thread -fsanitize=alignment -gdwarf-4 -ftrivial-auto-var-init=pattern
  -fno-optimize-sibling-calls -fno-strict-aliasing -fstack-clash-protection)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND interpreter_hooks
    --param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1
    -fsanitize=bounds -fsanitize=object-size -fsanitize-coverage=trace-pc,trace-cmp
    -fno-finite-loops -fno-ipa-icf -fno-ipa-reference-addressable
    -fno-tree-vectorize -fno-tree-sra -fno-store-merging -fno-tree-loop-distribute-patterns
    -fnon-call-exceptions -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset
    --param=max-completely-peeled-insns=0 -fno-var-tracking -fno-schedule-insns2 -Wno-maybe-uninitialized -Wno-strict-aliasing -Wno-tsan)
else()
  list(APPEND interpreter_hooks
    -fsanitize=array-bounds -gdwarf-aranges -fno-finite-loops -fsanitize-coverage=bb,trace-pc,trace-cmp
    "SHELL:-mllvm -sanitizer-coverage-prune-blocks=0"
    "SHELL:-mllvm -tsan-instrument-func-entry-exit=0" "SHELL:-mllvm -tsan-distinguish-volatile=1"
    "SHELL:-mllvm -tsan-instrument-read-before-write=1" "SHELL:-mllvm -pragma-unroll-threshold=0" "SHELL:-mllvm -unroll-full-max-count=1"
    "SHELL:-mllvm -unroll-max-count=1" "SHELL:-mllvm -unroll-allow-peeling=0" -fno-unroll-loops -fno-vectorize -fno-slp-vectorize
    -Wno-pass-failed)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # As on x86-64: a * b + c is rounded twice, and integer division by zero is told; aarch64 gives 0, without a signal.
  target_compile_options(course_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  list(APPEND interpreter_hooks -ffp-contract=off -fsanitize=integer-divide-by-zero)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(APPEND interpreter_hooks --param=max-grow-copy-bb-insns=0 --param=stack-clash-protection-guard-size=12)
  endif()
endif()
add_library(interpreter_hooks INTERFACE)
target_compile_options(interpreter_hooks INTERFACE ${interpreter_hooks})

# Of the steps' tiles, on the interpreter. object-size keeps small arrays in memory that otherwise are registers: 02 would take half as
# long again. With -O1 a tile is compiled in three quarters of the time, and runs as fast: hooks and checks take most of it.
set(course_tiles_options)
if(NOT COURSE_GPU AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(course_tiles_options -fno-sanitize=object-size $<$<CONFIG:Release>:-O1>)
endif()

function(course_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC course_warnings course_cuda_headers)
endfunction()

set(throwing_copies ${PROJECT_SOURCE_DIR}/common/interpreter/language/throwing_copies.h)
function(course_kernels target)
  if(COURSE_GPU)
    get_target_property(sources ${target} SOURCES)
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CUDA)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--expt-relaxed-constexpr$<$<NOT:$<BOOL:$<TARGET_PROPERTY:COURSE_WITHOUT_LINES>>>: -lineinfo>>"
      "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<BOOL:$<TARGET_PROPERTY:COURSE_TUNED>>>,$<IN_LIST:80-real,$<TARGET_PROPERTY:CUDA_ARCHITECTURES>>>:${course_like_sm_80}>")
    target_link_libraries(${target} PUBLIC course_warnings course_cuda_headers)
  else()
    # The hooks concern this target's own sources alone, not those of whoever links it.
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:interpreter_hooks> PUBLIC course_warnings interpreter)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:COURSE_PRELUDE>>>:SHELL:-include \"${throwing_copies}\">")
    endif()
  endif()
endfunction()

# TARGET, whose sources hold kernels, begins with HEADERS..., which are compiled once for all that follow it: most of the time of a
# short file goes into them. course_prelude(FOLLOWER FOLLOWS TARGET) for those; they have the same options.
function(course_prelude target)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "FOLLOWS" "")
  if(COURSE_GPU)
    return()
  endif()
  set_target_properties(${target} PROPERTIES COURSE_PRELUDE ON)
  if(of_FOLLOWS)
    target_precompile_headers(${target} REUSE_FROM ${of_FOLLOWS})
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(PREPEND of_UNPARSED_ARGUMENTS ${throwing_copies})
  endif()
  target_precompile_headers(${target} PRIVATE ${of_UNPARSED_ARGUMENTS})
endfunction()

# COURSE_TUNED: not for those that are like sm_80 either.
function(course_hopper_kernels target)
  course_kernels(${target})
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES 90a-real COURSE_TUNED ON)
endfunction()

if(NOT TARGET doctest_main AND NOT COURSE_LIBRARY_ALONE)
  file(WRITE ${PROJECT_BINARY_DIR}/doctest_main.cpp
    "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n")
  add_library(doctest_main STATIC ${PROJECT_BINARY_DIR}/doctest_main.cpp)
  target_include_directories(doctest_main SYSTEM PUBLIC ${COURSE_DOCTEST})
endif()

function(course_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE course_warnings doctest_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

function(course_kernel_test name)
  course_test(${name} ${ARGN})
  course_kernels(${name})
endfunction()

# A header with the hash of all that the kernels of the FOLDERS... are made of, so that other kernels are timed anew. RESULT is its
# path; each target that includes it has to list it among its sources. SOURCES: what they are made of besides the course's own headers.
function(course_kernel_version result name)
  cmake_parse_arguments(PARSE_ARGV 2 of "" "" "SOURCES")
  set(sources)
  foreach(folder IN LISTS of_UNPARSED_ARGUMENTS)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/gemm.cuh ${PROJECT_SOURCE_DIR}/${folder}/tiles.h)
    list(APPEND sources ${found})
  endforeach()
  file(GLOB found CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/common/device/*.h ${PROJECT_SOURCE_DIR}/common/device/*.cuh
       ${PROJECT_SOURCE_DIR}/common/device/learnt/*.cuh ${PROJECT_SOURCE_DIR}/common/gemm/*.h)
  list(APPEND sources ${found} ${of_SOURCES})
  set(version ${PROJECT_BINARY_DIR}/steps/${name}/kernel_version.h)
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(COURSE_GPU)
    set(compiler "nvcc ${CMAKE_CUDA_COMPILER_VERSION} ${CMAKE_CUDA_FLAGS_${CMAKE_BUILD_TYPE}}")
  endif()
  if(COURSE_EVERY_TILE)
    string(APPEND compiler " every tile")
  endif()
  add_custom_command(OUTPUT ${version}
    COMMAND ${CMAKE_COMMAND} "-DSOURCES=${sources}" "-DCOMPILER=${compiler}" -DOUTPUT=${version}
            -P ${PROJECT_SOURCE_DIR}/tools/cmake/kernel_version.cmake
    DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/tools/cmake/kernel_version.cmake VERBATIM
    COMMENT "Hashing what the kernels of ${name} are made of")
  set(${result} ${version} PARENT_SCOPE)
endfunction()

# What TUNED adds: the version of the kernels, and fewer architectures. course_tuned_step(NAME FOLDER [SOURCES...]): as above.
function(course_tuned_step name folder)
  course_kernel_version(version ${name} ${folder} SOURCES ${ARGN})
  foreach(library step_${name} step_${name}_first_f32 step_${name}_first_f16 step_${name}_first_bf16)
    if(TARGET ${library})
      target_sources(${library} PRIVATE ${version})
      target_compile_options(${library} PRIVATE "SHELL:-include \"${version}\"")
      target_compile_definitions(${library} PRIVATE $<$<BOOL:${COURSE_EVERY_TILE}>:COURSE_EVERY_TILE>)
    endif()
  endforeach()
  # What is compiled for sm_80 runs on sm_86 and sm_89 too: with so many kernels, once must do.
  set_target_properties(step_${name} PROPERTIES COURSE_TUNED ON)
endfunction()

# FOLDER's gemm.cuh as the library TARGET, of the entry that all steps share. DEFINITIONS...: see entry.inl.
function(course_step_library target name)
  add_library(${target} STATIC ${PROJECT_BINARY_DIR}/steps/${name}/entry.cpp)
  course_kernels(${target})
  target_compile_definitions(${target} PRIVATE ${ARGN})
  target_link_libraries(${target} PUBLIC harness PRIVATE $<BUILD_INTERFACE:edited_kernels>)
endfunction()

# A step that no GPU of this build can run: its program says so. IS_TUNED: it has the options of such a step.
function(course_unavailable_program name is_tuned)
  string(TOLOWER ${is_tuned} COURSE_STEP_IS_TUNED)
  set(entry ${PROJECT_BINARY_DIR}/steps/${name}/unavailable.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/common/harness/program/unavailable.cpp.in ${entry} @ONLY)
  course_library(step_${name} ${entry})
  target_link_libraries(step_${name} PUBLIC harness)
  add_executable(${name} $<TARGET_OBJECTS:step_program>)
  target_link_libraries(${name} PRIVATE step_${name} step_main)
endfunction()

# FOLDER's gemm.cuh as the library step_NAME and the program NAME, for those of the ARCHITECTURES... whose GPUs have what it NEEDS. On
# the interpreter, also as short programs, one for each type, on demand only: NAME_first_f16 has NAME's first tile alone, so it is built
# soon after an edit of gemm.cuh. COMPILED: whether any architecture was left, and which in ARCHITECTURES.
function(course_program name folder needs is_tuned)
  cmake_parse_arguments(PARSE_ARGV 4 of "" "" "ARCHITECTURES")
  list(LENGTH needs words)
  list(GET needs 0 COURSE_STEP_NEEDS)
  set(COURSE_STEP_NEEDS_WHAT "")
  if(words GREATER 1)
    list(GET needs 1 COURSE_STEP_NEEDS_WHAT)
  endif()
  set(COURSE_STEP ${name})
  set(COURSE_STEP_FOLDER ${folder})
  set(architectures)
  if(COURSE_GPU)
    course_architectures(architectures ${COURSE_STEP_NEEDS} ${of_ARCHITECTURES})
    if(NOT architectures)
      course_unavailable_program(${name} ${is_tuned})
      set(COMPILED OFF PARENT_SCOPE)
      return()
    endif()
  endif()
  set(COMPILED ON PARENT_SCOPE)
  set(ARCHITECTURES ${architectures} PARENT_SCOPE)
  list(JOIN architectures " " COURSE_STEP_ARCHITECTURES)
  set(entry ${PROJECT_BINARY_DIR}/steps/${name}/entry.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/common/harness/program/entry.cpp.in ${entry} @ONLY)
  set_source_files_properties(${entry} PROPERTIES COMPILE_OPTIONS "${course_tiles_options}")
  course_step_library(step_${name} ${name})
  add_executable(${name} $<TARGET_OBJECTS:step_program>)
  target_link_libraries(${name} PRIVATE step_${name} step_main)
  if(COURSE_GPU)
    set_target_properties(step_${name} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
    return()
  endif()
  foreach(type f32=float f16=__half bf16=__nv_bfloat16)
    string(REPLACE = ";" type ${type})
    list(GET type 0 dtype)
    list(GET type 1 cxx_type)
    set(short ${name}_first_${dtype})
    course_step_library(step_${short} ${name} COURSE_FIRST_OF=${cxx_type})
    add_executable(${short} $<TARGET_OBJECTS:step_program>)
    target_link_libraries(${short} PRIVATE step_${short} step_main)
    set_target_properties(step_${short} ${short} PROPERTIES EXCLUDE_FROM_ALL ON)
  endforeach()
endfunction()

function(course_step name)
  cmake_parse_arguments(PARSE_ARGV 1 step "TUNED" "" "NEEDS")
  if(NOT step_NEEDS)
    message(FATAL_ERROR "course_step(${name}): which compute capability does it need? For example NEEDS 80")
  endif()
  set_property(GLOBAL PROPERTY COURSE_NEEDS_OF_${name} ${step_NEEDS})
  if(COURSE_LIBRARY_ALONE)
    return()
  endif()
  set(architectures)
  if(step_TUNED)
    set(architectures ${COURSE_TUNED_ARCHITECTURES})
  endif()
  course_program(${name} steps/${name} "${step_NEEDS}" ${step_TUNED} ARCHITECTURES ${architectures})
  if(COMPILED AND step_TUNED)
    course_tuned_step(${name} steps/${name})
  endif()
  # Where the GPU at hand cannot run the step, or the build has no GPU that can, the test says so and is skipped.
  add_executable(test_${name} $<TARGET_OBJECTS:step_test_main>)
  target_link_libraries(test_${name} PRIVATE course_warnings step_${name} conformance edited_kernels)
  if(COMPILED)
    set(test ${PROJECT_SOURCE_DIR}/steps/${name}/test.cpp)
    target_sources(test_${name} PRIVATE ${test})
    if(COURSE_GPU)  # host code, as a rule; what includes the step's kernels is nvcc's
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test})
      file(STRINGS ${test} kernels REGEX "^#include .*gemm.cuh\"")
      if(kernels)
        set_source_files_properties(${test} PROPERTIES LANGUAGE CUDA)
        set_target_properties(test_${name} PROPERTIES CUDA_ARCHITECTURES "${ARCHITECTURES}")
      endif()
    endif()
  endif()
  add_test(NAME test_${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Minutes where others take seconds: ctest begins with them, so that at the end no core waits.
  set_tests_properties(test_${name} PROPERTIES COST 100 SKIP_RETURN_CODE 77)
  if(COURSE_DEV)  # what answers soon after an edit of the kernel: its first tile, with ragged edges and whole tiles
    foreach(layout nn tt)
      add_test(NAME first_${name}_${layout}
               COMMAND ${name}_first_f16 --shape 128x256x64,67x129x35 --layout ${layout} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    endforeach()
  endif()
endfunction()

# A peer takes long to compile and is no part of the course: only who asks for its target gets it. Its headers are somebody else's,
# so it has no conformance test; its program verifies what it measures. SOURCES: as of course_tuned_step.
function(course_peer name folder)
  course_program(${name} ${folder} 80 TRUE ARCHITECTURES ${COURSE_TUNED_ARCHITECTURES})
  if(COMPILED)
    course_tuned_step(${name} ${folder} ${ARGN})
  endif()
  set_target_properties(step_${name} ${name} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()
