"""course hint: one hint more."""

from ..cli.arguments import Command
from ..exercises import checking, progress
from ..messages import Refused


def run(given):
    if len(given.everything) > 1:
        raise Refused("hint is about one exercise: name it, or none.")
    progress.take_over()
    exercises = checking.to_check(given.everything)
    if exercises:
        show(exercises[0])
    else:
        print(checking.what_next())
    return 0


def show(exercise):
    """One hint more than last time."""
    hints = exercise.hints()
    shown = min(progress.Progress().of(exercise).get("hints", 0) + 1, len(hints))
    if not progress.try_to_change(exercise, hints=shown):
        shown = len(hints)
    for number, hint in enumerate(hints[:shown], 1):
        print(f"{exercise.title}, hint {number} of {len(hints)}:\n\n{hint}\n")
    if shown == len(hints):
        print(f"That was the last one. The solution: 'tools/course solution {exercise.name[:2]} --give-up'.")


COMMAND = Command(
    name="hint",
    usage="[EXERCISE]",
    intro="Shows a hint for an exercise, one more each time, from vague to plain. Without EXERCISE, the first that has not passed.",
    options=(),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
