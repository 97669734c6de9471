"""Usage: unused.py BUILD

Checks what the steps' kernels leave unused, with the flags of BUILD, a folder of an interpreter's build: an edit that leaves a
variable or a parameter behind must compile, with a warning; the kernels that are shipped must have no such warning.

Exit code: 0 so it is, 1 it is not."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNEL, PLANTED = "  // 1. Which", "  const int planted = 3;\n"


def commands(build):
    """From a step's name to the command that compiles its short program."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        if "-DCOURSE_FIRST_OF=__half" in entry["command"]:
            found[pathlib.Path(entry["file"]).parent.name] = entry["command"]
    return found


def check(command, folder, source, strict=False):
    """Compiles `source` as `command` compiles its own, but makes no code. With `strict`, what is unused is an error. Returns the exit
    code and what the compiler said."""
    arguments = shlex.split(command)
    arguments = [*arguments[: arguments.index("-o")], "-I", str(ROOT), "-fsyntax-only", str(source)]
    if strict:
        arguments = [each.replace("-Wno-error=unused", "-Werror=unused") for each in arguments]
    done = subprocess.run(arguments, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


def shipped(build, step, command):
    code, text = check(command, build, build / "steps" / step / "entry.cpp", strict=True)
    return [f"{step} leaves something unused:\n{text}"] if code else []


def edited(build, step, command):
    text = (ROOT / "steps" / step / "gemm.cuh").read_text(encoding="utf-8")
    entry = (build / "steps" / step / "entry.cpp").read_text(encoding="utf-8")
    if text.count(KERNEL) != 1:
        return [f"{step}: its kernel does not begin with {KERNEL.strip()!r}: adapt tools/cmake/unused.py."]
    with tempfile.TemporaryDirectory() as folder:
        header, source = os.path.join(folder, "gemm.cuh"), os.path.join(folder, "entry.cpp")
        pathlib.Path(header).write_text(text.replace(KERNEL, PLANTED + KERNEL), encoding="utf-8")
        pathlib.Path(source).write_text(entry.replace(f"steps/{step}/gemm.cuh", header), encoding="utf-8")
        code, said = check(command, build, source)
        strict, _ = check(command, build, source, strict=True)
    wrong = []
    if code or "warning: unused variable 'planted'" not in said.replace("‘", "'").replace("’", "'"):
        wrong.append(f"{step}: an unused variable gives no warning alone, but exit code {code}:\n{said}")
    if not strict:
        wrong.append(f"{step}: an unused variable is not found.")
    return wrong


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    steps = commands(build)
    known = {path.parent.name for path in ROOT.glob("steps/*/gemm.cuh")}
    wrong = [] if set(steps) == known else [f"no short program of {', '.join(sorted(known ^ set(steps)))} in {build}"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(shipped, build, step, command) for step, command in steps.items()]
        if steps:  # one step stands for all: the flags are the same
            jobs.append(pool.submit(edited, build, *max(steps.items())))
        for job in jobs:
            wrong += job.result()
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
