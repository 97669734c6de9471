"""A subcommand's description, its help, and its arguments as a learner types them."""

import dataclasses
import errno
import os
import shutil
import stat
import textwrap
from typing import Callable

from ..messages import Refused

WIDEST = 100  # prose gets no wider, however wide the terminal is


def wants_help(words):
    before = words[: words.index("--")] if "--" in words else words
    return "-h" in before or "--help" in before


class HelpWanted(Exception):
    """--help was typed."""


@dataclasses.dataclass(frozen=True)
class Command:
    name: str
    usage: str
    intro: str  # paragraphs with empty lines between; those that begin with a space keep their lines
    options: tuple
    outro: str
    run: Callable  # of Arguments
    stops_at_first: bool = False  # what stands behind the first argument belongs to a program
    hint: str = ""  # added where an unknown option is refused

    def parse(self, words):
        return Arguments(self, words)


class Arguments:
    """What was typed, checked: a field for each option, by its name without dashes, None or False where it was not given. Not by argparse,
    which takes a value such as -1x2x3 for an option, says nothing of what to type instead, and mixes up what stands before and after --."""

    def __init__(self, command, words):
        self.command, self.positional, self.after_dashes = command, [], []
        for option in command.options:
            setattr(self, option.key, None if option.metavar else False)
        for option, value in self.sort(list(words)):  # all of which are known by now
            if option.metavar:
                value = option.check(option.name, value)
            if option.repeats:
                value = [*(getattr(self, option.key) or []), value]
            setattr(self, option.key, value)

    @property
    def everything(self):
        """All arguments that are no options."""
        return self.positional + self.after_dashes

    def sort(self, words):
        """[(option, its value as it was typed, or True)]; the rest goes where it belongs. A value may begin with dashes."""
        known, given = {option.name: option for option in self.command.options}, []
        while words:
            word = words.pop(0)
            name, equals, value = word.partition("=")
            if word in ("-h", "--help"):
                raise HelpWanted
            if word == "--":
                self.after_dashes = words
                break
            if not word.startswith("-"):
                self.positional.append(word)
                if self.command.stops_at_first:
                    self.after_dashes = words
                    break
                continue
            if not word.startswith("--") and word[:2] in known and word not in known:  # -DN=3
                name, equals, value = word[:2], "=", word[2:]
            option = known.get(name)
            if not option or (equals and not option.metavar):
                more = f" {self.command.hint}" if self.command.hint else ""
                raise Refused(f"unknown option '{word}'; 'tools/course {self.command.name} --help' lists them.{more}")
            if option.ending and not equals:
                value = words.pop(0) if option.takes(words) else ""
            elif option.metavar and not equals:
                if not words:
                    raise Refused(f"{name} needs a value; see 'tools/course {self.command.name} --help'.")
                value = words.pop(0)
            given.append((option, value if option.metavar else True))
        return given

    def to_pass(self, *options):
        """The given ones of OPTIONS, as words for another program."""
        words = []
        for option in options:
            value = getattr(self, option.key)
            if not option.metavar:
                words += [option.name] if value else []
            elif value is not None:
                for each in value if option.repeats else [value]:
                    words += [option.name, getattr(each, "text", each)]
        return words


# --- help ---


def width():
    return min(max(shutil.get_terminal_size(fallback=(WIDEST, 24)).columns, 40), WIDEST)


def paragraphs(text):
    shown = []
    for paragraph in textwrap.dedent(text).strip("\n").split("\n\n"):
        if paragraph.startswith(" "):
            shown.append(paragraph)
        else:
            lines = [textwrap.wrap(line, width(), break_on_hyphens=False) for line in sentences_of(paragraph)]
            shown.append("\n".join(line for wrapped in lines for line in wrapped))
    return "\n\n".join(shown)


def sentences_of(paragraph):
    """A line that ends with two spaces is not joined with the next one."""
    return [" ".join(line.split()) for line in paragraph.replace("  \n", "\0").split("\0")]


def help_of(command):
    names = [option.name + (f" {option.metavar}" if option.metavar else "") for option in command.options]
    column = min(max([*map(len, names), len("--help")]) + 2, 20)
    parts = [f"Usage: tools/course {command.name} {command.usage}".rstrip(), paragraphs(command.intro)]
    lines = []
    for name, option in zip(names, command.options):
        lines += described(name, option.description(), column)
    parts.append("\n".join([*lines, *described("--help", "show this", column)]))
    if command.outro:
        parts.append(paragraphs(command.outro))
    return "\n\n".join(parts) + "\n"


def described(name, text, column):
    wrapped = textwrap.wrap(text, max(30, width() - column - 2), break_on_hyphens=False)
    head = f"  {name.ljust(column)}"
    if len(name) >= column:
        return [f"  {name}", *(" " * (column + 2) + line for line in wrapped)]
    return [head + wrapped[0], *(" " * (column + 2) + line for line in wrapped[1:])]


def require_file(path, example):
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            os.close(os.open(path, os.O_RDONLY))
            return
        why = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "No regular file"
    except OSError as error:
        why = error.strerror
    raise Refused(f"cannot read '{path}': {why}; {example}")
