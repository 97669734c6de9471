"""Records what ncu measures of one launch, for docs/results/<gpu>/profile: no table, and no interpreter. For tools/gpu-checks.

tools/course record FOLDER [--shape MxNxK] steps/NAME|solutions/NAME...

Each subject's table is in FOLDER as soon as it is measured. One that fails is reported, and does not stop the others.
Exit code: 0 all were measured, 1 some were not.
"""

import argparse
import os
import re
import subprocess
import sys
import time

from .. import files
from ..cli import steps
from ..places import BUILD, ROOT
from ..profiling import ncu
from ..profiling.subjects import LARGE, USUAL

from report import ncu_csv

SECONDS = 120  # for one subject
PROFILED = re.compile(r"^profiled: (\S+)$", re.MULTILINE)


class NotMeasured(Exception):
    """Why."""


def program(*path):
    return os.path.join(BUILD, "gpu", "bin", *path)


def of_step(step, shape):
    """(name of the table, kernels, command line)."""
    dtype, _ = steps.choose_dtype([step], None, True)
    shape = shape or USUAL.get(step, LARGE)
    words = [program(step), "--once", "--first", "--shape", shape, "--dtype", dtype]
    return f"{step}-{shape}-{dtype}", "(gemm|fallback)_kernel", words


def of_solution(name):
    """The same; the program says the rest of the name."""
    return f"solution_{name}", "", [program(f"solution_{name}"), os.path.join(ROOT, "solutions", name, "gemm.cuh"), "word", "largest"]


def command(tool, kernel, words, metrics=ncu.METRICS):
    """Of a step the first launch, of a solution all of the call's: which of its kernels loads most is seen afterwards."""
    of_kernel = ["--kernel-name", f"regex:{kernel}", "--launch-count", "1"] if kernel else []
    options = ["--metrics", ",".join(metrics), "--profile-from-start", "off", "--clock-control", "none", "--print-units", "base"]
    return [tool, "--csv", "--page", "raw", *options, *of_kernel, *words]


def output_of(words):
    """(exit code, what it said), of a program within SECONDS."""
    options = {"encoding": "utf-8", "errors": "replace", "timeout": SECONDS, "cwd": ROOT, "check": False}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    return done.returncode, done.stdout


def unknown_metrics(said):
    """Those that this ncu complains of: versions differ in what they have."""
    lines = [line for line in said.splitlines() if line.startswith("==ERROR==")]
    return [name for name in ncu.METRICS if any(name in line for line in lines)]


def measured(tool, name, kernel, words):
    """(name of the table, its text)."""
    try:
        code, said = output_of(command(tool, kernel, words))
        unknown = unknown_metrics(said)
        if unknown:
            print(f"{name}: this ncu does not have {' '.join(unknown)}", flush=True)
            code, said = output_of(command(tool, kernel, words, [each for each in ncu.METRICS if each not in unknown]))
        if ncu.FORBIDDEN in said:
            raise NotMeasured(ncu.HOW_TO_ALLOW)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(str(error)) from None
    try:
        table = "" if code else ncu_csv.table(said, ncu.METRICS, some=True)
    except ValueError:
        table = ""
    if not table:
        raise NotMeasured("\n".join(said.splitlines()[-15:]))
    found = PROFILED.search(said)
    table = ncu.one_launch(table)
    if table.count("\n") != 2:
        raise NotMeasured("ncu saw no launch")
    return f"{name}-{found[1]}" if found else name, table


def subject(word, shape):
    kind, name = word.rstrip("/").split("/")[-2:]
    return of_solution(name) if kind == "solutions" else of_step(name, shape)


def main(words):
    arguments = argparse.ArgumentParser(prog="tools/course record", description=__doc__)
    arguments.add_argument("--shape")
    arguments.add_argument("folder")
    arguments.add_argument("subjects", nargs="+")
    given = arguments.parse_args(words)
    tool = ncu.find()
    if not tool:
        print("no ncu: it comes with the CUDA toolkit; put it into PATH, or set CUDA_HOME", file=sys.stderr)
        return 1
    os.makedirs(given.folder, exist_ok=True)
    failed = 0
    for word in given.subjects:
        begin = time.monotonic()
        try:
            name, table = measured(tool, *subject(word, given.shape))
            files.write(os.path.join(given.folder, f"{name}.csv"), table)
            print(f"{name}: measured ({time.monotonic() - begin:.1f} s)", flush=True)
        except NotMeasured as reason:
            failed = 1
            print(f"{word}: NOT MEASURED ({time.monotonic() - begin:.1f} s)\n{reason}", flush=True)
    return failed
