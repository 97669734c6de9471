"""Files that may not be there."""

import contextlib
import os


def text(path):
    """What the file says; '' where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def lines(path):
    return text(path).splitlines()


def forget(path):
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
