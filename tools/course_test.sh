#!/usr/bin/env bash
# Tests of tools/course. It runs in a scratch copy whose path has a space, against stand-ins for the compiler, CMake,
# apt-get, the steps and the machine's own folders; so nothing is built or installed, each way of failing can be made to happen, and
# what this machine has does not matter.
# Prints every failed check; exit code 0 if there is none.
# shellcheck disable=SC2016 # the stand-ins' bodies are in single quotes
set -euo pipefail

# In the background of a shell without job control, SIGINT is ignored, and a shell cannot take that back.
python3 -c 'import signal; raise SystemExit(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)' ||
  exec python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])' \
    bash "${BASH_SOURCE[0]}"

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d -t 'course test.XXXXXX')
trap 'rm -rf "$scratch"' EXIT
export SCRATCH=$scratch COURSE_TEST_MACHINE=$scratch/machine
unset PYTHONDONTWRITEBYTECODE COURSE_PYTHON COURSE_COMMIT COURSE_TUNING_CACHE COURSE_GPU_ARCHITECTURES COURSE_TUNED_ARCHITECTURES CUDA_HOME CPATH CPLUS_INCLUDE_PATH COLUMNS
unset CC CXX CFLAGS CXXFLAGS LDFLAGS CUDACXX CUDAHOSTCXX CUDAARCHS CUDAFLAGS CMAKE_CUDA_ARCHITECTURES
passed=0 failed=0 code='' output='' errors=''
largest_file=unlimited
python=$(python3 -c 'import sys; print(sys.executable)') # python3 itself may be a script that needs more than PATH

# --- the stand-ins ---

stand_in() { # NAME: a command whose body is stdin; every call is written down
  {
    printf '#!/bin/bash\nprintf "%%s\\n" "%s $*" >>"$SCRATCH/calls"\n' "$1"
    cat
  } >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

make_stand_ins() {
  local tool
  for tool in bash basename cat chmod cp dirname env flock grep ln mkdir mv perl readlink rm sed setsid sleep sort tail true; do
    ln -s "$(type -P "$tool")" "$scratch/bin/$tool"
  done
  # The file missing lists headers and -lNAMEs that the compiler does not find.
  stand_in g++ <<'END'
case $* in
  -dumpversion) echo 12 ;;
  *) ! grep -qFf "$SCRATCH/missing" <<<"$*$(cat)" ;;
esac
END
  : >"$scratch/missing"
  cp "$scratch/bin/g++" "$scratch/bin/clang++"
  sed -i 's/echo 12/echo 14.0.6/; s/"g++ /"clang++ /' "$scratch/bin/clang++"
  stand_in cmake <<'END'
case $* in
  *--version*) echo "cmake version 3.25.1" ;;
  *'--target help') ;;
  *--build*)
    [[ ! -f $SCRATCH/build-fails ]] || { echo 'gemm.cuh:7: error: expected a tile'; exit 1; }
    # Two builds at the same time: the second finds the first one's mark.
    mkdir "$SCRATCH/building" || exit 1
    trap 'sleep 0.2; echo interrupted && rm -r "$SCRATCH/building"; exit 130' INT
    [[ ! -f $SCRATCH/build-is-slow ]] || sleep "$(<"$SCRATCH/build-is-slow")"
    echo '[1/1] Linking'
    bin=build/$(sed -E 's/.*--preset ([a-z-]+).*/\1/' <<<"$*")/bin
    for step in steps/*/; do
      mkdir -p "$bin"
      for short in '' _first_f32 _first_f16 _first_bf16; do
        ln -sf "$SCRATCH/bin/a_step" "$bin/$(basename "$step")$short"
      done
    done
    rm -r "$SCRATCH/building"
    ;;
  *)
    build=build/$(sed -E 's/.*--preset ([a-z-]+).*/\1/' <<<"$*")
    mkdir -p "$build"
    : >"$build/CMakeCache.txt"
    : >"$build/build.ninja"
    ;;
esac
END
  # The file exit-NN_name holds a step's exit code, the file document.json what it writes, with its name for STEP.
  stand_in a_step <<'END'
name=$(basename "$0")
name=${name%_first_*}
echo "$name $*"
echo "${COURSE_COMMIT-unset}" >"$SCRATCH/commit"
[[ ! -f $SCRATCH/exit-$name ]] || exit "$(<"$SCRATCH/exit-$name")"
[[ ! -f $SCRATCH/document.json ]] || sed "s/STEP/$name/" "$SCRATCH/document.json" >"${*: -1}"
END
  stand_in ctest <<<'[[ ! -f $SCRATCH/ctest-fails ]] || exit 8'
  stand_in apt-get <<'END'
[[ ! -f $SCRATCH/apt-fails || $* != *install* ]] || { echo 'E: no network'; exit 100; }
[[ $* != *install* ]] || : >"$SCRATCH/missing"
END
  # The command itself runs, and nobody writes that down. The report's scripts do nothing here, except where a test makes the file
  # reports.
  stand_in python3 <<END
[[ \$* != */tools/report\ * || ! -f \$SCRATCH/reports ]] || exec '$python' "\$@"
END
  cat >"$scratch/bin/python3.new" <<END
#!/bin/bash
case \$* in
  '-ISc '* | */tools/command | */tools/command\ *) exec '$python' "\$@" ;;
esac
END
  sed 1d "$scratch/bin/python3" >>"$scratch/bin/python3.new"
  mv "$scratch/bin/python3.new" "$scratch/bin/python3"
  chmod +x "$scratch/bin/python3"
  cat >>"$scratch/bin/python3" <<'END'
[[ $* != *ensurepip* || ! -f $SCRATCH/no-venv ]] || exit 1
[[ $* != *matplotlib* ]] || exit "$(<"$SCRATCH/matplotlib")"
[[ $* == *'-Im venv'* ]] || exit 0
target=${*: -1}
mkdir -p "$target/bin" "$target/lib/python3.11/site-packages/nvidia/cu13/include"
: >"$target/lib/python3.11/site-packages/nvidia/cu13/include/cuda_runtime.h"
ln -s "$SCRATCH/bin/pip" "$target/bin/python"
END
  echo 1 >"$scratch/matplotlib"
  stand_in pip <<<'[[ ! -f $SCRATCH/pip-fails ]] || exit 1'
  stand_in id <<<'echo 0'
  stand_in ninja </dev/null
  stand_in gdb </dev/null
}

# One without a GPU; with the toolkit's headers, as on most machines of those who write kernels.
make_machine() {
  mkdir -p "$scratch"/machine/{proc,dev,etc/ssl/certs,usr/local/cuda/include}
  echo "MemAvailable: $((24 << 20)) kB" >"$scratch/machine/proc/meminfo"
  : >"$scratch/machine/etc/ssl/certs/ca-certificates.crt"
  : >"$scratch/machine/usr/local/cuda/include/cuda_runtime.h"
  echo '#define CUDART_VERSION 13000' >"$scratch/machine/usr/local/cuda/include/cuda_runtime_api.h"
}

start_afresh() {
  cd /
  rm -rf "${scratch:?}"/*
  mkdir -p "$scratch/bin" "$scratch/course" "$scratch/here"
  cd "$scratch/here"
  cp -r "$repository/tools" "$scratch/course"
  mkdir -p "$scratch"/course/steps/{01_naive,02_tiled,02_tiny,10_last} "$scratch/course/common/gemm"
  cp "$repository"/common/gemm/{gemm,activation}.h "$scratch/course/common/gemm"
  make_machine
  printf 'course_step(%s)\n' 01_naive 02_tiled 02_tiny '06_tuned TUNED' 10_last >"$scratch/course/steps/CMakeLists.txt"
  echo '{}' >"$scratch/course/CMakePresets.json"
  make_stand_ins
}

# --- checking ---

# course ARGUMENT...: sets output, errors and code. The stand-ins' calls are in the file calls.
course() {
  : >"$scratch/calls"
  code=0
  (
    # Writing more than that fails, as on a full disk; in units of 1024 bytes.
    trap '' XFSZ
    ulimit -f "$largest_file"
    PATH=$scratch/bin exec "$scratch/course/tools/course" "$@" >"$scratch/output" 2>"$scratch/errors" </dev/null
  ) || code=$?
  output=$(<"$scratch/output")
  errors=$(<"$scratch/errors")
}

# The same on a terminal, where somebody types TYPED. What is shown there is in errors.
on_terminal() { # TYPED ARGUMENT...
  : >"$scratch/calls"
  code=0 output=''
  errors=$(PATH=$scratch/bin "$python" -Sc '
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], [sys.argv[1], *sys.argv[3:]])
os.write(terminal, sys.argv[2].encode())
while True:
    try:
        shown = os.read(terminal, 4096)
    except OSError:
        break
    os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)' "$scratch/course/tools/course" "$@") || code=$?
}

check() { # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s: not true: %s\n  exit code: %s\n  stdout: %s\n  stderr: %s\n' \
      "$what" "$*" "$code" "$output" "$errors"
  fi
}

equal() { [[ $1 == "$2" ]]; }
contains() { [[ $1 == *"$2"* ]]; }
lacks() { [[ $1 != *"$2"* ]]; }
in_one_line() { tr -s '\n ' ' ' <<<"$1"; }
called() { grep -q -- "$1" "$scratch/calls"; }
not_called() { ! called "$1"; }

refused() { # TEXT ARGUMENT...: exit 2 and a few lines with TEXT; nothing looked at, installed or written
  local text=$1
  shift
  course "$@"
  check "$*" equal "$code" 2
  check "$*" contains "$errors" "$text"
  check "$*" equal "$output" ''
  check "$*: a few lines" test "$(grep -c '' <<<"$errors")" -le 3
  check "$*: no bash error" lacks "$errors" "line "
  check "$*: nothing written" test ! -e "$scratch/course/build"
  check "$*: no command ran" not_called 'cmake\|apt-get\|python3\|a_step'
}

steps_run() { sed -En 's|^a_step .*/([^/]+)\.json$|\1|p' "$scratch/calls" | tr '\n' ' '; }

# --- the tests ---

test_refusals() {
  local shape
  refused 'unknown command' frobnicate
  refused 'unknown command' 'run/../x'
  refused 'unknown command' course help frobnicate
  for shape in 0x4x 4x4 -1x2x3 1x2x3x4 1x2x axbxc 1.5x2x3 '' ' 1x2x3' 0x10x2x3 1X2X3 x4 4x -4 4k; do
    refused 'is not MxNxK' run --shape "$shape"
    refused 'is not MxNxK' run "--shape=$shape"
  done
  for shape in '1x1x1,' ',1x1x1' 1x1x1,,2x2x2 1x1x1,2x2 '1x1x1 2x2x2' '1x1x1, 2x2x2' '1,,' '1 2'; do
    refused 'is not MxNxK' run --shape "$shape"
  done
  refused 'too large' run --shape 12x12x99999999999999999999
  for shape in 99999999999x1x1 12345678901; do
    refused 'is too large: an extent has 10 digits at most' run --shape "$shape"
  done
  refused 'needs 8589934591 GiB' run --on interpreter --shape 9999999999x9999999999x9999999999
  refused 'needs 8589934591 GiB' run --on interpreter --shape 9999999999
  refused 'needs 8589934591 GiB' run --on interpreter --shape 4294967296x4294967296x1
  refused 'take a smaller --shape' run --on interpreter --shape 1000000x1000000x1
  refused 'take a smaller --shape' run --on interpreter --shape 1x1x1,1000000x1000000x1
  refused "'12x12x99999999999999999999' is too large" run --shape 1x1x1,12x12x99999999999999999999
  refused 'none of: f32 f16 bf16' run --dtype int3
  refused 'none of: f32 f16 bf16' run --dtype=
  refused 'none of: nn nt tn tt' run --layout qq
  refused 'none of: nn nt tn tt' run --layout 'nn nt'
  refused 'none of: gpu interpreter' run --on tpu
  refused 'none of: gpu interpreter' test --on tpu
  refused 'none of: hot cold single' run --mode warm
  refused 'none of: identity leaky_relu relu gelu silu' run --activation tanh
  refused 'none of: identity leaky_relu relu gelu silu' run --activation=
  refused 'needs a value' run --activation
  refused 'unknown option' run --bias=yes
  refused "unknown option '--bias=3'" run --bias=3
  refused '--debug runs one step in gdb: name it' run --debug --on interpreter
  refused '--debug runs one step in gdb: name it' run 1 10 --debug
  refused '--json has no meaning with --debug' run 1 --debug --json
  refused '--energy is about the GPU' run --on interpreter --energy 1
  refused "--energy '0' is no number of seconds" run --energy 0
  refused '--mode is about the GPU' run --on interpreter --mode cold
  refused 'none of: h200 a100 h100 4090' run --as b200
  refused 'none of: h200 a100 h100 4090' run --as=
  refused 'needs the name of a folder' run --out=
  refused "cannot write to $scratch/missing: it is a file" run --on interpreter --out "$scratch/missing"
  refused "cannot write to $scratch/missing/below: make" run --on interpreter --out "$scratch/missing/below"
  refused 'cannot write to /proc/below: make' run --on interpreter --out /proc/below
  refused 'unknown option' run --json=yes
  refused 'needs two result files' compare
  refused 'needs two result files' compare a
  refused 'needs two result files' compare a b c
  refused "cannot read 'a'" compare a "$scratch/missing"
  refused "cannot read '/'" compare "$scratch/missing" -- /
  refused 'not a number of percent' compare "$scratch/missing" "$scratch/missing" --fail-beyond -3
  refused 'not a number of percent' compare "$scratch/missing" "$scratch/missing" --fail-beyond 3%
  refused 'needs a value' compare a b --fail-beyond
  refused "--suite 'all' is none of: squares rows transformer" bench --suite all
  refused "--suite '' is none of" bench --suite squares,
  refused "--suite '' is none of" bench --suite=
  refused "--dtype 'f8' is none of: f32 f16 bf16, nor spelt as fp32 " bench --dtype f16,f8
  refused "--dtype '' is none of" bench --dtype f16,
  refused "--mode 'warm' is none of: hot cold single" bench --mode hot,warm
  refused 'needs the name of a folder' bench --out=
  refused 'unknown option' bench --shape 1x1x1
  refused 'unknown option' bench --plan=yes
  refused "no step '3'" bench 3
  refused 'none of: forward' run --order sideways
  refused 'none of: forward' run --order random:
  refused 'none of: forward' run --order random:-1
  refused 'none of: forward' run --order random:99999999999999999999
  refused 'needs a value' run --shape
  refused 'unknown option' run --what
  refused 'unknown option' run -x
  refused 'unknown option' run --force=yes
  refused 'interpret needs a file' interpret
  refused 'interpret needs a file' interpret --count
  refused "cannot read '$scratch/none.cu'" interpret "$scratch/none.cu" --order reverse
  refused "cannot read '/'" interpret -- / x
  refused 'unknown option' interpret --json "$scratch/missing"
  refused 'none of: forward' interpret --order sideways "$scratch/missing"
  refused 'none of: h200 a100 h100 4090' interpret --as=b200 "$scratch/missing"
  refused 'needs the name of a folder' interpret --keep= "$scratch/missing"
  refused "cannot write to $scratch/missing: it is a file" interpret --keep "$scratch/missing" "$scratch/missing"
  refused 'a program is one file here: a.cu, b.cu' interpret nvcc a.cu -o x b.cu
  refused "unknown option '-order'" interpret -order reverse "$scratch/missing"
  refused 'needs a value' interpret --order
  refused 'needs a value' interpret -I
  refused 'unknown option' test --shape 1x1x1
  refused 'none of: gcc clang' test --compiler msvc
  refused 'for the interpreter' test --compiler clang --on gpu
  refused 'build needs the name of a preset' build
  refused "no preset 'nix'. There are: interpreter " build nix
  refused 'needs a value' build gpu --with=
  COURSE_GPU_ARCHITECTURES=nope refused "COURSE_GPU_ARCHITECTURES=nope: 'nope' is no architecture" build gpu course_gemm
  COURSE_GPU_ARCHITECTURES='80-real;' refused "'' is no architecture. Name some, for example 80-real;90a-real." build gpu
  refused 'Or run with --on interpreter' run --on gpu
  refused 'Or run with --on interpreter' test --on gpu
  refused "bench measures on a GPU: this machine has no NVIDIA GPU that can be used. Here, 'tools/course bench --plan'" bench
}

test_memory() {
  mkdir -p "$scratch/machine/sys/fs/cgroup"
  # A, B and C are a sixth of the memory; only with shadow memory it is too much.
  refused 'take a smaller --shape' run --on interpreter --shape $(((24 << 30) / 48))x1x1
  echo max >"$scratch/machine/sys/fs/cgroup/memory.max"
  course run --on interpreter --shape 10000x1000x1000 1
  check 'there is enough' equal "$code" 0
  echo $((1 << 30)) >"$scratch/machine/sys/fs/cgroup/memory.max"
  rm -r "$scratch/course/build"
  refused 'this machine has 1024 MiB: take a smaller --shape' run --on interpreter --shape 10000x1000x10000 1
}

# What the machine cannot hold is refused by one step, not by each.
test_memory_that_the_steps_ask_for() {
  stand_in a_step <<'END'
[[ $* != *--check-memory* ]] || { echo "${0##*/}: this problem needs 2 TB" >&2; exit "$(<"$SCRATCH/enough")"; }
END
  echo 2 >"$scratch/enough"
  course run --on interpreter --shape 20000x20000x1
  check 'too large' equal "$code" 2
  check 'too large' equal "$(grep -c 'this problem needs 2 TB' <<<"$errors")" 1
  check 'too large: one is asked' equal "$(grep -c '^a_step' "$scratch/calls")" 1
  check 'too large: of all shapes' called '--check-memory --shape 20000x20000x1 --dtype f32'
  echo 0 >"$scratch/enough"
  course run --on interpreter --shape 1x1x1,20000x20000x1
  check 'large enough' equal "$(grep -c '^a_step' "$scratch/calls")" 5
  course run --on interpreter
  check 'small problems are not asked about' not_called '--check-memory'
}

test_folders_that_cannot_be_built_in() {
  local name
  for name in 'a;b' 'a#b' 'a"b' 'a\b' 'a[b' 'a]b'; do
    mkdir "$scratch/$name"
    cp -r "$scratch/course/tools" "$scratch/$name"
    code=0 output=''
    errors=$(PATH=$scratch/bin "$scratch/$name/tools/course" run 2>&1) || code=$?
    check "$name" equal "$code" 2
    check "$name" equal "$errors" "course: the course lies in $scratch/$name, and CMake cannot build below a folder with ; # [ ] \" or \\ in$(
    ) its name: rename it, or move the course."
    check "$name: nothing written" test ! -e "$scratch/$name/build"
  done
}

test_step_names() {
  local text
  for text in 3 0 iled 99999999999999999999999 '' / '*' _ 01_naivety ../steps; do
    refused "no step '$text'. Give a number or a word of a name: 01_naive 02_tiled 02_tiny 10_last" run "$text"
  done
  refused 'could be any of: 02_tiled 02_tiny' run ti
  refused 'could be any of: 02_tiled 02_tiny' run 2
  refused 'could be any of: 02_tiled 02_tiny' run 02_ti
  refused "no step '3'" run 1 3
  refused "'4': tune takes options alone" tune 4
  refused "'4': tune takes options alone" tune -- 4
  refused 'is not MxNxK' tune --shape 4x4
  refused '06_tuned multiplies f16 and bf16' tune --dtype f32
  refused 'none of: f32 f16 bf16' tune --dtype f8
  refused 'none of: nn nt tn tt' tune --layout nx
  refused 'none of: h200 a100 h100 4090' tune --as b200
  refused 'none of: gpu interpreter' tune --on tpu
  refused 'needs the name of a folder' tune --cache=
  refused '--shape has no meaning with --show' tune --show --shape 1x1x1
  refused "--cache $scratch/missing is a file" tune --cache "$scratch/missing" --clear
  refused "--cache $scratch/missing is a file" tune --cache "$scratch/missing" --show
  refused "unknown option '--clear=3'" tune --clear=3
  refused '--verbose has no meaning with --show or --clear' tune --clear --verbose
  refused 'one at a time' tune --show --clear
  course run --on interpreter 1 02_til 10 01 10_ steps/02_tiny/ last Naive ./steps/10_last/gemm.cuh
  check 'steps by number and word, each once' equal "$(steps_run)" '01_naive 02_tiled 10_last 02_tiny '
  cp -r "$scratch/course/steps/01_naive" "$scratch/course/steps/01_copy"
  course run --on interpreter 1
  check 'a copy is no step' equal "$code $(steps_run)" '0 01_naive '
  check 'a copy is no step' equal "$(grep -c 'steps/01_copy is left out: steps/CMakeLists.txt names no such step' <<<"$errors")" 1
  rm -r "$scratch/course/steps/01_copy"
  course run --on interpreter
  check 'no step means all' equal "$(steps_run)" '01_naive 02_tiled 02_tiny 10_last '
}

test_help() {
  local arguments
  for arguments in help --help 'run --help' 'test --help' 'tune --help' 'bench --help' 'compare --help' 'interpret --help' \
    'list --help' 'check --help' 'watch --help' 'hint --help' 'solution --help' 'reset --help' 'verify-all --help' 'grade --help' \
    'interpret -h' 'help run' 'help test' 'run 1 -h'; do
    # shellcheck disable=SC2086 # several arguments
    course $arguments
    check "$arguments" equal "$code" 0
    check "$arguments" contains "$output" 'Usage: tools/course'
    check "$arguments" equal "$errors" ''
  done
  refused "'x': --version takes no more arguments" --version x
  refused "'zzz': --help takes no more arguments" --help zzz
  refused "'zzz': help takes no more arguments" help run zzz
  course --version
  check '--version' equal "$code $output$errors" '0 course, commit unknown: this is no git checkout'
  COURSE_COMMIT=0123456789ab-dirty course --version
  check '--version' equal "$code $output$errors" '0 course, commit 0123456789ab-dirty'
  check '--version: nothing written' test ! -e "$scratch/course/build"
  course
  check 'no command' equal "$code" 0
  check 'no command' contains "$output" 'Usage: tools/course'
  make_exercise "$scratch/course" 01_first
  course
  check 'no command: where one is' equal "$code$errors" 0
  check 'no command: where one is' contains "$output" '0 of 1 passed
Next: 01 first. Read exercises/01_first/README.md'
  check 'no command: how to go on' contains "$output" 'tools/course check '
  check 'no command: nothing written' test ! -e "$scratch/course/exercises/my"
}

# An exercise as it comes, in FOLDER.
make_exercise() { # FOLDER NAME
  mkdir -p "$1/exercises/$2" "$1/solutions/$2"
  printf 'course_exercise(%s NEEDS 75)\n' "$2" >>"$1/exercises/CMakeLists.txt"
  printf '// >>> Your turn\nhole\n// <<<\n' >"$1/exercises/$2/gemm.cuh"
  printf '// >>> Your turn\nfilled\n// <<<\n' >"$1/solutions/$2/gemm.cuh"
  printf '**Task.** Fill it.\n\n<details>\n<summary>Hint 1</summary>\n\nDo this.\n\n</details>\n' >"$1/exercises/$2/README.md"
  : >"$1/exercises/$2/test.cpp"
}

test_exercises() {
  local kept
  refused 'there are no exercises here' check
  make_exercise "$scratch/course" 01_first
  make_exercise "$scratch/course" 02_second
  refused "no exercise '3'. Give a number or a word of a name: 01_first 02_second" check 3
  refused "no exercise 'x'" reset x
  refused '--all checks every exercise' check --all 1
  refused 'there is no such folder' check --all --of "$scratch/nowhere"
  refused "'1': list takes no arguments" list 1
  refused 'needs an exercise' solution
  refused '01 first has not passed yet' solution 1
  refused 'watch begins with one exercise' watch 1 2
  refused 'hint is about one exercise' hint 1 2
  refused 'start is about one exercise' start 1 2
  refused 'none of: gpu interpreter' verify-all --on tpu
  course list
  check 'list' contains "$output" '-> 01 first                     not begun'
  check 'list' contains "$output" '[....................] 0 of 2 passed. Next: 01 first.'
  course hint 2
  check 'hint' contains "$output" 'hint 1 of 1'
  course solution 2 --give-up
  check 'solution' contains "$output" filled
  course start 1
  check 'start' contains "$output" 'Edit exercises/my/01_first/gemm.cuh'
  echo mine >"$scratch/course/exercises/my/01_first/gemm.cuh"
  course reset 1
  check 'reset' grep -q hole "$scratch/course/exercises/my/01_first/gemm.cuh"
  kept=("$scratch"/course/exercises/my/01_first/gemm-*.cuh)
  check 'reset keeps what was written' grep -q mine "${kept[0]}"
  check 'exercises: nothing was built' test ! -e "$scratch/course/build/interpreter"
  # Progress is where the exercises are.
  rm -rf "$scratch/course/build"
  mv "$scratch/course" "$scratch/moved"
  mkdir "$scratch/course" && cp -r "$scratch/moved/." "$scratch/course"
  course hint 2
  check 'progress moves with the folder' contains "$output" "solution 02 --give-up"
  # No build: the stand-ins make no program.
  course check 1 --json
  check 'a build without commands' equal "$code" 1
  check 'a build without commands' contains "$errors" 'does not know how to link exercise 01_first'
}

git_of() { git -c user.name=x -c user.email=x@example.org -C "$@" >"$scratch/git" 2>&1; } # FOLDER ARGUMENT...

# Git for Windows writes CR LF by default, and what it has cloned is used in WSL2.
test_clone_by_git_for_windows() {
  local theirs=$scratch/theirs mine=$scratch/mine
  type -P git >/dev/null || return 0
  code=0 output='' errors=''
  mkdir "$theirs"
  cp -r "$repository/.gitattributes" "$repository/tools" "$theirs"
  git_of "$theirs" init -b main && git_of "$theirs" add . && git_of "$theirs" commit -m 1
  check 'a clone with autocrlf' git_of "$scratch" -c core.autocrlf=true clone "$theirs" "$mine"
  check 'a clone with autocrlf: no CR' equal "$(grep -rIl $'\r' "$mine/tools")" ''
  output=$(PATH=$scratch/bin "$mine/tools/course" help 2>&1) || code=$?
  check 'a clone with autocrlf: it begins' contains "$output" 'Usage: tools/course COMMAND'
}

test_new_exercises_by_git() {
  local theirs=$scratch/theirs mine=$scratch/mine
  type -P git >/dev/null || return 0
  mkdir "$theirs"
  cp "$repository/.gitignore" "$theirs"
  make_exercise "$theirs" 01_first
  git_of "$theirs" init -b main && git_of "$theirs" add . && git_of "$theirs" commit -m 1
  git_of "$scratch" clone "$theirs" "$mine"
  mkdir -p "$mine/exercises/my/01_first"
  echo mine >"$mine/exercises/my/01_first/gemm.cuh"
  echo '{}' >"$mine/exercises/my/progress.json"
  make_exercise "$theirs" 02_second
  echo theirs >"$theirs/exercises/01_first/gemm.cuh"
  git_of "$theirs" add . && git_of "$theirs" commit -m 2
  check 'git pull takes new exercises, and changed ones' git_of "$mine" pull
  check 'git pull takes new exercises' test -e "$mine/exercises/02_second/gemm.cuh"
  check 'git pull takes changed ones' grep -q theirs "$mine/exercises/01_first/gemm.cuh"
  check 'git pull leaves what is mine alone' grep -q mine "$mine/exercises/my/01_first/gemm.cuh"
  git_of "$mine" status --porcelain
  check 'git does not see what is mine' test ! -s "$scratch/git"
}

test_arguments_reach_the_step() {
  local text results=$scratch/course/build/results
  course run 1 --on interpreter
  check 'defaults' equal "$output" \
    "01_naive --shape 256x256x256 --dtype f32 --layout nn --json $results/01_naive.json"
  course run 1 --on=interpreter --shape=0x4x007,08x9x10,012 --dtype fp16 --layout tn --order random:7 --as h100 --force
  check 'all options' equal "$output" "01_naive --shape 0x4x7,8x9x10,12x12x12 --dtype f16 --layout tn --as h100$(
  ) --order random:7 --force --json $results/01_naive.json"
  check 'a named step: its first tile' called 'cmake --build --preset interpreter --target 01_naive_first_f16$'
  for text in float32=f32 fp32=f32 float16=f16 half=f16 bfloat16=bf16; do
    course run 1 --on interpreter --dtype "${text%=*}"
    check "--dtype ${text%=*}" contains "$output" " --dtype ${text#*=} "
  done
  course run 1 02_tiled --on interpreter
  check 'the first tile, by default for f32' called '--target 01_naive_first_f32 02_tiled_first_f32$'
  course run 1 --on interpreter --json
  check 'the first tile as JSON' called '--target 01_naive_first_f32$'
  echo 'using Activations = gemm::TypeList<gemm::LeakyRelu>;' >"$scratch/course/steps/01_naive/gemm.cuh"
  for text in --all-tiles --bias '--activation gelu'; do
    # shellcheck disable=SC2086 # several arguments
    course run 1 --on interpreter $text
    check "$text" called 'cmake --build --preset interpreter --target 01_naive$'
    check "$text" equal "$code" 0
  done
  rm "$scratch/course/steps/01_naive/gemm.cuh"
  course run --on interpreter
  check 'all steps, all tiles' called '--target 01_naive 02_tiled 02_tiny 10_last$'
  course run --on interpreter --all-tiles
  check 'all steps, all tiles, said' called '--target 01_naive 02_tiled 02_tiny 10_last$'
  course run -- 1 --on
  check 'after --, everything is a step' contains "$errors" "no step '--on'"
}

test_interpret() {
  : >"$scratch/my program.cu"
  course interpret --count --order reverse -I "$scratch" -DN=3 --as=a100 "$scratch/my program.cu" --count -x 'a b'
  check 'interpret' equal "$code" 0
  check 'the library alone is built' called 'cmake --build --preset interpreter --target interpreter interpret_prelude$'
  check 'options of the command' called \
    "python3 .*$scratch/course/tools/interpret/interpret.py --build .*/build/interpreter --cache .*/build/interpret --count --order reverse -I $scratch -D N=3 --as a100 -- "
  check "the program's own arguments" called "-- $scratch/my program.cu --count -x a b\$"
  course interpret -O3 -g -G -arch=sm_90 -arch sm_90a -std=c++17 -o my -lineinfo -Xcompiler -Wall -lcublas -l cudart \
    -gencode arch=compute_90,code=sm_90 --use_fast_math -I "$scratch" -I/x -Dx=y "$scratch/my program.cu" -lcublas x
  check "nvcc's options" equal "$code" 0
  check "nvcc's options are named" contains "${errors//$'\n'  / }" \
    "-O3, -g, -G, -arch=sm_90, -arch sm_90a, -std=c++17, -o my, -lineinfo, -Xcompiler -Wall, -lcublas, -l cudart, -gencode arch=compute_90,code=sm_90, --use_fast_math: nvcc's, ignored here"
  check "nvcc's options behind the file" contains "$errors" "-lcublas: behind $scratch/my program.cu, so the program gets it"
  check "what is no option of nvcc's alone" called "interpret -I $scratch -I /x -D x=y -- $scratch/my program.cu -lcublas x\$"
  course interpret nvcc -std=c++23 "$scratch/my program.cu" -o my -O3
  check "a whole line for nvcc" called "interpret --std gnu++23 -- $scratch/my program.cu\$"
  : >"$scratch/build-fails"
  course interpret "$scratch/my program.cu"
  check 'a failed build' equal "$code" 1
  check 'a failed build' not_called 'interpret.py'
}

test_activations() {
  local logs=$scratch/course/build/logs
  echo 'using Activations = gemm::TypeList<gemm::LeakyRelu>;' >"$scratch/course/steps/02_tiled/gemm.cuh"
  course run 02_tiled --on interpreter --activation gelu --bias
  check 'they reach the step' contains "$output" ' --activation gelu --bias '
  course run 1 --on interpreter --activation gelu
  check 'one that was named and fuses nothing' equal "$code" 2
  check 'one that was named and fuses nothing' contains "$errors" '01_naive fuses nothing: leave out --activation and --bias, or run 02_tiled.'
  check 'one that was named and fuses nothing: not built' not_called cmake
  course run --on interpreter --bias
  check 'all steps' equal "$(steps_run)" '02_tiled '
  check 'all steps: who is left out' contains "$errors" '01_naive fuses nothing: left out.'
  rm "$scratch/course/steps/02_tiled/gemm.cuh"
  rm -f "$logs"/run-*
}

test_tune() {
  mkdir "$scratch/course/steps/06_tuned"
  course tune --on interpreter
  check 'tune' equal "$output" '06_tuned --tune --shape 256x256x256 --dtype f16 --layout nn'
  course tune --on interpreter --shape 4096x8x16,1x2x3 --dtype bfloat16 --layout tt --as 4090 --verbose "--cache=$scratch/x"
  check 'tune with options' equal "$output" \
    "06_tuned --cache $scratch/x --as 4090 --verbose --tune --shape 4096x8x16,1x2x3 --dtype bf16 --layout tt"
  cd "$scratch"
  course tune --on interpreter --cache 'a b' --show
  check 'tune --show: nothing' equal "$code $output" "0 $scratch/a b:"$'\n  nothing so far'
  check 'tune --show: nothing is built' not_called cmake
  course tune --on interpreter --cache 'a b' --clear
  check 'tune --clear: nothing' equal "$code $output" "0 what was found for 0 problems is removed from $scratch/a b"
  check 'tune --clear: nothing is built' not_called cmake
  course tune --on interpreter --cache /proc/nope
  check 'tune --cache' equal "$code" 2
  check 'tune --cache' contains "$errors" 'cannot write to /proc/nope: make'
  check 'tune --cache' contains "$errors" 'name another one with --cache'
  check 'tune --cache: nothing is built' not_called cmake
  mkdir -p 'a b' course/build/tuning
  touch 'a b/x' course/build/tuning/x
  course tune --on interpreter --cache 'a b' --show
  check 'tune --show' equal "$output" "06_tuned --cache $scratch/a b --show"
  course tune --on interpreter --clear
  check 'tune --clear' equal "$output" '06_tuned --clear'
  echo 2 >"$scratch/exit-06_tuned"
  course tune --on interpreter
  check 'the exit code of tune' equal "$code" 2
}

test_types_that_a_step_has() {
  local logs=$scratch/course/build/logs
  echo 'using Inputs = gemm::TypeList<__half, __nv_bfloat16>;' >"$scratch/course/steps/02_tiled/gemm.cuh"
  echo 'using Inputs = gemm::TypeList<float, __half, __nv_bfloat16>;' >"$scratch/course/steps/01_naive/gemm.cuh"
  course run --on interpreter
  check 'all steps, in a type that all have' contains "$(<"$logs/run-02_tiled.log")" '--dtype f16'
  check 'all steps, in a type that all have' contains "$(<"$logs/run-01_naive.log")" '--dtype f16'
  course run 1 --on interpreter
  check 'one that has f32' contains "$output" '--dtype f32'
  rm "$logs"/run-*
  course run --dtype f32 --on interpreter
  check 'f32' equal "$code" 0
  check 'f32: one has none' contains "$errors" '02_tiled has no kernels for f32: left out.'
  check 'f32: it is left out' test ! -e "$logs/run-02_tiled.log"
  check 'f32: the others are there' contains "$(<"$logs/run-01_naive.log")" '--dtype f32'
  course run 02_tiled --dtype f32 --on interpreter
  check 'named' equal "$code" 2
  check 'named' contains "$errors" '02_tiled has no kernels for f32: choose another --dtype, f16 or bf16.'
  check 'named: not built' not_called cmake
}

# As if there were a GPU and nvcc, until CUDA_HOME is unset.
make_gpu() {
  stand_in nvidia-smi </dev/null
  mkdir -p "$scratch"/cuda/{bin,include}
  cp "$scratch/bin/ninja" "$scratch/cuda/bin/nvcc"
  : >"$scratch/cuda/include/cuda_runtime.h"
  echo '#define CUDART_VERSION 13000' >"$scratch/cuda/include/cuda_runtime_api.h"
  export CUDA_HOME=$scratch/cuda
}

test_gpu() {
  local results=$scratch/course/build/results
  make_gpu
  course run 1
  check 'the GPU is chosen' equal "$output" "01_naive --shape 4096x4096x4096 --dtype f32 --layout nn$(
  ) --ceilings $scratch/course/build/ceilings.json --json $results/01_naive.json"
  course run 1 --mode cold
  check '--mode' contains "$output" ' --mode cold '
  rm -r "$scratch/course/build"
  refused '--as is about the interpreter' run --as h200
  refused '--as is about the interpreter' run --on gpu --as h200
  refused '--order is about the interpreter' run --order random
  course run 1 --as h200 --on interpreter
  check '--as' contains "$output" ' --as h200 '
  unset CUDA_HOME
}

# What a GPU cannot run is said on every command, and stops none that did not name it.
test_steps_that_the_gpu_cannot_run() {
  local reason='10_last needs compute capability 9.0, no other: wgmma. This GPU, NVIDIA A100, has 8.0'
  make_gpu
  stand_in nvidia-smi <<<'[[ $* != *compute_cap* ]] || cat "$SCRATCH/gpus"'
  echo 'NVIDIA A100, 8.0' >"$scratch/gpus"
  mkdir "$scratch/course/steps/06_tuned"
  printf 'course_step(%s)\n' '01_naive NEEDS 75' 02_tiled 02_tiny '06_tuned TUNED NEEDS 80 "cp.async"' '10_last NEEDS 90a "wgmma"' \
    >"$scratch/course/steps/CMakeLists.txt"
  refused "$reason. Run it on the interpreter: --on interpreter" run 10
  refused "$reason" run 1 10_last --on gpu
  course bench 1 10
  check 'bench with its name' equal "$code" 2
  check 'bench with its name' contains "$errors" "$reason"
  course run 10 --on interpreter
  check 'on the interpreter it runs' equal "$code" 0
  make_document gpu
  course run
  check 'the others run' equal "$code" 0
  check 'the others run' equal "$(steps_run)" '01_naive 02_tiled 02_tiny 06_tuned '
  check 'it is not built' not_called '--build.*10_last'
  check 'it is said' contains "$errors" 'course: 10_last is unavailable: needs compute capability 9.0'
  check 'its place in the ladder' contains "$output" $'10_last: –\n  unavailable: needs compute capability 9.0, no other: wgmma.'
  check 'the ladder is complete' contains "$errors" "results: $scratch/course/build/results/ladder.json"
  rm "$scratch/reports" "$scratch/document.json"
  course test
  check 'course test' equal "$code" 0
  check 'course test' contains "$errors" '10_last is unavailable, its test is skipped: needs'
  course bench --plan --suite transformer --dtype f16 --mode hot
  check 'bench' contains "$errors" '10_last is unavailable'
  course tune --on gpu
  check 'tune' contains "$output" '06_tuned --ceilings'
  course profile 10 --on gpu
  check 'profile --on gpu' equal "$code" 2
  check 'profile --on gpu' contains "$errors" "course: --on gpu: $reason. Or run with --on interpreter."
  echo 'Tesla T4, 7.5' >"$scratch/gpus"
  course tune
  check 'tune goes to the interpreter' contains "$errors" '06_tuned needs compute capability 8.0 or higher: cp.async. This GPU, Tesla T4, has 7.5; using'
  check 'tune goes to the interpreter' called 'cmake --build --preset interpreter --target 06_tuned'
  rm -r "$scratch/course/build"
  refused '--on gpu: 06_tuned needs compute capability 8.0' tune --on gpu
  echo 'Tesla V100, 7.0' >"$scratch/gpus"
  course run 1
  check 'a GPU that is too old' equal "$code" 0
  check 'a GPU that is too old' contains "$errors" "this machine's GPU, Tesla V100, is too old"
  check 'a GPU that is too old' called 'cmake --build --preset interpreter'
  echo 'NVIDIA H200, 9.0' >"$scratch/gpus"
  course run 10
  check 'a GPU that can' equal "$code" 0
  unset CUDA_HOME
}

# make_document BACKEND: what each step's stand-in writes, for the real report.
make_document() {
  : >"$scratch/reports"
  sed "s/BACKEND/$1/" >"$scratch/document.json" <<'END'
{"schema": "gemm-course-results", "version": 1, "created": "2026-11-21T07:00:00Z", "commit": null, "backend": "BACKEND",
 "gpu": {"name": "a GPU"}, "cuda": "13.0", "cublas": null, "ceilings": {"source": "datasheet"},
 "results": [{"step": "STEP", "tile": "1x1", "first": true, "m": 1, "n": 1, "k": 1, "in": "f32", "out": "f32",
   "layout": "nn", "mode": "count", "flops": 2, "bytes": {"no_reuse": 12, "tile_reuse": 12, "compulsory": 12},
   "intensity": {}, "bound": {}, "note": "the note of STEP", "counters": {"bytes": 96}}]}
END
}

# A run's results, with the real report.
test_results() {
  local results=$scratch/course/build/results before
  make_document interpreter
  course run --on interpreter
  check 'the ladder' equal "$code" 0
  check 'the ladder ends with its last step' grep -q '^10_last ' <<<"$(tail -n 1 <<<"$output")"
  check 'the ladder: a step is a row' equal "$(grep -c '^[0-9]*_' <<<"$output")" 4
  check 'the ladder has no prose about each step' lacks "$output" 'the note of'
  check 'the ladder hides the details' lacks "$output" '--shape'
  check 'the ladder shows progress' contains "$errors" $'01_naive: running ...\ncourse: 02_tiled: running ...'
  check 'where the results are' contains "$errors" "results: $results/ladder.json"
  cd "$scratch/course"
  course run --on interpreter --all-tiles
  check 'where the results are, from here' equal "$(tail -n 1 <<<"$errors")" 'course: results: build/results/ladder.json'
  check 'the ladder, all tiles' contains "$output" $'10_last: –\n  1x1'
  check 'counters have no plots' lacks "$errors" plot
  check 'no caches beside the sources' test ! -e "$scratch/course/tools/report/__pycache__"
  check 'outside a checkout' equal "$(<"$scratch/commit")" ''
  before=$(<"$results/ladder.json")
  check 'all steps are in the file' equal "$(grep -c '"step"' <<<"$before")" 4

  course run --on interpreter --json 1 02_tiled 02_tiny 10
  check '--json' equal "$output" "$before"
  course run --on interpreter 1
  check 'a step that was named shows details' contains "$output" '01_naive --shape'
  check 'a step that was named has a table' contains "$output" $'01_naive: –\n  1x1'
  check 'part.json is of the last part' equal "$(grep -o '"step":"[^"]*"' "$results/part.json")" '"step":"01_naive"'
  check 'part.json is of the last part' contains "$errors" 'results: build/results/part.json'
  check 'a part leaves ladder.json alone' equal "$(<"$results/ladder.json")" "$before"

  echo 1 >"$scratch/exit-02_tiled"
  echo precious | tee "$results/ladder.json" "$results/02_tiled.json" >/dev/null
  course run --on interpreter
  check 'a failed step' equal "$code" 1
  check 'a failed step shows its output' contains "$errors" '02_tiled --shape'
  check 'the others have a table' grep -q '^10_last ' <<<"$output"
  check 'a failed step is not in it' lacks "$output" 02_tiled
  check 'a failed step leaves the results' equal "$(cat "$results/ladder.json" "$results/02_tiled.json")" $'precious\nprecious'
  check 'a failed step leaves the results' contains "$errors" 'ladder.json was not written'
  course run --on interpreter 02_tiled
  check 'nothing verified, nothing shown' equal "$code" 1
  rm "$scratch/exit-02_tiled"

  cd "$scratch"
  course run --on interpreter 1 --out 'a folder/below'
  check '--out' equal "$code" 0
  check '--out' test -s "$scratch/a folder/below/part.json" -a -s "$scratch/a folder/below/01_naive.json"
  largest_file=100 course run --on interpreter 1
  check 'a full disk' equal "$code" 2
  check 'a full disk' contains "$errors" 'make room on its disk'
  check 'a full disk: nothing left behind' equal "$(compgen -G "$results/.*probe*")" ''
  check 'a full disk: nothing built' not_called cmake

  mkdir "$scratch/course/.git"
  stand_in git <<<'echo 0123456789ab-dirty'
  course run --on interpreter 1
  check 'in a checkout' equal "$(<"$scratch/commit")" 0123456789ab-dirty

  sed 's/96/128/' "$results/part.json" >"$scratch/other.json"
  course compare "$results/part.json" "$results/part.json"
  check 'compare' equal "$code" 0
  check 'compare' contains "$output" '0 changes beyond the noise'
  course compare --fail-beyond 3 "$results/part.json" "$scratch/other.json"
  check 'compare with a change' equal "$code" 1
  check 'compare with a change' contains "$output" +33.33%
  course compare "$results/part.json" "$scratch/missing"
  check 'compare with a bad file' equal "$code" 2
  check 'compare with a bad file' equal "$(grep -c '' <<<"$errors")" 1
}

# The benchmark, whose own tests are command/tests/test_benchmark.py: what becomes of the arguments, and one from end to end.
test_bench() {
  local out=$scratch/course/build/results/bench
  : >"$scratch/reports"
  # What is installed here must not matter.
  mkdir -p "$scratch/course/tools/peers"
  echo 'raise SystemExit("peer_triton: there is no PyTorch")' >"$scratch/course/tools/peers/triton_matmul.py"
  course bench --plan --suite transformer --dtype f16 --mode hot 1 10
  check 'the plan' equal "$code" 0
  check 'the plan' contains "$output" '01_naive      2             8'
  check 'the plan' contains "$output" 'transformer: 8 shapes'
  check 'the plan runs nothing' not_called 'cmake\|a_step'
  check 'the plan writes nothing' test ! -e "$out"

  make_gpu
  stand_in a_step <<END
exec '$python' -SE "\$SCRATCH/a_step.py" "\${0##*/}" "\$@"
END
  # Writes a result for each shape, as a step does.
  cat >"$scratch/a_step.py" <<'END'
import json, os, sys
step, *given = sys.argv[1:]
if os.path.exists(os.environ["SCRATCH"] + "/exit-" + step):
    print("what is wrong with " + step)
    sys.exit(int(open(os.environ["SCRATCH"] + "/exit-" + step).read()))
def option(name, default): return given[given.index(name) + 1] if name in given else default
results = []
for shape in option("--shape", "").split(","):
    m, n, k = map(int, shape.split("x"))
    ratio = {"median": 0.25, "q20": 0.25, "q80": 0.25}
    results.append({"step": step, "tile": "1x1", "first": True, "m": m, "n": n, "k": k, "in": "f16", "out": "f16",
        "layout": option("--layout", "nn"), "mode": option("--mode", "hot"), "flops": 2, "intensity": {}, "bound": {},
        "bytes": {"no_reuse": 1, "tile_reuse": 1, "compulsory": 1}, "ratio": {"cublasGemmEx": ratio, "cublasLt": ratio}})
document = {"schema": "gemm-course-results", "version": 1, "created": "2026-11-21T07:00:00Z", "commit": None, "backend": "gpu",
    "gpu": {"name": "a GPU", "driver": "1"}, "cuda": "13.0", "cublas": "13.1", "ceilings": {"source": "measured"},
    "results": results}
with open(option("--json", ""), "w") as file: json.dump(document, file)
END
  echo 1 >"$scratch/exit-10_last"
  course bench --suite transformer --dtype f16 --mode hot 1 10
  check 'a failed part' equal "$code" 1
  check 'a failed part' contains "$errors" $'FAILED: a wrong result.\n  | what is wrong with 10_last'
  check 'a failed part does not stop the others' contains "$errors" '[4/4] 10_last transformer 2048x2048x128 nt f16 hot ...'
  check 'a failed part: no file' test ! -e "$out/bench-f16-hot.json"
  check 'what is left out' contains "$errors" 'peer_cutlass is left out: it was not built'
  check 'what is left out' contains "$errors" 'peer_triton is left out: there is no PyTorch.'
  rm "$scratch/exit-10_last"
  course bench --suite transformer --dtype f16 --mode hot 1 10
  check 'bench' equal "$code" 0
  check 'bench keeps what is there' contains "$errors" '2 of 4 parts are kept'
  check 'bench keeps what is there' equal "$(grep -c 'a_step .*--layout' "$scratch/calls")" 2
  check 'the arguments' called "^a_step --shape 1x4096x4096,.*,4096x4096x11008 --dtype f16 --layout nn --mode hot --first $(
  )--seconds 0.2 --json $out/parts/unfinished.json --ceilings $scratch/course/build/ceilings.json\$"
  check 'time left' grep -qE '^course: \[3/4\] 10_last .* \.\.\. [0-9.]+ s, about [0-9]+ s left$' "$scratch/errors"
  check 'the table' grep -qE '^  10_last +25\.0 +25\.0 +1x4096x4096' "$scratch/output"
  check 'the file' equal "$(grep -c '"step"' "$out/bench-f16-hot.json")" 16

  # A peer that the build knows is built and runs, too.
  sed -i "s/'--target help') /&echo 'peer_cutlass: phony' /" "$scratch/bin/cmake"
  mkdir "$scratch/course/steps/peer_cutlass"
  course bench --suite transformer --dtype f16 --mode hot --no-peers 1 10
  check '--no-peers' not_called 'peer_cutlass'
  course bench --suite transformer --dtype f16 --mode hot 1 10
  check 'a peer' equal "$code" 0
  check 'a peer is built' called 'cmake --build --preset gpu --target peer_cutlass'
  check 'a peer is measured' equal "$(grep -c 'peer_cutlass' "$out/bench-f16-hot.json")" 8
  course compare --fail-beyond 3 "$out/bench-f16-hot.json" "$out/bench-f16-hot.json"
  check 'compare' contains "$output" '24 compared; 0 changes'
  course bench --plan --no-peers --suite transformer --dtype f16 --mode hot 1
  check 'the plan knows what is there' contains "$output" '2 of the parts lie in'
  course bench --dtype f32 --suite transformer --fresh --mode hot 1
  check 'other results than were asked for' equal "$code" 1
  check 'fresh' test ! -e "$out/parts/01_naive-f16-hot-nt-transformer-2048x2048x128.json"
  unset CUDA_HOME
}

# A step's program that counts, without a GPU's caches; and ncu, which says what the file ncu-says holds, or writes a report that is
# imported as real ones are: what the program prints, a header, units, a launch with commas in its numbers.
make_profiler() {
  : >"$scratch/reports"
  stand_in a_step <<END
exec '$python' -SE "\$SCRATCH/a_step.py" "\${0##*/}" "\$@"
END
  cat >"$scratch/a_step.py" <<'END'
import json, sys
name, *given = sys.argv[1:]
def option(name): return given[given.index(name) + 1]
if "--tile" in given and option("--tile") != "swapped":
    sys.exit(2)
m, n, k = map(int, option("--shape").split("x"))
sectors = {"ld": m * n * k // 32 * 5, "st": m * n // 8}
counters = {f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum": each for way, each in sectors.items()}
counters.update({f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum": each for way, each in (("ld", m * n * k // 16), ("st", m * n // 32))})
result = {"tile": "swapped" if "--tile" in given else "coalesced", "in": "f32", "out": "f32", "counters": counters,
    "projection": {"flops_per_second": 6e12}}
with open(option("--json"), "w") as file:
    json.dump({"gpu": {"name": "a model", "multiprocessors": 132, "l2_bytes": 6e7}, "results": [result],
        "ceilings": {"copy_bytes_per_second": 4e12, "fma_f32_flops": 6e13}}, file)
END
  PYTHONPATH=$repository/tools "$python" -B - >"$scratch/raw.csv" <<'END'
from command.profiling.ncu import METRICS
def row(*cells): print(",".join(f'"{cell}"' for cell in cells))
columns = ("Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
print("01_naive  m=256 n=256 k=256 f32\n==PROF== Connected to process 7 (01_naive)")
row("ID", *columns, *METRICS)
row("", *["" for _ in columns], *["byte" for _ in METRICS])
row("0", "7", "01_naive", "127.0.0.1", "void gemm_kernel<Tile<0>, float>(Matrix<const T2>)", "1", "7", "(256, 1, 1)", "(256, 1, 1)",
    "0", "9.0", *[{"op_ld.sum": "2,621,440"}.get(name[-9:], "1,048,576") for name in METRICS])
END
  stand_in ncu <<'END'
[[ $* != *--import* ]] || exec cat "$SCRATCH/raw.csv"
[[ ! -f $SCRATCH/ncu-says ]] || { cat "$SCRATCH/ncu-says"; exit 1; }
while [[ $1 != --export ]]; do shift; done
: >"$2"
END
}

test_profile_refusals() {
  local word
  make_exercise "$scratch/course" 01_first
  refused 'profile needs one step, exercise or solution' profile
  refused 'profile needs one step, exercise or solution' profile 1 2
  refused "no step '7'" profile 7
  refused "no exercise 'exercises/7'" profile exercises/7
  refused "no exercise 'solutions/x'" profile solutions/x
  refused 'name one --shape' profile 1 --shape 1x1x1,2x2x2
  refused 'has nothing to multiply' profile 1 --shape 1x0x1
  refused 'is not MxNxK' profile 1 --shape 4x4
  refused 'take a smaller --shape' profile 10 --shape 1000000x1000000x1
  refused 'needs 8589934591 GiB' profile 1 --shape 9999999999x9999999999x9999999999
  refused 'too large' profile 1 --shape 12345678901x0x0
  refused '--tile needs a value' profile 1 --tile=
  refused 'none of: f32 f16 bf16' profile 1 --dtype int3
  refused 'none of: gpu interpreter' profile 1 --on tpu
  refused '--on gpu: this machine has no NVIDIA GPU that can be used: measuring needs one' profile 1 --on gpu
  refused "unknown option '--mode'; 'tools/course profile --help' lists them" profile 1 --mode hot
  for word in exercises/1 solutions/01_first; do
    refused '--tile is for steps' profile "$word" --tile g8
    refused '--dtype is for steps' profile "$word" --dtype f16
  done
}

test_profile_without_a_gpu() {
  local tables=$scratch/course/docs/results/h200/ncu
  echo '// "coalesced" : "swapped"' >"$scratch/course/steps/01_naive/gemm.cuh"
  refused "no tile of 01_naive has 'nosuch' in its name" profile 1 --tile nosuch
  make_profiler
  course profile 1
  check 'nothing recorded' equal "$code" 0
  check 'why' contains "$errors" 'no NVIDIA GPU that can be used: measuring needs one, with the CUDA toolkit, 12.8 or newer, and its ncu;'
  check 'nothing recorded' contains "$(in_one_line "$errors")" 'nothing was recorded of 01_naive-256x256x256-f32'
  check 'the short program' called 'cmake --build --preset interpreter --target 01_naive_first_f32$'
  check 'the program' called '^a_step --shape 256x256x256 --dtype f32 --as h200 --first --profile --force --json '
  check 'ncu is not asked' not_called '^ncu'
  check 'two columns' contains "$output" 'predicted  interpreted'
  check 'two columns' lacks "$output" 'measured'
  check 'a row' contains "$output" 'asked of L1              134 MB      83.9 MB'
  check 'a sentence' contains "$output" '- global loads: asked of L1: A warp asks once for what several of its lanes'
  mkdir -p "$tables"
  cp "$repository"/docs/results/h200/ncu/01_naive-256x256x256-f32.csv "$tables"
  course profile 01_n
  check 'recorded' contains "$(in_one_line "$errors")" 'and its ncu; measured is what was recorded on NVIDIA H200.'
  check 'three columns' contains "$output" 'predicted  interpreted  measured'
  check 'three columns' contains "$output" 'sectors per request        2.50         2.50      2.50'
  check 'where from' contains "$output" 'docs/results/h200/ncu/01_naive-256x256x256-f32.csv'
  course profile 1 --tile swapped
  check 'another tile: the long program' called 'cmake --build --preset interpreter --target 01_naive$'
  check 'another tile: the program' called '^a_step --shape 256x256x256 --dtype f32 --as h200 --tile swapped --profile '
  check 'another tile: its row of the table' contains "$output" 'sectors per request        16.5         2.50      16.5'
  course profile 1 --tile s99
  check 'a tile that does not exist' equal "$code" 2
  course profile 1 --shape 512x512x512
  check 'another shape' contains "$errors" 'recorded were: --shape 256x256x256.'
  course profile 1 --json --out "$scratch/profiles"
  check '--json' equal "$("$python" -c 'import json, sys; print(json.load(sys.stdin)["measured"]["gpu"])' <<<"$output")" 'NVIDIA H200'
  check '--out' test -f "$scratch/profiles/01_naive-256x256x256-f32.json"
}

test_profile_on_a_gpu() {
  local out=$scratch/course/build/profiles name=01_naive-256x256x256-f32
  make_profiler
  make_gpu
  rm "$scratch/bin/ncu"
  course profile 1
  check 'no ncu' contains "$errors" 'there is a GPU but no ncu: it comes with the CUDA toolkit'
  check 'no ncu: the rest is shown' contains "$output" 'predicted  interpreted'
  rm -r "$scratch/course/build"
  refused '--on gpu: there is a GPU but no ncu' profile 1 --on gpu
  make_profiler
  course profile 1
  check 'measured' equal "$code" 0
  check 'one launch' called "^ncu --export $out/$name.ncu-rep --force-overwrite --metrics .* --profile-from-start off $(
  )--kernel-name regex:(gemm|fallback)_kernel --launch-count 1 --clock-control none $(
  )$scratch/course/build/gpu/bin/01_naive --once --first --shape 256x256x256 --dtype f32\$"
  check 'its report' called "^ncu --import $out/$name.ncu-rep --csv --page raw --print-units base\$"
  check 'kept' test -f "$out/$name.ncu-rep"
  check 'kept' equal "$(cut -d , -f 1 "$out/$name.csv" | tr '\n' ' ')" 'ID 0 '
  check 'three columns' contains "$output" 'asked of L1                    134 MB      83.9 MB      83.9 MB'
  check 'where from' contains "$output" 'now: build/profiles/01_naive-256x256x256-f32.csv'
  check 'what it waits for' contains "$output" 'warps waiting for'
  cat >"$scratch/ncu-says" <<'END'
==PROF== Connected to process 7 (01_naive)

==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM

==WARNING== No kernels were profiled.
END
  course profile 1
  check 'not allowed' equal "$code" 0
  check 'not allowed' contains "$errors" "may not read this GPU's counters (ERR_NVGPUCTRPERM): run this command as root"
  check 'not allowed: the rest is shown' contains "$output" 'predicted  interpreted'
  check 'not allowed: no measured column' lacks "$output" 'measured'
  course profile 1 --on gpu
  check 'not allowed, with --on gpu' equal "$code" 2
  echo '==ERROR== The application returned an error code (1).' >"$scratch/ncu-says"
  course profile 1
  check 'ncu fails' equal "$code" 1
  check 'ncu fails' contains "$errors" 'The application returned an error code (1).'
  rm "$scratch/ncu-says"
  echo '==WARNING== nothing' >"$scratch/raw.csv"
  course profile 1
  check 'no table' equal "$code" 1
  check 'no table' contains "$errors" "look at it with 'ncu --import"
  course profile 1 --on interpreter
  check '--on interpreter' not_called '^ncu'
  # The interpreter's libraries are missing, and there is no network.
  make_profiler
  echo -ldw >"$scratch/missing"
  : >"$scratch/apt-fails"
  rm -r "$scratch/course/build/setup"
  course profile 1
  check 'without the interpreter' equal "$code" 0
  check 'without the interpreter' contains "$errors" 'could not install libdw-dev'
  check 'without the interpreter' contains "$errors" 'so the interpreter cannot be built: what is measured is shown alone.'
  check 'without the interpreter: one column' contains "$output" 'asked of L1                     83.9 MB'
  check 'without the interpreter: one column' lacks "$output" 'predicted'
  course profile 1 --json
  check 'without the interpreter, as JSON' contains "$output" '"predicted": null'
  course profile 1 --on interpreter
  check 'the interpreter was asked for' equal "$code" 1
  unset CUDA_HOME
}

test_plots() {
  local results=$scratch/course/build/results
  cat >"$scratch/course/tools/plot" <<'END'
#!/bin/bash
echo "plot $*" >>"$SCRATCH/calls"
[[ ! -f $SCRATCH/plot-fails ]] || { echo 'nothing to draw' >&2; exit 2; }
printf '%s\n' "${*: -1}"/{ladder,roofline}.svg
END
  chmod +x "$scratch/course/tools/plot"
  course run --on interpreter 1 --as h200
  check 'no matplotlib' not_called '^plot'
  check 'no matplotlib' contains "$errors" "tools/plot $results/part.json"
  mkdir "$scratch/course/build/plot-venv"
  course run --on interpreter 1 --as h200
  check 'the matplotlib of tools/plot' called "^plot $results/part.json --out $results/plots/part\$"
  rmdir "$scratch/course/build/plot-venv"
  echo 0 >"$scratch/matplotlib"
  course run --on interpreter --as h200
  check 'plots' called "^plot $results/ladder.json --out $results/plots\$"
  check 'plots: one is named' equal "$(tail -n 1 <<<"$errors")" "course: plot: $results/plots/ladder.svg"
  : >"$scratch/plot-fails"
  course run --on interpreter 1 --as h200
  check 'plots that fail are no failed step' equal "$code" 0
  check 'plots that fail' lacks "$errors" 'plot:'
  check 'plots that fail: why' contains "$errors" 'nothing to draw'
}

test_exit_codes() {
  echo 1 >"$scratch/exit-01_naive"
  echo 2 >"$scratch/exit-02_tiled"
  course run --on interpreter
  check 'a wrong result outranks a refusal' equal "$code" 1
  check 'the steps after it run' equal "$(steps_run)" '01_naive 02_tiled 02_tiny 10_last '
  course run --on interpreter 02_til 10
  check 'a refusal outranks success' equal "$code" 2
  echo 139 >"$scratch/exit-02_tiny"
  course run --on interpreter 02_til 02_tin 10
  check 'a crash counts as wrong' equal "$code" 1
  check 'a crash is named' contains "$errors" '02_tiny ended with exit code 139'
  echo 130 >"$scratch/exit-01_naive"
  course run --on interpreter 1 10
  check 'an interrupted step ends the run' equal "$code" 130
  check 'an interrupted step ends the run' equal "$(steps_run)" '01_naive '
}

# Streams and surroundings that are not what one expects.
test_odd_surroundings() {
  local command=$scratch/course/tools/course text
  code=0
  output='' errors=$(PATH=$scratch/bin "$command" help 2>&1 >&-) || code=$?
  check 'a closed stdout' equal "$code" 2
  check 'a closed stdout' equal "$errors" 'course: stdout is closed, and results go there: leave it open, or send it to /dev/null.'
  code=0
  errors=$(PATH=$scratch/bin "$command" run --help 2>&1 >/dev/full) || code=$?
  check 'a full stdout' equal "$code" 2
  check 'a full stdout' equal "$errors" 'course: cannot write to stdout: No space left on device.'
  code=0
  PATH=$scratch/bin "$command" run --on interpreter 1 </dev/null <&- >/dev/null 2>&1 || code=$?
  check 'a closed stdin' equal "$code" 0
  code=0
  PATH=$scratch/bin "$command" run --on interpreter 1 >"$scratch/output" 2>&- || code=$?
  check 'a closed stderr' equal "$code" 0
  check 'a closed stderr: it is nowhere else' lacks "$(<"$scratch/output")" 'course:'
  for text in abc 0 -5 '' 99999999999999999999; do
    code=0
    errors=$(PATH=$scratch/bin COLUMNS=$text TERM=dumb "$command" run --help 2>&1 >/dev/null) || code=$?
    check "COLUMNS=$text" equal "$code" 0
    check "COLUMNS=$text" equal "$errors" ''
  done
  # Nobody reads any more.
  stand_in a_step <<<'for i in {1..20000}; do echo "line $i"; done'
  { PATH=$scratch/bin "$command" run --on interpreter 1 2>/dev/null || echo $? >"$scratch/code"; } | head -n 1 >/dev/null
  check 'a broken pipe' equal "$(<"$scratch/code")" 141
  rm "$scratch/bin/python3" "$scratch/bin/apt-get"
  for text in figures plot sass registers; do
    code=0
    errors=$(PATH=$scratch/bin "$scratch/course/tools/$text" --check 2>&1) || code=$?
    check "tools/$text without Python" equal "$code" 2
    check "tools/$text without Python" contains "$errors" "missing: python3, 3.9 or newer: install it"
  done
}

test_a_step_that_is_killed() {
  stand_in a_step <<<'kill -9 $$'
  course run --on interpreter 1
  check 'killed' equal "$code" 1
  check 'killed' contains "$errors" '01_naive was killed, as the system does when memory runs out: take a smaller --shape'
  check 'killed' lacks "$errors" 'never should'
}

test_second_run_does_no_work() {
  local user system TIMEFORMAT
  course run --on interpreter 1
  check 'the first run configures' called 'cmake --fresh --preset interpreter'
  check 'nobody to wait for' lacks "$errors" waiting
  course run --on interpreter 1 # keeps the command's own compiled modules, for which there was no folder before
  # Of the processors' time, whatever else runs here.
  TIMEFORMAT='%U %S'
  { time course run --on interpreter 1; } 2>"$scratch/time"
  read -r user system <"$scratch/time"
  check 'a run without work takes less than 0.5 s' test $((10#${user/./} + 10#${system/./})) -lt 500
  check 'the second run only builds' equal "$(sed 's/ .*//' "$scratch/calls" | tr '\n' ' ')" 'cmake a_step python3 '
  cd "$scratch/course/steps"
  course run --on interpreter 1
  check 'from another folder' equal "$code" 0
  check 'from another folder' not_called '--fresh'
  sleep 0.02
  echo '{ }' >"$scratch/course/CMakePresets.json"
  course run --on interpreter 1
  check 'changed presets' called '--fresh'
  mv "$scratch/course" "$scratch/elsewhere"
  mkdir "$scratch/course"
  mv "$scratch"/elsewhere/* "$scratch/course"
  sed -i "s|^$scratch|/old|" "$scratch/course/build/interpreter/.configured"
  course run --on interpreter 1
  check 'a moved folder' called '--fresh'
}

# As g++ writes them: with the instantiation, the line and what may be done.
test_what_is_unused_is_said_short() {
  local course=$scratch/course
  sed -i '/Linking/i cat "$SCRATCH/warnings"' "$scratch/bin/cmake"
  cat >"$scratch/warnings" <<END
In file included from $course/build/interpreter/steps/01_naive/entry.cpp:2:
$course/steps/01_naive/gemm.cuh: In instantiation of 'void gemm_kernel(int) [with Tile = float]':
$course/steps/01_naive/gemm.cuh:42:13: warning: unused variable 'row' [-Wunused-variable]
   42 |   const int row = 3;
$course/steps/01_naive/gemm.cuh:42:13: warning: unused variable 'row' [-Wunused-variable]
$course/steps/01_naive/gemm.cuh:40:25: warning: unused parameter 'k' [-Wunused-parameter]
/usr/include/x.h:1:1: warning: something else [-Wother]
END
  course run --on interpreter 1
  check 'unused: runs' equal "$code" 0
  check 'unused: each in a line, once' equal "$errors" "$(printf 'course: %s\n' 'configuring interpreter' 'building interpreter' \
    "steps/01_naive/gemm.cuh:42: unused variable 'row'" "steps/01_naive/gemm.cuh:40: unused parameter 'k'")"$'\n'"$(grep results: <<<"$errors")"
}

test_missing_packages() {
  printf 'doctest/doctest.h\n-ldw\n' >"$scratch/missing"
  stand_in id <<<'echo 1000'
  course run --on interpreter 1
  check 'no right to install' equal "$code" 2
  check 'no right to install' contains "$errors" \
    "su -c 'apt-get update && apt-get install -y --no-install-recommends doctest-dev libdw-dev'"
  check 'no right to install' not_called apt-get
  stand_in sudo <<<'exit 1'
  course run --on interpreter 1
  check 'sudo that wants a password' equal "$code" 2
  check 'sudo that wants a password' contains "$errors" "sudo sh -c 'apt-get update"
  stand_in sudo <<<'shift; exec "$@"'
  course run --on interpreter 1
  check 'sudo without a password' equal "$code" 0
  check 'sudo without a password' called 'sudo -n env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 LANGUAGE= apt-get .*install'
  check 'nobody is asked where there is no terminal' lacks "$errors" '[Y/n]'
  check 'sudo without a password' called 'apt-get .*install -y --no-install-recommends doctest-dev libdw-dev$'

  printf 'doctest/doctest.h\n-ldw\n' >"$scratch/missing"
  rm -r "$scratch/course/build"
  on_terminal $'n\n' run --on interpreter 1
  check 'no to sudo' equal "$code" 2
  check 'no to sudo' contains "$errors" "install Debian's packages doctest-dev libdw-dev with sudo? [Y/n]"
  check 'no to sudo: what to type' contains "$errors" "sudo sh -c 'apt-get update"
  check 'no to sudo' not_called apt-get
  on_terminal $'\n' run --on interpreter 1
  check 'yes to sudo' equal "$code" 0
  check 'yes to sudo' called 'apt-get .*install'

  echo elfutils/libdwfl.h >"$scratch/missing"
  rm -r "$scratch/course/build" "$scratch/bin/sudo"
  stand_in id <<<'echo 0'
  : >"$scratch/apt-fails"
  course run --on interpreter 1
  check 'apt-get fails' equal "$code" 1
  check 'apt-get fails' contains "$errors" 'E: no network'
  check 'apt-get fails' contains "$errors" 'Is there a network?'
  rm "$scratch/apt-fails"
  stand_in apt-get </dev/null
  course run --on interpreter 1
  check 'an installation without effect' equal "$code" 1
  check 'an installation without effect' contains "$errors" 'still missing after their installation: libdw-dev'
  rm "$scratch/bin/apt-get"
  course run --on interpreter 1
  check 'no apt-get' equal "$code" 2
  check 'no apt-get' contains "$errors" 'missing: libdw-dev'
}

test_missing_commands() {
  mv "$scratch/bin/python3" "$scratch/python3"
  stand_in apt-get <<<'[[ $* != *python3* ]] || cp "$SCRATCH/python3" "$SCRATCH/bin/python3"'
  course compare "$scratch/calls" "$scratch/calls"
  check 'compare installs Python alone' equal "$code" 0
  check 'compare installs Python alone' called 'apt-get .*install.* python3$'
  check 'compare installs Python alone' not_called 'g++\|cmake'
  rm "$scratch/bin/python3"
  course run --on interpreter 1
  check 'run installs Python' called 'apt-get .*install.* python3$'

  rm "$scratch/bin/ninja" "$scratch/bin/gdb"
  course run --on interpreter 1
  check 'run needs no gdb' not_called 'apt-get .*gdb'
  check 'ninja' called 'apt-get .*install.* ninja-build$'
  stand_in ninja </dev/null
  course run --on interpreter 1
  check 'ninja came' equal "$code" 0
}

test_gdb() {
  rm "$scratch/bin/gdb"
  : >"$scratch/apt-fails"
  course test --on interpreter
  check 'gdb cannot be had' equal "$code" 0
  check 'gdb cannot be had' contains "$errors" 'going on without gdb'
  check 'gdb cannot be had: the tests run' called '^ctest '
  stand_in id <<<'echo 1000'
  course test --on interpreter
  check 'gdb may not be installed' equal "$code" 0
  check 'gdb may not be installed' contains "$errors" "su -c 'apt-get update && apt-get install -y --no-install-recommends gdb'"
  stand_in id <<<'echo 0'
  stand_in apt-get <<<'[[ $* != *gdb* ]] || cp "$SCRATCH/bin/ninja" "$SCRATCH/bin/gdb"'
  course test --on interpreter
  check 'gdb came' equal "$code" 0
  check 'gdb is installed for the tests' called 'apt-get .*install.* gdb$'
  course test --on interpreter
  check 'gdb is there' not_called 'apt-get'
  rm "$scratch/bin/gdb" "$scratch/bin/apt-get"
  make_gpu
  course test
  check 'tests on a GPU' equal "$code" 0
  check 'tests on a GPU: no gdb, nothing to install' lacks "$errors" gdb
  unset CUDA_HOME
}

# From nothing: what is installed brings what the next question needs.
test_bare_machine() {
  local tool
  rm -r "$scratch/machine/usr" "$scratch/machine/etc"
  mkdir "$scratch/packages"
  : >"$scratch/no-venv"
  for tool in g++ cmake ninja python3; do mv "$scratch/bin/$tool" "$scratch/packages"; done
  printf '%s\n' boost/context doctest CLI/CLI nlohmann elfutils -lboost_context -ldw >"$scratch/missing"
  stand_in apt-get <<'END'
[[ $* == *install* && $* != *--download-only* ]] || exit 0
: >"$SCRATCH/missing"
[[ $* != *python3-venv* ]] || rm "$SCRATCH/no-venv"
[[ $* != *ca-certificates* ]] || { mkdir -p "$SCRATCH/machine/etc/ssl/certs" && : >"$SCRATCH/machine/etc/ssl/certs/ca-certificates.crt"; }
for tool in g++ cmake ninja python3; do
  [[ " $* " != *" $tool"[\ -]* ]] || cp "$SCRATCH/packages/$tool" "$SCRATCH/bin/$tool"
done
END
  course run --on interpreter 1
  check 'a bare machine' equal "$code" 0
  check 'a bare machine: Python first' called 'apt-get .*install -y --no-install-recommends python3$'
  check 'a bare machine: all packages' called "apt-get .*install -y --no-install-recommends g++ libboost-context-dev doctest-dev $(
  )libcli11-dev nlohmann-json3-dev libdw-dev cmake ninja-build python3-venv ca-certificates\$"
  check 'a bare machine: CUDA headers from PyPI' called 'pip .*install .*--only-binary :all: --require-hashes --requirement .*/tools/command/wheels/headers.txt$'
  check 'a bare machine: they are used' called 'cmake .*-DCOURSE_CUDA_INCLUDE_DIR=.*/build/venv/lib/python3.11/site-packages/nvidia/cu13/include'
  check 'a bare machine: the step runs' equal "$(steps_run)" '01_naive '
  course run --on interpreter 1
  check 'and again: nothing to install' not_called 'apt-get\|pip'
}

test_old_tools() {
  sed -i 's/echo 12/echo 11/' "$scratch/bin/g++"
  stand_in apt-get <<'END'
[[ $* == *g++-12* ]] || exit 0
sed 's/echo 11/echo 12.3/' "$SCRATCH/bin/g++" >"$SCRATCH/bin/g++-12"
chmod +x "$SCRATCH/bin/g++-12"
END
  course run --on interpreter 1
  check 'an old g++ and a newer package' equal "$code" 0
  check 'an old g++ and a newer package' called 'cmake .*-DCMAKE_CXX_COMPILER=.*/g++-12'
}

test_python_environment() {
  local venv=$scratch/course/build/venv
  export CUDA_HOME=
  rm -r "$scratch/machine/usr"
  mkdir -p "$venv/half-made"
  : >"$scratch/pip-fails"
  course run --on interpreter 1
  check 'pip fails' equal "$code" 1
  check 'pip fails' contains "$errors" 'Is there a network?'
  check 'pip fails: not taken for complete' test ! -e "$venv/.wheels"
  stand_in pip <<<'echo "SSLError: CERTIFICATE_VERIFY_FAILED"; exit 1'
  course run --on interpreter 1
  check 'a certificate' equal "$code" 1
  check 'a certificate' contains "$(in_one_line "$errors")" 'a certificate could not be verified'
  check 'a certificate' lacks "$errors" 'Is there a network?'
  stand_in pip <<<'echo "OSError: [Errno 28] No space left on device"; exit 1'
  course run --on interpreter 1
  check 'a full disk' contains "$errors" 'The disk is full: make room'
  check 'a full disk' lacks "$errors" 'Is there a network?'
  stand_in pip </dev/null
  course run --on interpreter 1
  check 'a half-made environment is made again' test ! -e "$venv/half-made"
  check 'a half-made environment is made again' called 'pip .*--require-hashes --requirement .*/wheels/headers.txt$'
  rm -r "$scratch/course/build/setup"
  course run --on interpreter 1
  check 'a complete environment stays' not_called '^pip '
  sleep 0.02
  echo '# renewed' >>"$scratch/course/tools/command/wheels/headers.txt"
  course run --on interpreter 1
  check 'renewed pins: a new environment' called '^pip '
  rm -r "$scratch/course/build/setup"
  sed -i 's/3.25.1/3.22.1/' "$scratch/bin/cmake"
  course run --on interpreter 1
  check 'an old CMake: other wheels' called 'pip .*--require-hashes --requirement .*/wheels/cmake.txt --requirement .*/wheels/headers.txt$'
  unset CUDA_HOME
}

# Where Python comes from, and where it cannot come from.
# Of a disk that was full: Python keeps what could be written.
test_half_a_module() {
  local module
  mkdir "$scratch/course/build"
  course list
  check 'compiled modules lie in build/' test -d "$scratch/course/build/pycache"
  for module in main list; do
    truncate -s 20 "$(find "$scratch/course/build/pycache" -name "$module.*.pyc")"
    course list
    [[ $code == 2 && $errors != *'there are no exercises'* ]] && course list # one that is loaded later: try again, it said
    check "half of $module" contains "$errors" 'there are no exercises here'
  done
}

test_no_python() {
  local line
  rm "$scratch/bin/python3"
  course
  check 'no Python, no command' equal "$code" 2
  course run --on interpreter 1
  check 'an installation without effect' equal "$code" 1
  check 'an installation without effect' contains "$errors" 'still no python3, 3.9 or newer'
  : >"$scratch/apt-fails"
  course run --on interpreter 1
  check 'apt-get fails' equal "$code" 1
  check 'apt-get fails' contains "$errors" "at the end of $scratch/course/build/logs/packages.log"
  rm -r "$scratch/course/build"
  for line in help --help --version; do refused 'needs python3, 3.9 or newer' "$line"; done
  stand_in id <<<'echo 1000'
  refused "su -c 'apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build python3 " run
  stand_in sudo <<<'exit 1'
  refused "sudo sh -c 'apt-get update" run
  stand_in sudo <<<'shift; exec "$@"'
  on_terminal $'n\n' run
  check 'no to sudo, for Python' equal "$code" 2
  check 'no to sudo, for Python' contains "$errors" "install Debian's packages python3 with sudo? [Y/n]"
  check 'no to sudo, for Python' not_called apt-get
  rm "$scratch/bin/apt-get"
  refused "install it with this system's own package manager" run
  stand_in python3 <<<'exit 1' # too old
  cat >"$scratch/bin/python3.12" <<END
#!/bin/bash
exec '$python' "\$@"
END
  chmod +x "$scratch/bin/python3.12"
  course help
  check 'an old python3 and a newer one' equal "$code" 0
}

# Too few files may be open, which bash says itself: then it does not know where the course is.
test_no_command_substitution() {
  code=0 output=''
  errors=$(PATH=$scratch/bin bash -c 'ulimit -n 5; exec "$0" list' "$scratch/course/tools/course" 2>&1 3>&- 4>&- 5>&-) || code=$?
  check 'too few files' equal "$code" 2
  check 'too few files' contains "$errors" 'Too many open files'
  check 'too few files' contains "$errors" 'cannot start another program'
  check 'too few files: two lines' equal "$(grep -c '' <<<"$errors")" 2
}

# A folder as stdin, by a slip: Python would not begin.
test_folder_as_stdin() {
  : >"$scratch/calls"
  code=0 errors=''
  output=$(PATH=$scratch/bin "$scratch/course/tools/course" help 2>&1 </tmp) || code=$?
  check 'a folder as stdin' equal "$code" 0
  check 'a folder as stdin' contains "$output" 'Usage: tools/course COMMAND'
  output=$(PATH=$scratch/bin "$scratch/course/tools/course" run --on interpreter 1 2>&1 </tmp) || code=$?
  check 'a folder as stdin: nothing is installed' not_called apt-get
}

# Bash, without a PATH, has one that it gives to nobody.
test_no_path() {
  local empty
  echo 'import os; print(os.environ.get("PATH"))' >"$scratch/course/tools/command/__main__.py"
  for empty in '-u PATH' PATH=; do
    code=0 errors=''
    # shellcheck disable=SC2086 # several arguments
    output=$(env $empty "$(type -P bash)" "$scratch/course/tools/course" help 2>&1) || code=$?
    check "env $empty" equal "$code" 0
    check "env $empty" contains ":$output:" ':/usr/bin:'
  done
}

test_build_failure() {
  : >"$scratch/build-fails"
  course run --on interpreter 1
  check 'a failed build' equal "$code" 1
  check 'a failed build' contains "$errors" 'expected a tile'
  check 'a failed build' contains "$errors" "the whole log: $scratch/course/build/logs/build-interpreter.log"
  check 'a failed build' not_called a_step
  rm "$scratch/build-fails"
  course run --on interpreter 1
  check 'the build is mended' equal "$code" 0
  check 'the build is mended' not_called '--fresh'
}

test_configured_again() {
  local name
  course run --on interpreter 1
  for name in CMakeCache.txt build.ninja; do
    rm "$scratch/course/build/interpreter/$name"
    course run --on interpreter 1
    check "without $name" equal "$code" 0
    check "without $name" called 'cmake --fresh --preset interpreter'
  done
  course run --on interpreter 1
  check 'once' not_called '--fresh'
}

test_unwritable_build_folder() {
  : >"$scratch/course/build"
  course run --on interpreter 1
  check 'build/ cannot be written' equal "$code" 2
  check 'build/ cannot be written' contains "$errors" "cannot write to $scratch/course/build"
}

test_two_at_the_same_time() {
  local other
  echo 6 >"$scratch/build-is-slow"
  PATH=$scratch/bin "$scratch/course/tools/course" run --on interpreter 1 >/dev/null 2>&1 &
  other=$!
  until [[ -d $scratch/building ]]; do sleep 0.05; done
  course run --on interpreter 10
  check 'the second one' equal "$code" 0
  check 'the second one' contains "$errors" 'waiting for another course command that is building since'
  check 'the second one: for whom' contains "$errors" "'tools/course run --on interpreter 1', process $other ..."
  check 'the first one' wait "$other"
}

test_two_into_one_folder() {
  local other
  stand_in a_step <<<'if mkdir "$SCRATCH/running" 2>/dev/null; then until [[ -e $SCRATCH/enough ]]; do sleep 0.05; done; fi'
  PATH=$scratch/bin "$scratch/course/tools/course" run --on interpreter 1 >/dev/null 2>&1 &
  other=$!
  until [[ -d $scratch/running ]]; do sleep 0.05; done
  course run --on interpreter 10
  check 'the second one' equal "$code" 2
  check 'the second one' contains "$errors" "another 'tools/course run' or 'profile' is writing to $scratch/course/build/results: wait"
  check 'the second one' not_called a_step
  course run --on interpreter 10 --out "$scratch/elsewhere"
  check 'another folder' equal "$code" 0
  : >"$scratch/enough"
  wait "$other"
  course run --on interpreter 10
  check 'when it has ended' equal "$code" 0
}

# Whatever somebody has in the environment.
test_environment() {
  mkdir "$scratch/theirs"
  echo 'raise SystemExit("somebody else")' | tee "$scratch/theirs/json.py" >"$scratch/theirs/results.py"
  cp "$scratch/theirs/json.py" "$scratch/theirs/venv.py"
  sed -i '2a echo "$LC_ALL $LANGUAGE ${CXXFLAGS-unset} ${PYTHONPATH-unset} ${NINJA_STATUS-unset}" >>"$SCRATCH/environment"' "$scratch/bin/cmake" "$scratch/bin/g++"
  make_document interpreter
  cd "$scratch/theirs"
  PYTHONPATH=$scratch/theirs PYTHONSAFEPATH=1 NINJA_STATUS=%x LANG=de_DE.UTF-8 LANGUAGE=de CXXFLAGS=-O0 CXX=clang++ CMAKE_CUDA_ARCHITECTURES=90 \
    course run --on interpreter 1
  check 'their environment' equal "$code" 0
  check 'their environment: the report is the course'"'"'s own' contains "$output" 'counted by the interpreter'
  check 'their environment: what is ignored' contains "$errors" 'course: CXX CXXFLAGS: ignored, the course has a compiler and flags of its own.'
  check 'their environment: CMake and compilers' equal "$(sort -u "$scratch/environment" | tr '\n' ' ')" 'C.UTF-8  -O0 unset unset C.UTF-8  unset unset unset '
  check 'configuring' equal "$(grep -c unset\ unset\ unset "$scratch/environment")" 1
  CXXFLAGS=-O0 CXX=clang++ CMAKE_CUDA_ARCHITECTURES=90 course run --on interpreter 1
  check 'it is said once' lacks "$errors" ignored
  rm "$scratch/reports" "$scratch/document.json"
}

test_files_from_the_future() {
  course run --on interpreter 1
  touch -d '+1 day' "$scratch/course/CMakePresets.json"
  course run --on interpreter 1
  check 'from the future' equal "$(grep -c "is this machine's clock right" <<<"$errors")" 1
  check 'from the future' called '--fresh'
  course run --on interpreter 1
  check 'from the future: once' not_called '--fresh'
  check 'from the future: once' lacks "$errors" clock
}

test_building() {
  refused "unknown option '-j4'" build interpreter -j4
  refused "'' is no target" build interpreter ''
  refused 'is no list of commands' build interpreter --with ,
  refused 'is no list of commands' build interpreter --with ';ls'
  refused "no preset 'nosuch'. There are: interpreter interpreter-clang" build nosuch
  sed -i "s/^  \*--build\*)/&\n    echo \"ninja: error: unknown target 'nosuch'\"; exit 1/" "$scratch/bin/cmake"
  course build interpreter nosuch
  check 'a target that there is not' equal "$code" 2
  check 'a target that there is not' contains "$errors" "the preset 'interpreter' has no such target: unknown target 'nosuch'."
}

# Ctrl-C from the first moment on.
test_interrupted_beginning() {
  local pause
  for pause in 0 0.01 0.02 0.04 0.06 0.08 0.1 0.13 0.16 0.2 0.25 0.3; do
    : >"$scratch/errors" # the signal may come before the command opens it
    set -m
    PATH=$scratch/bin "$scratch/course/tools/course" run --on interpreter 1 >/dev/null 2>"$scratch/errors" &
    set +m
    sleep "$pause"
    kill -INT -- "-$!" 2>/dev/null || true
    code=0
    wait "$!" || code=$?
    errors=$(<"$scratch/errors") output=''
    check "Ctrl-C after $pause s" test "$code" = 130 -o "$code" = 0 # for it is over soon
    check "Ctrl-C after $pause s" lacks "$errors" Traceback
    rm -rf "$scratch/building"
  done
}

test_terminated_build() {
  local other
  echo 30 >"$scratch/build-is-slow"
  PATH=$scratch/bin "$scratch/course/tools/course" run --on interpreter 1 >/dev/null 2>"$scratch/errors" &
  other=$!
  until [[ -d $scratch/building ]]; do sleep 0.05; done
  kill -TERM "$other"
  SECONDS=0 code=0
  wait "$other" || code=$?
  errors=$(<"$scratch/errors") output=''
  check 'kill' equal "$code" 143
  check 'kill: soon' test "$SECONDS" -lt 20
  check 'kill: no complaint' lacks "$errors" 'could not'
}

# interrupted FILE: like course run 1, but gets Ctrl-C as soon as FILE exists.
interrupted() {
  set -m # a process group of its own, as a terminal gives to a command
  PATH=$scratch/bin "$scratch/course/tools/course" run --on interpreter 1 >/dev/null 2>"$scratch/errors" &
  set +m
  until [[ -e $1 ]]; do sleep 0.1; done
  kill -INT -- "-$!"
  code=0
  wait "$!" || code=$?
  errors=$(<"$scratch/errors") output=''
  check 'Ctrl-C' equal "$code" 130
  check 'Ctrl-C: no complaint' lacks "$errors" 'could not'
}

test_interrupted_build() {
  echo 2 >"$scratch/build-is-slow"
  interrupted "$scratch/building"
  check 'Ctrl-C: the build cleaned up' test ! -e "$scratch/building"
  rm "$scratch/build-is-slow"
  course run --on interpreter 1
  check 'the next run works' equal "$code" 0
}

test_interrupted_installation() {
  echo elfutils/libdwfl.h >"$scratch/missing"
  stand_in apt-get <<'END'
[[ $* == *install* && $* != *--download-only* ]] || exit 0
# In Perl, because a shell cannot catch a signal that is ignored when it starts, and apt-get can.
exec perl -e '
  chdir $ENV{SCRATCH};
  $SIG{INT} = sub { open my $file, ">", "half-installed"; exit 100 };
  open my $file, ">", "installing";
  select undef, undef, undef, 0.5;
  truncate "missing", 0;
'
END
  interrupted "$scratch/installing"
  check 'Ctrl-C waits for dpkg' test ! -e "$scratch/half-installed" -a ! -s "$scratch/missing"
}

test_running_ctest() {
  course test --on interpreter
  check 'course test' equal "$code" 0
  check 'everything is built' called 'cmake --build --preset interpreter$'
  check 'ctest' called \
    "ctest --test-dir $scratch/course/build/interpreter --output-on-failure --no-tests=error -j[0-9]*\$"
  course test --on=interpreter -- -R 'one two' --verbose
  check 'arguments for ctest' called 'ctest .* -R one two --verbose$'
  course test --compiler clang
  check 'clang' called 'cmake --fresh --preset interpreter-clang -DCMAKE_CXX_COMPILER=.*/clang++ '
  check 'clang' called 'ctest --test-dir .*/build/interpreter-clang '
  : >"$scratch/ctest-fails"
  course test --on interpreter
  check 'a failed test' equal "$code" 1
}

# Some of the tests: what they need is built, and nothing else.
test_some_tests() {
  local build=$scratch/course/build/dev
  refused 'there is no such file' test --near nosuch.cpp
  touch "$scratch/course/LICENSE"
  refused 'no test is about it' test --near "$scratch/course/LICENSE"
  mkdir -p "$build"
  printf 'add_test(%s "python3" "%s")\n' table x.py first_01_naive_nn "$build/bin/01_naive_first_f16" >"$build/CTestTestfile.cmake"
  course test naive
  check 'test NAME' equal "$code" 0
  check 'test NAME: where an edit compiles little' called 'cmake --fresh --preset dev '
  check 'test NAME: what it needs is built' called 'cmake --build --preset dev --target bin/01_naive_first_f16$'
  check 'test NAME: it runs' called 'ctest --test-dir .*/build/dev .* -R ^(first_01_naive_nn)\$$'
  course test table
  check 'nothing has to be built' not_called 'cmake .*--target bin'
  check 'nothing has to be built' called 'ctest .* -R ^(table)\$$'
  course test nosuch
  check 'no such test' equal "$code" 2
  check 'no such test' contains "$errors" "no test is called 'nosuch', or has it in its name. There are: first_01_naive_nn table."
  sed -i 's/table/learnt/' "$build/CTestTestfile.cmake"
  touch "$scratch/course/steps/01_naive/gemm.cuh"
  course test --near "$scratch/course/steps/01_naive/gemm.cuh"
  check 'near a file' called 'ctest .* -R ^(first_01_naive_nn|learnt)\$$'
  check 'near a file: which tests' contains "$errors" 'running first_01_naive_nn learnt'
  check 'near a file: what else' contains "$errors" 'tools/course test test_01_naive lessons_edits'
}

for test in ${1:-$(compgen -A function test_)}; do
  start_afresh
  "$test"
  check "$test: nothing is written where the command is typed" test ! -e "$scratch/here/build"
done
echo "$passed checks passed, $failed failed"
((failed == 0))
