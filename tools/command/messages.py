"""Messages go to stderr, so that stdout holds nothing but results."""

import sys
import textwrap

MOST_COLUMNS = 160
MOST_CHARACTERS = 1000  # of a line: an argument may be a whole file


class Stop(Exception):
    """Ends the command with a line on stderr, and this exit code."""

    code = 1


class Failed(Stop):
    """What was asked is fine, but it went wrong."""


class Refused(Stop):
    """The input, or the machine as it is, cannot work: the reader has to change something."""

    code = 2


class Terminated(BaseException):
    """SIGTERM, SIGHUP or SIGQUIT: its number."""

    @property
    def number(self):
        return self.args[0]


def say(message):
    sys.stdout.flush()
    print("\n".join(map(in_columns, escaped(f"course: {message}").split("\n"))), file=sys.stderr, flush=True)


def escaped(text):
    """TEXT without what would do something to a terminal: names and arguments are whatever somebody has typed."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def in_columns(line):
    """LINE, in several where it is too long to be read. What is indented is there to be copied."""
    if len(line) <= MOST_COLUMNS or line.startswith("  "):
        return line
    if len(line) > MOST_CHARACTERS:  # what to do is at its end
        line = f"{line[:MOST_CHARACTERS // 2]} ... {line[-MOST_CHARACTERS // 4:]}"
    return textwrap.fill(line, MOST_COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def show(lines):
    """Lines of a log, marked as such."""
    sys.stdout.flush()
    print("\n".join(f"  | {line}" for line in lines), file=sys.stderr, flush=True)
