"""tools/course lint [--fix]: whether the course's Python is as tools/ruff.toml wants it, by a Ruff that PyPI has. For tools/check-format."""

import os

from .. import files
from ..building import folder
from ..machine import packages, toolchain
from ..machine.processes import become
from ..messages import Refused
from ..places import BUILD, ROOT

VENV = os.path.join(BUILD, "ruff-venv")


def ruff():
    """The one that is pinned: others find other things. Installed where there is none."""
    program, stamp = os.path.join(VENV, "bin", "ruff"), os.path.join(VENV, ".wheels")
    wanted = files.text(toolchain.pins("linter"))
    if files.text(stamp) != wanted:
        with folder.locked():
            if not toolchain.can_make_venv():
                packages.install(["python3-venv"])
            folder.install_wheels(VENV, "linter", "ruff", "nothing says what Python lacks")
            files.write(stamp, wanted)
    return program


def main(words):
    if words not in ([], ["--fix"]):
        raise Refused("lint takes --fix, or nothing.")
    os.chdir(ROOT)
    become([ruff(), "check", "--quiet", "--output-format", "concise", "--config", "tools/ruff.toml", *words])
