# shellcheck shell=bash
# What .ci/run leaves out. A stage is skipped only where exactly the same inputs have passed it on this machine: the same files, committed
# or not, and the same compilers. What failed, or was never tried, runs.
#
#   if passed_before NAME PATH...; then echo 'as it was when it passed'; else ...; has_passed NAME; fi
#
# A few bytes for each stage, in COURSE_CI_CACHE: keep that folder between runs, as ccache's.

passed_stages=${COURSE_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gemm-course}/passed
declare -A stage_inputs # NAME -> hash

compilers() {
  local compiler
  for compiler in g++ clang++ nvcc python3; do
    if type -P "$compiler"; then "$compiler" --version; fi
  done
}

# One hash of the names and contents of all files below PATH..., tracked or new, that git does not ignore.
inputs_of() { # PATH...
  {
    compilers
    git ls-files -z --cached --others --exclude-standard -- "$@" | LC_ALL=C sort -zu |
      while IFS= read -r -d '' file; do
        if [[ -e $file ]]; then sha256sum -- "$file"; else echo "no $file"; fi
      done
  } | sha256sum | cut -d ' ' -f 1
}

passed_before() { # NAME PATH...
  stage_inputs[$1]=$(inputs_of "${@:2}")
  [[ -e $passed_stages/$1-${stage_inputs[$1]} ]]
}

has_passed() { # NAME
  mkdir -p "$passed_stages"
  : >"$passed_stages/$1-${stage_inputs[$1]}"
  find "$passed_stages" -type f -mtime +60 -delete
}
