"""Tests of docs/library.md: page_test.py [--link COMPILER LIBRARY NVCC], the last with a built libcourse_gemm.so.

How many tiles the library has, and that the page's line for the linker links.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINK = []


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Page(unittest.TestCase):
    def setUp(self):
        self.page = read("docs", "library.md")

    def test_the_tiles_of_each_step(self):
        calls = re.findall(r"^course_gemm_step\((\d+)_.*?TILES (.*?)\)$", read("common", "library", "CMakeLists.txt"), re.M | re.S)
        built = {step: len(re.findall(r'"[^"]*"|EveryLayoutTile', tiles)) for step, tiles in calls}
        said = re.findall(r"^\| \[(\d+)\]\(\.\./steps/.*?\| (\d+) (?:tiles|pairs of tiles) \|", self.page, re.M)
        self.assertGreater(len(built), 4)
        self.assertEqual({step: int(count) for step, count in said}, built)

    def test_its_line_links(self):
        if not LINK:
            self.skipTest("no --link")
        (line,) = re.findall(r"^c\+\+ .*(?:\n    .*)*", self.page, re.M)
        compiler, library, nvcc = LINK
        cuda = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        if not os.path.isdir(os.path.join(cuda, "lib64")):
            self.skipTest(f"{cuda} is no toolkit of NVIDIA's")
        with tempfile.TemporaryDirectory(prefix="a course ") as folder:
            # As on the page: the course in a folder of any name, with the library where the build puts it.
            course = os.path.join(folder, "course")
            os.makedirs(os.path.join(course, "build", "gpu"))
            os.symlink(os.path.dirname(library), os.path.join(course, "build", "gpu", "lib"))
            os.symlink(os.path.join(ROOT, "common"), os.path.join(course, "common"))
            words = [word.replace("<course>", course).replace("<cuda>", cuda) for word in shlex.split(line.replace("\\\n", " "))]
            words[0] = compiler
            words[words.index("mine.cpp")] = os.path.join(ROOT, "docs", "examples", "one_call.cpp")
            program = os.path.join(folder, "mine")
            words[words.index("mine")] = program
            done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            missing = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertNotRegex(missing, r"lib(course_gemm|cudart)\S* => not found")


if __name__ == "__main__":
    if "--link" in sys.argv:
        LINK = sys.argv[sys.argv.index("--link") + 1 :]
        del sys.argv[sys.argv.index("--link") :]
    unittest.main()
