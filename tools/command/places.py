"""Where things lie."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.path.join(ROOT, "build")  # everything that the course writes
LOGS = os.path.join(BUILD, "logs")
PYCACHE = os.path.join(BUILD, "pycache")

# Where the machine's own folders begin: tests give one that they have made.
MACHINE = os.environ.get("COURSE_TEST_MACHINE", "")

# As it was called: a python3 that is a script may set up more than sys.executable has.
PYTHON = os.environ.get("COURSE_PYTHON") or sys.executable


def script(*path):
    """The command that runs a Python script of tools/, or a folder of them. Its compiled modules do not lie beside the sources."""
    return [PYTHON, "-X", f"pycache_prefix={PYCACHE}", os.path.join(ROOT, "tools", *path)]


def tuning_cache():
    """The folder for what tuning finds."""
    return os.environ.get("COURSE_TUNING_CACHE") or os.path.join(BUILD, "tuning")
