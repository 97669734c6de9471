"""Turns CUDA C++ into C++ that g++ compiles with common/interpreter/cuda_runtime/program.h.

Only what g++ cannot parse is replaced. All else keeps its line and its column: a replacement of another length stands on lines of its
own, and '#line' and spaces bring what follows back to its place. Inside parentheses, which may be a macro's, and inside '#define' there
can be no '#line': there the rest of the line moves to the right.
"""

import bisect
import copy
import functools
import re

import inline_ptx
from own_names import rename_own
from structure import functions, matching, skip_template
from tokens import Lines, tokens

# Words of nvcc's for words of program.h, as long as they are.
_WORDS = {"__CUDACC__": "COURSE_CUDA", "__NVCC__": "COURSE__", "__noinline__": "CUDANOINLINE"}
# What a view says of the architecture. nvcc compiles a file for the host, too, where these have no value.
DEVICE = {"__CUDA_ARCH__": "COURSE_ARCH_D", "__CUDA_ARCH_FEAT_SM90_ALL": "COURSE_ARCH_FEAT_SM90_ALL"}
HOST = {word: "_" * (len(word) - len("COURSE_HOST")) + "COURSE_HOST" for word in DEVICE}
_RUNTIME = "::interpreter::cuda_runtime::"
_LAUNCH_FUNCTIONS = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelEx", "cudaLaunchKernelExC")


def _word_pattern(words):
    return re.compile(r"(?<![A-Za-z0-9_])(" + "|".join(map(re.escape, words)) + r")(?![A-Za-z0-9_])")


_PLAIN_WORDS = _word_pattern([*_WORDS, *DEVICE])
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
_PRAGMA_OF_MACRO = re.compile(r"([ \t]*#[ \t]*define[ \t]+\w+[ \t]+)#[ \t]*pragma[ \t]+([\w \t]*\w)[ \t]*")
_ARCHITECTURE = _word_pattern(DEVICE)
_OPENING, _ELSE = ("if", "ifdef", "ifndef"), ("elif", "elifdef", "elifndef", "else")
_HARMLESS = ("error", "warning", "pragma", "line", "")  # directives that say nothing about what follows them


def replace_words(text, view):
    return _PLAIN_WORDS.sub(lambda m: _WORDS.get(m[1]) or view[m[1]], text)


def _kind(directive):
    return re.match(r"[ \t]*#[ \t]*(\w*)", directive.text)[1]


class Launch:
    """One 'kernel<<<configuration>>>(arguments)' as indices into the visible tokens."""

    def __init__(self, kernel, opening, closing):
        self.kernel, self.opening, self.closing = kernel, opening, closing  # first token; '<<<'; first '>' of '>>>'


def _begin_of_postfix(visible, partner, i):
    """First token of the expression that ends in front of index `i`: names with scopes and template arguments, members, calls."""
    j = i - 1
    while j >= 0:
        text = visible[j].text
        if text in (")", "]") and j in partner:
            j = partner[j]
            before = visible[j - 1] if j else None
            if before and (before.kind == "word" or before.text in (")", "]", ">")) and before.text not in ("return", "else", "do", "case"):
                # '(*table)[2]' and 'choose(x)' go on, 'if (x) (*kernel)' does not.
                if not (visible[j].text == "(" and before.text == ")"):
                    j -= 1
                    continue
            return j
        if text == ">":
            depth = 0
            while j >= 0:
                text = visible[j].text
                if text in (")", "]", "}") and j in partner:
                    j = partner[j]
                elif text == ">":
                    depth += 1
                elif text in ("<", "<<"):
                    depth -= len(text)
                    if depth <= 0:
                        break
                elif text in (";", "{"):
                    return None
                j -= 1
            j -= 1
            continue
        if visible[j].kind != "word":
            return j + 1 if j + 1 < i else None
        if j and visible[j - 1].text == "template":
            j -= 1
        before = visible[j - 1].text if j else ""
        if before == "##":
            j -= 2
            continue
        if before == "::":
            if j >= 2 and (visible[j - 2].text == ">" or (visible[j - 2].kind == "word" and visible[j - 2].text not in ("return", "else", "do"))):
                j -= 2
                continue
            return j - 1
        if before in (".", "->"):
            j -= 2
            continue
        return j
    return 0


def _end_of_configuration(visible, partner, opening):
    """Index of the first '>' of the '>>>' that closes the '<<<' at `opening`. The last one that a '(' follows: one before it closes
    template arguments."""
    found = None
    j = opening + 1
    while j < len(visible):
        text = visible[j].text
        if text in ("(", "[", "{") and j in partner:
            j = partner[j]
        elif text in (";", "<<<", ")", "]", "}"):
            break
        elif text == ">" and _is_run(visible, j, 3) and (j + 3 == len(visible) or visible[j + 3].text == "("):
            found = j
        j += 1
    return found


def _is_run(visible, j, count):
    """Whether `count` '>' follow each other without a gap."""
    return all(j + k < len(visible) and visible[j + k].text == ">" and visible[j + k].start == visible[j].start + k for k in range(count))


def launches(visible, partner):
    found = []
    for i, token in enumerate(visible):
        if token.text != "<<<":
            continue
        kernel, closing = _begin_of_postfix(visible, partner, i), _end_of_configuration(visible, partner, i)
        if kernel is not None and closing is not None:
            found.append(Launch(kernel, i, closing))
    return found


def _pieces(kernel, name=None):
    """What stands in front of the kernel, between it and the configuration, and behind the configuration. `name`: C++ for its name. The
    kernel's own tokens stand inside the lambdas, whose names must not hide a program's: none of those begins with 'course_'."""
    call = f"[&](auto&&... course_a) {{ {kernel}(static_cast<decltype(course_a)&&>(course_a)...); }}"
    takes = "void (*&course_f)(course_P...)"
    address = f"[&]<class... course_P>({takes}) requires requires {{ course_f = {kernel}; }} {{ course_f = {kernel}; }}"
    name = name or '"' + kernel.replace("\\", " ").replace('"', "'") + '"'
    return (
        "[&](auto course_launch) { if constexpr (requires { course_launch.function(",
        f"); }}) return course_launch.function({kernel}, {call}, {address}); else return course_launch.call({call}, {address}); }}"
        f'({_RUNTIME}LaunchSyntax({name}, {_RUNTIME}Configuration(',
        ")))",
    )


def _text(text, visible, first, last, view=DEVICE):
    """The source of tokens [first, last] without comments and on one line."""
    parts = []
    for i in range(first, last + 1):
        if i > first and visible[i].start > visible[i - 1].end:
            parts.append(" ")
        parts.append(visible[i].text)
    return replace_words("".join(parts), view)


def _asm(text, visible, partner, i, view):
    """C++ for the asm statement that begins with token `i`. Raises inline_ptx.NotHere."""
    return inline_ptx.translate(visible, partner, i, lambda first, last: _text(text, visible, first, last, view))


def rewrite_macro(text, view=DEVICE):
    """The text of a '#define': launches on the line where they are."""
    if pragma := _PRAGMA_OF_MACRO.fullmatch(text):  # which nvcc takes for one
        return f'{pragma[1]}_Pragma("{pragma[2]}")'
    visible = [t for t in tokens(text, directives=False) if t.is_seen]
    partner = matching(visible)
    # '#define NAME(' without a gap has parameters; '#' and one of them is its text.
    has_parameters = len(visible) > 3 and visible[3].text == "(" and visible[3].start == visible[2].end and 3 in partner
    parameters = {t.text for t in visible[4 : partner[3]]} if has_parameters else set()
    body = partner[3] + 1 if has_parameters else 3  # behind '#', 'define' and the name
    edits = []
    for launch in launches(visible, partner):
        if launch.kernel < body:
            continue
        kernel = _text(text, visible, launch.kernel, launch.opening - 1, view)
        before, between, behind = _pieces(kernel, f"#{kernel}" if kernel in parameters else None)
        edits.append((visible[launch.kernel].start, visible[launch.kernel].start, before))
        edits.append((visible[launch.opening].start, visible[launch.opening].end, between))
        edits.append((visible[launch.closing].start, visible[launch.closing + 2].end, behind))
    # '#define ARGS(grid, block) <<<grid, block>>>' has neither kernel nor arguments: an operator stands between them.
    closing = _end_of_configuration(visible, partner, body) if body < len(visible) and visible[body].text == "<<<" else None
    if closing is not None:
        edits.append((visible[body].start, visible[body].end, f"^{_RUNTIME}Deferred({_RUNTIME}Configuration("))
        edits.append((visible[closing].start, visible[closing + 2].end, "))"))
    for i in range(body, len(visible)):
        begin, end = visible[i].start, inline_ptx.find(visible, partner, i)
        if end is None and (visible[i].text not in inline_ptx.ASM or inline_ptx.is_empty(visible, i)):
            continue
        try:
            if end is None:
                raise inline_ptx.OfMacro
            end = visible[end].end
            edits.append((begin, end, _asm(text, visible, partner, i, view) + " \\\n" * text.count("\n", begin, end)))
        except inline_ptx.NotHere:  # whose code it is shows where the macro is used
            edits.append((begin, visible[i].end, inline_ptx.LATER))
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    return replace_words(text, view)


def _is_to_void(visible, first, last):
    """Whether tokens [first, last) are 'void*', const or not."""
    return last - first in (2, 3) and sorted(t.text for t in visible[first:last]) in (["*", "void"], ["*", "const", "void"])


def _end_of_template_name(visible, i):
    """The index behind 'name<arguments>' or '&name<arguments>'; 0 if there is no such thing."""
    i += visible[i].text == "&"
    while visible[i].text == "::" or (visible[i].kind == "word" and visible[i + 1].text in ("::", "<")):
        if visible[i + 1].text == "<":
            end = skip_template(visible, i + 1)
            return end if visible[end].text in (")", ",", ";") else 0
        i += 1
    return 0


class File:
    """One file of a program, and what is to change in it. `view`: DEVICE or HOST; `marks`: structure.marking_macros() of the program."""

    def __init__(self, text, view=DEVICE, marks=None):
        self.view = view
        self.text = text = rename_own(text)
        self.tokens = tokens(text)
        self.visible = [t for t in self.tokens if t.is_seen]
        self.partner = matching(self.visible)
        self.lines = Lines(text)
        self._edits = []  # (begin, end, text, whether columns are kept)
        self.mark(marks or {})

    def mark(self, marks):
        self.marks = marks
        self.functions = functions(self.visible, self.partner, marks)
        self._heads = [self.visible[f.head].start for f in self.functions]

    def seen_by(self, view):
        """The same file for another view, with no edits yet."""
        file = copy.copy(self)
        file.view, file._edits = view, []
        return file

    def definitions(self):
        """Of each '#define': the macro's name, what follows that as visible tokens, and the directive."""
        for token in self.tokens:
            if token.kind == "directive" and (match := _DEFINE.match(token.text)):
                yield match[1], [t for t in tokens(token.text[match.end() :], directives=False) if t.is_seen], token

    # --- what is where ---

    def function_at(self, offset):
        """The function whose declaration or body has `offset`, or None."""
        at = bisect.bisect_right(self._heads, offset) - 1
        return self.functions[at] if at >= 0 and offset <= self.visible[self.functions[at].end].end else None

    @functools.cached_property
    def _device_lambdas(self):
        """Ranges of lambdas that are marked as device code, in host functions."""
        ranges = []
        for i, token in enumerate(self.visible):
            if token.text != "__device__" or not i or self.visible[i - 1].text not in ("]", ")", "__host__"):
                continue
            j = i + 1
            while j < len(self.visible) and self.visible[j].text not in ("{", ";"):
                j = self.partner.get(j, j) + 1 if self.visible[j].text == "(" else j + 1
            if j < len(self.visible) and self.visible[j].text == "{" and j in self.partner:
                ranges.append((token.start, self.visible[self.partner[j]].end))
        return ranges

    def is_device_code(self, offset):
        function = self.function_at(offset)
        if function is None:
            return None
        return function.is_device or any(begin <= offset < end for begin, end in self._device_lambdas)

    # --- the two views ---

    def differs_between_views(self):
        """Whether device code and host code may be unlike in what the architecture decides: then one view cannot be both. Where only
        device code asks for it, in functions of its own or around them, one is enough."""
        opened = []  # of '#if's that are open: where one begins that asks outside of device code
        for token in self.tokens:
            if token.kind != "directive":
                if token.text in DEVICE and not self._is_devices_alone(token.start):
                    return True
                continue
            kind, asks = _kind(token), _ARCHITECTURE.search(token.text)
            if kind not in (*_OPENING, *_ELSE, "endif"):
                if (asks and kind not in _HARMLESS and not self._is_devices_alone(token.start)) or (kind not in _HARMLESS and any(opened)):
                    return True
                continue
            if kind in _OPENING:
                opened.append(None)
            if asks and opened and not opened[-1] and not self._is_devices_alone(token.start):
                opened[-1] = token.end
            if kind == "endif" and opened and (begin := opened.pop()):
                if any(begin <= t.start < token.start and not self._is_devices_alone(t.start) for t in self.visible):
                    return True
        return False

    def _is_devices_alone(self, offset):
        function = self.function_at(offset)
        return function is not None and function.is_device and not function.is_host

    def without_kernels(self):
        """The text with empty kernels: the host only needs to know what they are called and what they take."""
        parts, at = [], 0
        directives = [t for t in self.tokens if t.kind == "directive"]
        for function in self.functions:
            if not function.is_kernel:
                continue
            begin, end = self.visible[function.body].end, self.visible[function.end].start
            kinds = [_kind(t) for t in directives if begin <= t.start < end]
            if sum(k in _OPENING for k in kinds) == kinds.count("endif"):
                parts += [self.text[at:begin], re.sub(r"[^\n]", " ", self.text[begin:end])]
                at = end
        return "".join(parts) + self.text[at:]

    # --- edits ---

    def _replace(self, begin, end, new):
        if self.text[begin:end] != new:
            self._edits.append((begin, end, new, False))

    def _replace_and_keep_columns(self, begin, end, new, keep):
        self._edits.append((begin, end, new, keep))

    def result(self, name, last_lines=""):
        """The whole file with `last_lines` behind it; the compiler calls it `name`."""
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        parts, at = [f'#line 1 "{quoted}"\n'], 0
        for begin, end, new, keep in sorted(self._edits, key=lambda e: (e[0], e[1])):
            parts.append(self.text[at:begin])
            parts.append(self._on_its_own_line(begin, end, new) if keep else new)
            at = end
        parts += [self.text[at:], last_lines]
        return "".join(parts)

    def _on_its_own_line(self, begin, end, new):
        return f"\n#line {self.lines.line(begin)}\n{new}\n#line {self.lines.line(end)}\n{self.lines.indent(end)}"

    # --- the parts of CUDA C++ that g++ cannot parse ---

    def rewrite(self, resolve_include=lambda text, is_quoted: None, refuse=lambda line, feature: None):
        """Plans all replacements. `resolve_include` gives the path of what is included in place of a file, or None; `refuse` the C++ in
        place of a feature that the interpreter does not have."""
        self._rewrite_words()
        self._rewrite_directives(resolve_include)
        for launch in launches(self.visible, self.partner):
            self._rewrite_launch(launch)
        self._rewrite_shared_declarations()
        self._rewrite_constants()
        self._rewrite_clusters()
        self._rewrite_tensor_maps()
        self._rewrite_kernel_addresses()
        self._rewrite_launch_functions()
        self._rewrite_asm(refuse)
        self._keep_lines_behind_conditions()

    def _keep_lines_behind_conditions(self):
        """A part that the preprocessor leaves out has more lines than the user's, too, and there '#line' does nothing."""
        moved = sorted(begin for begin, _, _, keep in self._edits if keep)
        begins = []
        for token in self.tokens if moved else ():
            kind = _kind(token) if token.kind == "directive" else None
            if kind in _OPENING:
                begins.append(token.start)
            elif begins and kind in (*_ELSE, "endif"):
                if bisect.bisect(moved, begins[-1]) < bisect.bisect(moved, token.start):
                    self._replace(token.end, token.end, f"\n#line {self.lines.line(token.end) + 1}")
                if kind == "endif":
                    begins.pop()

    def _rewrite_words(self):
        for i, token in enumerate(self.visible):
            if token.text in self.view:
                self._replace(token.start, token.end, self.view[token.text])
            elif token.text in _WORDS:
                # In '__attribute__((__noinline__))' the word is g++'s own.
                if not (i and self.visible[i - 1].text in ("(", ",") and token.text == "__noinline__"):
                    self._replace(token.start, token.end, _WORDS[token.text])

    def _rewrite_directives(self, resolve_include):
        for token in self.tokens:
            if token.kind != "directive":
                continue
            kind, text = _kind(token), token.text
            if kind == "define":
                text = rewrite_macro(text, self.view)
            elif kind in ("include", "include_next"):
                text = self._rewrite_include(text, resolve_include)
            else:
                text = replace_words(text, self.view)
            self._replace(token.start, token.end, text)

    @staticmethod
    def _rewrite_include(text, resolve_include):
        match = re.match(r'([ \t]*#[ \t]*include(?:_next)?[ \t]*)(?:"([^"\n]+)"|<([^>\n]+)>)', text)
        if not match:
            return text
        path = resolve_include(match[2] or match[3], match[2] is not None)
        return text if path is None else f'{match[1]}"{path}"{text[match.end():]}'

    def _is_in_parentheses(self, i):
        """Whether the token at index `i` stands in parentheses that begin in the same braces: they may be those of a macro."""
        depth = 0
        for j in range(i - 1, -1, -1):
            text = self.visible[j].text
            if text in ("(", "["):
                if self.partner.get(j, len(self.visible)) > i:
                    return True
            elif text == "{" and self.partner.get(j, len(self.visible)) > i:
                depth += 1
                # A lambda's body or a macro's argument in braces lies in parentheses further out.
                continue
        return False

    def _rewrite_launch(self, launch):
        v = self.visible
        kernel = _text(self.text, v, launch.kernel, launch.opening - 1, self.view)
        before, between, behind = _pieces(kernel)
        keep = not self._is_in_parentheses(launch.kernel)
        self._replace_and_keep_columns(v[launch.kernel].start, v[launch.kernel].start, before, keep)
        self._replace_and_keep_columns(v[launch.opening].start, v[launch.opening].end, between, keep)
        self._replace_and_keep_columns(v[launch.closing].start, v[launch.closing + 2].end, behind, keep)

    def _rewrite_shared_declarations(self):
        v = self.visible
        i = 0
        while i < len(v):
            if v[i].text != "__shared__":
                i += 1
                continue
            first = i
            while first and v[first - 1].text in ("extern", "static", "const", "volatile", "__device__", "__restrict__", "alignas", ")") or (
                first > 1 and v[first - 1].kind == "word" and v[first - 1].text not in ("else", "do") and v[first - 2].kind != "mark"
            ):
                if v[first - 1].text == ")":
                    opening = self.partner.get(first - 1)
                    if opening is None or v[opening - 1].text not in ("__align__", "alignas"):
                        break
                    first = opening - 1
                else:
                    first -= 1
            last = i
            while last < len(v) and v[last].text not in (";", "{", "="):
                last = self.partner.get(last, last) + 1 if v[last].text in ("(", "[") else last + 1
            if last >= len(v):
                return
            words = [v[j].text for j in range(first, last)]
            if "extern" in words and v[last].text == ";":
                self._rewrite_extern_shared(first, last)
            else:
                self._move_alignas(first, i, last)
            i = last

    def _move_alignas(self, first, shared, last):
        """'__shared__ alignas(16) T x': g++ wants alignas first, so the two change places."""
        v = self.visible
        for j in range(shared + 1, last):
            if v[j].text == "alignas" and j + 1 in self.partner:
                closing = self.partner[j + 1]
                begin, end = v[first].start, v[closing].end
                alignment = self.text[v[j].start : end]
                rest = self.text[begin : v[j].start]
                if "\n" not in self.text[begin:end]:
                    self._edits = [e for e in self._edits if not begin <= e[0] < end]
                    self._replace(begin, end, alignment + " " + rest.rstrip())
                return

    def _rewrite_extern_shared(self, first, last):
        """'extern __shared__ T x[];' is a reference to the block's dynamic shared memory. One for the whole file is one in each
        function that uses it."""
        v = self.visible
        j, kept = first, []
        while j < last:
            text = v[j].text
            if text in ("__align__", "alignas", "__attribute__") and j + 1 in self.partner:
                j = self.partner[j + 1] + 1
                continue
            if text not in ("extern", "__shared__", "__device__", "static"):
                kept.append(j)
            j += 1
        # Declarators, with commas between them.
        bracket = next((n for n, j in enumerate(kept) if v[j].text == "["), len(kept))
        if bracket < 2:
            return
        name = kept[bracket - 1]
        of_type = " ".join(v[j].text for j in kept[: bracket - 1]).replace(" :: ", "::")
        bounds = "".join(v[j].text for j in kept[bracket:])
        cast = f"{of_type} (*){bounds}" if bounds else f"{of_type} *"
        value = f" = *reinterpret_cast<{cast}>(::interpreter::dynamic_shared())"
        function = self.function_at(v[first].start)
        begin, end = v[first].start, v[last].start
        if function is not None:
            self._replace_and_keep_columns(begin, v[name].start, "auto& ", True)
            self._replace_and_keep_columns(v[name].end, end, value, True)
            return
        self._replace(begin, end, re.sub(r"[^\n]", " ", self.text[begin:end]))
        declaration = f"[[maybe_unused]] auto& {v[name].text}{value};"
        for function in self.functions:
            if function.body < last or not function.is_device:
                continue
            parameters = {v[j].text for j in range(function.head, function.body)}
            used = any(v[j].text == v[name].text and v[j - 1].text not in (".", "->") for j in range(function.body, function.end))
            if used and v[name].text not in parameters:
                brace = v[function.body].end
                self._replace_and_keep_columns(brace, brace, declaration, True)

    def _rewrite_clusters(self):
        """__cluster_dims__(...): the kernel says it when it begins, for no attribute of g++ can."""
        v = self.visible
        for function in self.functions:
            for j in range(function.head, function.body):
                if v[j].text == "__cluster_dims__" and j + 1 in self.partner:
                    dims = self.text[v[j + 1].end : v[self.partner[j + 1]].start].strip()
                    brace = v[function.body].end
                    self._replace_and_keep_columns(brace, brace, f"{_RUNTIME}in_clusters_of(dim3({dims}));", True)

    def _rewrite_tensor_maps(self):
        """A tensor map by value without __grid_constant__ is copied to local memory, where the copy engine cannot read it: the kernel says so
        when it begins."""
        v = self.visible
        for function in self.functions:
            opening = next((j for j in range(function.head, function.body) if function.is_kernel and v[j].text == function.name and v[j + 1].text == "("), None)
            if opening is None:
                continue
            parameters, words = [], []
            for j in range(opening + 2, self.partner.get(opening + 1, opening)):
                if v[j].text == ",":
                    parameters.append(words)
                    words = []
                else:
                    words.append(v[j].text)
            for parameter in [*parameters, words]:
                if "CUtensorMap" in parameter[:-1] and not {"*", "&", "[", "__grid_constant__"} & set(parameter):
                    brace = v[function.body].end
                    self._replace_and_keep_columns(brace, brace, f"{_RUNTIME}without_grid_constant(&{parameter[-1]});", True)

    def _rewrite_kernel_addresses(self):
        """'reinterpret_cast<void const*>(&kernel<int>)' and '(void*)kernel<int>' of the host: what a template makes is known by its address
        once it is asked for. '(void*)kernel' may be a variable."""
        v = self.visible
        for i, token in enumerate(v) if "void" in self.text else ():
            if token.text == "reinterpret_cast" and v[i + 1].text == "<":
                opening = skip_template(v, i + 1)
                is_cast = v[opening].text == "(" and _is_to_void(v, i + 2, opening - 1)
                first, last = opening + 1, self.partner.get(opening, 0)
            else:
                is_cast = token.text == "(" and i in self.partner and _is_to_void(v, i + 1, self.partner[i])
                first = self.partner.get(i, 0) + 1
                last = _end_of_template_name(v, first) if is_cast else 0
            # A variable may have the address. 'f(void*) const;' is no cast.
            is_variable = is_cast and i and v[i - 1].text in ("(", ",", "=", "return") and v[first].kind == "word" and v[first + 1].text in (",", ")", ";")
            last = first + 1 if is_variable else last
            if is_cast and last and (is_variable or _end_of_template_name(v, first) == last) and self.is_device_code(token.start) is not True:
                self._replace(v[first].start, v[first].start, f"{_RUNTIME}known(")
                self._replace(v[last].start, v[last].start, ")")

    def _rewrite_constants(self):
        """'__constant__ const T x[]': g++ wants all variables of a section to be const or none, so none is."""
        v = self.visible
        for i, token in enumerate(v):
            if token.text != "__constant__" or self.function_at(token.start) is not None:
                continue
            first, last = i, i
            while first and (v[first - 1].kind == "word"):
                first -= 1
            while last < len(v) and v[last].text not in (";", "=", "{", "*", "&"):
                last = self.partner.get(last, last) + 1 if v[last].text in ("(", "[") else last + 1
            if last < len(v) and v[last].text not in ("*", "&"):  # a pointer's const is not the variable's
                for j in range(first, last):
                    if v[j].text == "const":
                        self._replace(v[j].start, v[j].end, " " * len("const"))

    def _rewrite_launch_functions(self):
        """cudaLaunchKernel((void*)kernel, ...): without the cast, the kernel's type says what the arguments are."""
        v = self.visible
        for i, token in enumerate(v) if _LAUNCH_FUNCTIONS[0][:10] in self.text else ():
            if token.text not in _LAUNCH_FUNCTIONS[:2] or i + 1 >= len(v) or v[i + 1].text != "(":
                continue
            j = i + 2
            if j in self.partner and v[j].text == "(":
                words = [v[k].text for k in range(j + 1, self.partner[j])]
                if words in (["void", "*"], ["const", "void", "*"], ["void", "const", "*"]):
                    begin, end = v[j].start, v[self.partner[j]].end
                    self._replace(begin, end, " " * (end - begin))

    def _rewrite_asm(self, refuse):
        """Inline PTX of device code becomes C++ on one line. As many lines follow as it had."""
        for i, token in enumerate(self.visible) if "asm" in self.text else ():
            if token.text not in inline_ptx.ASM:
                continue
            end = inline_ptx.find(self.visible, self.partner, i)
            is_name = self.function_at(token.start) is None and i and self.visible[i - 1].text == ")"  # 'int f() asm("g");'
            if end is None or is_name or self.is_device_code(token.start) is False:
                continue
            begin, end = token.start, self.visible[end].end
            try:
                new = _asm(self.text, self.visible, self.partner, i, self.view)
            except inline_ptx.OfMacro:
                self._replace(begin, token.end, inline_ptx.LATER)
                continue
            except inline_ptx.NotHere as instruction:
                new = refuse(self.lines.line(begin), f"inline PTX {instruction}")
            if new:
                self._edits = [e for e in self._edits if not begin <= e[0] < end]
                self._replace(begin, end, new + "\n" * self.text.count("\n", begin, end))

    def known_kernels(self):
        """Text for the end of the file that makes its kernels known by address; empty if nothing asks for it."""
        if not any(t.text in _LAUNCH_FUNCTIONS for t in self.visible):
            return ""
        kernels = [f for f in self.functions if f.is_kernel and not f.is_template and f.name != "operator"]
        names = [(f.scope, f.name) for f in kernels]
        lines = []
        for scope, name in names:
            if names.count((scope, name)) == 1:
                path = "::".join(("",) + scope + (name,))
                lines.append(f"[[maybe_unused]] static const bool course_known_{len(lines)} = {_RUNTIME}make_known<&{path}>();")
        return "\n" + "\n".join(lines) + "\n" if lines else ""


__all__ = ["File", "launches", "rewrite_macro", "skip_template"]
