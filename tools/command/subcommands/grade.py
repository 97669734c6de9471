"""course grade: the exercises of a class."""

import concurrent.futures
import json
import os

from ..cli import options
from ..cli.arguments import Command
from ..exercises import grading
from ..exercises.exercise import all_exercises, require_exercises
from ..exercises.judging import Workshop, can_build_walls
from ..messages import Refused, say
from ..places import BUILD


def run(given):
    if len(given.everything) != 1:
        raise Refused("grade needs one folder, in which each student has a folder: tools/course grade handed-in")
    folder = os.path.abspath(given.everything[0])
    if not os.path.isdir(folder):
        raise Refused(f"there is no folder {given.everything[0]}. Name the one in which each student has a folder.")
    require_exercises()
    students, exercises = grading.students_of(folder), list(all_exercises())
    if not students:
        raise Refused(f"{given.everything[0]} has no folders: each student has one, with NN_name/gemm.cuh in it.")
    out = os.path.abspath(given.out or os.path.join(BUILD, "grades"))
    try:  # rather than when all is judged
        os.makedirs(out, exist_ok=True)
        with open(os.path.join(out, "grades.csv"), "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise Refused(f"cannot write to {out}: {error.strerror}. Name another folder with --out.") from None
    jobs = given.jobs or len(os.sched_getaffinity(0))
    workshop = Workshop("interpreter", given.seed, hidden=[folder])
    workshop.prepare(exercises)
    if not can_build_walls():
        say("there is no wall around what runs, for bubblewrap is missing or may not build one: see docs/exercises.md, 'For a class'.")
    say(f"grading {len(students)} students, {len(exercises)} exercises, {jobs} at a time ...")
    verdicts = {}

    def judge(pair):
        return pair, grading.judged(workshop, folder, *pair)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(judge, (student, exercise)) for student in students for exercise in exercises]
        try:
            for each in concurrent.futures.as_completed(waiting):
                (student, exercise), verdict = each.result()
                verdicts[student, exercise] = verdict
                print(json.dumps(line_of(student, exercise, verdict)), flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    points = grading.Points(verdicts, students, exercises, given.weights or {})
    points.write_csv(os.path.join(out, "grades.csv"))
    points.write_page(os.path.join(out, "grades.html"), grading.alike(folder, students, exercises))
    say(f"{os.path.join(out, 'grades.csv')} and grades.html beside it have the points.")
    return 0


def line_of(student, exercise, verdict):
    return {
        "student": grading.shown(student),
        "exercise": exercise.name,
        "passed": verdict.passed,
        "state": verdict.kind,
        "credit": grading.credit(verdict),
        "message": verdict.text,
        "seconds": round(verdict.seconds, 3),
    }


COMMAND = Command(
    name="grade",
    usage="FOLDER [OPTION...]",
    intro="""
    Checks the exercises of a class. FOLDER has a folder for each student, with NN_name/gemm.cuh in it, there or below exercises/ or
    exercises/my/. stdout has a line of JSON for each verdict, as they come. In the end, grades.csv has the points, and grades.html for the
    teacher also what was said and which answers are alike.
    """,
    options=(options.JOBS, options.WEIGHTS, options.GRADES_OUT, options.SEED),
    outro="Exit code: 0 everything was judged, whoever passed; 2 refused input, 130 interrupted. docs/exercises.md says more.",
    run=run,
)
