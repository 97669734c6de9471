"""The exercises' folders, and what their files say."""

import dataclasses
import errno
import functools
import os
import re

from .. import files
from ..cli.steps import the_one
from ..machine import needs
from ..messages import Refused, say
from ..places import ROOT

# Tests and the recorded walk have a folder of their own.
EXERCISES = os.environ.get("COURSE_TEST_EXERCISES") or os.path.join(ROOT, "exercises")
SOLUTIONS = os.path.join(ROOT, "solutions")
HOLE = re.compile(r"^ *// >>>.*?^ *// <<<.*?$", re.MULTILINE | re.DOTALL)
HINT = re.compile(r"<details>\s*<summary>Hint \d+</summary>\n(.*?)</details>", re.DOTALL)
PROMISE = re.compile(r"^\*\*Task\.\*\* (.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
# Exercises that are no more, and the one that has their tasks. A learner who has passed all of those has passed it.
MERGED = {"17_attention_scores": "17_attention", "18_attention_values": "17_attention"}


@dataclasses.dataclass(frozen=True)
class Exercise:
    """exercises/NN_name."""

    name: str

    @property
    def title(self):
        return self.name.replace("_", " ")

    @property
    def file(self):
        """What the learner edits; progress.begin() makes it. git leaves it alone."""
        return os.path.join(mine(), self.name, "gemm.cuh")

    @property
    def shown_file(self):
        return os.path.relpath(self.file, ROOT)

    @property
    def stub(self):
        """What `file` is at the beginning."""
        return os.path.join(EXERCISES, self.name, "gemm.cuh")

    @property
    def solution(self):
        return os.path.join(SOLUTIONS, self.name, "gemm.cuh")

    @property
    def readme(self):
        return os.path.join(EXERCISES, self.name, "README.md")

    def hints(self):
        """From vague to plain."""
        return [plain(text) for text in HINT.findall(read(self.readme))]

    def task(self):
        found = PROMISE.search(files.text(self.readme))
        return plain(found[1]) if found else ""

    def is_there(self):
        return os.path.isfile(self.file)

    @property
    def current(self):
        """The learner's file, or what it will be in the beginning."""
        return self.file if self.is_there() else self.stub


def mine():
    """The folder of what the learner has done."""
    return os.path.join(EXERCISES, "my")


def plain(markdown):
    return LINK.sub(r"\1", markdown).strip()


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        path = os.path.relpath(path, ROOT)
        anew = f" Copy it from the course anew, with 'git checkout {path}' for example." if error.errno == errno.ENOENT else ""
        raise Refused(f"cannot read {path}: {error.strerror}.{anew}") from None


def without_holes(text):
    """What a stub and its solution have in common."""
    return HOLE.sub("<hole>", text)


def folders_with(place, file):
    """The names of the folders NN_name below PLACE that have FILE."""
    names = os.listdir(place) if os.path.isdir(place) else []
    return {name for name in names if re.match(r"\d\d_", name) and os.path.isfile(os.path.join(place, name, file))}


@functools.cache
def all_exercises():
    """Those that are complete. What somebody has copied, renamed, removed or added is said, once."""
    found, course = folders_with(EXERCISES, "test.cpp"), folders_with(SOLUTIONS, "gemm.cuh")
    built = set(needs.declared(EXERCISES))
    for name in sorted(found - course if course else []):
        say(f"exercises/{name} is left out: the course has no exercise of that name.")
    for name in sorted(course - found if found else []):
        say(f"exercises/{name} is left out: its test.cpp is not there. Rename the folder back, or copy it from the course anew.")
    for name in sorted((found & course) - built):
        say(f"exercises/{name} is left out: exercises/CMakeLists.txt has no line course_exercise({name} NEEDS ...).")
    complete = found & course & built
    for name in sorted(folders_with(mine(), "gemm.cuh") - complete if complete else []):
        why = f"its task is part of {MERGED[name]}" if name in MERGED else "there is no exercise of that name"
        say(f"exercises/my/{name} is left out: {why}.")
    return tuple(map(Exercise, sorted(complete)))


def require_exercises():
    if not all_exercises():
        incomplete = "solutions" if folders_with(EXERCISES, "test.cpp") else "exercises"  # each exercise has one there
        raise Refused(f"there are no exercises here: is the folder {incomplete}/ complete?")


def named(word):
    """The one whose number is WORD, or in whose name a word begins with it. A path to its folder or its file, or the solution's, will do,
    too."""
    require_exercises()
    text = re.sub(r"^(?:.*/)?(?:exercises/my|exercises|solutions)/|/gemm\.cuh$|/$", "", word)
    names = [each.name for each in all_exercises()]
    for old, new in MERGED.items():
        if new in names and old not in names and (text == old or (re.fullmatch(f"0*{int(old[:2])}", text) and old[:2] != new[:2])):
            raise Refused(f"{old} is part of exercise {new} now: give {new[:2]}.")
    return Exercise(the_one("exercise", word, text, names))
