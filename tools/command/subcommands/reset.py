"""course reset: an exercise as it was in the beginning."""

import os

from ..cli.arguments import Command
from ..exercises import progress
from ..exercises.exercise import named, read
from ..messages import Refused
from ..places import ROOT


def begin_anew(exercise):
    progress.begin(exercise)
    kept = None
    if read(exercise.file) != read(exercise.stub):
        kept = progress.back_up(exercise.file)
        progress.copy(exercise)
    progress.forget(exercise)
    print(f"{exercise.shown_file} is as it came." + (f" Yours is kept as {os.path.relpath(kept, ROOT)}." if kept else ""))


def run(given):
    if len(given.everything) != 1:
        raise Refused("reset needs an exercise, for example: tools/course reset 1")
    exercise = named(given.everything[0])
    progress.take_over()
    begin_anew(exercise)
    return 0


COMMAND = Command(
    name="reset",
    usage="EXERCISE",
    intro="Makes an exercise's file what it was in the beginning. What you have written is kept beside it, with the date in its name.",
    options=(),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
