"""course solution: how the course does it."""

import os

from ..cli import options
from ..cli.arguments import Command
from ..exercises import progress
from ..exercises.exercise import named, read
from ..messages import Refused, say
from ..places import ROOT


def run(given):
    if len(given.everything) != 1:
        raise Refused("solution needs an exercise, for example: tools/course solution 1")
    exercise = named(given.everything[0])
    progress.take_over()
    if not given.give_up and not progress.Progress().has_passed(exercise):
        raise Refused(f"{exercise.title} has not passed yet. 'tools/course hint {exercise.name[:2]}' helps; --give-up shows the solution.")
    if given.give_up and not progress.Progress().has_passed(exercise):
        progress.try_to_change(exercise, gave_up=True)
    say(f"{os.path.relpath(exercise.solution, ROOT)}:")
    print(read(exercise.solution), end="")
    return 0


COMMAND = Command(
    name="solution",
    usage="EXERCISE [OPTION...]",
    intro="Prints the course's solution of an exercise that has passed. Yours may be another one.",
    options=(options.GIVE_UP,),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
