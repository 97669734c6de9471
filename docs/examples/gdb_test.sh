#!/usr/bin/env bash
# Usage: gdb_test.sh PROGRAM
# Does what docs/interpreter.md says about gdb to PROGRAM, block_sum compiled with -O0 -g3.
# Exit code: 0 gdb stopped in the right thread and knew its variables, 1 it did not, 77 gdb cannot be used here.
# shellcheck disable=SC2016 # gdb's own variables
set -uo pipefail

skip() {
  echo "SKIPPED: $*"
  exit 77
}
type -P gdb > /dev/null || skip 'gdb is not installed (apt-get install gdb)'

script=$(dirname "${BASH_SOURCE[0]}")/block_sum.gdb
output=$(timeout 60 gdb -nx -batch -x "$script" "$1" 2>&1 < /dev/null)
echo "$output"
[[ $output != *ptrace:* ]] || skip 'gdb may not trace processes here'

failed=0
expect() {
  grep -qE -- "$1" <<< "$output" || { echo "MISSING: $1"; failed=1; }
}
expect 'hit Breakpoint 2, block_sum \(in=0x[0-9a-f]+, out=0x[0-9a-f]+\) at .*block_sum\.cpp:9$'
expect '^\$1 = 5$'                          # threadIdx.x
expect '^\$2 = 5$'                          # t
expect '^\$3 = \{x = 256, y = 1, z = 1\}$'  # blockDim
expect '^\$4 = 0\.5$'                       # sums[t], stored by the line
exit $failed
