#!/usr/bin/env bash
# Usage: example_test.sh BLOCK_SUM BLOCK_SUM_BUG
# The example does what docs/interpreter.md says, is as short as it says, and is quoted there as it is.
set -uo pipefail
folder=$(dirname "${BASH_SOURCE[0]}")
failed=0
fail() { echo "FAILED: $*"; failed=1; }

output=$("$1" 2>&1) || fail "the example exits with $?: $output"
grep -qE 'total +global load +32 +128 sectors +4\.00' <<< "$output" || fail "no counters in: $output"

output=$("$2" 2>&1)
code=$?
((code == 1)) || fail "with the planted bug, the example exits with $code instead of 1"
for part in 'interpreter: racecheck: race on sums' 'block_sum.cpp:14' 'variable sums' '__syncthreads() between the two'; do
  grep -qF -- "$part" <<< "$output" || fail "no '$part' in: $output"
done

lines=$(wc -l < "$folder/block_sum.cpp")
((lines <= 30)) || fail "the example has $lines lines, the manual promises at most 30"
quoted=$(awk '/^```cpp block_sum$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$folder/../interpreter.md")
[[ $quoted == "$(cat "$folder/block_sum.cpp")" ]] || fail 'docs/interpreter.md quotes another text than block_sum.cpp'
exit $failed
