"""Tests of what is said of a kernel that does not compile: the learner's own line first, whatever else the log has."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

from command.building import errors

KERNEL = """\
#include "helper.h"
template <class Tile>
void kernel(int n) {
  const int row = Tile::row(n);
  for (int k = 0; k < n; ++k) {
    if (k % 2 == 0) {
      use(row);
    }
  }
}

template <class Tile>
void launch(int n) {
  kernel<Tile>(n);
}

struct T {
  static int row(int n) { return n; }
};
void step() { launch<T>(3); }
"""


class InCourse(unittest.TestCase):
    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        os.makedirs(os.path.join(self.root, "steps", "02_tiled"))
        os.makedirs(os.path.join(self.root, "common"))
        patch = mock.patch.object(errors, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        self.kernel = os.path.join(self.root, "steps", "02_tiled", "gemm.cuh")
        self.put("common/helper.h", "template <class X> void use(X x) { x + 1; }\n")
        self.put("common/entry.cpp", '#include "steps/02_tiled/gemm.cuh"\nint main() { step(); }\n')

    def put(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)


@unittest.skipUnless(shutil.which("g++"), "no g++")
class Typos(InCourse):
    def first(self, old, new, noise=True):
        """What is shown of the log of a kernel with NEW in place of OLD."""
        self.assertEqual(KERNEL.count(old), 1)
        self.put("steps/02_tiled/gemm.cuh", KERNEL.replace(old, new))
        command = ["g++", "-Wall", "-fsyntax-only", "-I", self.root, "-I", os.path.join(self.root, "common")]
        done = subprocess.run(
            [*command, os.path.join(self.root, "common/entry.cpp")],
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=dict(os.environ, LC_ALL="C"),
            check=False,
        )
        self.assertNotEqual(done.returncode, 0)
        lines = ["[1/9] Building CXX object x.o", "FAILED: x.o", " ".join(command), *done.stderr.splitlines()]
        shown, _ = errors.first_error(lines + ["ninja: build stopped"] * (2000 if noise else 0))
        return "\n".join(shown)

    def test_a_missing_semicolon(self):
        shown = self.first("Tile::row(n);", "Tile::row(n)")
        self.assertIn("    4 |   const int row = Tile::row(n)", shown)

    def test_a_missing_semicolon_that_the_next_line_is_blamed_for(self):
        shown = self.first("      use(row);", "      use(row)\n      return;")
        self.assertIn("      use(row)", shown)

    def test_a_missing_brace(self):
        shown = self.first("    }\n  }\n}\n", "    }\n}\n")
        self.assertTrue(shown.startswith("steps/02_tiled/gemm.cuh:5: error: this { is not closed\n    5 |   for (int k"), shown)

    def test_a_brace_too_many(self):
        shown = self.first("use(row);\n    }\n  }\n}\n", "use(row);\n    }\n  }\n}\n}\n")
        self.assertTrue(shown.startswith("steps/02_tiled/gemm.cuh:11: error: this } closes nothing\n   11 | }"), shown)

    def test_an_unknown_name(self):
        shown = self.first("k % 2", "nonesuch % 2")
        self.assertRegex(shown, r"^steps/02_tiled/gemm\.cuh:6: error: .nonesuch. was not declared in this scope\n +6 \|")

    def test_a_wrong_type(self):
        shown = self.first("const int row", "const char* row")
        self.assertTrue(shown.startswith("steps/02_tiled/gemm.cuh:4: error: "), shown)

    def test_an_error_in_what_a_line_asks_for(self):
        self.put("common/helper.h", "template <class X> void use(X x) { x.member; }\n")
        shown = self.first("use(row);", "use(row );")
        self.assertTrue(shown.startswith("steps/02_tiled/gemm.cuh:7: what this line asks for does not compile:\n    7 |"), shown)
        self.assertIn("common/helper.h:1: error:", shown)


class Logs(InCourse):
    def test_a_path_that_is_seen_from_the_build_folder(self):
        first, _ = errors.first_error(["../../common/entry.cpp:2:14: error: 'step' was not declared", "    2 | x"])
        self.assertEqual(first[0], "common/entry.cpp:2: error: 'step' was not declared")

    def test_nvcc(self):
        self.put("steps/02_tiled/gemm.cuh", "int x = 1\nint y;\n")
        log = [f'{self.kernel}(2): error: expected a ";"', "  int y;", "  ^", "", "1 error detected in the compilation"]
        self.assertEqual(
            errors.first_error(log),
            (
                [
                    'steps/02_tiled/gemm.cuh:2: error: expected a ";"',
                    "    1 | int x = 1   <-- or is it missing here?",
                    "  int y;",
                    "  ^",
                ],
                0,
            ),
        )

    def test_the_learners_file_before_the_courses(self):
        log = ["/x/common/a.h:1:2: error: one", f"{self.kernel}:3:4: error: two", f"{self.kernel}:3:4: error: two"]
        shown, others = errors.first_error(log)
        self.assertEqual((shown, others), (["steps/02_tiled/gemm.cuh:3: error: two"], 1))

    def test_much_is_read_in_time(self):
        """A megabyte of each kind, whoever wrote it; what is quadratic takes minutes."""

        def too_long(*_):
            raise AssertionError("it takes too long")

        many = [f"{self.kernel}:{n}:1: error: stray {n}" for n in range(20000)]
        cases = [(many, ""), ([line for each in many * 3 for line in (each, "   | x")], ""), (many[:1] + ["   | x"] * 200000, ""), (["a:" * 500000], ""), (["a error " * 125000], "")]
        cases += [([f"{self.kernel}:1:1: {kind}: " + text * (1000000 // len(text))], "")
                  for kind in ("error", "warning") for text in ("expected ;before ", " [-W", "expected a ")]  # fmt: skip
        cases += [(many[:1], text * (1000000 // len(text))) for text in ("{\n", '"', '"\\', "'", "'\\", "/*", "//", "}", "R\"(")]
        before = signal.signal(signal.SIGVTALRM, too_long)
        self.addCleanup(signal.signal, signal.SIGVTALRM, before)
        for log, source in cases:
            with open(self.kernel, "w", encoding="utf-8") as file:
                file.write(source)
            signal.setitimer(signal.ITIMER_VIRTUAL, 5)  # of its own, however busy the machine is
            errors.first_error(log, own=self.kernel)
            errors.warnings_of(log, own=self.kernel)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def test_no_compilers_error(self):
        self.assertEqual(errors.first_error(["ld: undefined reference to `x'", "collect2: error: ld returned 1"]), ([], 0))

    def test_braces_in_text(self):
        text = ["// {", 'const char* s = "{\\"{"; char c = \'{\'; int n = 1\'000;', "/* { ", " { */", "int f() { return 1; }"]
        self.assertIsNone(errors.odd_brace(text))
        self.assertEqual(errors.odd_brace(text + ["struct S {"]), (6, "error: this { is not closed"))


if __name__ == "__main__":
    unittest.main()
