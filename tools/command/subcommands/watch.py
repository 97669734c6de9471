"""course watch: checks an exercise whenever its file is saved."""

import os
import time

from ..cli import options
from ..cli.arguments import Command
from ..exercises import checking
from ..exercises.judging import Workshop
from ..machine.gpu import choose_backend
from ..messages import Refused, say

PAUSE = 0.2  # seconds between two looks at the file


def stamp(path):
    try:
        found = os.stat(path)
        return found.st_mtime_ns, found.st_size, found.st_ino
    except OSError:
        return None  # editors replace the file: it is there again soon


def wait_for_change(path, seen):
    while stamp(path) in (seen, None):
        time.sleep(PAUSE)


def watch(workshop, exercise):
    """Until EXERCISE passes."""
    workshop.prepare([exercise])
    while True:
        seen = stamp(exercise.file)
        say(f"checking {exercise.title} ...")
        verdict = checking.check(workshop, exercise)
        print(f"\n{checking.report(exercise, verdict)}", flush=True)
        if verdict.passed:
            return
        print("Waiting until you save it. Ctrl-C ends this.", flush=True)
        wait_for_change(exercise.file, seen)


def run(given):
    if len(given.everything) > 1:
        raise Refused("watch begins with one exercise: name it, or none.")
    following = checking.to_check(given.everything)
    backend = choose_backend(given.on or "interpreter")
    workshop = Workshop(backend)
    while checking.able(following, backend, True):
        watch(workshop, following[0])
        following = checking.to_check([])
    print(checking.what_next())
    return 0


COMMAND = Command(
    name="watch",
    usage="[EXERCISE] [OPTION...]",
    intro="""
    Checks an exercise each time you save its file, and goes on to the next one when it passes. Without EXERCISE, begins with the first
    that has not passed.
    """,
    options=(options.EXERCISES_ON,),
    outro="Exit code: 0 all exercises have passed, 2 refused input, 130 ended by Ctrl-C.",
    run=run,
)
