"""Where things lie."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.path.join(ROOT, "build")  # everything that the course writes
LOGS = os.path.join(BUILD, "logs")
PYCACHE = os.path.join(BUILD, "pycache")
ROOM = 64 << 20  # bytes; with less, Python compiles no modules: of what a full disk cuts off it would keep half, and not begin again

# Where the machine's own folders begin: tests give one that they have made.
MACHINE = os.environ.get("COURSE_TEST_MACHINE", "")

# As it was called: a python3 that is a script may set up more than sys.executable has.
PYTHON = os.environ.get("COURSE_PYTHON") or sys.executable


def keeps_modules():
    """Whether compiled ones may be written to build/: where that is not there, what is refused leaves nothing behind."""
    try:
        found = os.statvfs(BUILD)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize > ROOM


def script(*path):
    """The command that runs a Python script of tools/, or a folder of them. Its compiled modules do not lie beside the sources."""
    return [PYTHON, *(["-X", f"pycache_prefix={PYCACHE}"] if keeps_modules() else ["-B"]), os.path.join(ROOT, "tools", *path)]


def tuning_cache():
    """The folder for what tuning finds."""
    return os.environ.get("COURSE_TUNING_CACHE") or os.path.join(BUILD, "tuning")
