"""What a compiler's output says about the learner's own lines. The logs of a missing brace have thousands of others."""

import itertools
import os
import re

from .. import files
from ..places import ROOT

# g++'s and clang's path:line:column: error: text, nvcc's path(line): error: text.
MESSAGE = re.compile(
    r"(?P<path>[^\s:(][^:(]*)(?::(?P<line>\d+)(?::(?P<column>\d+))?:|\((?P<nvcc>\d+)\):) "
    r"(?P<kind>(?:fatal )?error|warning)\b[^:]*: (?P<text>.*)"
)
LINE_BEFORE = re.compile(r"expected .{0,30}[;,].{0,30} before|expected a \";\"")  # no .*, which would look at long ones for minutes
NAME_OF_WARNING = re.compile(r" \[-W[^]]*\]$")
MOST_DETAILS, MOST_WARNINGS, MOST_TEXT = 6, 12, 2000
LEARNERS = ("steps", "exercises", "solutions")  # whose files learners edit


class Message:
    """An error or a warning with the lines that belong to it."""

    def __init__(self, match, details):
        path = match["path"]
        if path.startswith(os.pardir):  # seen from the build folder: folder.make_moveable()
            path = os.path.join(ROOT, "build", "interpreter", path)
        self.path = os.path.normpath(path)
        self.line = int(match["line"] or match["nvcc"])
        self.column, self.kind, self.text = int(match["column"] or 0), match["kind"], match["text"][:MOST_TEXT]
        self.details = details

    @property
    def where(self):
        return os.path.relpath(self.path, ROOT) if self.is_of_course() else self.path

    def is_of_course(self):
        return self.path.startswith(ROOT + os.sep) and not self.path.startswith(os.path.join(ROOT, "build") + os.sep)

    def is_of_learner(self):
        """Whether it is about a lesson's or an exercise's file, which is what learners edit."""
        return self.is_of_course() and self.where.split(os.sep)[0] not in ("common", "tools")

    @property
    def identity(self):
        return self.path, self.line, self.column, self.text

    def lines(self):
        shown = [f"{self.where}:{self.line}: {self.kind}: {self.text}"]
        before = self.line_before()
        return shown + before + self.details

    def line_before(self):
        """What a ';' is missing in, as a rule: compilers see it only at the next word, which may be the next line's first."""
        if not LINE_BEFORE.search(self.text):
            return []
        source = files.lines(self.path)
        if not 1 < self.line <= len(source) or source[self.line - 1][: max(0, self.column - 1)].strip():
            return []
        number = next((n for n in range(self.line - 1, 0, -1) if source[n - 1].strip()), None)
        return [f"{number:5} | {source[number - 1]}   <-- or is it missing here?"] if number else []


def messages(lines, kind):
    """Those of a log, each once."""
    found = {}
    for index, line in enumerate(lines):
        match = MESSAGE.match(line)
        if match and match["kind"].endswith(kind):
            rest = lines[index + 1 : index + 1 + MOST_DETAILS]  # not all of them: a log may have 100,000
            message = Message(match, list(itertools.takewhile(lambda each: each.strip() and each[0].isspace(), rest)))
            found.setdefault(message.identity, message)
    return list(found.values())


def first_error(lines, own=""):
    """(lines to show, how many other errors there are); ([], 0) if there is none that a compiler has found. OWN: the learner's file
    where that is no file of the course."""
    errors = messages(lines, "error")
    if not errors:
        return [], 0
    own = next((error for error in errors if error.is_of_learner() or error.path == own), None)
    error = own or errors[0]
    shown = error.lines()
    if own:
        brace = odd_brace(files.lines(own.path))
        if brace:
            number, text = brace
            shown = [f"{own.where}:{number}: {text}", f"{number:5} | {files.lines(own.path)[number - 1]}", *shown]
    else:
        shown = asked_for_by(lines, error) + shown
    return shown, len(errors) - 1


def asked_for_by(lines, error):
    """The learner's line that a template of the course was instantiated for, before the error in that template."""
    needle = re.compile(r"(?P<path>[^\s:]+):(?P<line>\d+):\d+:\s+required (?:from|by)")
    for line in lines:
        match = MESSAGE.match(line)
        if match and Message(match, []).identity == error.identity:
            break
        found = needle.match(line)
        if found and os.path.normpath(found["path"]).startswith(tuple(os.path.join(ROOT, each) + os.sep for each in LEARNERS)):
            source = files.lines(found["path"])
            number = int(found["line"])
            code = [f"{number:5} | {source[number - 1]}"] if 0 < number <= len(source) else []
            return [f"{os.path.relpath(found['path'], ROOT)}:{number}: what this line asks for does not compile:", *code]
    return []


def warnings(log):
    """Lines to show of a build that went well: warnings about the learner's files."""
    return warnings_of(files.lines(log))


def warnings_of(lines, own=""):
    """The same of a compiler's output."""
    found = [message for message in messages(lines, "warning") if message.is_of_learner() or message.path == own]
    return [f"{each.where}:{each.line}: {NAME_OF_WARNING.sub('', each.text)}" for each in found[:MOST_WARNINGS]]


# --- braces ---

# What nothing closes is a token, too: who looked for its end from each quote on would look forever.
TOKEN = re.compile(r"//.*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"?|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'?|[{}\n]", re.DOTALL | re.ASCII)
COMMENT = re.compile(r"//[^\n]*")


def odd_brace(source):
    """(line, what is wrong) of the brace that has no partner, or None. Indentation tells which one that is."""
    text = COMMENT.sub("", "\n".join(source))
    opened, number, odd = [], 1, None
    for token in TOKEN.finditer(text):
        if token[0] == "{":
            opened.append(number)
        elif token[0] == "}":
            if not opened:
                return number, "error: this } closes nothing"
            begin = opened.pop()
            line = source[number - 1]
            if line.lstrip().startswith("}") and odd is None and indent(line) < indent(source[begin - 1]):
                odd = begin
        number += token[0].count("\n")
    return (odd or opened[-1], "error: this { is not closed") if opened else None


def indent(line):
    return len(line) - len(line.lstrip())
