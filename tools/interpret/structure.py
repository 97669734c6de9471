"""Which parts of a file are functions, and whose: enough of C++'s grammar to tell device code from host code."""

from dataclasses import dataclass

_PAIRS = {")": "(", "]": "[", "}": "{"}
# Words with parentheses in front of a function's name.
_NOT_FUNCTIONS = ("__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__align__", "alignas", "__attribute__", "decltype", "requires")
_TYPES = ("class", "struct", "union", "enum")
_MARKS = {"__global__", "__device__", "__host__"}


@dataclass
class Function:
    head: int  # indices into the visible tokens: first of the declaration,
    body: int  # its opening brace,
    end: int  # and the closing one
    is_kernel: bool
    is_device: bool
    is_host: bool  # said so, or not said to be anything else
    name: str
    scope: tuple  # namespaces around it
    is_template: bool


def matching(visible):
    """Of each bracket's index, that of its partner; of unbalanced ones, none."""
    partner, open_ones = {}, []
    for i, token in enumerate(visible):
        if token.kind != "mark":
            continue
        if token.text in "([{":
            open_ones.append(i)
        elif token.text in _PAIRS:
            while open_ones and visible[open_ones[-1]].text != _PAIRS[token.text]:
                if token.text != "}":  # a macro's stray bracket does not close what is outside of it
                    break
                open_ones.pop()
            if open_ones and visible[open_ones[-1]].text == _PAIRS[token.text]:
                partner[i] = open_ones.pop()
                partner[partner[i]] = i
    return partner


def skip_template(visible, i):
    """The index behind the '<...>' that begins at `i`."""
    depth = 0
    while i < len(visible):
        text = visible[i].text
        if text == "<":
            depth += 1
        elif text == "<<":
            depth += 2
        elif text == ">":
            depth -= 1
            if depth == 0:
                return i + 1
        elif text in (";", "{"):
            return i
        i += 1
    return i


def marking_macros(definitions):
    """Macros that stand for words such as __device__: name -> words. `definitions` are pairs of a name and the tokens of its body. A macro
    may be defined several times, for other compilers; what is for nvcc counts."""
    bodies = {}
    for name, body in definitions:
        if not any(t.text in ("{", "}", ";") for t in body):
            bodies.setdefault(name, set()).update(t.text for t in body if t.kind == "word")
    marks = {name: words & _MARKS for name, words in bodies.items()}
    while True:
        more = {name: marks[name].union(*(marks[w] for w in words if w in marks)) for name, words in bodies.items()}
        if more == marks:
            return {name: words for name, words in marks.items() if words}
        marks = more


def functions(visible, partner, marks=None):
    """All functions with a body that are no function's own, in order. `marks` are what marking_macros() gives."""
    found = []
    _scan(visible, partner, 0, len(visible), (), found, marks or {})
    return found


def _scan(visible, partner, i, end, scope, found, marks):
    head = i
    while i < end:
        text = visible[i].text
        if text == ";" or (text == ":" and i and visible[i - 1].text in ("public", "private", "protected")):
            head = i + 1
        elif text in ("(", "[") and i in partner:
            i = partner[i]
        elif text == "{" and i in partner:
            kind, detail = _what_opens(visible, partner, head, i)
            if kind == "scope":
                _scan(visible, partner, i + 1, partner[i], scope + detail, found, marks)
            elif kind == "function":
                found.append(_function(visible, head, i, partner[i], scope, detail, marks))
            i = partner[i]
            if kind != "value":  # 'int x{1};' and 'struct {} x;' go on to their semicolon
                head = i + 1
        elif text == "}":
            head = i + 1
        i += 1


def _what_opens(visible, partner, head, brace):
    """What the brace at index `brace` opens: a scope, a function or a value; with the scope's or the function's name."""
    i = head
    while i < brace and visible[i].text == "template" and i + 1 < brace and visible[i + 1].text == "<":
        i = skip_template(visible, i + 1)
    words = [visible[j].text for j in range(i, brace)]
    if "namespace" in words:
        names = tuple(w.text for w in visible[i:brace] if w.kind == "word" and w.text not in ("namespace", "inline"))
        return "scope", names
    if words[:1] == ["extern"] and len(words) == 2:
        return "scope", ()
    name = None
    j = i
    while j < brace:
        text = visible[j].text
        if text == "=" and name is None:
            return "value", None
        if text == "(":
            before = visible[j - 1]
            if before.kind == "word" and before.text not in _NOT_FUNCTIONS:
                name = name or before.text
            elif before.text == ">" or before.text == "operator" or "operator" in words:
                name = name or "operator"
            j = partner.get(j, j)
        elif text in _TYPES and name is None:
            own = [t.text for t in visible[j + 1 : brace] if t.kind == "word"]
            if "(" not in words[j - i :] or "__align__" in words or "alignas" in words:
                return "scope", (own[-1],) if text != "enum" and own and ":" not in words else ()
        j += 1
    return ("function", name) if name else ("value", None)


def _function(visible, head, body, end, scope, name, marks):
    words = {visible[j].text for j in range(head, body)}
    words = words.union(*(marks[w] for w in words & marks.keys()))
    is_kernel = "__global__" in words
    is_device = is_kernel or "__device__" in words
    is_host = "__host__" in words or not is_device
    return Function(head, body, end, is_kernel, is_device, is_host, name, scope, "template" in words)
