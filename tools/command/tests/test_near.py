"""Which tests are near a file: each file of the course has some, and all of them are there."""

import os
import re
import tempfile
import types
import unittest
from unittest import mock

from command import near
from command.messages import Refused
from command.places import ROOT
from command.subcommands import test as subcommand

NO_TEST = re.compile(r"LICENSE|docs/(?:Doxyfile|.*\.svg)|docs/results/.*|.*__pycache__.*|exercises/\.progress.*")


def course_files():
    for place, folders, names in os.walk(ROOT):
        folders[:] = [each for each in folders if not each.startswith(".") and (place, each) != (ROOT, "build")]
        for name in names:
            path = os.path.relpath(os.path.join(place, name), ROOT)
            if not NO_TEST.fullmatch(path) and not name.startswith("."):
                yield path


def cmake_words():
    text = ""
    for place in (path for path in course_files() if path.endswith(("CMakeLists.txt", ".cmake"))):
        with open(os.path.join(ROOT, place), encoding="utf-8") as file:
            text += file.read()
    return set(re.findall(r"\w+", text))


class Table(unittest.TestCase):
    def test_each_file_has_a_test(self):
        self.assertEqual([path for path in course_files() if not near.of(path)[0]], [])

    def test_each_row_is_about_some_file(self):
        paths = list(course_files()) + ["docs/results/h200/ladder-f16.json"]
        used = {next(row for row in near.NEAREST if re.fullmatch(row[0], path))[0] for path in paths}
        self.assertEqual([row[0] for row in near.NEAREST if row[0] not in used], [])

    def test_each_test_is_there(self):
        words = cmake_words()
        for path in course_files():
            for name in sum(near.of(path), []):
                # CMake joins these with what its loops and functions are given.
                part = re.sub("^(interpreter|test|first|exercise)_(fuzz_)?|_nn$", "", name)
                self.assertTrue({name, part} & words, f"{path}: {name}")

    def test_a_test_is_near_itself(self):
        for path, name in (
            ("common/interpreter/tests/tricky.cpp", "interpreter_tricky"),
            ("steps/08_split_k/gemm.cuh", "first_08_split_k"),
            ("steps/08_split_k/test.cpp", "test_08_split_k"),
            ("steps/08_split_k/first.cu", "lessons_first"),
            ("exercises/03_shared_tile/test.cpp", "exercise_03_shared_tile"),
            ("tools/report/plots.py", "tools_report"),
            ("tools/command/near.py", "tools_command"),
        ):
            self.assertIn(name, near.of(path)[0])


class Files(unittest.TestCase):
    def test_of_several_each_once(self):
        nearest, later = near.tests([os.path.join(ROOT, f"steps/0{name}/gemm.cuh") for name in ("1_naive", "2_tiled")])
        self.assertEqual(nearest, ["first_01_naive", "learnt", "first_02_tiled"])
        self.assertEqual(later, ["test_01_naive", "lessons_edits", "test_02_tiled"])

    def test_none(self):
        for file, said in (("nosuch.cpp", "there is no such file"), (os.path.join(ROOT, "LICENSE"), "no test is about it")):
            with self.assertRaisesRegex(Refused, said):
                near.tests([file])


LISTED = """
add_test(table "/usr/bin/python3" "-B" "/course/tables.py" "--check")
add_test([=[race_test]=] "BUILD/dev/bin/race_test")
set_tests_properties([=[race_test]=] PROPERTIES  COST "20")
add_test(tuning "/usr/bin/python3" "/course/torture.py" "BUILD/dev/bin/process" "BUILD/dev/bin/06_autotune")
"""


class Selection(unittest.TestCase):
    def targets(self, *names):
        with tempfile.TemporaryDirectory() as build, mock.patch.object(subcommand, "BUILD", build):
            os.makedirs(f"{build}/dev/steps")
            with open(f"{build}/dev/steps/CTestTestfile.cmake", "w", encoding="utf-8") as file:
                file.write(LISTED.replace("BUILD", build))
            chosen = subcommand.Selection(types.SimpleNamespace(positional=names, near=None), "dev")
            with mock.patch.object(subcommand, "say"):
                targets = chosen.targets(None)
        return targets, chosen.pattern()

    def test_what_a_test_needs_is_built(self):
        self.assertEqual(self.targets("race_test"), (["bin/race_test"], "^(race_test)$"))
        self.assertEqual(self.targets("tuning")[0], ["bin/process", "bin/06_autotune"])
        self.assertEqual(self.targets("table")[0], [])

    def test_a_word_of_several_names(self):
        self.assertEqual(self.targets("t")[1], r"^(table|race_test|tuning)$")

    def test_what_there_is_not(self):
        for name in ("races", ""):
            with self.assertRaisesRegex(Refused, f"no test is called '{name}'.* There are: race_test table tuning"):
                self.targets(name)


if __name__ == "__main__":
    unittest.main()
