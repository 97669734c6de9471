#!/usr/bin/env python3
"""Runs programs with right and with planted wrong cases, and says which are told, and where.

usage: cases.py [--build FOLDER] [--order ORDER] [FILE.cu|FOLDER]...

Without a name: the folder cases/ beside this file. The first lines of a FILE.cu say what its cases are:

  // N ok : TEXT                      the program passes with the argument N
  // N bug CHECK VARIABLE : TEXT      a report comes, at a line that ends with '// @N' (several: '// @1 @7'), or about the variable

CHECK and VARIABLE may be several, with '|' between them, or '-'. A bug whose CHECK begins with 'result' is one of arithmetic: only
the program's own comparison can find it. One line is printed for each case, and figures at the end. The exit code is 1 if a right
case is accused, or a wrong one is not told where it should be."""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPORT = re.compile(r"interpreter: (?!note: |\d+ problem)|cu[A-Z]\w+|terminate called after")  # an exception of the host: C++ tells

Case = collections.namedtuple("Case", "number right checks variables lines text")
Verdict = collections.namedtuple("Verdict", "kind where report")


def read(path):
    """The cases that the first lines of a file name."""
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    found = []
    for number, kind, rest in re.findall(r"^// (\d+) (ok|bug)\b([^\n]*)", source, re.MULTILINE):
        head, _, text = rest.partition(":")
        words = head.split() + ["-", "-"]
        checks, variables = (set(w.split("|")) - {"-"} for w in words[:2])
        marked = {i for i, line in enumerate(lines, 1) if re.search(rf"// .*@(?:{number}\b|$)", line)}
        arithmetic = kind == "bug" and words[0].startswith("result")
        found.append(Case(number, kind == "ok", {"result"} if arithmetic else checks, variables, marked, text.strip()))
    return found


def judge(case, name, output, code):
    lines = output.split("\n")
    begin = next((i for i, line in enumerate(lines) if REPORT.match(line)), None)
    report = "" if begin is None else "\n".join(lines[begin:])
    first = report.split("\n")[0]
    if case.right:
        return Verdict("passes" if code == 0 and not report else "FALSE ALARM", "", report or output)
    if not report:
        noted = next((line for line in lines if line.startswith("interpreter: note: ")), "")
        if "note" in case.checks and noted:
            report = first = noted
        else:
            return Verdict("silent" if code == 0 else "wrong result only", "", noted or output)
    if case.checks == {"result"}:
        return Verdict("told", "", report)
    at = {int(n) for n in re.findall(rf"\b{re.escape(name)}:(\d+)", report)}
    words = first + "\n".join(line for line in report.split("\n") if line.startswith("  variable"))
    if at & case.lines:
        return Verdict("told", "line", report)
    if any(re.search(rf"\b{re.escape(v)}\b", words) for v in case.variables):
        return Verdict("told", "variable", report)
    return Verdict("told", "ELSEWHERE" if case.lines or case.variables else "unmarked", report)


def run(path, build, scratch, order=None, timeout=120):
    """Compiles the file once, and runs each of its cases. Yields (Case, Verdict)."""
    keep = os.path.join(scratch, path.stem)
    command = [sys.executable, "-B", HERE / "interpret.py", "--build", build, "--cache", os.path.join(scratch, "cache"), "--keep", keep, "--", path, "98"]
    built = subprocess.run(command, capture_output=True, text=True, errors="replace")
    program = os.path.join(keep, "program")
    environment = {**os.environ, **({"COURSE_INTERPRET_ORDER": order} if order else {})}
    for case in read(path):
        if not os.path.exists(program):
            yield case, Verdict("DOES NOT RUN", "", built.stdout + built.stderr)
            continue
        try:
            done = subprocess.run([program, case.number], capture_output=True, text=True, errors="replace", timeout=timeout, env=environment)
            yield case, judge(case, path.name, done.stderr + done.stdout, done.returncode)
        except subprocess.TimeoutExpired:
            yield case, Verdict("NO END", "", f"no end within {timeout} s")


def is_good(case, verdict):
    if case.right:
        return verdict.kind == "passes"
    return case.checks == {"result"} or (verdict.kind == "told" and verdict.where != "ELSEWHERE")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--build", default=os.environ.get("COURSE_BUILD", HERE.parent.parent / "build" / "interpreter"))
    parser.add_argument("--order")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, default=[HERE / "cases"])
    given = parser.parse_args()
    if not os.path.exists(os.path.join(given.build, "interpret.json")):
        sys.exit(f"cases.py: {given.build} is no build of the interpreter: tools/course build interpreter")
    figures, good = collections.Counter(), True
    with tempfile.TemporaryDirectory(prefix="cases.") as scratch:
        for path in [p for given_path in given.paths for p in (sorted(given_path.glob("*.cu")) if given_path.is_dir() else [given_path])]:
            for case, verdict in run(path.resolve(), str(given.build), scratch, given.order):
                kind = "right" if case.right else "arithmetic" if case.checks == {"result"} else "wrong"
                figures[f"{kind}: {' '.join(w for w in verdict[:2] if w)}"] += 1
                good &= is_good(case, verdict)
                told = verdict.report.strip().split("\n")
                print(f"{path.stem} {case.number} [{kind}] {verdict.kind} {verdict.where} | {case.text} | {told[0][:200] if is_good(case, verdict) else ' / '.join(told)[:600]}", flush=True)
    for key in sorted(figures):
        print(f"{key}: {figures[key]}")
    return not good


if __name__ == "__main__":
    sys.exit(main())
