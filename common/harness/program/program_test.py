"""Tests of the steps' program that need a process: program_test.py FUSED STEP... [--short SHORT...] with the program of a step that fuses
activations, those of steps that have several tiles, and short programs of some of these for f16.

What --first measures is what the whole run has first, and nothing else.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

FUSED_PROGRAM, PROGRAMS, SHORT_PROGRAMS = "", [], []
SHAPES = "33x17x40,16x8x24"


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "result.json")
        # What an earlier run has found is not used, and not changed.
        self.environment = {**os.environ, "COURSE_TUNING_CACHE": os.path.join(folder.name, "tuning")}

    def run_program(self, program, *arguments, dtype="f16", shapes=SHAPES):
        process = subprocess.run(
            [program, "--shape", shapes, "--dtype", dtype, *arguments],
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

    def test_a_short_program_runs_the_first_tile_and_says_what_it_leaves_out(self):
        def everything_but_time(result):
            return {key: value for key, value in result.items() if key not in ("seconds", "first", "tuning")}

        for program in SHORT_PROGRAMS:
            with self.subTest(program):
                (of_all,) = [each for each in (FUSED_PROGRAM, *PROGRAMS) if program == each + "_first_f16"]
                documents = []
                for each in (of_all, program):
                    self.results(each)
                    with open(self.file, encoding="utf-8") as file:
                        documents.append(json.load(file)["results"])
                tiles = len(documents[0][0]["tuning"])  # those that the GPU could not run too
                every, short = ([everything_but_time(result) for result in results] for results in documents)
                self.assertEqual(len(short), len(SHAPES.split(",")))
                for result in short:
                    self.assertIn(result, every)
                self.assertGreater(tiles, 1)
                self.assertIn(f": 1 of {tiles} tiles; 'tools/course run {os.path.basename(program)[:2]} --all-tiles' has the rest\n", self.output)
                self.assertEqual(self.run_program(program, dtype="bf16"), 2)
                self.assertIn("this short program has no kernel for bf16; choose another --dtype", self.output)
                self.assertEqual(self.run_program(program, "--activation", "gelu"), 2)
                self.assertIn("or type 'tools/course run 07' with them" if of_all == FUSED_PROGRAM else "this step fuses nothing", self.output)

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
            self.assertRegex(each["tile"], ", unfused(, fallback)?$")
            self.assertNotIn("separate_pass_bytes", each.get("counters") or {})
        self.assertNotIn("fused, it saves", self.output)
        self.assertEqual(self.run_program(PROGRAMS[0], "--activation", "gelu"), 2)
        self.assertIn("this step fuses nothing", self.output)

    def test_results_say_where_the_fallback_ran(self):
        for program, has_one in ((PROGRAMS[0], False), (PROGRAMS[1], True), (FUSED_PROGRAM, True)):
            with self.subTest(program):
                # With n = 17, the rows of B are no whole chunks of 16 bytes; those of the other problem are.
                tiles = [tile for m, tile, _ in self.results(program) if m == 33]
                self.assertEqual([tile.endswith(", fallback") for tile in tiles], [has_one] * len(tiles))
                self.assertEqual("fallback" in self.output, has_one)
                self.assertFalse([tile for m, tile, _ in self.results(program) if m == 16 and "fallback" in tile])

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
        self.assertEqual(process.returncode, 1)
        both = subprocess.run([*command, "--clear"], env=self.environment, capture_output=True, text=True)
        self.assertEqual(both.returncode, 2)
        self.assertIn("excludes", both.stdout + both.stderr)

    def test_any_number_of_empty_rows_or_columns_takes_no_time(self):
        for shape in ("9999999999x0x0", "0x9999999999x0"):
            command = [PROGRAMS[0], "--first", "--shape", shape]
            process = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=20)
            self.assertEqual(process.returncode, 0, process.stderr)
            self.assertIn("verified", process.stdout)

    def test_one_number_is_a_cube(self):
        code = self.run_program(PROGRAMS[-1], "--first", "--json", self.file, dtype="half", shapes="16,8x4x2")
        self.assertEqual(code, 0, self.output)
        with open(self.file, encoding="utf-8") as file:
            results = json.load(file)["results"]
        self.assertEqual([(each["m"], each["n"], each["k"], each["in"]) for each in results], [(16, 16, 16, "f16"), (8, 4, 2, "f16")])
        for shape in ("16x16", "x16", "16x", "", "12345678901", "1,,2"):
            self.assertEqual(self.run_program(PROGRAMS[-1], shapes=shape), 2, shape)
            self.assertIn("expected MxNxK", self.output)

    def test_without_a_type_it_is_the_steps_first(self):
        command = [PROGRAMS[-1], "--first", "--shape", "16x8x24"]
        process = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertIn(" f16 nn", process.stdout)

    def test_seconds(self):
        on_gpu = self.run_program(PROGRAMS[0], "--help") == 0 and "--seconds" in self.output
        for seconds in ("0", "-1", "61", "nan", "x", ""):
            self.assertEqual(self.run_program(PROGRAMS[0], "--first", "--seconds", seconds), 2, self.output)
        if on_gpu:
            self.assertEqual(self.run_program(PROGRAMS[0], "--first", "--seconds", "0.01"), 0, self.output)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--short" in arguments:
        SHORT_PROGRAMS = arguments[arguments.index("--short") + 1 :]
        del arguments[arguments.index("--short") :]
    FUSED_PROGRAM, *PROGRAMS = arguments
    for each in arguments:
        found = subprocess.run([each, "--check-memory", "--shape", "1x1x1"], capture_output=True, text=True, check=False)
        if "needs compute capability" in found.stderr:
            print(found.stderr, end="")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1])
