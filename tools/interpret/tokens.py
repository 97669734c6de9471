"""C++ source text as tokens. A token knows its place; whatever the compiler does not see, comments and white space, is one too."""

import bisect
import re

# A raw string ends at its own delimiter, so it comes first. Three angle brackets that open are one token: no other C++ has them.
_PATTERN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)
  | (?P<newline>\n)
  | (?P<comment>//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
              |(?:u8|[uUL])?"(?:[^"\\\n]|\\.|\\\n)*"?)
  | (?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9a-zA-Z_]|[0-9a-zA-Z_.])*)
  | (?P<word>[A-Za-z_$][A-Za-z_$0-9]*)
  | (?P<mark><<<|\#\#|::|->|<<|[-+*/%^&|~!=<>?:;,.(){}\[\]\#@\\'"`])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*#(?:[^\n\\/\"]|\\\r?\n|\\.|/\*.*?\*/|//[^\n]*|/|\"(?:[^\"\\\n]|\\.)*\"?)*", re.DOTALL)


_UNSEEN = {"space", "newline", "comment", "directive"}


class Token:
    """`is_seen`: whether the compiler's parser sees it. A library's headers have millions of these."""

    __slots__ = ("end", "is_seen", "kind", "start", "text")

    def __init__(self, kind, text, start, end):
        self.kind = kind  # one of _UNSEEN, or string, character, number, word, mark, other
        self.text, self.start, self.end = text, start, end
        self.is_seen = kind not in _UNSEEN


def tokens(text, directives=True):
    """All tokens of `text`, one after the other. A line that begins with '#' is one token, with the lines that continue it."""
    result = []
    at = 0
    line_begins = directives
    while at < len(text):
        if line_begins and (directive := _DIRECTIVE.match(text, at)):
            end = directive.end()
            result.append(Token("directive", directive[0], at, end))
            at = end
            line_begins = False
            continue
        match = _PATTERN.match(text, at)
        kind, end = match.lastgroup, match.end()
        if kind == "delimiter":
            kind = "string"
        result.append(Token(kind, match[0], at, end))
        at = end
        if directives:
            line_begins = kind == "newline" or (line_begins and kind in ("space", "comment"))
    return result


class Lines:
    """Offsets of a text as lines, counted from 1."""

    def __init__(self, text):
        self.text = text
        self.begins = [0] + [m.end() for m in re.finditer("\n", text)]

    def line(self, offset):
        return bisect.bisect_right(self.begins, offset)

    def indent(self, offset):
        """What, written on a line of its own, brings the next character to the column of `offset`."""
        begin = self.begins[self.line(offset) - 1]
        return re.sub(r"[^\t]", " ", self.text[begin:offset])

    def first_token(self, line):
        """Where what the line has begins."""
        return re.compile(r"[ \t]*").match(self.text, self.begins[line - 1]).end()
