"""Long work: its output goes to a log, and the reader sees that it goes on."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

from ..files import lines
from ..messages import Failed, Refused, say, show
from . import bar, processes
from .causes import FULL, cause_of, disk_is_full

PATIENCE = 10  # seconds without a word where every word stays on the screen
# What says that there was nothing to do shows nothing.
IDLE = re.compile(r"ninja: no work to do\.|.*Re-checking globbed directories\.\.\.")


def is_live(stream):
    """Whether a line there can be written again and again."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def seconds_since(begin):
    return int(time.monotonic() - begin)


class Ticker:
    """For work that says nothing itself: a line now and then, with the time that it takes."""

    def __init__(self, title):
        self.title, self.begin, self.patience = title, time.monotonic(), PATIENCE
        self.last = self.begin

    def heard(self):
        """Somebody else has just said something."""
        self.last = time.monotonic()

    def tick(self, more=""):
        if time.monotonic() - self.last >= self.patience:
            say(f"{self.title}: {seconds_since(self.begin)} s ...{more}")
            self.heard()


class Progress:
    """Runs commands; their output is one log. On a terminal shows the latest line, else the title, and how long it takes.

    MAY_BE_IDLE: there may be nothing to do, which shows nothing; so the title comes with the first line, or after a second.
    """

    def __init__(self, title, log, may_be_idle=False):
        self.title, self.log, self.may_be_idle = title, log, may_be_idle
        self.begin = time.monotonic()
        self.live = is_live(sys.stderr)
        self.shown, self.latest, self.rest = False, "", b""
        self.ticker = Ticker(title)
        self.bar = None

    def __enter__(self):
        try:
            os.makedirs(os.path.dirname(self.log), exist_ok=True)
            self.file = open(self.log, "wb", buffering=0)
        except OSError as error:
            raise no_room(self.log, error) from None
        if not self.may_be_idle:
            self.show()
        return self

    def __exit__(self, *_):
        self.file.close()
        with contextlib.suppress(OSError):  # of a terminal that is closed
            if self.bar:
                self.bar.stop()
            if self.live and self.shown:
                sys.stderr.write("\r\033[K")
                say(f"{self.title}: {seconds_since(self.begin)} s")

    def run(self, command, **options):
        """The exit code of COMMAND. Ctrl-C reaches it too; what it says while it cleans up is in the log."""
        code = processes.listen(command, self.hear, self.show, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, **options)
        if self.rest:
            self.follow([self.rest])
            self.rest = b""
        return code

    def hear(self, piece):
        self.write(piece)
        *whole, self.rest = (self.rest + piece).split(b"\n")
        self.follow(whole)

    def write(self, piece):
        try:
            self.file.write(piece)
        except OSError as error:
            raise no_room(self.log, error) from None

    def follow(self, raw_lines):
        for raw in raw_lines:
            line = raw.decode(errors="replace")
            if IDLE.fullmatch(line):
                continue
            self.latest = "".join(c if c.isprintable() else " " for c in line)
            self.show()

    def show(self):
        """The title, and where the work is now."""
        if not self.shown and not self.live:
            say(self.title)
            self.ticker.heard()
        self.shown = True
        self.draw()

    def draw(self):
        done = re.match(r"\[(\d+)/(\d+)\] ?", self.latest)
        if not self.live:
            self.ticker.tick(f" {done[0].strip()}" if done else "")
            return
        if done and self.bar is None and seconds_since(self.begin) >= 1:  # loading Rich takes longer than a short build
            sys.stderr.write("\r\033[K")
            self.bar = bar.make(self.title) or False
        if done and self.bar:
            self.bar.update(int(done[1]), int(done[2]), self.latest)
            return
        width = max(1, shutil.get_terminal_size(fallback=(80, 24)).columns - 1)
        text = fitting(f"{self.title}, {seconds_since(self.begin)} s: ", done[0] if done else "", self.latest, width)
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def fitting(head, count, line, width):
    """HEAD and LINE, which begins with COUNT. Where they are too long, a file's name says more than the folders before it."""
    text = head + line
    if len(text) > width and "/" in line:
        text = f"{head}{count}{line.rsplit('/', 1)[-1]}"
    return text[:width]


def no_room(path, error):
    return Refused(f"cannot write to {path}: {error.strerror}. Make room on its disk, or make the folder yours.")


def tail(log):
    """The last lines of a log."""
    return lines(log)[-25:]


def show_end(log):
    """Of what went wrong."""
    show(tail(log))
    say(f"the whole log: {log}")


def failed(message, log, unknown=""):
    """Shows why, and returns what to raise: MESSAGE, and the cause as far as the log says it, else UNKNOWN."""
    show_end(log)
    cause = cause_of(tail(log)) or (FULL if disk_is_full(os.path.dirname(log)) else unknown)
    return (Refused if cause == FULL else Failed)(f"{message} {cause}".rstrip())
