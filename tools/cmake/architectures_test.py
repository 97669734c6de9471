"""Tests of architectures.cmake, and that the learner's command agrees with it: architectures_test.py CMAKE."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from command.machine.needs import Needs

ALL = "75-real;80-real;86;89-virtual;90-real;90a-real;90a;100f-real;100a-real;120-real"
EXPECTED = {
    "75": ALL,
    "80": "80-real;86;89-virtual;90-real;90a-real;90a;100f-real;100a-real;120-real",
    "90": "90-real;90a-real;90a;100f-real;100a-real;120-real",
    "90a": "90a-real;90a",
    "100a": "100a-real",
    "130": "",
}


def chosen(capability, architectures, *build):
    text = f"include(\"{FOLDER}/architectures.cmake\")\nset(CMAKE_CUDA_ARCHITECTURES {' '.join(build)})\n"
    text += f'course_architectures(found {capability} {architectures})\nmessage("${{found}}")\n'
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.cmake"
        script.write_text(text, encoding="utf-8")
        return subprocess.run([CMAKE, "-P", script], stderr=subprocess.PIPE, text=True, check=True).stderr.strip()


class Architectures(unittest.TestCase):
    def test_what_has_a_capability(self):
        for capability, expected in EXPECTED.items():
            with self.subTest(capability):
                self.assertEqual(chosen(capability, ALL), expected)

    def test_without_a_list_it_is_the_builds(self):
        self.assertEqual(chosen("90a", "", "80-real", "90a-real"), "90a-real")

    def test_the_command_agrees(self):
        for capability, expected in EXPECTED.items():
            needs = Needs(int(capability.rstrip("a")), capability.endswith("a"), "")
            self.assertEqual(";".join(filter(needs.built_for, ALL.split(";"))), expected)


if __name__ == "__main__":
    CMAKE = sys.argv.pop(1)
    unittest.main()
