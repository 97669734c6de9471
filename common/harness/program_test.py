"""Tests of the steps' program that need a process: program_test.py STEP... with the programs of steps that have several tiles.

What --first measures is what the whole run has first, and nothing else.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = []
SHAPES = "33x17x40,16x8x24"


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "result.json")
        # What an earlier run has found is not used, and not changed.
        self.environment = {**os.environ, "COURSE_TUNING_CACHE": os.path.join(folder.name, "tuning")}

    def run_program(self, program, *arguments):
        process = subprocess.run(
            [program, "--shape", SHAPES, "--dtype", "f16", *arguments],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.output = process.stdout
        return process.returncode

    def results(self, program, *arguments):
        code = self.run_program(program, "--json", self.file, *arguments)
        self.assertEqual(code, 0, self.output)
        with open(self.file, encoding="utf-8") as file:
            return [(each["m"], each["tile"], each["first"]) for each in json.load(file)["results"]]

    def test_first(self):
        for program in PROGRAMS:
            with self.subTest(program):
                every = self.results(program)
                self.assertEqual(self.results(program, "--first"), [each for each in every if each[2]])
                self.assertEqual([m for m, _, first in every if first], [33, 16])

    def test_seconds(self):
        on_gpu = self.run_program(PROGRAMS[0], "--help") == 0 and "--seconds" in self.output
        for seconds in ("0", "-1", "61", "nan", "x", ""):
            self.assertEqual(self.run_program(PROGRAMS[0], "--first", "--seconds", seconds), 2, self.output)
        if on_gpu:
            self.assertEqual(self.run_program(PROGRAMS[0], "--first", "--seconds", "0.01"), 0, self.output)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
