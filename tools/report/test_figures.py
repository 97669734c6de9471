"""Tests of figures.py and tools/figures, with a stand-in for bin/figures."""

import contextlib
import copy
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from report import figures
from report.results import BadFile

SVG = "{http://www.w3.org/2000/svg}"
PAGES = ("#ffffff", "#0d1117")


# --- what the program prints, smaller and simpler where that is possible ---


def chunk_places(chunks, wavefronts):
    places = [[row * chunks * 8 + (chunk if wavefronts == 8 else chunk ^ row) * 8 for chunk in range(chunks)] for row in range(8)]
    return {"places": places, "wavefronts": [wavefronts] * chunks}


def pipeline(stages):
    return {
        "stages": stages,
        "ticks": 6,
        "slices": 2,
        "copy_ticks": 2,
        "empty_groups": stages - 1,
        "copies": [{"tile": tile, "stage": tile % stages, "start": 0, "end": 2} for tile in range(2)],
        "waits": [{"start": 0, "end": 2, "groups": 0}, {"start": 4, "end": 4, "groups": 0}],
        "multiplications": [
            {"tile": tick // 2 - 1, "stage": (tick // 2 - 1) % stages, "start": tick, "end": tick + 1} for tick in range(2, 6)
        ],
        "steps_of_tile": [
            {"what": what, "set": which, "slice": which}
            for what, which in (("load", 0), ("load", 1), ("multiply", 0), ("multiply", 1))
        ],
    }


def order(group, rows, cols, first, loads):
    tiles = [[m, n] for n in range(cols) for m in range(rows)]
    return {"group_m": group, "tiles_m": rows, "tiles_n": cols, "tiles_k": 9, "first": first, "loads": loads, "tiles": tiles}


def data():
    memory = {
        "gpu": "NVIDIA X",
        "multiprocessors": 4,
        "register_bytes": 1 << 18,
        "l1_bytes": 1 << 18,
        "shared_bytes": 228 << 10,
        "l2_bytes": 60 << 20,
        "dram_bytes": 141 * 10**9,
        "l1_bytes_per_second": 33_454_080_000_000,
        "l2_bytes_per_second": 16_727_040_000_000,
        "dram_bytes_per_second": 4_800_000_000_000,
    }
    table = [[[row % 16 * 8 + chunk, chunk ^ row % 8] for chunk in range(8)] for row in range(128)]
    return {
        "memory": memory,
        "levels": {"extent": 4096, "block_m": 128, "block_n": 128, "warp_m": 64, "warp_n": 64, "fragment": 16, "mma_n": 8},
        "copies": {"rows": 128, "chunks": 8, "step": 16, "threads": 128, "table": table},
        "swizzle": [
            {"row": row, "row_major": chunk_places(row // 8, 8), "swizzled": chunk_places(row // 8, 1)} for row in (64, 128)
        ],
        "pipeline": [pipeline(1), pipeline(2)],
        "order": [order(1, 3, 9, 3, 36), order(3, 3, 9, 2, 27), order(2, 3, 9, 0, 0)],
    }


def changed(**parts):
    return {**copy.deepcopy(data()), **parts}


# --- colours ---


def luminance(rgb):
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in rgb]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear))


def rgb(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def contrast(one, other):
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


class Folder(unittest.TestCase):
    """A repository with a kernel, the copy of its loop, and a stand-in for the program that says SAYS."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        loop = "  for (;;) {\n    copy();\n  }\n"
        self.write(figures.KERNEL, f"void kernel() {{\n{loop}}}\n")
        self.write(figures.COPY_OF_LOOP, figures.LOOP_BEGINS + loop + figures.LOOP_ENDS)
        self.program = self.write(figures.PROGRAMS[1], "")
        self.say(data())

    def write(self, path, content):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def say(self, says, code=0):
        words = says if isinstance(says, str) else json.dumps(says)
        self.write(figures.PROGRAMS[1], f"#!/bin/sh\ncat <<'END'\n{words}\nEND\nexit {code}\n")
        os.chmod(self.program, 0o755)

    def run_figures(self, *arguments):
        """The exit code, the lines on stdout, and stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), unittest.mock.patch.object(
            figures, "ROOT", self.root
        ), unittest.mock.patch.object(sys, "argv", ["figures", *arguments]):
            code = figures.main()
        return code, out.getvalue().splitlines(), err.getvalue()


class Check(Folder):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_figures(), (0, list(figures.FIGURES), ""))

    def assert_changed(self, *paths):
        code, out, err = self.run_figures("--check")
        self.assertEqual((code, out), (1, []))
        self.assertEqual([line.split()[1] for line in err.splitlines()], list(paths))
        self.assertIn("run 'tools/figures'", err)

    def test_current_figures(self):
        self.assertEqual(self.run_figures("--check"), (0, [], ""))
        self.assertEqual(self.run_figures(), (0, [], ""))  # and nothing is written again

    def test_a_changed_figure(self):
        for path in figures.FIGURES:
            self.run_figures()
            self.write(path, self.read(path).replace("</text>", "1</text>", 1))
            self.assert_changed(path)

    def test_a_missing_figure(self):
        path = "steps/05_l2_swizzle/order.svg"
        os.remove(os.path.join(self.root, path))
        self.assert_changed(path)
        self.assertEqual(self.run_figures()[1], [path])
        self.assertEqual(self.run_figures("--check")[0], 0)

    def test_changed_mappings(self):
        swapped = data()["swizzle"]
        row = swapped[0]["swizzled"]["places"][3]
        row[2], row[5] = row[5], row[2]
        other_order = data()["order"]
        other_order[0]["tiles"].reverse()
        later = data()["pipeline"]
        later[1]["copies"][1]["start"] += 1
        for name, part in (("swizzle", swapped), ("order", other_order), ("pipeline", later)):
            with self.subTest(name):
                self.say(changed(**{name: part}))
                (path,) = (path for path, (of, _) in figures.FIGURES.items() if of == name)
                self.assert_changed(path)

    def test_another_loop_in_the_kernel(self):
        self.write(figures.KERNEL, self.read(figures.KERNEL).replace("copy();", "copy(); wait();"))
        for arguments in ((), ("--check",)):
            code, _, err = self.run_figures(*arguments)
            self.assertEqual(code, 1)
            self.assertIn(f"the main loop in {figures.COPY_OF_LOOP} is not that of {figures.KERNEL}", err)

    def test_a_copy_of_the_loop_without_its_marks(self):
        self.write(figures.COPY_OF_LOOP, "int main() {}\n")
        self.assertEqual(self.run_figures("--check")[0], 1)


class Program(Folder):
    def refused(self, *arguments):
        with self.assertRaises(BadFile) as caught:
            self.run_figures(*arguments)
        return str(caught.exception)

    def test_not_built(self):
        os.remove(self.program)
        words = self.refused("--check")
        self.assertIn("there is no build/interpreter/bin/figures and no build/gpu/bin/figures yet", words)
        self.assertIn("tools/course test", words)

    def test_the_interpreters_before_the_gpus(self):
        first = self.write(figures.PROGRAMS[0], "")
        self.assertEqual(figures.find_program(self.root), first)

    def test_one_that_is_named(self):
        other = os.path.join(self.root, "other")
        os.rename(self.program, other)
        self.assertEqual(self.run_figures("--program", other)[0], 0)

    def test_one_that_fails_or_says_nonsense(self):
        self.say(data(), code=1)
        self.assertIn("does not say what to draw", self.refused())
        self.say("{")
        self.assertIn("does not say what to draw", self.refused())
        self.assertIn("does not say what to draw", self.refused("--program", os.path.join(self.root, "none")))

    def test_the_command(self):
        command = os.path.join(figures.ROOT, "tools/figures")
        done = subprocess.run([command, "--help"], stdout=subprocess.PIPE, check=True)
        self.assertTrue(done.stdout.startswith(b"Usage: tools/figures"))
        done = subprocess.run([command, "--chek"], stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"tools/figures --help", done.stderr)


class Drawn(unittest.TestCase):
    def setUp(self):
        self.drawn = {path: content.decode() for path, content in figures.draw(data()).items()}

    def elements(self, content):
        return ElementTree.fromstring(content).iter()

    def test_the_same_bytes_each_time(self):
        self.assertEqual(figures.draw(data()), figures.draw(data()))

    def test_named_for_those_who_do_not_see_them(self):
        for path, content in self.drawn.items():
            tree = ElementTree.fromstring(content)
            self.assertEqual([each.tag for each in tree[:2]], [SVG + "title", SVG + "desc"], path)
            self.assertTrue(all(len(each.text) > 30 for each in tree[:2]), path)

    def test_what_is_said(self):
        words = self.drawn["steps/03_tensor_core/swizzle.svg"]
        self.assertEqual((words.count(">8 wavefronts<"), words.count(">1 wavefront<")), (2, 2))
        words = self.drawn["steps/01_naive/memory.svg"]
        self.assertIn(">256 KB in each of 4 SMs, 228 KB of it may be shared<", words)
        self.assertIn(">▲ 16.7 TB/s, all SMs together ▲<", words)
        words = self.drawn["steps/03_tensor_core/levels.svg"]
        self.assertIn(">4 × 8 products for each k of 16<", words)
        self.assertIn("It uses each fragment of A for 8 products, and each one of B for 8.", words)
        words = self.drawn["steps/03_tensor_core/copies.svg"]
        self.assertEqual(words.count('font-weight="bold" fill="#ffffff">8<'), 4)  # rows 1 and 17, on both sides
        self.assertIn("thread 8 copies chunk 0 of rows 1, 17, ...", words)
        words = self.drawn["steps/05_l2_swizzle/order.svg"]
        self.assertIn(">loads 27 blocks<", words)
        self.assertIn(">(2 rows + 1 column) × 9<", words)
        self.assertIn(">last group: 1 row<", words)
        words = self.drawn["steps/04_pipelined_num_stages/pipeline.svg"]
        self.assertEqual(words.count(">takes 3<"), 2)

    def test_everything_lies_within_the_figure(self):
        committed = {}
        for path in figures.FIGURES:
            with open(os.path.join(figures.ROOT, path), encoding="utf-8") as file:
                committed[path + ", as committed"] = file.read()
        for path, content in {**self.drawn, **committed}.items():
            _, _, width, height = map(float, ElementTree.fromstring(content).get("viewBox").split())
            for each in self.elements(content):
                places = [
                    (float(each.get(name)), float(each.get(name)) + float(each.get(size, 0)), limit)
                    for name, size, limit in (("x", "width", width), ("y", "height", height), ("x2", "", width), ("y2", "", height))
                    if each.get(name)
                ]
                if each.tag == SVG + "text":
                    length = 0.6 * float(each.get("font-size", 11)) * len(each.text)
                    left = places[0][0] - {"middle": 0.5, "end": 1, None: 0}[each.get("text-anchor")] * length
                    places[0] = (left, left + length, width)
                for first, last, limit in places:
                    self.assertGreaterEqual(first, 0, f"{path}: {ElementTree.tostring(each)}")
                    self.assertLessEqual(last, limit, f"{path}: {ElementTree.tostring(each)}")

    def test_colours(self):
        known = {figures.TEXT, figures.ON_COLOUR, *figures.COLOURS}
        for content in self.drawn.values():
            self.assertLessEqual(set(re.findall(r"#[0-9a-fA-F]{6}\b", content)), known)
        for colour in figures.COLOURS:
            self.assertGreaterEqual(contrast(rgb(figures.ON_COLOUR), rgb(colour)), 3, colour)
            for page in PAGES:
                mixed = [figures.TINT * over + (1 - figures.TINT) * under for over, under in zip(rgb(colour), rgb(page))]
                self.assertGreaterEqual(contrast(rgb(figures.TEXT), mixed), 3, f"text on a tint of {colour} on {page}")


if __name__ == "__main__":
    unittest.main()
