"""What the commands of this folder share: their arguments, messages, colours, and numbers as text."""

import argparse
import contextlib
import math
import os
import shutil
import signal
import sys

from .results import BadFile

NOTHING = "–"  # in place of a value that could not be had


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        raise BadFile(f"{message}; '{self.prog} --help' lists the arguments.")


def run_command(main):
    """Exits with what MAIN returns; with 2 and a line on stderr if it was given something that it cannot use."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # 'course compare ... | head' is no error
    if sys.stdout is None:
        print("course: stdout is closed, and results go there: leave it open, or send it to /dev/null.", file=sys.stderr)
        sys.exit(2)
    sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # tools/course has held it back until now
        code = main()
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # it ends anyway
    except BadFile as error:
        print(f"course: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:  # files that were being written have been removed
        code = 130
    except OSError as error:
        where = f"use {error.filename}" if error.filename else "write to stdout"
        print(f"course: cannot {where}: {error.strerror}.", file=sys.stderr)
        code = 2
        os._exit(code)  # Python would try to write the rest once more
    sys.exit(code)


# --- size and colours ---


def width():
    """Of the terminal, in characters; 80 where there is none. No table gets narrower than 60, no text wider than 120."""
    return min(max(shutil.get_terminal_size(fallback=(80, 24)).columns, 60), 120)



def wants_colours(stream):
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Style:
    def __init__(self, coloured):
        self.coloured = coloured

    def paint(self, text, code):
        return f"\033[{code}m{text}\033[0m" if self.coloured and text else text

    def bold(self, text):
        return self.paint(text, 1)

    def dim(self, text):
        return self.paint(text, 2)


# --- numbers ---


_digits = 3


@contextlib.contextmanager
def all_digits():
    """While it lasts, numbers have more digits than anybody reads: for who computes with them."""
    global _digits
    _digits = 12
    try:
        yield
    finally:
        _digits = 3


def rounded(value):
    """Three significant digits: 0.250, 35.2, 1,060."""
    if value is None:
        return NOTHING
    value = float(f"{value:.{_digits}g}")
    if value != 0 and abs(value) < 1e-3:
        return f"{value:.{_digits - 1}e}"
    decimals = max(0, _digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}"


def size(value):
    """Of bytes, in SI units: 137 GB."""
    if value is None:
        return NOTHING
    value = float(f"{value:.{_digits}g}")
    if value < 1000:
        return f"{value:.0f} B"
    power = min(int(math.log10(value) / 3 + 1e-9), 6)
    return f"{rounded(value / 1000**power)} {' kMGTPE'[power]}B"


def count(value):
    return NOTHING if value is None else f"{value:,.0f}"


def percent(value):
    return NOTHING if value is None else rounded(100 * value)


def tera(value):
    return NOTHING if value is None else rounded(value * 1e-12)


def times(value):
    return NOTHING if value is None else f"{rounded(value)}×"


def plus_minus(value):
    if value is None:
        return NOTHING
    percents = max(100 * value, 0.01)  # no clock is better
    return f"±{percents:.1f}%" if percents >= 0.095 else f"±{percents:.2f}%"


# --- tables ---


def align(header, rows, width):
    """Lines of the header, and for each row one text, from a header and rows of cells.

    The first column is aligned to the left, the others to the right. Where the table would be wider than WIDTH, a first cell that is
    too long has a line to itself. A header cell may have several lines, the last of which stands next to the rows.
    """
    lines = [cell.split("\n") for cell in header]
    height = max(map(len, lines))
    head = [[""] * (height - len(cell)) + cell for cell in lines]
    head = [[cell[i] for cell in head] for i in range(height)]
    widths = [max(len(row[i]) for row in head + rows) for i in range(len(header))]
    numbers = sum(widths[1:]) + 2 * len(widths[1:])
    widths[0] = min(widths[0], max(width - numbers, max(len(row[0]) for row in head)))

    def line(row):
        first, alone = row[0], ""
        if len(first) > widths[0]:
            first, alone = "", first + "\n"
        cells = [first.ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, len(row)))]
        return alone + "  ".join(cells).rstrip()

    return [line(row) for row in head], [line(row) for row in rows]


def breadth(header, rows):
    """How wide align() makes a table that may be as wide as it likes."""
    head, body = align(header, rows, sys.maxsize)
    return max(map(len, head + body))
