# shellcheck shell=bash
# Reads and checks arguments. Sourced after terminal.sh and toolchain.sh. Every check refuses with what to type instead.

# --- the command line ---

declare -A options=()         # by name, dashes included
positional=() after_dashes=() # the rest, before and after --

# parse_arguments COMMAND "--options --with --value" "--flags" ARGUMENT...: fills options, positional and after_dashes.
parse_arguments() {
  local command=$1 with_value=" $2 " flags=" $3 " name
  shift 3
  while (($#)); do
    name=${1%%=*}
    case $1 in
      -h | --help) "help_$command" && exit 0 ;;
      --) after_dashes=("${@:2}") && return ;;
      --*)
        if [[ $flags == *" $1 "* ]]; then
          options[$name]=yes
        elif [[ $with_value != *" $name "* ]]; then
          refuse "unknown option '$1'; 'course $command --help' lists them."
        elif [[ $1 == *=* ]]; then
          options[$name]=${1#*=}
        elif (($# > 1)); then
          options[$name]=$2
          shift
        else
          refuse "$name needs a value; see 'course $command --help'."
        fi
        ;;
      -*) refuse "unknown option '$1'; 'course $command --help' lists them." ;;
      *) positional+=("$1") ;;
    esac
    shift
  done
}

# --- steps ---

find_steps() { # sets the array all_steps
  local folder
  all_steps=()
  for folder in "$root"/steps/[0-9]*/; do
    folder=${folder%/}
    all_steps+=("${folder##*/}")
  done
}

# select_step TEXT: appends to the array steps, if it is not there, the one whose number is TEXT or whose folder's name
# starts with TEXT.
select_step() {
  local text=$1 step number matches=()
  # Tab completion gives steps/01_naive/.
  text=${text#steps/}
  text=${text%/}
  for step in "${all_steps[@]}"; do
    if [[ $text =~ ^0*([0-9]+)$ ]]; then
      number=${BASH_REMATCH[1]}
      if [[ $step =~ ^0*([0-9]+)_ && ${BASH_REMATCH[1]} == "$number" ]]; then matches+=("$step"); fi
    elif [[ -n $text && $step == "$text"* ]]; then
      matches+=("$step")
    fi
  done
  case ${#matches[@]} in
    0) refuse "no step '$1'. Give a number or the start of a name: ${all_steps[*]}." ;;
    1) [[ " ${steps[*]} " == *" ${matches[0]} "* ]] || steps+=("${matches[0]}") ;;
    *) refuse "step '$1' could be any of: ${matches[*]}." ;;
  esac
}

# --- values ---

# parse_shapes LIST: sets the array shapes, each of the form 'M N K'.
parse_shapes() {
  local text extent extents list
  [[ $1 =~ ^[0-9]+x[0-9]+x[0-9]+(,[0-9]+x[0-9]+x[0-9]+)*$ ]] ||
    refuse "--shape '$1' is not MxNxK: three whole numbers, for example --shape 256x128x512; several with commas between."
  shapes=()
  IFS=, read -ra list <<<"$1"
  for text in "${list[@]}"; do
    shapes+=('')
    IFS=x read -ra extents <<<"$text"
    for extent in "${extents[@]}"; do
      [[ $extent =~ ^0*([0-9]+)$ ]]
      extent=${BASH_REMATCH[1]}
      # 18 digits always fit into 64 bits, so that no arithmetic below can overflow unseen.
      ((${#extent} <= 18)) || refuse "--shape '$text' is too large: no machine has the memory for it. Try 256x256x256."
      shapes[-1]+="$extent "
    done
  done
}

# parse_choice OPTION VALUE CHOICE...
parse_choice() {
  local option=$1 value=$2 choice
  shift 2
  for choice; do [[ $value != "$choice" ]] || return 0; done
  refuse "$option '$value' is none of: $*."
}

# parse_choices OPTION LIST CHOICE...: several with commas between.
parse_choices() {
  local option=$1 values value
  # A comma at the end would vanish.
  IFS=, read -ra values <<<"$2,"
  shift 2
  ((${#values[@]})) || values=('')
  for value in "${values[@]}"; do parse_choice "$option" "$value" "$@"; done
}

parse_dtype() { # sets dtype and element_bytes
  case $1 in
    f32 | fp32) dtype=f32 element_bytes=4 ;;
    f16 | fp16) dtype=f16 element_bytes=2 ;;
    bf16) dtype=bf16 element_bytes=2 ;;
    *) refuse "--dtype '$1' is none of: f32 f16 bf16 (fp32 and fp16 mean the same)." ;;
  esac
}

parse_order() {
  [[ $1 =~ ^(forward|reverse|random|random:[0-9]{1,18})$ ]] ||
    refuse "--order '$1' is none of: forward reverse random random:SEED, with SEED a whole number of up to 18 digits."
}

# parse_folder OPTION PATH: sets folder to it as an absolute path.
parse_folder() {
  [[ -n $2 ]] || refuse "$1 needs the name of a folder."
  folder=$2
  [[ $folder == /* ]] || folder=$PWD/$folder
}

# require_writable FOLDER: makes it, and writes there as much as a long run does: results come when it is too late to ask.
require_writable() {
  local probe="$1/.probe.$$" good=yes
  if [[ -e $1 && ! -d $1 ]]; then refuse "cannot write to $1: it is a file. Name a folder with --out."; fi
  { mkdir -p "$1" && printf '%*s' 1000000 '' >"$probe"; } 2>/dev/null || good=''
  rm -f "$probe" 2>/dev/null || true
  [[ -n $good ]] ||
    refuse "cannot write to $1: make the folder yours, make room on its disk, or name another one with --out."
}

# --- where to run ---

# Sets reason to why nothing can be measured here; to nothing if it can.
find_reason_against_gpu() {
  reason=''
  if ! has_gpu; then
    reason='this machine has no NVIDIA GPU that can be used'
  elif ! find_nvcc; then
    reason='there is a GPU but no nvcc: install the CUDA toolkit, 12.8 or newer, or set CUDA_HOME'
  elif ! find_toolkit_headers; then
    reason="there is a GPU but $nvcc is older than CUDA 12.8: install a newer toolkit, or set CUDA_HOME"
  fi
}

# choose_backend [gpu|interpreter]: sets on; without an argument, the GPU if one can be used.
choose_backend() {
  on=${1:-interpreter}
  if [[ $on == interpreter ]] && { [[ -n ${1:-} ]] || ! has_gpu; }; then return; fi
  local reason
  find_reason_against_gpu
  if [[ -z $reason ]]; then
    on=gpu
  elif [[ $on == gpu ]]; then
    refuse "--on gpu: $reason. Or run with --on interpreter."
  else
    say "$reason; using the interpreter."
  fi
}

# --- memory ---

readonly LARGEST=9223372036854775807 # of a 64-bit integer: sums and products stop there instead of wrapping around

saturating_product() { # sets product
  product=$(($1 > 0 && $2 > LARGEST / $1 ? LARGEST : $1 * $2))
}

matrix_bytes() { # M N K: sets bytes to the size of A, B and C together
  local m=$1 n=$2 k=$3 rows columns product
  bytes=0
  for rows in "$m $k" "$k $n" "$m $n"; do
    read -r rows columns <<<"$rows"
    saturating_product "$rows" "$columns"
    saturating_product "$product" "$element_bytes"
    bytes=$((bytes > LARGEST - product ? LARGEST : bytes + product))
  done
}

host_memory() { # sets available
  local key value limit
  available=$LARGEST
  while read -r key value _; do
    [[ $key != MemAvailable: ]] || available=$((value * 1024))
  done <"$machine/proc/meminfo"
  # A container's own limit, which /proc/meminfo does not know.
  if { read -r limit <"$machine/sys/fs/cgroup/memory.max"; } 2>/dev/null && [[ $limit =~ ^[0-9]{1,18}$ ]]; then
    available=$((limit < available ? limit : available))
  fi
}

gpu_memory() { # sets available to what the largest GPU has; the program itself asks the one that it uses
  local mebibytes
  available=0
  while read -r mebibytes; do
    [[ ! $mebibytes =~ ^[0-9]{1,9}$ ]] || ((available >= mebibytes << 20)) || available=$((mebibytes << 20))
  done < <(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null)
  ((available)) || available=$LARGEST
}

readable_size() { # BYTES
  if (($1 >= 10 << 30)); then echo "$(($1 >> 30)) GiB"; else echo "$(($1 >> 20)) MiB"; fi
}

require_memory() { # BYTES WHAT WHERE
  (($1 <= available)) ||
    refuse "the shape needs $(readable_size "$1") for $2;" \
      "$3 has $(readable_size "$available"): take a smaller --shape."
}

# The interpreter keeps shadow memory beside each matrix: who wrote what, and was it ever written.
readonly INTERPRETER_BYTES_PER_BYTE=12

check_memory() {
  local shape
  # shellcheck disable=SC2086 # 'M N K'
  for shape in "${shapes[@]}"; do check_memory_for $shape; done
}

check_memory_for() { # M N K
  local bytes available product
  matrix_bytes "$@"
  host_memory
  if [[ $on == interpreter ]]; then
    saturating_product "$bytes" $INTERPRETER_BYTES_PER_BYTE
    require_memory "$product" "A, B, C and the interpreter's shadow memory" 'this machine'
    return
  fi
  require_memory "$bytes" 'A, B and C' 'this machine'
  # nvidia-smi may take a second: every GPU has room for this much.
  ((bytes > 1 << 30)) || return 0
  gpu_memory
  require_memory "$bytes" 'A, B and C' 'the GPU'
}
