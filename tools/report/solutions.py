"""Runs every exercise's solution on this machine's GPU, and records which pass, and their times beside those of cuBLAS.

Usage: tools/report solutions --programs FOLDER --out FILE [NAME...]

FOLDER has the programs solution_NN_name of the GPU's build. FILE is written anew after each of them, so that what ran is not lost; of
solutions that are not named it keeps what it has. It is described in docs/results/README.md.

Exit code: 0 all that ran passed, 1 something did not, 2 refused input.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

from . import results
from .ladder import ROOT
from .terminal import Arguments, run_command

SCHEMA = "gemm-course-solutions"
VERSION = 1
SECONDS = 120  # of one solution, with all that is timed
MACHINE = ("created", "commit", "host", "gpu", "cuda", "cublas")  # of each solution: another day, another GPU may run it
PREFIX = "solution_"


def names():
    """The solutions that there are."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(ROOT, "solutions", "*", "gemm.cuh")))


def run_one(program, name, scratch):
    """What is recorded of one."""
    path = os.path.join(scratch, f"{name}.json")
    answer = os.path.join(ROOT, "solutions", name, "gemm.cuh")
    try:
        done = subprocess.run(
            [program, answer, "", "", path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
        said, passed = done.stdout.strip(), done.returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        said, passed = str(error), False
    found = {"name": name, "passed": passed}
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        found.update({field: document[field] for field in MACHINE}, problems=document["problems"])
    except (OSError, ValueError, KeyError):
        found["passed"] = False
    if not found["passed"]:
        found["said"] = said[-2000:]
    return found


def read(path):
    """{name: record} of a file from before, if there is one."""
    try:
        with open(path, encoding="utf-8") as file:
            return {each["name"]: each for each in json.load(file)["solutions"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def document(records):
    return {"schema": SCHEMA, "version": VERSION, "solutions": [records[name] for name in sorted(records)]}


def line_of(record):
    """'15_decode_few_rows  passed  8x4096x4096: hot 96 %, cold 101 % of cuBLAS'."""
    parts = []
    for problem in record.get("problems", []):
        ratios = [f"{mode} {100 * problem[mode]['ratio']['median']:.0f} %" for mode in ("hot", "cold") if problem[mode]["ratio"]]
        beside = f"{', '.join(ratios)} of cuBLAS" if ratios else "no cuBLAS"
        again = f"{problem['hot']['of_solution']['median']:.3f} times itself (bar {problem['bar']:g})"
        parts.append(f"{problem['m']}x{problem['n']}x{problem['k']}: {beside}; {again}")
    return f"{record['name']:<26} {'passed' if record['passed'] else 'FAILED'}  {'; '.join(parts)}{record.get('said', '')}".rstrip()


def main():
    arguments = Arguments(prog="tools/report solutions", description=__doc__)
    arguments.add_argument("--programs", required=True)
    arguments.add_argument("--out", required=True)
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    unknown = set(given.names) - set(names())
    if unknown:
        print(f"course: no solution {', '.join(sorted(unknown))}; there are: {' '.join(names())}.", file=sys.stderr)
        return 2
    records = {name: record for name, record in read(given.out).items() if name in names()}
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.names or names():
            records[name] = run_one(os.path.abspath(os.path.join(given.programs, PREFIX + name)), name, scratch)
            results.write(given.out, document(records))
            wrong |= not records[name]["passed"]
            print(line_of(records[name]), flush=True)
    return int(wrong)


if __name__ == "__main__":
    run_command(main)
