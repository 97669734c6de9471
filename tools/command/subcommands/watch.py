"""course watch: checks an exercise whenever its file is saved, and does what its keys say meanwhile."""

import os
import select
import shlex
import signal
import sys
import termios
import time
import tty

from ..cli import options
from ..cli.arguments import Command
from ..exercises import checking, progress
from ..exercises.exercise import all_exercises
from ..exercises.judging import Workshop
from ..machine import processes
from ..machine.gpu import choose_backend
from ..messages import Refused, Stop, say
from . import hint, reset

PAUSE = 0.2  # seconds between two looks at the file
KEYS = "h hint, l list, e editor, r reset, n next exercise, q quit"


def stamp(path):
    try:
        found = os.stat(path)
        return found.st_mtime_ns, found.st_size, found.st_ino
    except OSError:
        return None  # editors replace the file: it is there again soon


def has_keys():
    """Whether somebody can type here: who asks a terminal from the background is stopped."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and os.tcgetpgrp(0) == os.getpgrp()
    except (OSError, ValueError, AttributeError):  # closed, or None
        return False


def typed_before(is_over):
    """The key that is typed, without Enter; '' as soon as IS_OVER()."""
    before = termios.tcgetattr(0) if has_keys() else None
    try:
        while not is_over():
            if before and has_keys():
                tty.setcbreak(0, termios.TCSANOW)  # again: Ctrl-Z and fg take it back
                if select.select([0], [], [], PAUSE)[0]:
                    return os.read(0, 1).decode(errors="replace")
            else:
                time.sleep(PAUSE)
    finally:
        if before and has_keys():
            termios.tcsetattr(0, termios.TCSADRAIN, before)
    return ""


def edit(exercise):
    """In the learner's editor. One in this terminal takes it until it is closed; Ctrl-C is the editor's there."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        say(f"no editor is known: set EDITOR, for example 'export EDITOR=nano', or open {exercise.shown_file} yourself.")
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not ignored: the editor would begin like that
    try:
        code = processes.run([*shlex.split(editor), exercise.file])
        if code:
            say(f"'{editor}' ended with exit code {code}: is EDITOR right?")
    except (Stop, ValueError) as error:
        say(f"cannot start the editor '{editor}': {error}")
    finally:
        signal.signal(signal.SIGINT, before)


def begin_anew(exercise):
    print(f"Begin {exercise.title} anew? Yours is kept. y/n", flush=True)
    if typed_before(lambda: not has_keys()) == "y":
        reset.begin_anew(exercise)


def wait(exercise, seen):
    """Until the file is saved: ''; or until somebody leaves it: the key, n or q."""
    print(f"Waiting until you save {exercise.shown_file}. {f'Keys: {KEYS}.' if has_keys() else 'Ctrl-C ends this.'}", flush=True)
    deeds = {"h": hint.show, "l": lambda _: print(checking.table()), "e": edit, "r": begin_anew}
    while True:
        typed = typed_before(lambda: stamp(exercise.file) not in (seen, None))
        if typed in ("", "n", "q"):
            return typed
        deeds.get(typed, lambda _: print(f"Keys: {KEYS}."))(exercise)
        sys.stdout.flush()


def watch(workshop, exercise):
    """Until EXERCISE passes: ''; or the key with which somebody left it."""
    progress.begin(exercise)
    workshop.prepare([exercise])
    while True:
        seen = stamp(exercise.file)
        say(f"checking {exercise.title} ...")
        verdict = checking.check(workshop, exercise)
        print(f"\n{checking.report(exercise, verdict)}", flush=True)
        if verdict.passed:
            return ""
        left = wait(exercise, seen)
        if left:
            return left


def after(exercise):
    """The next one that has not passed; behind the last one, from the first on."""
    every, done = all_exercises(), progress.Progress()
    place = every.index(exercise) + 1
    return [each for each in [*every[place:], *every[:place]] if not done.has_passed(each)][:1]


def run(given):
    if len(given.everything) > 1:
        raise Refused("watch begins with one exercise: name it, or none.")
    progress.take_over()
    following = checking.to_check(given.everything)
    backend = choose_backend(given.on or "interpreter")
    workshop = Workshop(backend)
    while checking.able(following, backend, True):
        left = watch(workshop, following[0])
        if left == "q":
            return 0
        following = after(following[0]) if left else checking.to_check([])
    print(checking.what_next())
    return 0


COMMAND = Command(
    name="watch",
    usage="[EXERCISE] [OPTION...]",
    intro="""
    Checks an exercise each time you save its file, and goes on to the next one when it passes. Without EXERCISE, begins with the first
    that has not passed.

    While it waits, a key does what a command does: h shows a hint, l the list, e opens the file in your editor, which VISUAL or EDITOR
    names, r begins anew, n goes on to the next exercise, q quits.
    """,
    options=(options.EXERCISES_ON,),
    outro="Exit code: 0 all exercises have passed or q was typed, 2 refused input, 130 ended by Ctrl-C.",
    run=run,
)
