"""course list: the exercises and their states."""

from ..cli.arguments import Command
from ..exercises import checking
from ..exercises.exercise import all_exercises, require_exercises
from ..exercises.progress import Progress
from ..messages import Refused, say


def run(given):
    if given.everything:
        raise Refused(f"'{given.everything[0]}': list takes no arguments.")
    require_exercises()
    progress = Progress()
    following = progress.next()
    for each in all_exercises():
        mark = "->" if each == following else "  "
        print(f"{mark} {each.title:<28} {progress.state(each)}")
        if not each.is_there():
            say(f"there is no {each.shown_file}: 'tools/course reset {each.name[:2]}' makes it anew.")
    print(f"\n{checking.bar()}. {checking.what_next()}")
    return 0


COMMAND = Command(
    name="list",
    usage="",
    intro="Shows the exercises, which of them have passed, and which one is next.",
    options=(),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
