"""Checking a learner's file, and what is said about it."""

import os
import textwrap

from ..cli.arguments import width
from ..machine import needs
from ..places import ROOT
from . import progress
from .exercise import all_exercises, named, require_exercises
from .judging import NO_PROGRAM

BAR = 20


def to_check(words):
    """The exercises that WORDS name; without any, the first that has not passed, or []."""
    require_exercises()
    if words:
        return list(dict.fromkeys(map(named, words)))
    following = progress.Progress().next()
    return [following] if following else []


def able(exercises, backend, are_named):
    """Those that can run on BACKEND; one of those that ARE_NAMED is refused."""
    kept, _ = needs.available("exercises", [each.name for each in exercises], backend, are_named)
    return [each for each in exercises if each.name in kept]


def bar():
    """"[####......] 3 of 18 passed"."""
    count, total = progress.Progress().count(), len(all_exercises())
    filled = -(-BAR * count // total)  # one is something to see
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {count} of {total} passed"


def report(exercise, verdict):
    """What the learner is told."""
    if verdict.passed:
        shown = [f"{exercise.title}: passed ({verdict.seconds:.1f} s).", *verdict.text.splitlines()]
        return "\n".join([*shown, bar(), what_next()])
    kind = "does not compile yet" if verdict.kind == NO_PROGRAM else "not yet"
    shown = [f"{exercise.title}: {kind} ({verdict.seconds:.1f} s).", "", textwrap.indent(verdict.text, "  "), ""]
    if progress.Progress().is_untouched(exercise):
        shown += [*textwrap.wrap(f"You have not changed it so far. Task: {exercise.task()}", width()), ""]
    if progress.Progress().is_of_another_stub(exercise):
        place = os.path.relpath(exercise.stub, ROOT)
        shown.append(f"The course's {place} has changed since you began: docs/exercises.md#updating says what to do.")
    shown.append(f"Edit {exercise.shown_file}, then 'tools/course check' again. Stuck? 'tools/course hint'.")
    return "\n".join(shown)


def what_next():
    following = progress.Progress().next()
    if not following:
        return "All exercises have passed."
    return f"Next: {following.title}. Read {os.path.relpath(following.readme, ROOT)}, then 'tools/course check'."


def task(exercise):
    return "\n".join(textwrap.wrap(f"{exercise.title}: {exercise.task()}", width()))


def table():
    """The exercises and their states."""
    done = progress.Progress()
    following = done.next()
    rows = [f"{'->' if each == following else '  '} {each.title:<28} {done.state(each)}" for each in all_exercises()]
    return "\n".join([*rows, "", f"{bar()}. {what_next()}"])


def check(workshop, exercise, events=""):
    """Judges the learner's file; a pass is remembered. Returns the verdict."""
    verdict = workshop.judge(exercise, exercise.file, events)
    if verdict.passed:
        progress.remember_pass(exercise)
    return verdict
