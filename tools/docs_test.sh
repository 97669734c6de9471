#!/usr/bin/env bash
# Tests of 'tools/course docs' and of tools/check-links, in a scratch copy whose path has a space.
# Prints every failed check; exit code 0 if there is none, 77 where 'tools/course docs' has not installed what it needs.
# shellcheck disable=SC2016 # backticks and dollars in single quotes are Markdown's
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if ! type -P doxygen >/dev/null || [[ ! -f /usr/share/javascript/mathjax/MathJax.js || ! -f $repository/build/book-venv/.wheels ]]; then
  echo "docs test: skipped, 'tools/course docs' has not run"
  exit 77
fi
scratch=$(mktemp -d -t 'docs test.XXXXXX')
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

pass() { passed=$((passed + 1)); }
miss() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n' "$1"
  shift
  (($# == 0)) || printf '%s\n' "$@" | sed 's/^/    /'
}

expect_text() { # WHAT TEXT WANTED...: TEXT has each WANTED
  local what=$1 text=$2 wanted
  shift 2
  for wanted; do
    if [[ $text == *"$wanted"* ]]; then pass; else miss "$what: no '$wanted' in" "$text"; fi
  done
}

expect_no_text() { # WHAT TEXT UNWANTED...
  local what=$1 text=$2 unwanted
  shift 2
  for unwanted; do
    if [[ $text != *"$unwanted"* ]]; then pass; else miss "$what: '$unwanted' in" "$text"; fi
  done
}

expect_code() { # WHAT WANTED COMMAND...: sets output to stdout and stderr
  local what=$1 wanted=$2 code=0
  shift 2
  output=$("$@" 2>&1) || code=$?
  if ((code == wanted)); then pass; else miss "$what: exit code $code instead of $wanted" "$output"; fi
}

# A course of two lessons, small enough to build in a second. GOOD, every run begins with it.
make_course() {
  rm -rf "$scratch/course"
  mkdir -p "$scratch/course"/{common/{gemm,device,harness,library,exercise,interpreter/count},steps/0{1_one,2_two},exercises/01_first,docs/results,tools}
  cd "$scratch/course"
  cp -r "$repository/tools/course" "$repository/tools/check-links" "$repository/tools/command" "$repository/tools/report" tools
  cp -r "$repository/docs/book" docs
  mkdir build
  ln -s "$repository/build/book-venv" build # instead of the downloads
  cp "$repository/common/gemm/matrix.h" common/gemm
  printf '/// @file\n/// Options.\n\n/// One.\nstruct Options {\n  int n;\n};\n' >common/interpreter/interpreter.h
  printf '/// @file\n/// GPUs.\n' >common/interpreter/count/gpus.h
  cat >steps/01_one/gemm.cuh <<'END'
/// @file
/// Step 01.
#include "common/gemm/matrix.h"

namespace step_01_one {

/// The sum of @f$ k @f$ products.
template <int kThreads>
__global__ __launch_bounds__(kThreads) void gemm_kernel(gemm::Matrix<const float> A) {
  extern __shared__ float s[];
}

/// Runs on host and device.
template <class T>
requires(sizeof(T) == 4) GEMM_HOST_DEVICE T twice(T x) {
  return x + x;
}

}  // namespace step_01_one
END
  sed 's|^/// Step 01\.|/// Step 02.\n/// Changes since 01:|; s/step_01_one/step_02_two/; s/return x + x;/return 2 * x;/' steps/01_one/gemm.cuh >steps/02_two/gemm.cuh
  printf '# 02 two\n' >steps/02_two/README.md
  printf '# 01 First\n' >exercises/01_first/README.md
  printf '# Exercises\n\n| exercise | lesson |\n| --- | --- |\n| [01](01_first/README.md) | [01](../steps/01_one/README.md) |\n' >exercises/README.md
  printf 'a,b\n1,<2>\n' >docs/results/table.csv
  printf '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>\n' >docs/plot.svg
  printf 'int main() {}\n' >tools/main.cpp
  cat >README.md <<'END'
# A course

[One](steps/01_one/README.md), its [second
part](steps/01_one/README.md#two--of-2), [code](steps/01_one/gemm.cuh), [contract](common/gemm/matrix.h), [tools/](tools),
[main](tools/main.cpp), [elsewhere](https://example.com/x).

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="docs/plot.svg">
  <img src="docs/plot.svg" alt="a plot">
</picture>

![again](docs/plot.svg)
END
  cat >steps/01_one/README.md <<'END'
# 01 one: a lesson

The bound is $`\min(\pi, \beta I)`$; `$HOME` and `$x$` are code, `` $`y`$ `` too; 5 $ is no formula.

```math
I = \frac{2 m n k}{b (m k + k n)}
```

```cpp block_sum
int x[3];  // [not](a/link)
```

```
 ┌───┐   rC[i][j] += @x \y
 │ A │──▶ ▓▓▓
```

<!-- table counted -->
| tile | bytes |
| --- | --- |
| 8×8 | 1,024 |
<!-- end -->

<details>
<summary>Answer</summary>

First words of it:

- an item

</details>

## Two: × of `2`

Back to [the start](../../README.md), up to [this](#two--of-2), to [the table](../../docs/results/table.csv).
END
}

article() { tr -d '\n' <"$1" | grep -o '<article.*</article>'; } # PAGE

neighbour() { grep -o "<a class=\"$2-page\" href=\"[^\"]*\"" "$1" | sed 's/.*href="//; s/"$//'; } # PAGE next|prev

test_site() {
  local html=build/docs/html page
  expect_code 'a good course' 0 tools/course docs
  expect_text 'a good course' "$output" "$scratch/course/build/docs/html/index.html"
  expect_text 'where it begins' "$(<$html/index.html)" 'url=README.html'
  page=$(article $html/README.html)
  expect_text 'main page' "$page" 'href="steps/01_one/README.html"' 'href="steps/01_one/README.html#two-of-2"' \
    'href="files/steps/01_one/gemm.cuh.html"' 'href="files/common/gemm/matrix.h.html"' 'href="files/tools/index.html"' \
    'href="files/tools/main.cpp.html"' 'href="https://example.com/x"' 'src="_images/plot.svg"' \
    'class="only-light"' 'class="only-dark"'
  page=$(article $html/steps/01_one/README.html)
  expect_text 'lesson' "$page" '\(\min(\pi, \beta I)\)' 'I = \frac{2 m n k}{b (m k + k n)}' '$HOME' '$x$' '$`y`$' '5 $ is' \
    'href="../../files/docs/results/table.csv.html"' '│ A │──▶ ▓▓▓' 'rC[i][j] += @x \y' '1,024' 'href="#two-of-2"' 'href="../../README.html"'
  expect_no_text 'lesson' "$page" 'src="http' 'repo:' '{math}' 'block_sum'
  # All of the answer is in the fold, and nothing else is.
  page=$(grep -o '<details>.*</details>' <<<"${page%%<details id=*}")
  expect_text 'fold' "$page" '<summary>Answer</summary>' 'First words' 'an item'
  expect_no_text 'fold' "$page" 'Two: ×'
  expect_text 'head of a lesson' "$(<$html/steps/01_one/README.html)" 'src="../../_static/mathjax/MathJax.js"'
  expect_text 'its kernel' "$(article $html/steps/01_one/README.html)" '<details id="kernel" class="beside" name="source">' 'gemm_kernel'
  expect_no_text 'the first kernel' "$(article $html/steps/01_one/README.html)" '<details id="changes"'
  page=$(article $html/steps/02_two/README.html)
  expect_text 'what a kernel changes' "$page" 'What it changes of 01: 5 lines new, 4 gone' 'class="line new"' 'class="line gone"'
  page=$html/steps/01_one/README.html
  expect_text 'the order of reading' "$(neighbour $html/README.html next) $(neighbour $page prev) $(neighbour $page next)" \
    'exercises/README.html ../../exercises/README.html ../../exercises/01_first/README.html'
  expect_text 'the order of reading' "$(neighbour $html/exercises/01_first/README.html next)" ../../steps/02_two/README.html
  expect_text 'search' "$(<$html/searchindex.js)" 'elsewher' '"__shared__"'
  expect_text 'file page' "$(<$html/files/docs/results/table.csv.html)" '1,&lt;2&gt;' '<span id=L2 '
  expect_text 'folder page' "$(<$html/files/tools/index.html)" '<a href="main.cpp.html">main.cpp</a>' '<li>check-links</li>'
  page=$(cat $html/api/*gemm_8cuh.html) # its name differs between versions
  expect_text 'API' "$page" '__global__ void' 'gemm_kernel' '\( k \)' 'src="../_static/mathjax/MathJax.js"'
  expect_no_text 'API' "$page" 'launch_bounds' 'GEMM_HOST_DEVICE'
  expect_text 'the way to the API' "$(<$html/steps/01_one/README.html)" 'href="../../api/files.html"'
  if [[ -f $html/_static/mathjax/MathJax.js && -f $html/_static/mathjax/jax/output/SVG/fonts/TeX/Main/Regular/Main.js ]]; then
    pass
  else
    miss 'MathJax is not in the book'
  fi

  # Nothing to do, and something to do again.
  touch -d '1 hour ago' $html/index.html
  page=$(stat -c %Y $html/index.html)
  expect_code 'nothing changed' 0 tools/course docs
  if [[ $(stat -c %Y $html/index.html) == "$page" ]]; then pass; else miss 'built again without a reason'; fi
  echo >>README.md
  echo '# My notes, [gone](gone.md)' >steps/01_one/notes.md # whoever learns may have files of his own
  expect_code 'a changed lesson' 0 tools/course docs
  if [[ $(stat -c %Y $html/index.html) != "$page" ]]; then pass; else miss 'not built again after a change'; fi
}

expect_broken_site() { # WHAT TEXT...: fails, says TEXT, and leaves the last good site alone
  local what=$1
  shift
  expect_code "$what" 1 tools/course docs
  expect_text "$what" "$output" "$@"
  if [[ -f build/docs/html/index.html ]]; then pass; else miss "$what: the last good site is gone"; fi
  restore
}

restore() {
  rm -f common/README.md
  cp -r "$scratch/good/." .
}

test_broken_sites() {
  rm -rf "$scratch/good"
  mkdir "$scratch/good"
  cp -r README.md steps common docs tools "$scratch/good"

  sed -i 's|^/// Step 01\.|/// Step 01, \\ref nowhere.|' steps/01_one/gemm.cuh
  expect_broken_site 'a wrong \ref' "steps/01_one/gemm.cuh:1: warning: unable to resolve reference to 'nowhere'"
  sed -i '/^\/\/\/ Runs on host/d' steps/01_one/gemm.cuh
  expect_broken_site 'an undocumented function' 'steps/01_one/gemm.cuh:14: warning: Member' 'twice(T x) (function) of ' \
    'is not documented'
  echo '[gone](docs/gone.md)' >>README.md
  expect_broken_site 'a dead link' 'README.md: WARNING: a link leads to docs/gone.md, which does not exist'
  echo '[gone](docs/gone.svg)' >>README.md
  expect_broken_site 'a dead link to a file' 'README.md: WARNING: a link leads to docs/gone.svg, which does not exist'
  echo '[gone](steps/01_one/README.md#gone)' >>README.md
  expect_broken_site 'a dead anchor' "'steps/01_one/README': 'gone'"
  echo '![gone](docs/gone.svg)' >>README.md
  expect_broken_site 'a picture that is not there' 'image file not readable: docs/gone.svg'
  echo '![badge](https://example.com/badge.svg)' >>README.md
  expect_broken_site 'an image from elsewhere' 'loads https://example.com/badge.svg: the book has to work without a network'
  echo 'To <a href="steps/01_one/README.md">one</a>' >>README.md
  expect_broken_site 'a link in HTML' 'README.md: WARNING: <a href=": write a link as [text](target)'
  printf '# More\n' >common/README.md
  echo '[more](common/README.md)' >>README.md
  expect_broken_site 'a page of no part' 'README.md: WARNING: a link leads to common/README.md, which is in no part of the book'
  echo 'NO_SUCH_TAG = YES' >>docs/book/Doxyfile
  expect_broken_site 'an unknown tag' 'NO_SUCH_TAG'
}

test_arguments() {
  expect_code 'help' 0 tools/course docs --help
  expect_text 'help' "$output" 'Usage: tools/course docs'
  expect_code 'an argument' 2 tools/course docs html
  expect_code 'an unknown option' 2 tools/course docs --pdf
}

test_links() {
  make_course
  expect_code 'live links' 0 tools/check-links
  # shellcheck disable=SC2129
  printf '%s\n' '' '`[code](gone-1.md)`' '' '```' '[code](gone-2.md)' '```' '<!-- [comment](gone-3.md) -->' >>README.md
  expect_code 'links in code' 0 tools/check-links
  printf '%s\n' '[two' 'lines](gone-4.md)' '![image](gone-5.svg) <a href="gone-6/">x</a> [ref][r]' '' '[r]: gone-7.md' >>README.md
  printf '%s\n' '[a](#gone-8) [b](../../README.md#gone-9) [c](../../../x) [d](/README.md)' >>steps/01_one/README.md
  expect_code 'dead links' 1 tools/check-links
  expect_text 'dead links' "$output" 'README.md:21: gone-4.md: there is no gone-4.md' 'README.md:22: gone-5.svg: ' \
    'README.md:22: gone-6/: ' 'README.md:24: gone-7.md: ' 'steps/01_one/README.md:36: #gone-8: ' \
    'steps/01_one/README.md:36: ../../README.md#gone-9: README.md has no such heading' '../../../x: leads out of the repository' \
    '/README.md: starts with /' 'check-links: 8 of '
  expect_no_text 'dead links' "$output" gone-1 gone-2 gone-3
  expect_code 'a folder that is none' 2 tools/check-links nowhere
}

make_course
test_site
test_broken_sites
test_arguments
test_links
echo "docs test: $passed checks passed, $failed failed"
((failed == 0))
