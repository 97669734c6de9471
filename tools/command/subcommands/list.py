"""course list: the exercises and their states."""

from ..cli.arguments import Command
from ..exercises import checking, progress
from ..exercises.exercise import require_exercises
from ..messages import Refused


def run(given):
    if given.everything:
        raise Refused(f"'{given.everything[0]}': list takes no arguments.")
    require_exercises()
    progress.take_over()
    print(checking.table())
    return 0


COMMAND = Command(
    name="list",
    usage="",
    intro="Shows the exercises, which of them have passed, and which one is next.",
    options=(),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
