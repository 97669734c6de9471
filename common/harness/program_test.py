"""Tests of the steps' program that need a process: program_test.py FUSED STEP... with the program of a step that fuses activations, and
those of steps that have several tiles.

What --first measures is what the whole run has first, and nothing else.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

FUSED_PROGRAM, PROGRAMS = "", []
SHAPES = "33x17x40,16x8x24"


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "result.json")
        # What an earlier run has found is not used, and not changed.
        self.environment = {**os.environ, "COURSE_TUNING_CACHE": os.path.join(folder.name, "tuning")}

    def run_program(self, program, *arguments, dtype="f16"):
        process = subprocess.run(
            [program, "--shape", SHAPES, "--dtype", dtype, *arguments],
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

    def test_what_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for program in PROGRAMS:
                command = [program, "--shape", "1x1x1", "--dtype", "f16"]
                process = subprocess.run(command, env=self.environment, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(process.returncode, 2)
                self.assertIn(b": cannot write to stdout", process.stderr)

    def test_what_no_tile_fuses_is_left_to_another_kernel(self):
        arguments = ("--activation", "gelu", "--bias", "--json", self.file)
        self.assertEqual(self.run_program(FUSED_PROGRAM, *arguments, dtype="bf16"), 0, self.output)
        self.assertIn("So another kernel applies it.", self.output)
        with open(self.file, encoding="utf-8") as file:
            results = json.load(file)["results"]
        for each in results:
            self.assertRegex(each["tile"], ", unfused$")
            self.assertNotIn("separate_pass_bytes", each.get("counters") or {})
        self.assertNotIn("fused, it saves", self.output)
        self.assertEqual(self.run_program(PROGRAMS[0], "--activation", "gelu"), 2)
        self.assertIn("this step fuses nothing", self.output)

    def test_no_tile_is_the_best_for_nothing(self):
        for shape in ("0x5x3", "4x4x0"):
            command = [PROGRAMS[-1], "--tune", "--dtype", "f16", "--shape", shape]
            process = subprocess.run(command, env=self.environment, capture_output=True, text=True)
            self.assertEqual(process.returncode, 2)
            self.assertIn(f"{shape}: cannot run this: there is nothing to multiply", process.stdout)

    def test_a_cache_that_is_no_folder(self):
        command = [PROGRAMS[-1], "--tune", "--show"]
        environment = {**self.environment, "COURSE_TUNING_CACHE": PROGRAMS[0]}
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertIn(f"cannot read the tuning results in {PROGRAMS[0]}: Not a directory", process.stderr)

    def test_seconds(self):
        on_gpu = self.run_program(PROGRAMS[0], "--help") == 0 and "--seconds" in self.output
        for seconds in ("0", "-1", "61", "nan", "x", ""):
            self.assertEqual(self.run_program(PROGRAMS[0], "--first", "--seconds", seconds), 2, self.output)
        if on_gpu:
            self.assertEqual(self.run_program(PROGRAMS[0], "--first", "--seconds", "0.01"), 0, self.output)


if __name__ == "__main__":
    FUSED_PROGRAM, *PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
