"""course reset: an exercise as it was in the beginning."""

import os
import shutil

from ..cli.arguments import Command
from ..exercises import progress
from ..exercises.exercise import named
from ..messages import Refused
from ..places import ROOT


def begin_anew(exercise):
    temporary = exercise.file + ".new"
    try:
        shutil.copyfile(exercise.stub, temporary)
        os.replace(temporary, exercise.file)
    except OSError as error:
        raise Refused(f"cannot write {exercise.shown_file}: {error.strerror}.") from None


def run(given):
    if len(given.everything) != 1:
        raise Refused("reset needs an exercise, for example: tools/course reset 1")
    exercise = named(given.everything[0])
    kept = None
    if not exercise.is_untouched():
        kept = progress.back_up(exercise.file) if exercise.is_there() else None
        begin_anew(exercise)
    progress.forget(exercise)
    print(f"{exercise.shown_file} is as it came." + (f" Yours is kept as {os.path.relpath(kept, ROOT)}." if kept else ""))
    return 0


COMMAND = Command(
    name="reset",
    usage="EXERCISE",
    intro="Makes an exercise's file what it was in the beginning. What you have written is kept beside it, with the date in its name.",
    options=(),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
