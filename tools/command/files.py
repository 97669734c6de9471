"""Files that may not be there, and writing them."""

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


def write(path, content):
    """Anew; all of it, or the file is as it was. A system's error has the file's name, which it lacks where the disk is full."""
    new = f"{path}.new"
    try:
        with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(content)
        os.replace(new, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(new)
        raise OSError(error.errno, error.strerror, path) from None


def forget(path):
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
