"""course check: whether exercises are right."""

import json
import os
import textwrap

from ..cli import options
from ..cli.arguments import Command
from ..exercises import checking, grading, progress
from ..exercises.exercise import all_exercises, require_exercises
from ..exercises.judging import MISSING, Verdict, Workshop
from ..machine.gpu import choose_backend
from ..messages import Refused, say
from ..places import ROOT
from . import see


def files_of(given, exercises):
    """The file of each exercise: the learner's, or that of a folder that was handed in."""
    if not given.of:
        return {each: each.file for each in exercises}
    return {each: grading.handed_in(given.of, each)[0] for each in exercises}


def judged(workshop, given, exercise, file):
    if given.see is None or not os.path.isfile(file):
        return judged_with(workshop, given, exercise, file)
    with see.page_of(page_of(given, exercise), f"exercise {exercise.title}") as events:
        return judged_with(workshop, given, exercise, file, events)


def page_of(given, exercise):
    return see.path_of(given.see, f"exercise_{exercise.name}")


def judged_with(workshop, given, exercise, file, events=""):
    if not os.path.isfile(file):
        return Verdict(MISSING, grading.handed_in(given.of, exercise)[1] if given.of else f"there is no {os.path.relpath(file, ROOT)}", 0.0)
    if not given.of:
        return checking.check(workshop, exercise, events)
    return workshop.judge(exercise, file, events)


def run(given):
    if given.all and given.everything:
        raise Refused("--all checks every exercise: leave out their names, or --all.")
    if given.of and not os.path.isdir(given.of):
        raise Refused(f"--of {given.of}: there is no such folder. Name the one in which the folders NN_name lie.")
    require_exercises()
    if not given.of:
        progress.take_over()
    exercises = list(all_exercises()) if given.all else checking.to_check(given.everything)
    if not exercises:
        print(f"{checking.bar()}\n{checking.what_next()}")
        return 0
    backend = choose_backend(given.on or "interpreter")
    exercises = checking.able(exercises, backend, not given.all)
    files = files_of(given, exercises)
    if given.see is not None:
        if backend == "gpu":
            raise Refused("--see is about the interpreter: it records what a kernel does. Leave it out, or --on gpu.")
        if given.see and len(files) > 1:
            raise Refused("--see FILE.html is a page of one exercise: name it, or leave out the file, and each has its own in build/see.")
        page_of(given, exercises[0])  # or it is refused, before anything is built
    # One of the learner's own is talked about; several, or somebody else's, are listed.
    is_list = len(files) > 1 or bool(given.of)
    if not given.of and not given.all:
        for each in exercises:
            progress.begin(each)  # or it is refused, before anything is built
    workshop = Workshop(backend, given.seed, [os.path.dirname(os.path.abspath(given.of))] if given.of else [])
    workshop.prepare([each for each, file in files.items() if os.path.isfile(file)])  # of a beginner's, in CI, that is few of all
    verdicts = {}
    say(f"checking {f'{len(files)} exercises' if len(files) > 1 else exercises[0].title} ...")
    for exercise, file in files.items():
        verdicts[exercise] = verdict = judged(workshop, given, exercise, file)
        if not given.json:
            print(line_of(exercise, verdict) if is_list else checking.report(exercise, verdict), flush=True)
    passed = sum(verdict.passed for verdict in verdicts.values())
    if given.json:
        print(json.dumps(document(verdicts, passed), indent=1))
    elif is_list:
        print(f"{passed} of {len(verdicts)} passed.")
    return 0 if passed == len(verdicts) else 1


def line_of(exercise, verdict):
    head = f"{exercise.title:<28} {verdict.kind:<17} {verdict.seconds:5.1f} s"
    return head if verdict.passed else f"{head}\n{textwrap.indent(verdict.text, '    ')}"


def document(verdicts, passed):
    return {
        "passed": passed,
        "total": len(verdicts),
        "exercises": [
            {
                "name": exercise.name,
                "passed": verdict.passed,
                "state": verdict.kind,
                "message": verdict.text,
                "seconds": round(verdict.seconds, 3),
            }
            for exercise, verdict in verdicts.items()
        ],
    }


COMMAND = Command(
    name="check",
    usage="[EXERCISE...] [OPTION...]",
    intro="""
    Checks exercises: the result for many shapes, some of them drawn at random, and the property that the exercise is about. Without
    EXERCISE, which is a number or a word of a name, the first one that has not passed. exercises/NN_name/README.md says what to do. What
    you write is exercises/my/NN_name/gemm.cuh: the first check makes it.
    """,
    options=(options.ALL, options.EXERCISES_ON, options.EXERCISES_JSON, options.OF, options.SEED, options.SEE),
    outro="Exit code: 0 all that was checked passed, 1 something did not, 2 refused input, 130 interrupted. docs/exercises.md says more.",
    run=run,
)
