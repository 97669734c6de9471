"""Each lesson's first program prints what the lesson says it prints.

On the interpreter, where COURSE_BUILD is CMake's folder; compiled by the line in the program's own first comment, where COURSE_NVCC is an
nvcc; and run on the GPU, where COURSE_RUN is set too.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = sorted(ROOT.glob("steps/*/first*.cu"))
BUILD, NVCC, RUN = (os.environ.get(name) for name in ("COURSE_BUILD", "COURSE_NVCC", "COURSE_RUN"))
LONGEST = 60  # lines


def said_by_lesson(program):
    """What stands below the program's command in the lesson; None if that has no such command."""
    lesson = (program.parent / "README.md").read_text(encoding="utf-8")
    command = re.escape(f"$ tools/course interpret {program.relative_to(ROOT)}")
    shown = re.search(rf"^```console\n{command}\n(.*?)^```", lesson, re.S | re.M)
    return shown and shown[1]


class First(unittest.TestCase):
    maxDiff = None

    def each(self, check):
        self.assertTrue(PROGRAMS)
        for program in PROGRAMS:
            with self.subTest(program=str(program.relative_to(ROOT))):
                check(program)

    def check(self, program, command, **where):
        done = subprocess.run(command, capture_output=True, text=True, **where)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (said_by_lesson(program), "", 0))

    def check_without_a_line(self, program, script, folder):
        """A line that ends with '// without it: TEXT' is needed: the interpreter says TEXT of the program that lacks it."""
        lines = program.read_text(encoding="utf-8").splitlines(keepends=True)
        for number, line in enumerate(lines):
            if said := re.search(r"// without it: (.*)", line):
                broken = pathlib.Path(folder) / program.name
                broken.write_text("".join(lines[:number] + ["\n"] + lines[number + 1 :]), encoding="utf-8")
                done = subprocess.run([*script, "--", str(broken)], capture_output=True, text=True)
                self.assertIn(said[1], done.stdout + done.stderr)
                self.assertNotEqual(done.returncode, 0)

    def test_short_plain_and_shown(self):
        def check(program):
            text = program.read_text(encoding="utf-8")
            self.assertLessEqual(len(text.splitlines()), LONGEST)
            self.assertEqual(re.findall(r'#include ".*', text), [], "a header of the course")
            self.assertTrue(said_by_lesson(program), "the lesson does not show what it prints")

        self.each(check)

    @unittest.skipUnless(BUILD, "COURSE_BUILD is not set")
    def test_on_the_interpreter(self):
        def check(program):
            self.check(program, [*script, "--", str(program)])
            self.check_without_a_line(program, script, cache)

        with tempfile.TemporaryDirectory(prefix="first programs.") as cache:
            script = [sys.executable, "-B", str(ROOT / "tools/interpret/interpret.py"), "--build", BUILD, "--cache", cache]
            self.each(check)

    @unittest.skipUnless(NVCC, "COURSE_NVCC is not set")
    def test_with_nvcc(self):
        def check(program):
            words = re.search(r"\bnvcc (.*) -o first && ./first\n", program.read_text(encoding="utf-8"))[1].split()
            self.assertIn(str(program.relative_to(ROOT)), words)
            made = subprocess.run([NVCC, *words, "-o", f"{folder}/first"], capture_output=True, text=True, cwd=ROOT)
            self.assertEqual((made.stdout, made.stderr, made.returncode), ("", "", 0))
            if RUN:
                self.check(program, [f"{folder}/first"], cwd=folder)

        with tempfile.TemporaryDirectory(prefix="first programs.") as folder:
            self.each(check)


if __name__ == "__main__":
    unittest.main()
