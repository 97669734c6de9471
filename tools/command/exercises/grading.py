"""A class: what each student handed in, points, and a page for the teacher."""

import csv
import html
import itertools
import os
import re
import shutil
import tempfile

from .. import files
from ..machine import processes
from ..messages import Refused
from .exercise import read
from .judging import MISSING, SOURCE_BYTES, Verdict

PLACES = ("exercises/my", "my", "", "exercises")  # in a student's folder, where NN_name/gemm.cuh may lie, what comes first counts
HALF = 0.5
LEAST_WORDS, MOST_WORDS, LEAST_ALIKE = 40, 10_000, 80  # tokens of an answer that is compared, and the percentage that is told
SECONDS_ALIKE = 60  # that sim_c++ gets for an exercise


def students_of(folder):
    """The names of the folders in it."""
    return sorted(each.name for each in os.scandir(folder) if each.is_dir(follow_symlinks=False) and not each.name.startswith("."))


def handed_in(folder, exercise):
    """(path, '') of the file of the student whose FOLDER that is; or (path, why there is none)."""
    own = os.path.realpath(folder)
    paths = [os.path.join(own, place, exercise.name, "gemm.cuh") for place in PLACES]
    there = [path for path in paths if os.path.lexists(path)]
    real = [path for path in there if os.path.isfile(path) and os.path.realpath(path) == path]
    begun = [path for path in real if os.path.getsize(path) > SOURCE_BYTES or read(path) != read(exercise.stub)]
    if begun:
        return begun[0], ""
    if real:
        return real[0], "it is as it was handed out"
    return paths[0], f"{there[0]} is no file of its own, but a link or a folder" if there else f"there is no {exercise.name}/gemm.cuh"


def judged(workshop, folder, student, exercise):
    """A Verdict, whatever happens: one student's fault is not another's."""
    try:
        path, missing = handed_in(os.path.join(folder, student), exercise)
        return Verdict(MISSING, missing, 0.0) if missing else workshop.judge(exercise, path)
    except Exception as error:
        return Verdict("not judged", f"{type(error).__name__}: {error}", 0.0)


def credit(verdict):
    """0 to 1: a half where C is right and the way to it is not."""
    return 1.0 if verdict.passed else HALF if verdict.right else 0.0


def shown(name):
    """A folder's name, which may have any bytes."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


class Points:
    def __init__(self, verdicts, students, exercises, weights):
        """VERDICTS: {(student, exercise): Verdict}."""
        self.verdicts, self.students, self.exercises, self.weights = verdicts, students, exercises, weights

    def weight(self, exercise):
        return self.weights.get(exercise.name[:2], 1.0)

    def percent(self, student):
        most = sum(map(self.weight, self.exercises))
        return 100 * sum(self.weight(each) * credit(self.verdicts[student, each]) for each in self.exercises) / most if most else 0.0

    def passed(self, student):
        return sum(self.verdicts[student, each].passed for each in self.exercises)

    def rows(self):
        yield ["student", *(each.name for each in self.exercises), "passed", "percent"]
        for student in self.students:
            credits = [f"{credit(self.verdicts[student, each]):g}" for each in self.exercises]
            yield [shown(student), *credits, str(self.passed(student)), f"{self.percent(student):.1f}"]

    def write_csv(self, path):
        with open(path, "w", encoding="utf-8", newline="") as file:
            for name, *numbers in self.rows():
                csv.writer(file).writerow([f"'{name}" if name[:1] in "=+-@\t" else name, *numbers])  # or a spreadsheet computes it

    def write_page(self, path, alike):
        head, *rows = self.rows()
        columns = "".join(f"<th>{html.escape(name[:2] if name[:2].isdigit() else name)}</th>" for name in head)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
        told = ""
        for student in self.students:
            for exercise in self.exercises:
                verdict = self.verdicts[student, exercise]
                if not verdict.passed and verdict.kind != MISSING:
                    title = html.escape(f"{shown(student)}, {exercise.title}: {verdict.kind}")
                    told += f"<details><summary>{title}</summary><pre>{html.escape(verdict.text)}</pre></details>\n"
        page = PAGE.format(columns=columns, body=body, alike=alike_in_html(alike), told=told or "<p>Nothing.</p>")
        files.write(path, page)


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Grades</title>
<style>body {{ font-family: sans-serif }} td, th {{ padding: 0 .5em; text-align: right }} td:first-child {{ text-align: left }}
tr:nth-child(even) {{ background: #eee }} pre {{ white-space: pre-wrap }}</style>
<h1>Grades</h1>
<p>1: passed. 0.5: the result is right, the way to it is not what the task asks for. 0: neither, or nothing was handed in.</p>
<table><tr>{columns}</tr>
{body}</table>
<h2>Alike</h2>
{alike}
<h2>What was said</h2>
{told}</html>
"""


def alike_in_html(alike):
    if isinstance(alike, str):
        return f"<p>{html.escape(alike)}</p>"
    if not alike:
        return f"<p>No two answers are alike: none has {LEAST_ALIKE} % of another one.</p>"
    rows = "".join(f"<li>{html.escape(f'{exercise}: {one} has {percent} % of {other}')}</li>\n" for percent, exercise, one, other in alike)
    return f"<p>Look at these yourself: a task that leaves little choice makes answers alike.</p><ul>\n{rows}</ul>"


# --- who has whose words: sim, by Dick Grune, which Debian has as similarity-tester ---

FOUND = re.compile(r"^(\d+) consists for (\d+) % of (\d+) material$", re.MULTILINE)


def alike(folder, students, exercises):
    """[(percent, exercise, who, of whom)], the most alike first; or why nobody has looked. The course's answer is compared, too."""
    if not shutil.which("sim_c++"):
        return "Nobody has compared the answers: sim_c++ is not there. Debian's package similarity-tester has it."
    found = []
    for exercise in exercises:
        texts = {shown(student): text_of(os.path.join(folder, student), exercise) for student in students}
        in_exercise = alike_in(exercise, {**texts, "the course's answer": read(exercise.solution)})
        if in_exercise is None:
            return f"sim_c++ compared the answers to {exercise.title} for {SECONDS_ALIKE} s without an end: nobody has compared any."
        found += in_exercise
    return sorted(found, key=lambda each: (-each[0], each[1:]))


def text_of(folder, exercise):
    """Of an answer; '' where there is none to compare."""
    try:
        path, missing = handed_in(folder, exercise)
        return "" if missing or os.path.getsize(path) > SOURCE_BYTES else read(path)
    except (Refused, OSError):
        return ""


def alike_in(exercise, texts):
    """None where that takes too long. Whose answer is far longer than others is left out: it would take longest."""
    handed_out = set(map(str.strip, read(exercise.stub).splitlines()))
    with tempfile.TemporaryDirectory() as scratch:
        names = []
        for number, text in zip(itertools.count(), texts.values()):
            own = [line for line in text.splitlines() if line.strip() not in handed_out]
            if LEAST_WORDS <= len(re.findall(r"\w+|[^\w\s]", "\n".join(own))) <= MOST_WORDS:
                files.write(os.path.join(scratch, str(number)), "\n".join(own) + "\n")
                names.append(str(number))
        command = ["sh", "-c", 'cd "$0" && exec sim_c++ -p -e -r 16 -t "$@"', scratch, str(LEAST_ALIKE), *names]
        code, said = processes.ask(["timeout", str(SECONDS_ALIKE), *command])
        if code == 124:
            return None
    who = list(texts)
    return [(int(percent), exercise.name, who[int(a)], who[int(b)]) for a, percent, b in FOUND.findall(said) if int(a) != len(who) - 1]
