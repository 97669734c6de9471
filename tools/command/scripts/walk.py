"""tools/course walk [--check]: records docs/walk.md, what a terminal shows of the first three exercises; --check compares alone.

The commands are real; the learner's edits are the exercises' own known answers.
"""

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from .. import files
from ..building import folder
from ..exercises import answers
from ..exercises.exercise import EXERCISES, all_exercises, read
from ..messages import Failed, Refused, say
from ..places import BUILD, ROOT

PAGE = os.path.join(ROOT, "docs", "walk.md")
WIDTH = 90
HEAD = """# The first three exercises, in a terminal

What follows is recorded: `tools/course walk` types the commands, makes the edits and writes down what is shown; a test does so again. Times
and dates differ from machine to machine. {intro}
"""
INTRO = "[Exercises](exercises.md) says what the commands are."
# What is not the same twice.
VARYING = [(re.compile(r"\(\d+\.\d s\)"), "(1.0 s)"), (re.compile(r"passed \d{4}-\d\d-\d\d"), "passed 2026-11-23")]


class Walk:
    def __init__(self, exercises):
        self.parts, self.exercises = [HEAD.format(intro=INTRO)], exercises
        self.environment = {**os.environ, "COURSE_TEST_EXERCISES": exercises, "COLUMNS": str(WIDTH)}

    def tell(self, text):
        self.parts.append(text + "\n")

    def type(self, *words, lines=None):
        """Runs tools/course WORDS. Of a long text, its first LINES."""
        done = subprocess.run(
            [os.path.join(ROOT, "tools", "course"), *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        shown = done.stdout.rstrip("\n").replace(os.path.relpath(self.exercises, ROOT), "exercises")
        for varying, steady in VARYING:
            shown = varying.sub(steady, shown)
        if not shown:
            raise Failed(f"tools/course {' '.join(words)} shows nothing; stderr: {done.stderr}")
        if lines:
            shown = "\n".join([*shown.splitlines()[:lines], "..."])
        self.parts.append(f"```\n$ tools/course {' '.join(words)}\n{shown}\n```\n")

    def edit(self, exercise, text):
        path = os.path.join(self.exercises, "my", exercise.name, "gemm.cuh")
        before = read(path)
        diff = difflib.unified_diff(before.splitlines(), text.splitlines(), n=1, lineterm="")
        shown = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
        files.write(path, text)
        self.parts.append("```diff\n" + "\n".join(shown) + "\n```\n")


def wrong(exercise, name):
    found = [each for each in answers.answers(exercise) if each.name == f"{exercise.name}/wrong/{name}"]
    if not found:
        raise Failed(f"{exercise.name} has no wrong answer '{name}', which the walk shows.")
    return found[0].text()


def record(exercises):
    first, second, third = all_exercises()[:3]
    walk = Walk(exercises)
    walk.tell(f"## {first.title}\n\nThe file as it comes:")
    walk.type("check")
    walk.tell("The first idea gives each thread an element of its own, down the columns:")
    walk.edit(first, wrong(first, "swapped"))
    walk.type("check")
    walk.tell("C is right, and yet this is not what the lesson taught. A hint:")
    walk.type("hint")
    walk.tell("The two lines, the other way round:")
    walk.edit(first, read(first.solution))
    walk.type("check")
    walk.tell(f"## {second.title}")
    walk.type("check")
    walk.edit(second, read(second.solution))
    walk.type("check")
    walk.tell(f"## {third.title}\n\nThe first check of an exercise makes the file that you edit; `start` does so, too, and builds nothing:")
    walk.type("start")
    walk.tell("This time the learner forgets the second barrier:")
    walk.edit(third, wrong(third, "no_second_barrier"))
    walk.type("check")
    walk.tell("The report names the line that writes too early. With the barrier:")
    walk.edit(third, read(third.solution))
    walk.type("check")
    walk.type("list", lines=5)
    return "\n".join(walk.parts)


def main(words):
    if words not in ([], ["--check"]):
        raise Refused("walk takes no argument but --check.")
    with folder.locked():
        pass  # makes build/
    scratch = tempfile.mkdtemp(prefix="walk-", dir=BUILD)
    try:
        exercises = os.path.join(scratch, "exercises")
        shutil.copytree(EXERCISES, exercises, ignore=shutil.ignore_patterns("my"))
        text = record(exercises)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not words:
        files.write(PAGE, text)
        print(os.path.relpath(PAGE, ROOT))
        return 0
    if read(PAGE) == text:
        return 0
    sys.stdout.writelines(difflib.unified_diff(read(PAGE).splitlines(True), text.splitlines(True), "docs/walk.md", "now"))
    say("docs/walk.md is not what the exercises show now: run 'tools/course walk'.")
    return 1
