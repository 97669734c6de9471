"""course start: a file to write in, before anything is built."""

import os

from ..cli.arguments import Command
from ..exercises import checking, progress
from ..messages import Refused
from ..places import ROOT


def run(given):
    if len(given.everything) > 1:
        raise Refused("start is about one exercise: name it, or none.")
    progress.take_over()
    exercises = checking.to_check(given.everything)
    if not exercises:
        print(checking.what_next())
        return 0
    (exercise,) = exercises
    progress.begin(exercise)
    print(f"{checking.task(exercise)}\n{os.path.relpath(exercise.readme, ROOT)} says more. Edit {exercise.shown_file}, then 'tools/course check {exercise.name[:2]}'.")
    return 0


COMMAND = Command(
    name="start",
    usage="[EXERCISE]",
    intro="""
    Makes your file of an exercise, exercises/my/NN_name/gemm.cuh, and says what to do in it. The first check does so, too. Without
    EXERCISE, the first that has not passed.
    """,
    options=(),
    outro="Exit code: 0, or 2 for refused input.",
    run=run,
)
