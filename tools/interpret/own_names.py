"""Names of a program's own that are those of CUDA's built-in variables: 'dim3 gridDim(2);', 'struct S { dim3 blockDim; };', 'c.gridDim'.

The built-in variables are macros of common/interpreter/language/language.h, which would replace these too. So these get other names, as
long as the old ones; common/interpreter/cuda_runtime/members.h gives the members of CUDA's own structs the same ones. A name is the
program's own where C++ finds the program's declaration before the built-in variable.
"""

import re

from structure import functions, matching, skip_template
from tokens import tokens

# C++ keeps names that begin like these for the compiler, so no program has them.
_NAMES = {"threadIdx": "_ThreadId", "blockIdx": "_BlockId", "blockDim": "_BlockDi", "gridDim": "_GridDi"}
_ANY = re.compile(rf"\b({'|'.join(_NAMES)})\b")
_ANY_NEW = re.compile(rf"\b({'|'.join(_NAMES.values())})\b")
_DEFINE = re.compile(r"[ \t]*#[ \t]*define\b")
# Words in front of an expression, where a type's name would make a declaration of it.
_NO_TYPES = ("return", "else", "do", "case", "sizeof", "throw", "new", "delete", "goto", "and", "or", "not", "using", "operator")
_BEHIND_DECLARED = ("(", "{", "=", ";", ",", ")", "[", ":", ">")
_CLASSES = ("class", "struct", "union")


def rename_own(text):
    """`text` with the program's own names replaced; nothing moves."""
    if not _ANY.search(text):
        return text
    renamed = list(text)

    def replace(token, offset=0):
        renamed[offset + token.start : offset + token.end] = _NAMES[token.text]

    all_tokens = tokens(text)
    for token in _Names([t for t in all_tokens if t.is_seen]).own():
        replace(token)
    for directive in all_tokens:
        if directive.kind == "directive" and _DEFINE.match(directive.text):
            for token in _own_in_macro(directive.text):
                replace(token, directive.start)
    return "".join(renamed)


def restore(text):
    """A compiler's message with the names as the program has them."""
    old = {new: name for name, new in _NAMES.items()}
    return _ANY_NEW.sub(lambda m: old[m[1]], text)


def _own_in_macro(text):
    visible = [t for t in tokens(text, directives=False) if t.is_seen]
    # Behind '#', 'define' and the name. A parameter hides the macro of its name by itself.
    first, parameters = 3, set()
    if len(visible) > 3 and visible[3].text == "(" and visible[3].start == visible[2].end:
        partner = matching(visible)
        first = partner.get(3, 3) + 1
        parameters = {t.text for t in visible[3:first]}
    return [t for t in _Names(visible[first:]).own() if t.text not in parameters]


class _Names:
    def __init__(self, visible):
        self.visible = visible
        self.partner = matching(visible)
        self.functions = functions(visible, self.partner)

    def own(self):
        """The tokens that are the program's own names."""
        v = self.visible
        candidates = [i for i, token in enumerate(v) if token.text in _NAMES]
        scopes = [(v[i].text, begin, end) for i in candidates if self._is_declaration(i) for begin, end in self._scopes(i)]
        scopes += [(name, begin, end) for begin, end in self._configurations() for name in _NAMES]
        return [
            v[i]
            for i in candidates
            if self._text(i - 1) in (".", "->")
            or (self._text(i - 1) == "::" and self._is_word_or(i - 2, ">"))
            or any(name == v[i].text and begin <= i <= end for name, begin, end in scopes)
        ]

    def _text(self, i):
        return self.visible[i].text if 0 <= i < len(self.visible) else ""

    def _is_word_or(self, i, *marks):
        return 0 <= i < len(self.visible) and (
            (self.visible[i].kind == "word" and self.visible[i].text not in _NO_TYPES) or self.visible[i].text in marks
        )

    def _configurations(self):
        """Launches in device code are refused, so what stands between '<<<' and '>>>' is the host's."""
        for i, token in enumerate(self.visible):
            if token.text == "<<<":
                end = i + 1
                while end < len(self.visible) and self.visible[end].text not in (";", "{", "}", ")"):
                    if [self._text(end + k) for k in range(4)] == [">", ">", ">", "("]:
                        break
                    end = self.partner.get(end, end) + 1
                yield i, end

    # --- declarations ---

    def _is_declaration(self, i):
        before = i - 1
        if self._text(before) in (",", "[") and self._text(i + 1) in (*_BEHIND_DECLARED, "]"):
            return self._is_further_declarator(i)
        if self._text(i + 1) not in _BEHIND_DECLARED:
            return False
        if self._text(i + 1) == ">" and not self._is_word_or(before):
            return False
        while self._text(before) in ("*", "&"):
            before -= 1
        return self._is_word_or(before, ">")

    def _is_further_declarator(self, i):
        """Whether it is the 'b' of 'T a(1), b(2);' or of 'auto [a, b] = c;'."""
        opening = self._enclosing(i)
        if self._text(opening) == "[":
            before = opening - 1
            while self._text(before) == "&":
                before -= 1
            return self._text(before) == "auto"
        if self._text(opening) == "(" and self._text(opening - 1) != "for":
            return False
        begin = i - 1
        while begin > opening and self._text(begin) not in (";", "{", "}"):
            begin = self.partner[begin] - 1 if self._text(begin) in (")", "]", "}") and begin in self.partner else begin - 1
        # The first declarator is a name behind a type.
        end = begin + 1
        while end < i and self._text(end) not in (",", "=", "(", "{", "["):
            end = skip_template(self.visible, end) if self._text(end) == "<" else end + 1
        return self._is_word_or(end - 1) and end - 2 > begin and self._is_word_or(end - 2, ">", "*", "&")

    # --- where a declaration holds ---

    def _enclosing(self, i):
        """The index of the innermost bracket that is open at `i`, or -1."""
        j = i - 1
        while j >= 0:
            if self.visible[j].text in ("(", "[", "{") and self.partner.get(j, -1) > i:
                return j
            j -= 1
        return -1

    def _scopes(self, i):
        """Ranges of tokens in which the name that is declared at `i` is meant."""
        for function in self.functions:
            if function.head <= i < function.body:  # a parameter, or a template's
                return [(i, function.end)]
        opening = self._enclosing(i)
        if self._text(opening) == "[":  # 'auto [a, b]'
            opening = self._enclosing(opening)
        if opening < 0:
            return [(i, len(self.visible))]
        if self._text(opening) == "(":
            return [(i, self._end_behind(self.partner[opening] + 1))]
        name = self._class_of(opening)
        if name is None:
            return [(i, self.partner[opening])]
        outside = [(f.head, f.end) for f in self.functions if self._is_member_of(f, name)]
        return [(opening, self.partner[opening]), *outside]

    def _end_behind(self, i):
        """The end of the body, or of the statement, that follows a list of parameters or the parentheses of a 'for'."""
        while i < len(self.visible) and self._text(i) not in (";", ",", ")", "}"):
            if self._text(i) == "{":
                return self.partner.get(i, i)
            i = self.partner.get(i, i) + 1
        return i

    def _class_of(self, brace):
        """The name of the class whose body begins at `brace`, empty if it has none; None if it is no class."""
        i = brace - 1
        found = None
        while i >= 0 and self._text(i) not in (";", "{", "}", "("):
            if self._text(i) == ")":
                if i not in self.partner or self._text(self.partner[i] - 1) not in ("alignas", "__align__", "__attribute__"):
                    return None
                i = self.partner[i]
            elif self._text(i) in _CLASSES and self._text(i - 1) not in ("<", ",", "enum"):
                found = i
            i -= 1
        if found is None:
            return None
        end = next((j for j in range(found, brace) if self._text(j) in (":", "<")), brace)
        return next((self._text(j) for j in range(end - 1, found, -1) if self.visible[j].kind == "word" and self._text(j) != "final"), "")

    def _is_member_of(self, function, name):
        """Whether it is 'R Name::function(...) {...}', outside of the class."""
        parameters = next((j for j in range(function.head, function.body) if self._text(j) == "("), function.body)
        heads = [j for j in range(function.head, parameters) if self._text(j) == name and name]
        return any(self._text(skip_template(self.visible, j + 1) if self._text(j + 1) == "<" else j + 1) == "::" for j in heads)
