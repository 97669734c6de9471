# shellcheck shell=bash
# The command 'docs': API pages and lessons as a site of HTML pages. Sourced after build.sh and arguments.sh.

readonly MATHJAX=/usr/share/javascript/mathjax
# Of its 54 MB, what an SVG from TeX needs.
readonly MATHJAX_PARTS=(MathJax.js extensions jax/input/TeX jax/element jax/output/SVG/{jax.js,config.js,autoload,fonts/TeX})

help_docs() {
  cat <<'END'
Usage: tools/course docs [OPTION...]

Builds the lessons, the manual and the pages of the API into build/docs/html, with Doxygen, and says where they begin.
Every warning is an error, and so is a dead link. The pages need no network, formulas included.

  --force   build again although nothing has changed
  --help    show this

Exit code: 0 the site is there, 1 a warning, a dead link or a failed installation, 2 refused input, 130 interrupted.
END
}

install_docs_tools() {
  local command missing=()
  for command in doxygen python3; do type -P "$command" >/dev/null || missing+=("$command"); done
  [[ -f $MATHJAX/MathJax.js ]] || missing+=(libjs-mathjax)
  if ((${#missing[@]})); then install_packages "${missing[@]}"; fi
}

# What the site depends on: the course's files, where they lie, and Doxygen.
docs_state() {
  printf '%s\n' "$root" "$(doxygen --version)"
  find "$root" \( -path "$build" -o -name '.?*' -o -name __pycache__ \) -prune -o -type f -printf '%P %s %T@\n' | sort
}

# Doxygen's warnings, without those about what needs no words: fields of a documented struct, specialisations of a documented
# template, moves, parameters beside one that has something to say, and what common/gemm/gemm.h says of all steps.
due_warnings() {
  sed -E -e '/warning: Member .* \(variable\) of (struct|class) .* is not documented\.$/d' \
    -e '/warning: Member [^ (]*< .* is not documented\.$/d' \
    -e '/warning: Member .*&&other\) noexcept .* is not documented\.$/d' \
    -e '/warning: Member (Inputs|Tiles|MoreTiles|gemm)[ (].* of namespace step_[a-z0-9_]+ is not documented\.$/d' \
    -e '/warning: The following parameters? of .* (is|are) not documented:$/d' -e "/^  parameter '.*'$/d"
}

run_doxygen() { # FOLDER, which is empty; its output is what is wrong
  local warnings code=0
  (cd "$root" && DOCS_OUTPUT=$1 doxygen docs/Doxyfile) >"$1/doxygen.log" 2>&1 || code=$?
  warnings=$(due_warnings <"$1/doxygen.log" | sort -u)
  if [[ -n $warnings ]]; then printf '%s\n' "${warnings//"$root/"/}"; fi
  if ((code)) || [[ -n $warnings ]]; then return 1; fi
  mkdir "$1/html/mathjax" &&
    (cd "$MATHJAX" && cp -RL --parents "${MATHJAX_PARTS[@]}" "$1/html/mathjax") &&
    (cd "$root" && python3 docs/doxygen/site.py finish "$1/html" "$1/site.tag")
}

build_docs() {
  local site=$build/docs log=$build/logs/docs.log state
  state=$(docs_state)
  if [[ -f $site/.state && $(<"$site/.state") == "$state" ]]; then return; fi
  rm -rf "$site.new"
  mkdir -p "$site.new"
  if ! logged 'building the site' "$log" run_doxygen "$site.new"; then
    show_log_tail "$log"
    fail 'the site has warnings or dead links, which count as errors.'
  fi
  printf '%s\n' "$state" >"$site.new/.state"
  rm -rf "$site"
  mv "$site.new" "$site"
}

command_docs() {
  parse_arguments docs '' '--force' "$@"
  ((${#positional[@]} + ${#after_dashes[@]} == 0)) ||
    refuse "'${positional[0]-${after_dashes[0]-}}': docs takes no arguments but --force and --help."
  lock_build_folder
  install_docs_tools
  [[ ! -v options[--force] ]] || rm -f "$build/docs/.state"
  build_docs
  unlock_build_folder
  printf '%s\n' "$build/docs/html/index.html"
}
