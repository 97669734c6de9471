# shellcheck shell=bash
# Configures and builds one CMake preset. Sourced after toolchain.sh.

# Everything that the course writes lies in build/; one command at a time may change it.
lock_build_folder() {
  if ! mkdir -p "$build/logs" 2>/dev/null || ! { : >>"$build/lock"; } 2>/dev/null; then
    refuse "cannot write to $build: make the folder yours, or copy the course to a folder of your own."
  fi
  exec {build_lock}<"$build/lock"
  flock --nonblock "$build_lock" && return
  say 'waiting for another course command that is building ...'
  flock "$build_lock"
}

unlock_build_folder() { exec {build_lock}<&-; }

# A build that misses a file may be one whose package was removed: look for everything again next time.
forget_setup() { rm -f "$build/setup/$1" "$build/$1/.configured"; } # PRESET

in_root() { cd "$root" && "$@"; }

set_configure_arguments() { # PRESET
  configure_arguments=("-DCMAKE_CXX_COMPILER=$cxx" "-DCOURSE_CUDA_INCLUDE_DIR=$cuda_include")
  if [[ $1 == gpu ]]; then
    configure_arguments+=("-DCMAKE_CUDA_COMPILER=$nvcc" "-DCMAKE_CUDA_HOST_COMPILER=$cxx")
    # A learner's GPU alone builds in a fifth of the time; without one, the compile-only gate wants them all.
    if [[ -n ${COURSE_GPU_ARCHITECTURES:-} ]]; then
      configure_arguments+=("-DCOURSE_GPU_ARCHITECTURES=$COURSE_GPU_ARCHITECTURES"
        "-DCOURSE_TUNED_ARCHITECTURES=${COURSE_TUNED_ARCHITECTURES:-}")
    elif has_gpu; then
      configure_arguments+=("-DCOURSE_GPU_ARCHITECTURES=native")
    fi
  fi
}

# Ninja configures again by itself when a CMakeLists.txt changed; it does not see the presets, or that the folder moved.
configure() { # PRESET
  local preset=$1 stamp="$build/$1/.configured" log="$build/logs/configure-$1.log" wanted
  set_configure_arguments "$preset"
  wanted="$root ${configure_arguments[*]}"
  if [[ -f $stamp && $stamp -nt $root/CMakePresets.json && $(<"$stamp") == "$wanted" ]]; then return; fi
  rm -f "$stamp"
  if ! logged "configuring $preset" "$log" \
    in_root "$cmake" --fresh --preset "$preset" "${configure_arguments[@]}"; then
    forget_setup "$preset"
    show_log_tail "$log"
    fail "could not configure the preset '$preset'."
  fi
  printf '%s\n' "$wanted" >"$stamp"
}

# build_preset PRESET [TARGET...]: without a target, everything.
build_preset() {
  local preset=$1 log="$build/logs/build-$1.log"
  shift
  (($# == 0)) || set -- --target "$@"
  if ! logged "building $preset" "$log" in_root "$cmake" --build --preset "$preset" "$@"; then
    if grep -qE 'No such file|cannot find' "$log"; then forget_setup "$preset"; fi
    show_log_tail "$log"
    fail "could not build the preset '$preset'."
  fi
}

# prepare PRESET COMMANDS [TARGET...]: from whatever machine this is to built targets. COMMANDS is a list in one word.
prepare() {
  local preset=$1 commands
  read -ra commands <<<"$2"
  shift 2
  lock_build_folder
  setup "$preset" "${commands[@]}"
  configure "$preset"
  build_preset "$preset" "$@"
  unlock_build_folder
}

# need_commands COMMAND...: installs what is missing; for what needs no build.
need_commands() {
  local command missing=()
  for command; do type -P "$command" >/dev/null || missing+=("$command"); done
  ((${#missing[@]})) || return 0
  lock_build_folder
  install_packages "${missing[@]}"
  unlock_build_folder
}

# want_commands COMMAND...: installs what is missing; says so where it cannot. For what the course can do without.
want_commands() {
  local command missing=()
  for command; do type -P "$command" >/dev/null || missing+=("$command"); done
  ((${#missing[@]})) || return 0
  lock_build_folder
  # In a subshell, because a failed installation ends the shell.
  (install_packages "${missing[@]}") || say "going on without ${missing[*]}."
  unlock_build_folder
}
