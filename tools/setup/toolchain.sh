# shellcheck shell=bash
# Finds the compiler, CMake and CUDA's headers, and installs what is missing. Sourced after packages.sh.
# Everything is looked for by command and file, not by package: what somebody installed by hand serves as well.

readonly MIN_GCC=12 MIN_CLANG=14 MIN_CMAKE_MINOR=25 # of CMake 3
readonly MIN_CUDA=12080                             # CUDART_VERSION of 12.8, the first that knows sm_120

# CUDA's headers without its toolkit. cuda_runtime.h needs crt/, cuda_fp16.h needs cccl's nv/target.
readonly CUDA_HEADER_WHEELS=('nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*')
readonly CMAKE_WHEEL='cmake==3.31.*'

# What setup finds. nvcc is empty where there is none.
cxx='' cmake='' cuda_include='' nvcc=''

# Where the machine's own folders begin: tests give one that they have made.
readonly machine=${COURSE_TEST_MACHINE:-}

# --- compilers and CMake ---

# find_compiler g++|clang++: sets cxx to the first one that is new enough.
find_compiler() {
  local minimum=$MIN_GCC candidate major
  [[ $1 == g++ ]] || minimum=$MIN_CLANG
  for candidate in "$1" "$1"-{21..12}; do
    cxx=$(type -P "$candidate") || continue
    major=$("$cxx" -dumpversion) || continue
    ((${major%%.*} >= minimum)) && return
  done
  cxx=''
  return 1
}

cmake_is_new_enough() {
  local version
  version=$("$1" --version 2>/dev/null) || return 1
  [[ $version =~ version\ ([0-9]+)\.([0-9]+) ]] || return 1
  ((BASH_REMATCH[1] > 3 || (BASH_REMATCH[1] == 3 && BASH_REMATCH[2] >= MIN_CMAKE_MINOR)))
}

find_cmake() {
  cmake=$(type -P cmake) && cmake_is_new_enough "$cmake"
}

# --- CUDA ---

find_nvcc() {
  local candidate
  for candidate in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(type -P nvcc)" "$machine/usr/local/cuda/bin/nvcc"; do
    [[ -n $candidate && -x $candidate ]] || continue
    nvcc=$candidate
    return
  done
  nvcc=''
  return 1
}

cuda_is_new_enough() { # INCLUDE_DIR
  local version
  [[ -f $1/cuda_runtime.h && -f $1/cuda_runtime_api.h ]] || return 1
  version=$(grep -oEm1 'define +CUDART_VERSION +[0-9]+' "$1/cuda_runtime_api.h") || return 1
  ((${version##* } >= MIN_CUDA))
}

# Sets cuda_include to the headers of an installed toolkit.
find_toolkit_headers() {
  local toolkit=''
  # nvcc may be a symlink into the toolkit, whose headers lie beside the real one.
  if find_nvcc; then
    toolkit=$(readlink -f "$nvcc")
    toolkit=${toolkit%/bin/nvcc}
  fi
  for cuda_include in ${CUDA_HOME:+"$CUDA_HOME/include"} ${toolkit:+"$toolkit/include" "$toolkit"/targets/*/include} \
    "$machine/usr/local/cuda/include"; do
    cuda_is_new_enough "$cuda_include" && return
  done
  cuda_include=''
  return 1
}

# --- the Python environment, for what Debian does not have ---

# The wheels that this machine needs, in the array wheels.
find_wheels() {
  wheels=()
  # No CMake at all is Debian's to bring, and may then turn out too old.
  if type -P cmake >/dev/null && ! find_cmake; then wheels+=("$CMAKE_WHEEL"); fi
  find_toolkit_headers || wheels+=("${CUDA_HEADER_WHEELS[@]}")
}

make_venv() { # WHEEL...
  rm -rf "$build/venv"
  python3 -m venv "$build/venv" &&
    "$build/venv/bin/python" -m pip install --disable-pip-version-check --no-input --only-binary :all: "$@" &&
    printf '%s\n' "$*" >"$build/venv/.wheels" # last: an environment without it is half-made, and made again
}

ensure_venv() {
  local log="$build/logs/venv.log" made=''
  [[ ! -f $build/venv/.wheels ]] || made=$(<"$build/venv/.wheels")
  [[ $made != "$*" ]] || return 0
  logged 'downloading into build/venv' "$log" make_venv "$@" && return
  show_log_tail "$log"
  fail "could not download $*. Is there a network?"
}

# use_venv: what find_wheels missed is in the environment now.
use_venv() {
  local site
  ((${#wheels[@]})) || return 0
  ensure_venv "${wheels[@]}"
  for site in "$build"/venv/lib/python3*/site-packages; do
    # The wheel's program itself: the script in bin/ stops working when the checkout is moved.
    cmake_is_new_enough "$cmake" || cmake=$site/cmake/data/bin/cmake
    [[ -n $cuda_include ]] || cuda_include=$site/nvidia/cu13/include
  done
}

# --- packages ---

# Each library: a header of its own, the Debian package that brings it, and what to link where it is not header-only.
readonly LIBRARY_HEADERS=(boost/context/fiber.hpp doctest/doctest.h CLI/CLI.hpp nlohmann/json.hpp elfutils/libdwfl.h)
readonly LIBRARY_PACKAGES=(libboost-context-dev doctest-dev libcli11-dev nlohmann-json3-dev libdw-dev)
readonly LIBRARY_LINKS=(boost_context '' '' '' dw)

# The compiler is asked, which knows every folder that it searches.
has_library() { # INDEX
  local header=${LIBRARY_HEADERS[$1]} link=${LIBRARY_LINKS[$1]}
  # Compiling some of these headers takes seconds; whether they exist does not.
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$header" |
    "$cxx" -std=c++20 -x c++ -E - -o /dev/null 2>/dev/null || return
  [[ -z $link ]] || echo 'int main() {}' | "$cxx" -x c++ - "-l$link" -o /dev/null 2>/dev/null
}

find_missing_libraries() {
  local i
  for i in "${!LIBRARY_HEADERS[@]}"; do
    # What is linked belongs to the interpreter.
    if [[ $preset == gpu && -n ${LIBRARY_LINKS[i]} ]]; then continue; fi
    has_library "$i" || missing+=("${LIBRARY_PACKAGES[i]}")
  done
}

missing_compiler() { # g++|clang++
  if [[ $1 == clang++ ]]; then
    echo clang
  elif type -P g++ >/dev/null; then
    echo "g++-$MIN_GCC" # Ubuntu 22.04's g++ is version 11; version 12 is a package of its own
  else
    echo g++
  fi
}

# find_missing COMPILER [COMMAND...]: for setup's preset, sets the array missing to the Debian packages that are still needed.
find_missing() {
  local compiler=$1 command
  shift
  missing=()
  if find_compiler "$compiler"; then
    find_missing_libraries
  else
    # Without a compiler nobody can tell what it would find: name them all, apt-get skips those that are there.
    missing=("$(missing_compiler "$compiler")" "${LIBRARY_PACKAGES[@]}")
  fi
  type -P cmake >/dev/null || missing+=(cmake)
  type -P ninja >/dev/null || missing+=(ninja-build)
  for command; do type -P "$command" >/dev/null || missing+=("$command"); done
  find_wheels
  if ((${#wheels[@]})); then
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    [[ -e $machine/etc/ssl/certs/ca-certificates.crt ]] || missing+=(ca-certificates)
  fi
}

# Twice may be needed: only the installed compiler and CMake tell that they are too old.
install_missing() { # COMPILER [COMMAND...]
  local before=''
  while find_missing "$@" && ((${#missing[@]})); do
    [[ ${missing[*]} != "$before" ]] ||
      fail "still missing after their installation: $before. Log: $build/logs/packages.log"
    before=${missing[*]}
    install_packages "${missing[@]}"
    # CMake remembers what it did not find.
    rm -f "$build"/*/.configured
  done
}

# --- the stamp: what was found, so that the next run need not look ---

stamp_key() { printf '%s|' "$root" "$PATH" "${CUDA_HOME:-}" "${CPATH:-}" "${CPLUS_INCLUDE_PATH:-}"; }

write_stamp() { # FILE
  mkdir -p "${1%/*}"
  printf '%s\n' "$(stamp_key)" "$cxx" "$cmake" "$cuda_include" "$nvcc" >"$1.new"
  mv "$1.new" "$1"
}

read_stamp() { # FILE
  local key script
  [[ -f $1 ]] || return 1
  for script in "$root"/tools/setup/*.sh; do [[ $1 -nt $script ]] || return 1; done
  { read -r key && read -r cxx && read -r cmake && read -r cuda_include && read -r nvcc; } <"$1"
  [[ $key == "$(stamp_key)" && -x $cxx && -x $cmake && -f $cuda_include/cuda_runtime.h ]] &&
    { [[ -z $nvcc ]] || [[ -x $nvcc ]]; }
}

# setup PRESET [COMMAND...]: makes PRESET buildable here and COMMANDs runnable.
setup() {
  local preset=$1 compiler=g++ stamp="$build/setup/$1" command
  shift
  [[ $preset != *-clang ]] || compiler=clang++
  for command in ninja "$@"; do
    type -P "$command" >/dev/null || rm -f "$stamp"
  done
  read_stamp "$stamp" && return
  install_missing "$compiler" "$@"
  use_venv
  write_stamp "$stamp"
}

has_gpu() {
  compgen -G "$machine/dev/nvidia[0-9]*" >/dev/null || nvidia-smi -L >/dev/null 2>&1
}
