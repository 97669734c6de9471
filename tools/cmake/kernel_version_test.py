"""Tests of kernel_version.cmake: kernel_version_test.py CMAKE."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
STEPS = FOLDER.parent.parent / "steps"


class KernelVersion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def version(self, *texts, compiler="nvcc 13.0"):
        sources = [self.folder / f"{i}.cuh" for i in range(len(texts))]
        for source, text in zip(sources, texts):
            source.write_text(text, encoding="utf-8")
        output = self.folder / "version.h"
        arguments = [f"-DSOURCES={';'.join(map(str, sources))}", f"-DCOMPILER={compiler}", f"-DOUTPUT={output}"]
        subprocess.run([CMAKE, *arguments, "-P", FOLDER / "kernel_version.cmake"], check=True)
        return re.fullmatch(r'#define COURSE_KERNEL_VERSION "([0-9a-f]{16})"\n', output.read_text(encoding="utf-8"))[1]

    def changed(self, text, old, new):
        changed, count = re.subn(old, new, text)
        self.assertEqual(count, 1, old)
        return changed

    def test_candidates_do_not_change_each_other(self):
        tuned = [path.read_text(encoding="utf-8") for path in STEPS.glob("*/tiles.h")]
        self.assertGreaterEqual(len(tuned), 2)
        learnt = (STEPS.parent / "common/device/learnt/tile.cuh").read_text(encoding="utf-8")
        for text in tuned:
            if "struct Tile {" not in text:
                text += learnt
            before = self.version(text)
            self.assertEqual(self.version(self.changed(text, r"RowTile<64, 64, 128, 32, 32, 4(, 2)?>,", "")), before)
            for old, new in (
                ("256 / kThreads;", "512 / kThreads;"),
                (r"using EveryLayoutTile = Tile<\d+,", "using EveryLayoutTile = Tile<32,"),
                (r"num_stages, (8, )?kEveryTile", r"2, \1kEveryTile"),  # of RowTile
                (r"static_assert\(kWarpsM \* kWarpM == kBlockM && ", "static_assert("),
            ):
                self.assertNotEqual(self.version(self.changed(text, old, new)), before, old)

    def test_everything_else_counts(self):
        versions = {
            self.version("a", "b"),
            self.version("a", "c"),
            self.version("a"),
            self.version("a;b"),
            self.version("a", "b", compiler="nvcc 13.1"),
        }
        self.assertEqual(len(versions), 5)

    def test_the_same_is_not_written_again(self):
        self.version("a")
        time = (self.folder / "version.h").stat().st_mtime_ns
        self.version("a")
        self.assertEqual((self.folder / "version.h").stat().st_mtime_ns, time)


if __name__ == "__main__":
    CMAKE = sys.argv.pop(1)
    unittest.main()
