"""Answers that are known to be wrong, or right in another way: patches to the solution, with what a learner has to be told.

solutions/NN_name/{wrong,right}/NAME.patch. Above the diff stand lines that this module reads:

    what: WORDS   the mistake, or the other way
    says: WORDS   a part of what the learner is told, any number of times; blanks may differ; wrong answers have at least one
"""

import concurrent.futures
import dataclasses
import glob
import os
import zlib

from .. import files, patches
from ..messages import Failed
from ..places import ROOT
from .exercise import SOLUTIONS, read, without_holes
from .judging import NO_PROGRAM

LEAST_WRONG, LEAST_RIGHT, HINTS = 5, 2, 3


@dataclasses.dataclass(frozen=True)
class Answer:
    exercise: object
    path: str
    is_right: bool
    what: str
    says: tuple
    hunks: tuple  # of (old, new)

    @property
    def name(self):
        return f"{self.exercise.name}/{os.path.basename(os.path.dirname(self.path))}/{os.path.basename(self.path)[: -len('.patch')]}"

    def text(self):
        """The whole file."""
        try:
            return patches.applied(read(self.exercise.solution), self.hunks, os.path.relpath(self.path, ROOT), "the solution")
        except patches.BadPatch as error:
            raise Failed(str(error)) from None


def read_answer(exercise, path):
    fields, of_files = patches.parse(read(path), ("what", "says"))
    what, says = ([value for name, value in fields if name == wanted] for wanted in ("what", "says"))
    hunks = sum(of_files.values(), [])  # of one file
    is_right = os.path.basename(os.path.dirname(path)) == "right"
    if not hunks or not what or bool(says) == is_right:
        raise Failed(f"{os.path.relpath(path, ROOT)}: a patch has 'what: ', if it is wrong also 'says: ', and then a diff of the solution.")
    return Answer(exercise, path, is_right, what[0], tuple(says), tuple(map(tuple, hunks)))


def answers(exercise):
    paths = sorted(glob.glob(os.path.join(glob.escape(SOLUTIONS), exercise.name, "*", "*.patch")))
    return [read_answer(exercise, path) for path in paths]


def words(text):
    return " ".join(text.split())


def problem_of(workshop, answer):
    """What is not as the patch says; empty if all is."""
    # The same each time, for a compiler cache looks at it; and short, for reports name it and have an end.
    path = os.path.join(workshop.folder, "answers", f"{zlib.crc32(answer.name.encode()):08x}", "gemm.cuh")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.write(path, answer.text())
    verdict = workshop.judge(answer.exercise, path)
    if answer.is_right:
        return "" if verdict.passed else f"{answer.name} ({answer.what}) is right, and is not accepted:\n{verdict.text}"
    if verdict.passed:
        return f"{answer.name} ({answer.what}) is wrong, and passes."
    if verdict.kind == NO_PROGRAM and not any("error" in each for each in answer.says):
        return f"{answer.name} does not compile:\n{verdict.text}"
    missing = [each for each in answer.says if words(each) not in words(verdict.text)]
    return f"{answer.name} ({answer.what}) is rejected, but not with '{missing[0]}':\n{verdict.text}" if missing else ""


def problems_of_files(exercise):
    """What is wrong with an exercise before anything is compiled."""
    found = []
    stub, solution, count = read(exercise.stub), read(exercise.solution), len(exercise.hints())
    if without_holes(stub) == stub:
        found.append("its stub has no hole: a line with '// >>> ' and what to do, later one with '// <<<'")
    if without_holes(stub) != without_holes(solution):
        found.append("stub and solution differ outside of the holes")
    if count != HINTS:
        found.append(f"README.md has {count} hints, not {HINTS}")
    if not exercise.task():
        found.append("README.md has no paragraph '**Task.**'")
    every = answers(exercise)
    for kind, least in (("wrong", LEAST_WRONG), ("right", LEAST_RIGHT)):
        have = sum(answer.is_right == (kind == "right") for answer in every)
        if have < least:
            found.append(f"it has {have} {kind} answers, not {least}")
    return [f"{exercise.name}: {each}." for each in found]


def problems(workshop, exercises, sample, told):
    """Everything that is not as it should be. SAMPLE: one wrong and one right answer of each. TOLD: called with each job's name."""
    found, jobs = [], []
    for exercise in exercises:
        found += problems_of_files(exercise)
        every = answers(exercise)
        if sample:
            every = [*[each for each in every if not each.is_right][:1], *[each for each in every if each.is_right][:1]]
        if workshop.preset == "gpu":  # which counts nothing and sees no race: there, what is wrong may pass
            every = [each for each in every if each.is_right]
        else:
            jobs += [(f"{exercise.name}/stub", lambda e=exercise: stub_problem(workshop, e))]
        jobs += [(f"{exercise.name}/solution", lambda e=exercise: solution_problem(workshop, e))]
        jobs += [(answer.name, lambda a=answer: problem_of(workshop, a)) for answer in every]

    def run(job):
        problem = job[1]()
        told(job[0], not problem)
        return problem

    with concurrent.futures.ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
        return found + [problem for problem in pool.map(run, jobs) if problem], len(jobs)


def stub_problem(workshop, exercise):
    verdict = workshop.judge(exercise, exercise.stub)
    if verdict.passed:
        return f"{exercise.name}: the stub passes."
    return f"{exercise.name}: the stub does not compile:\n{verdict.text}" if verdict.kind == NO_PROGRAM else ""


def solution_problem(workshop, exercise):
    verdict = workshop.judge(exercise, exercise.solution)
    return "" if verdict.passed else f"{exercise.name}: the solution does not pass:\n{verdict.text}"
