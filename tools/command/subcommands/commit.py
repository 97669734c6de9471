"""The commit that results are made from."""

import os

from ..machine import processes
from ..places import ROOT


def export_commit():
    """COURSE_COMMIT where it is set, for copies without .git; else the checkout's. A checkout around this folder does not count."""
    commit = os.environ.get("COURSE_COMMIT", "")
    if not commit and os.path.exists(os.path.join(ROOT, ".git")):
        commit = processes.ask(["git", "-C", ROOT, "describe", "--always", "--exclude", "*", "--abbrev=12", "--dirty"])[1].strip()
    os.environ["COURSE_COMMIT"] = commit
