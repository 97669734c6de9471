# shellcheck shell=bash
# Messages, progress and logs. Sourced, never run.

# Messages go to stderr, so that stdout holds nothing but results.
say() { printf 'course: %s\n' "$*" >&2; }

# The input, or the machine as it is, cannot work: the reader has to change something. Exit 2.
refuse() {
  say "$@"
  exit 2
}

# What was asked is fine, but it went wrong. Exit 1.
fail() {
  say "$@"
  exit 1
}

# follow TITLE LOG: copies stdin to LOG and shows how far it is: the latest line on a terminal, else just the title.
# A command that had nothing to do shows nothing.
follow() {
  local title=$1 log=$2 line shown=''
  local -i width=${COLUMNS:-80}-1 start=SECONDS
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line" >&3
    [[ $line != 'ninja: no work to do.' && $line != *'Re-checking globbed directories...' ]] || continue
    if [[ -t 2 ]]; then
      line="$title: ${line//[[:cntrl:]]/ }"
      printf '\r\e[K%s' "${line:0:width}" >&2
    elif [[ -z $shown ]]; then
      say "$title"
    fi
    shown=yes
  done 3>"$log"
  if [[ -t 2 && -n $shown ]]; then
    printf '\r\e[K' >&2
    say "$title: $((SECONDS - start)) s"
  fi
}

# logged TITLE LOG COMMAND...: runs COMMAND quietly; its output goes to LOG. Returns COMMAND's exit code.
logged() {
  local title=$1 log=$2 code=0
  shift 2
  # The reader ignores Ctrl-C: COMMAND gets it too, and its clean-up would end early on a broken pipe.
  "$@" 2>&1 </dev/null | {
    trap '' INT
    follow "$title" "$log"
  } || code=${PIPESTATUS[0]}
  return "$code"
}

show_log_tail() {
  tail -n 25 "$1" | sed 's/^/  | /' >&2
  say "the whole log: $1"
}
