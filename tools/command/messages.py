"""Messages go to stderr, so that stdout holds nothing but results."""

import sys


class Stop(Exception):
    """Ends the command with a line on stderr, and this exit code."""

    code = 1


class Failed(Stop):
    """What was asked is fine, but it went wrong."""


class Refused(Stop):
    """The input, or the machine as it is, cannot work: the reader has to change something."""

    code = 2


class Terminated(BaseException):
    """SIGTERM, or SIGHUP: its number."""

    @property
    def number(self):
        return self.args[0]


def say(message):
    sys.stdout.flush()
    print(f"course: {message}", file=sys.stderr, flush=True)


def show(lines):
    """Lines of a log, marked as such."""
    sys.stdout.flush()
    print("\n".join(f"  | {line}" for line in lines), file=sys.stderr, flush=True)
