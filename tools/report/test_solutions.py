"""Tests of what is recorded of solutions on a GPU."""

import contextlib
import glob
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import solutions

RECORDED = os.path.join(solutions.ROOT, "docs", "results", "*", "solutions.json")
TIMED_AGAINST_CUBLAS = range(15, 22)  # the shapes of transformers
OWED = {"36_tensor_parallel"}  # written without a GPU at hand; exercises/README.md says so

# Writes what a solution's program writes, or fails.
PROGRAM = """#!{python}
import json, sys
sample = {{"median": 1e-3}}
timed = {{"time": sample, "of_solution": {{"median": 1.0}}, "ratio": {{"median": 0.5}}}}
problem = {{"m": 8, "n": 16, "k": 32, "bar": 1.15, "hot": timed, "cold": timed}}
if {passes}:
    machine = {{"created": "now", "commit": "c0ffee", "host": {{}}, "gpu": {{"name": "a GPU"}}, "cuda": "13.0", "cublas": "13.1"}}
    json.dump({{**machine, "problems": [problem]}}, open(sys.argv[4], "w"))
print("passed" if {passes} else "The result is wrong")
sys.exit(0 if {passes} else 1)
"""


def missing(document, names):
    """The solutions that are not recorded as passed."""
    passed = {each["name"] for each in document["solutions"] if each["passed"] and each.get("commit")}
    return sorted(set(names) - passed)


class Recorded(unittest.TestCase):
    def test_each_solution_has_passed_on_the_gpu(self):
        files = glob.glob(RECORDED)
        self.assertTrue(files, "no run of the solutions on a GPU is recorded: tools/gpu-checks solutions")
        for path in files:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            self.assertEqual((document["schema"], document["version"]), (solutions.SCHEMA, solutions.VERSION))
            self.assertEqual(set(missing(document, solutions.names())), OWED, f"not recorded as passed in {path}")
            for each in document["solutions"]:
                with self.subTest(path=path, solution=each["name"]):
                    self.check(each)

    def check(self, record):
        self.assertTrue(record["gpu"]["name"] and record["gpu"]["driver"] and record["cuda"] and record["cublas"])
        for problem in record["problems"]:
            self.assertLessEqual(problem["hot"]["of_solution"]["median"], problem["bar"])
        if int(record["name"][:2]) in TIMED_AGAINST_CUBLAS:
            self.assertTrue(record["problems"])
            for problem in record["problems"]:
                for mode in ("hot", "cold"):
                    self.assertGreater(problem[mode]["ratio"]["median"], 0)

    def test_who_is_missing_is_noticed(self):
        passed = {"name": "01_a", "passed": True, "commit": "c"}
        for second in ({"name": "02_b", "passed": False, "commit": "c"}, {"name": "02_b", "passed": True, "commit": None}, passed):
            self.assertEqual(missing({"solutions": [passed, second]}, ["01_a", "02_b"]), ["02_b"])


class Recording(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.out = os.path.join(self.folder, "solutions.json")
        patch = mock.patch.object(solutions, "names", return_value=["01_first", "02_second"])
        patch.start()
        self.addCleanup(patch.stop)

    def program(self, name, passes):
        path = os.path.join(self.folder, "solution_" + name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(PROGRAM.format(python=sys.executable, passes=passes))
        os.chmod(path, stat.S_IRWXU)

    def record(self, *names):
        words = ["solutions.py", "--programs", self.folder, "--out", self.out, *names]
        with mock.patch("sys.argv", words), contextlib.redirect_stdout(io.StringIO()) as said:
            code = solutions.main()
        with open(self.out, encoding="utf-8") as file:
            return code, said.getvalue(), {each["name"]: each for each in json.load(file)["solutions"]}

    def test_all_pass(self):
        for name in ("01_first", "02_second"):
            self.program(name, True)
        code, said, records = self.record()
        self.assertEqual(code, 0)
        self.assertIn("hot 50 %, cold 50 % of cuBLAS; 1.000 times itself", said)
        self.assertEqual([each["passed"] for each in records.values()], [True, True])
        self.assertEqual(records["01_first"]["commit"], "c0ffee")

    def test_one_that_fails_does_not_stop_the_others(self):
        self.program("01_first", False)
        self.program("02_second", True)
        code, said, records = self.record()
        self.assertEqual(code, 1)
        self.assertIn("FAILED  The result is wrong", said)
        self.assertEqual([each["passed"] for each in records.values()], [False, True])
        self.program("01_first", True)
        os.remove(os.path.join(self.folder, "solution_02_second"))
        code, _, records = self.record("01_first")  # of the other one, what was recorded is kept
        self.assertEqual((code, [each["passed"] for each in records.values()]), (0, [True, True]))

    def test_no_program(self):
        code, _, records = self.record("01_first")
        self.assertEqual((code, records["01_first"]["passed"]), (1, False))


if __name__ == "__main__":
    unittest.main()
