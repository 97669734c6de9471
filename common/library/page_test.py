"""Tests of docs/library.md: page_test.py [--link COMPILER LIBRARY NVCC], the last with a built libcourse_gemm.so.

How many tiles the library has; that the page's line for the linker links; that other projects find the library where it is installed,
and can contain it.
"""

import os
import re
import shlex
import shutil
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

    def test_the_wheel_has_a_version(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("Python 3.11 is needed")
        settings = tomllib.loads(read("common", "library", "pyproject.toml"))["tool"]["scikit-build"]["metadata"]["version"]
        self.assertRegex(read("common", "library", settings["input"]), settings["regex"])

    def test_what_the_library_exports(self):
        if not LINK:
            self.skipTest("no --link")
        names = subprocess.run(["nm", "-DC", "--defined-only", LINK[1]], stdout=subprocess.PIPE, text=True, check=True).stdout
        exported = sorted(re.sub(r"\(.*", "", line.split(" ", 2)[2].split("@")[0]) for line in names.splitlines() if " A " not in line)
        c = ["choice", "error", "run", "tune"]
        self.assertEqual(exported, sorted([f"course_gemm_{name}" for name in c] + [f"gemm::library::{name}" for name in c if name != "error"]))

    def test_projects_that_find_or_contain_it(self):
        if not LINK or not shutil.which("cmake"):
            self.skipTest("no --link, or no cmake")
        compiler, library, nvcc = LINK
        blocks = re.findall(r"^```cmake\n(.*?)^```", self.page, re.M | re.S)
        find, link = blocks[0].splitlines(keepends=True)
        build = os.path.dirname(os.path.dirname(library))
        with tempfile.TemporaryDirectory(prefix="a course ") as folder:

            def run(*words):
                done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                return done.returncode, done.stdout

            def configured(name, has_it, *options):
                project = os.path.join(folder, name)
                os.makedirs(project)
                shutil.copy(os.path.join(ROOT, "docs", "examples", "one_call.cpp"), os.path.join(project, "mine.cpp"))
                with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                    file.write(f"cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\n{has_it}add_executable(mine mine.cpp)\n{link}")
                options = [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DCUDAToolkit_ROOT={os.path.dirname(os.path.dirname(nvcc))}", *options]
                return run("cmake", "-S", project, "-B", os.path.join(project, "build"), *options)

            installed = os.path.join(folder, "installed")
            self.assertEqual(run("cmake", "--install", build, "--prefix", installed)[0], 0)
            headers = os.listdir(os.path.join(installed, "include"))
            self.assertEqual(sorted(headers), ["course_gemm.h", "course_gemm_c.h"])
            code, said = configured("finds", find, f"-DCMAKE_PREFIX_PATH={installed}")
            self.assertEqual(code, 0, said)
            program = os.path.join(folder, "finds", "build")
            code, said = run("cmake", "--build", program)
            self.assertEqual(code, 0, said)
            self.assertNotRegex(run("ldd", os.path.join(program, "mine"))[1], r"libcourse_gemm\S* => not found")
            code, said = configured("too new", find.replace(" 1 ", " 2 "), f"-DCMAKE_PREFIX_PATH={installed}")
            self.assertNotEqual(code, 0)
            self.assertIn("version: 1.", said)
            # Compiling it takes minutes: that its parts are there must do.
            code, said = configured("contains", f'add_subdirectory("{ROOT}" course)\n', "-DCOURSE_GPU_ARCHITECTURES=80-real", "-DCOURSE_DOCTEST=nowhere")
            self.assertEqual(code, 0, said)
            contained = run("cmake", "--build", os.path.join(folder, "contains", "build"), "--target", "help")[1]
            for name, there in {"course_gemm": True, "mine": True, "harness": False, "06_autotune": False}.items():
                (self.assertRegex if there else self.assertNotRegex)(contained, rf"(?m)^(\.\.\. )?{name}\b(?!\.)")
            code, said = run("cmake", "--build", os.path.join(folder, "contains", "build"), "--target", "gemm", "problem")
            self.assertEqual(code, 0, said)

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
            for name in ("lib", "include"):
                os.symlink(os.path.join(os.path.dirname(os.path.dirname(library)), name), os.path.join(course, "build", "gpu", name))
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
