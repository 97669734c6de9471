# shellcheck shell=bash
# What .ci/run leaves out. A stage, or a test, is skipped only where exactly the same inputs have passed it on this machine: the same
# files, committed or not, and the same compilers. What failed, or was never tried, runs.
#
#   if passed_before NAME PATH...; then echo 'as it was when it passed'; else ...; has_passed NAME; fi
#
# Of PATHs below build/ the files themselves are compared; compilers make the same bytes of the same text.
# A few bytes for each stage and test, in COURSE_CI_CACHE: keep that folder between runs, as ccache's.

passed_stages=${COURSE_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gemm-course}/passed
declare -A stage_inputs # NAME -> hash

compilers() {
  local compiler
  for compiler in g++ clang++ nvcc python3; do
    if type -P "$compiler"; then "$compiler" --version; fi
  done
}

# One hash of the names and contents of all files below PATH..., tracked or new, that git does not ignore; and of those in build/.
inputs_of() { # PATH...
  local each built=() paths=()
  for each; do if [[ $each == build/* ]]; then built+=("$each"); else paths+=("$each"); fi; done
  {
    echo "$compilers_here"
    {
      for each in "${built[@]}"; do printf '%s\0' "$each"; done
      git ls-files -z --cached --others --exclude-standard -- "${paths[@]}" | LC_ALL=C sort -zu
    } | while IFS= read -r -d '' file; do
      if [[ -e $file ]]; then sha256sum -- "$file"; else echo "no $file"; fi
    done
  } | sha256sum | cut -d ' ' -f 1
}

passed_before() { # NAME PATH...
  : "${compilers_here:=$(compilers)}"
  stage_inputs[$1]=$(inputs_of "${@:2}")
  [[ -e $passed_stages/$1-${stage_inputs[$1]} ]]
}

has_passed() { # NAME
  mkdir -p "$passed_stages"
  : >"$passed_stages/$1-${stage_inputs[$1]}"
  find "$passed_stages" -type f -mtime +60 -delete
}

# Runs BUILD's tests, or those that REGEX names. A test of a kernel, of the interpreter or of a solution is a program by itself: one that is
# byte for byte as it was when it passed, and reads the same files, would pass again.
run_tests() { # BUILD [REGEX]
  local ctest build=$1 name programs quoted code=0 passed=() tried=()
  ctest=$(tools/course where ctest)
  while IFS=$'\t' read -r name programs; do
    # What they quote in their reports, or compare with.
    quoted=(':(glob)docs/results/**/*.csv' "steps/${name#test_}" "solutions/${name#exercise_}"
      ":(glob)common/interpreter/tests/${name#interpreter_}.*")
    # shellcheck disable=SC2086 # words without blanks
    if passed_before "$name" "${quoted[@]}" $programs; then passed+=("$name"); else tried+=("$name"); fi
  done < <(programs_of "$build" | awk -F'\t' -v wanted="${2:-.}" '$1 ~ wanted')
  echo "$build: ${#passed[@]} tests are as they were when they passed, ${#tried[@]} of the same kind are not"
  "$ctest" --test-dir "$build" --output-on-failure --no-tests="$( ((${#passed[@]})) && echo ignore || echo error)" "-j$(nproc)" -R "${2:-.}" \
    -E "^($(IFS='|' && echo "${passed[*]}"))\$" | tee "$build/tests.log" || code=$?
  for name in "${tried[@]}"; do
    ! grep -qE " $name \.* +Passed " "$build/tests.log" || has_passed "$name"
  done
  return "$code"
}

# Of each test that is a program by itself, its name and what of it is in BUILD, as CMake has written it. The fuzz tests have seeds, too.
programs_of() { # BUILD
  find "$1" -name CTestTestfile.cmake -exec cat {} + |
    sed -nE 's/^add_test\(\[=\[((test_[0-9]+|exercise_[0-9]+|interpreter|gemm)_\w+)\]=\] (.*)\)$/\1\t\3/p' |
    grep -v _fuzz_ | while IFS=$'\t' read -r name words; do
      printf '%s\t%s\n' "$name" "$(grep -oE "\"$PWD/$1/[^\"]+\"" <<<"$words" | tr -d '"' | sed "s|^$PWD/||" | tr '\n' ' ')"
    done
}
