"""Tests of plots.py and tools/plot. The ones that draw are skipped where there is no matplotlib."""

import contextlib
import copy
import errno
import io
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from report import plots, results

try:
    import matplotlib  # noqa: F401

    HAS_MATPLOTLIB = True
except Exception:  # as in plots.py
    HAS_MATPLOTLIB = False

draws = unittest.skipUnless(HAS_MATPLOTLIB, "this Python has no matplotlib: apt-get install python3-matplotlib, /usr/bin/python3")

# --- documents ---

CEILINGS = {
    "source": "measured",
    "copy_bytes_per_second": 4e12,
    "fma_f32_flops": 6e13,
    "mma_f16_flops": 6e14,
    "mma_bf16_flops": None,
}
TILES = (("01_naive", "coalesced", True, 0.1), ("01_naive", "swapped", False, 0.01), ("02_tiled", "8x8 per thread", True, 0.6))


def sample(median):
    return {"median": median, "q20": median * 0.98, "q80": median * 1.03, "rounds": 20, "launches": 1, "graph": False}


def a_result(step, tile, first, share, size=1024, **changed):
    """That runs at SHARE of cuBLAS, which runs at 50 TFLOP/s."""
    flops, once = 2 * size**3, 12 * size**2
    seconds = flops / 50e12
    bytes_moved = {"no_reuse": 8 * size**3, "tile_reuse": 2 * once, "compulsory": once}
    intensity = {name: flops / value if value else None for name, value in bytes_moved.items()}
    made = {
        **{"step": step, "tile": tile, "first": first, "m": size, "n": size, "k": size, "in": "f32", "out": "f32"},
        **{"layout": "nn", "mode": "hot", "verified": True, "flops": flops, "bytes": bytes_moved, "intensity": intensity},
        "bound": {name: value and min(6e13, value * 4e12) for name, value in intensity.items()},
        **{"peak": 6e13, "ridge": 15, "note": "", "time": sample(seconds / share), "tflops": 50 * share, "roofline": share},
        "baselines": {"cublasGemmEx": sample(seconds), "cublasLt": sample(seconds / 1.02)},
        "ratio": {name: {"median": share, "q20": share * 0.99, "q80": share * 1.01} for name in results.BASELINES},
    }
    return {**made, **changed}


def a_document(*found, **changed):
    made = {
        **{"schema": results.SCHEMA, "version": 1, "created": "2026-01-02T03:04:05Z", "commit": "0123456789ab"},
        "backend": "gpu",
        "gpu": {"name": "NVIDIA H200", "driver": "580.1"},
        **{"cuda": "13.0", "cublas": "13.1.0", "ceilings": CEILINGS, "results": list(found)},
    }
    return {**made, **changed}


def ladder(size=1024, **changed):
    return [a_result(*tile, size=size, **changed) for tile in TILES]


def interpreted(projected=True):
    found = ladder(256, mode="count", tflops=None)
    for each in found:
        for name in ("time", "baselines", "ratio", "roofline"):
            del each[name]
        if projected:
            each["projection"] = {"gpu": "NVIDIA H200 141 GB", "flops_per_second": 3e13}
    return a_document(*found, backend="interpreter", gpu={"name": "NVIDIA H200 141 GB"}, cublas=None)


def of_shape(m, n, k, step, share, **changed):
    """As a_result, of a shape that is not square."""
    made = a_result(step, "a tile", True, share, **changed)
    flops = 2 * m * n * k
    seconds = flops / 50e12
    baselines = {"cublasGemmEx": sample(seconds), "cublasLt": None if step in results.PEERS else sample(seconds / 1.02)}
    return {**made, "m": m, "n": n, "k": k, "flops": flops, "time": sample(seconds / share), "baselines": baselines}


CONTENDERS = ("01_naive", "02_tiled", "03_c", "04_d", "05_e", "06_f", "07_g", "peer_cutlass", "peer_triton")


def bench(contenders=CONTENDERS):
    """A benchmark of many shapes: 31 squares, a sweep of m, decoding, and attention in another layout."""
    sweep = [(m, 4096, 4096) for m in range(256, 4097, 128)]
    kinds = [((size, size, size), {}) for size in range(256, 4097, 128)] + [(shape, {}) for shape in sweep]
    kinds += [((8, 4096, 4096), {}), ((2048, 3072, 768), {}), ((2048, 2048, 128), {"layout": "nt"})]
    shares = [0.05, *(0.5 + index / 20 for index in range(len(contenders) - 1))]
    return [of_shape(*shape, *each, **more) for shape, more in kinds for each in zip(contenders, shares)]


SMALL, MIDDLE, LARGE = (f"{size} warp 16x16 s3 g8" for size in ("32x32x64", "64x128x64", "128x128x64"))


def tuned(m, n, k, *candidates, **changed):
    """Of a file of --tune: CANDIDATES are (tile, microseconds or None, why it cannot run or None)."""
    tuning = [{"tile": tile, "seconds": us and us * 1e-6, "bound": 1e-6, "model": 1e-6} for tile, us, _ in candidates]
    for each, (_, _, pruned) in zip(tuning, candidates):
        if pruned:
            each["pruned"] = pruned
    made = {**of_shape(m, n, k, "06_autotune", 0.5), "time": None, "tflops": None, "roofline": None, "tuning": tuning}
    return {**made, "baselines": {}, "ratio": {}, **changed}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="plots test ")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def save(self, document, name="results.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(document if isinstance(document, str) else json.dumps(document))
        return self.path(name)

    def run_plots(self, *arguments, **more):
        """In a process of its own, as tools/plot runs it."""
        command = [sys.executable, "-B", HERE, "plots", *arguments]
        environment = {**os.environ, "MPLCONFIGDIR": self.path("cache"), **more.pop("env", {})}
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **more)

    def drawn(self, document, *arguments):
        """The names of the files, and each SVG as text by its name."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as self.messages:
            with unittest.mock.patch.object(sys, "argv", ["plots.py", self.save(document), *arguments]):
                self.assertEqual(plots.main(), 0)
        paths = out.getvalue().splitlines()
        svgs = {}
        for path in paths:
            with open(path, "rb") as file:
                data = file.read()
            if path.endswith(".png"):
                self.assertTrue(data.startswith(b"\x89PNG"))
            else:
                svgs[os.path.basename(path)] = data.decode()
        self.assertEqual(sorted(os.listdir(os.path.dirname(paths[0]))), sorted(map(os.path.basename, paths)))
        return {os.path.basename(path) for path in paths}, svgs

    def assert_refused(self, run, *words):
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertRegex(run.stderr, r"\Acourse: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, run.stderr)


# --- colours ---


def linear(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]


def luminance(rgb):
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), rgb))


def contrast(one, other):
    """As WCAG 2 defines it."""
    dark, light = sorted(luminance(linear(each)) for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


# What a person without one kind of cone sees, in linear RGB: Machado, Oliveira and Fernandes 2009, severity 1.
COLOUR_BLIND = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def lab(rgb):
    matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(a * b for a, b in zip(row, rgb)) / white for row, white in zip(matrix, (0.9505, 1, 1.089))]
    x, y, z = (each ** (1 / 3) if each > 0.008856 else 7.787 * each + 16 / 116 for each in xyz)
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


class Colours(unittest.TestCase):
    def test_contrast_formula(self):
        self.assertAlmostEqual(contrast("#000000", "#ffffff"), 21)
        self.assertAlmostEqual(contrast("#777777", "#ffffff"), 4.48, places=2)

    def test_seen_on_light_and_on_dark_pages(self):
        for colour in (plots.TEXT, *plots.COLOURS, *plots.PEER_COLOURS.values(), *plots.CELLS):
            for page in ("#ffffff", "#0d1117"):
                self.assertGreaterEqual(contrast(colour, page), 3, f"{colour} on {page}")
        for page in ("#ffffff", "#0d1117"):
            self.assertGreaterEqual(contrast(plots.TEXT, page), 4.2)

    def test_neighbours_differ_for_the_colour_blind(self):
        # Steps next to each other; those further apart have different markers and labels.
        pairs = zip(plots.COLOURS, plots.COLOURS[1:] + plots.COLOURS[:1])
        for one, other in pairs:
            for kind, matrix in COLOUR_BLIND.items():
                seen = [lab([sum(a * b for a, b in zip(row, linear(each))) for row in matrix]) for each in (one, other)]
                distance = sum((a - b) ** 2 for a, b in zip(*seen)) ** 0.5
                self.assertGreater(distance, 15, f"{one} and {other}, {kind}")

    def test_numbers_are_read_in_every_cell(self):
        for colour in plots.CELLS:
            self.assertGreaterEqual(contrast(plots.IN_CELLS, colour), 4.5, colour)

    def test_cells_differ_for_the_colour_blind(self):
        # Their numbers say the same. What is far from 1 on one side must not look like what is far on the other.
        for kind, matrix in COLOUR_BLIND.items():
            seen = [lab([sum(a * b for a, b in zip(row, linear(each))) for row in matrix]) for each in plots.CELLS]
            distances = [[math.dist(one, other) for other in seen] for one in seen]
            middle = len(seen) // 2
            for index, (one, other) in enumerate(zip(seen, seen[1:])):
                self.assertGreater(math.dist(one, other), 12, f"cells {index} and {index + 1}, {kind}")
            for index in range(middle):
                self.assertGreater(distances[index][-1 - index], 30, f"cell {index} and its opposite, {kind}")
                self.assertGreater(distances[index][middle], distances[index + 1][middle] if index + 1 < middle else 0)

    @draws
    def test_the_figures_use_no_other_colour(self):
        plots.prepare_matplotlib()
        searched = [tuned(64, 64, 64, (SMALL, 1, None), (LARGE, 3, None), (MIDDLE, None, "registers")), tuned(1, 1, 1, (SMALL, 1, None))]
        for found in ((*ladder(512), *ladder(1024)), bench(), searched):
            for name, canvas in plots.draw(a_document(*found))[0].items():
                used = set(re.findall(r"#[0-9a-f]{6}\b", canvas.render("svg").decode()))
                # White: the inner line of a whisker, which has a border; the numbers in cells.
                allowed = {plots.TEXT, *plots.COLOURS, *plots.PEER_COLOURS.values(), "#ffffff"}
                if name.startswith(("ratios", "tuning")):
                    allowed |= set(plots.CELLS)
                self.assertLessEqual(used, allowed, name)


# --- plots ---


@draws
class Drawing(Case):
    def test_ladder_and_roofline(self):
        names, svgs = self.drawn(a_document(*ladder()))
        expected = {f"{plot}-f32-hot.{each}" for plot in ("ladder", "roofline") for each in ("svg", "png")}
        self.assertEqual(names, expected)
        self.assertTrue(os.path.isdir(self.path("plots")))
        for words in (">01 naive   coalesced<", ">swapped<", ">cublasGemmEx 50.0<", ">cublasLt 51.0<", ">60.0 %<", ">1.00 %<"):
            self.assertIn(words, svgs["ladder-f32-hot.svg"])
        for words in ("ridge: 15.0 FLOP/byte", "copy: 4.00 TB/s; FMA f32: 60.0 TFLOP/s (measured)", ">02 tiled  30.0<", "cuBLAS<"):
            self.assertIn(words, svgs["roofline-f32-hot.svg"])
        for svg in svgs.values():
            self.assertIn("NVIDIA H200, driver 580.1, CUDA 13.0, cuBLAS 13.1.0", svg)
            self.assertIn("1024x1024x1024, f32, nn, hot; commit 0123456789ab, 2026-01-02T03:04:05Z", svg)
            self.assertIn("sans-serif", svg)
            self.assertNotIn("projected", svg)

    def test_a_roofline_of_each_step(self):
        document = a_document(*ladder())
        names, svgs = self.drawn(document, "--only", "roofline", "--step", "01,02")
        self.assertEqual(set(svgs), {"roofline-f32-hot-01.svg", "roofline-f32-hot-02.svg"})
        for number, name, other in (("01", "01 naive", "02 tiled"), ("02", "02 tiled", "01 naive")):
            svg = svgs[f"roofline-f32-hot-{number}.svg"]
            self.assertIn(f">Roofline, {name}: 1024x1024x1024, f32, nn, hot<", svg)
            self.assertIn(f"opacity: {plots.PALE}", svg)
            for words, is_pale in ((name, False), (other, True)):
                label = re.search(rf"<text [^>]*>{words}  ", svg)[0]
                self.assertEqual(plots.TEXT in label, is_pale, label)
        self.assertIn("it has no step 03", self.refused_roofline(document, "03"))

    def refused_roofline(self, document, step):
        self.assert_refused(process := self.run_plots(self.save(document), "--only", "roofline", "--step", step))
        return process.stderr

    def test_sizes(self):
        names, svgs = self.drawn(a_document(*ladder(512), *ladder(1024), *ladder(2048)))
        self.assertIn("sizes-f32-hot.png", names)
        for words in (">512<", ">1024<", ">2048<", ">01 naive  5.00<", ">cublasGemmEx  50.0<", "20-80 % of the rounds"):
            self.assertIn(words, svgs["sizes-f32-hot.svg"])
        self.assertIn("2048x2048x2048", svgs["ladder-f32-hot.svg"])  # the largest

    def labels_right_of(self, svg, names):
        """From the words before each number to the height at which it stands."""
        pattern = r'<text [^>]*?(?:translate\(\S+ |y=")([\d.]+)[^>]*>(' + "|".join(names) + ")"
        return {words: float(height) for height, words in re.findall(pattern, svg)}

    def test_a_benchmark_of_many_shapes(self):
        names, svgs = self.drawn(a_document(*bench()))
        expected = {"ladder", "roofline", "sizes", "rows", "ratios"}
        self.assertEqual({name[: -len("-f32-hot.svg")] for name in svgs if "-nt-" not in name}, expected)
        for plot in ("sizes", "rows"):
            svg = svgs[f"{plot}-f32-hot.svg"]
            found = self.labels_right_of(svg, ("01 naive", r"0\d [a-g]\b", "02 tiled", "Triton", "CUTLASS", "cublasGemmEx", "cublasLt"))
            self.assertEqual(len(found), len(CONTENDERS) + 2, plot)
            heights = sorted(found.values())
            self.assertGreater(min(b - a for a, b in zip(heights, heights[1:])), 10)
            self.assertNotIn("peer", svg)
            for colour in plots.PEER_COLOURS.values():
                self.assertIn(colour, svg)
            self.assertIn(">4096<", svg)
        self.assertIn("m, with n = 4096, k = 4096", svgs["rows-f32-hot.svg"])
        self.assertNotIn(">8<", svgs["rows-f32-hot.svg"])  # decoding

    def test_rows_need_a_sweep(self):
        found = [of_shape(m, 512, 256, "02_tiled", 0.5) for m in (64, 128, 192)]
        _, reasons = plots.draw(a_document(*found))
        self.assertIn("no rows of f32, nn, hot: it has no n and k with 4 different m", "; ".join(reasons))
        found.append(of_shape(256, 512, 256, "02_tiled", 0.5))
        _, svgs = self.drawn(a_document(*found))
        self.assertIn("TFLOP/s of m×512×256: f32, nn, hot", svgs["rows-f32-hot.svg"])
        # Without a rate, a shape is no place on the axis.
        self.assertNotIn("rows-f32-hot", plots.draw(a_document(*found[:3], {**found[3], "tflops": None}))[0])

    def test_even_steps_stand_evenly(self):
        self.assertTrue(plots.is_even(range(256, 4097, 128)))
        self.assertTrue(plots.is_even([128, 256, 512, 640]))  # one is missing
        self.assertFalse(plots.is_even([256, 512, 1024, 1536, 2048, 3072, 4096]))
        self.assertFalse(plots.is_even([512, 1024]))
        named = sorted(plots.named_sizes(list(range(256, 4097, 128))))
        self.assertEqual((named[0], named[-1]), (256, 4096))
        self.assertGreaterEqual(min(b - a for a, b in zip(named, named[1:])), 3840 / 18)

    def test_ratios(self):
        found = [each for each in bench() if (each["step"], each["layout"]) != ("peer_cutlass", "nt")]
        for each in found:
            if each["step"] == "07_g":
                each["epilogue"] = {"activation": "gelu", "bias": False}
                each["ratio"]["cublasGemmEx"]["median"] = 1.5
        _, svgs = self.drawn(a_document(*found))
        svg = svgs["ratios-f32-hot.svg"]
        self.assertIn("Ratio to cublasGemmEx: f32, hot", svg)
        rows = (">decode 8×4096×4096<", ">BERT feed-forward 2048×3072×768<", ">attention Q·Kᵀ 2048×2048×128 (nt)<", ">geometric mean<")
        places = [svg.index(row) for row in rows]
        self.assertEqual(places, sorted(places))
        self.assertNotIn(">256", svg)  # neither squares nor the sweep
        self.assertEqual(svg.count(">0.050<"), 4)
        self.assertEqual(svg.count(">1.50<"), 4)
        self.assertEqual(svg.count(">–<"), 1)  # CUTLASS has no attention, and no mean either
        self.assertEqual(svg.count(">0.80<"), 2)
        self.assertIn("07 g: with an activation, which cublasGemmEx does not compute", svg)
        for words in (">CUTLASS<", ">Triton<", ">0.95<", ">1.05<"):
            self.assertIn(words, svg)

    def test_ratios_need_shapes(self):
        _, reasons = plots.draw(a_document(*ladder(512), *ladder(1024)))
        self.assertIn("no ratios of f32, nn, hot: it has fewer than two shapes", "; ".join(reasons))
        without = [{**each, "ratio": None} for each in bench()]
        self.assertNotIn("ratios-f32-hot", plots.draw(a_document(*without))[0])
        for median in (0, 1e299):
            damaged = bench()
            for each in damaged:
                each["ratio"]["cublasGemmEx"] = {"median": median, "q20": median, "q80": median}
            drawn = plots.draw(a_document(*damaged))[0]
            self.assertEqual("ratios-f32-hot" in drawn, median > 0)

    def test_bins(self):
        middle = len(plots.CELLS) // 2
        self.assertEqual(plots.bin_of(1, plots.RATIO_EDGES), middle)
        self.assertEqual([plots.bin_of(each, plots.RATIO_EDGES) for each in (0.01, 0.9, 1.1, 99)], [0, middle - 1, middle + 1, 6])
        for edges in (plots.RATIO_EDGES, plots.TUNING_EDGES):
            self.assertEqual((len(edges), list(edges)), (len(plots.CELLS) - 1, sorted(edges)))
        # As far from 1 on one side as on the other.
        for low, high in zip(plots.RATIO_EDGES, reversed(plots.RATIO_EDGES)):
            self.assertAlmostEqual(low * high, 1, delta=0.003)

    def test_tuning(self):
        bound, memory = (MIDDLE, None, None), (LARGE, None, "shared memory: a block needs 96 KiB")
        found = [
            tuned(1024, 1024, 1024, (LARGE, 10, None), (SMALL, 15, None), bound),
            tuned(256, 256, 256, (SMALL, 2, None), (MIDDLE, 25, None), memory),
            tuned(8, 4096, 4096, (SMALL, 4, None), (MIDDLE, 4.01, None)),
            tuned(512, 512, 512, (SMALL, None, "registers: too many")),  # nothing was timed
            tuned(512, 512, 512, (SMALL, 1, None), step="peer_triton"),
        ]
        _, svgs = self.drawn(a_document(*found))
        self.assertEqual(list(svgs), ["tuning-f32-hot.svg"])
        svg = svgs["tuning-f32-hot.svg"]
        self.assertIn("Tuning of 06 autotune: f32, nn, hot", svg)
        for order in ((">256<", ">1024<", ">8×4096×4096<"), (f">{SMALL}<", f">{MIDDLE}<", f">{LARGE}<")):
            places = [svg.index(label) for label in order]
            self.assertEqual(places, sorted(places))
        self.assertNotIn(">512<", svg)
        for words in (">50<", ">…<", ">0<"):  # % above the best: of 15 µs, of 25 µs, of 4.01 µs
            self.assertEqual(svg.count(words), 1, words)
        for words in ("too much shared memory", "its bound is above the best time", "blank: not in the file", "the best tile"):
            self.assertIn(words, svg)
        self.assertNotIn("too many registers", svg)
        self.assertIn("<pattern", svg)

    def test_why_a_tile_was_not_timed(self):
        for reason, words in (
            (None, "cannot win"),
            ("occupancy: an SM holds no block", "no block fits"),
            ("registers: 20 bytes", "registers"),
            ("compiled for nn alone, not for nt", "not compiled"),
            ("a reason that nobody knows yet", "cannot run"),
        ):
            self.assertIn(words, plots.why_not_timed({"tile": "x", "seconds": None, "pruned": reason})[0])

    def test_tuning_needs_two_shapes(self):
        one = tuned(256, 256, 256, (SMALL, 2, None))
        self.assertEqual(list(plots.draw(a_document(one))[0]), [])
        odd = tuned(2**62, 2**62, 2**60, ("no size in its name $", 1e9, None), (SMALL, 1e-290, None), (MIDDLE, 1e290, None))
        _, svgs = self.drawn(a_document(one, odd))
        svg = svgs["tuning-f32-hot.svg"]
        self.assertLess(svg.index(f">{SMALL}<"), svg.index(">no size in its name $<"))

    def test_only_some_plots(self):
        names, _ = self.drawn(a_document(*bench()), "--only", "rows,ratios")
        self.assertEqual(names, {f"{plot}-f32-hot.{each}" for plot in ("rows", "ratios") for each in ("svg", "png")})

    def test_a_file_per_type_layout_and_mode(self):
        kinds = ({}, {"in": "f16"}, {"in": "f16", "out": "f16"}, {"layout": "tn"}, {"mode": "cold"})
        names, _ = self.drawn(a_document(*(each for kind in kinds for each in ladder(**kind))))
        suffixes = {name[len("ladder-") : -len(".svg")] for name in names if re.fullmatch(r"ladder-.*\.svg", name)}
        self.assertEqual(suffixes, {"f32-hot", "f16-f32-hot", "f16-hot", "f32-tn-hot", "f32-cold"})

    def test_projections_are_marked(self):
        names, svgs = self.drawn(interpreted())
        self.assertEqual({name for name in names if name.endswith("svg")}, {"ladder-f32-count.svg", "roofline-f32-count.svg"})
        for svg in svgs.values():
            self.assertIn("projected, not measured, NVIDIA H200 141 GB", svg)
            self.assertIn("no measurement", svg)
            self.assertNotIn("cuBLAS", svg)
        self.assertIn("<pattern", svgs["ladder-f32-count.svg"])  # hatched
        self.assertNotIn("of the rounds", svgs["ladder-f32-count.svg"])

    def test_nothing_is_missed_that_could_not_be_had(self):
        found = ladder()
        found[0]["baselines"] = {"cublasGemmEx": None}
        found[0]["ratio"] = {"cublasGemmEx": None, "cublasLt": None}
        del found[1]["baselines"], found[1]["ratio"]
        found[2]["baselines"]["cublasLt"] = found[2]["ratio"]["cublasLt"] = None
        names, svgs = self.drawn(a_document(*found, commit=None, cuda=None, cublas=None, gpu={"name": "NVIDIA H200"}))
        self.assertEqual(len(names), 4)
        self.assertIn(">–<", svgs["ladder-f32-hot.svg"])
        self.assertNotIn("cublasLt", svgs["ladder-f32-hot.svg"])
        self.assertIn("driver –", svgs["ladder-f32-hot.svg"])

    def test_no_baseline_at_all(self):
        names, svgs = self.drawn(a_document(*ladder(512, baselines=None, ratio=None), *ladder(baselines=None, ratio=None)))
        self.assertEqual(len(names), 6)
        self.assertNotIn("cublasGemmEx", "".join(svgs.values()))

    def test_a_size_of_zero_is_left_out(self):
        nothing = {"no_reuse": None, "tile_reuse": None, "compulsory": None}
        zero = ladder(0, tflops=None, roofline=None, intensity=nothing, bound=nothing, time=sample(1e-6), ratio=None)
        names, svgs = self.drawn(a_document(*zero, *ladder()))
        self.assertEqual(len(names), 4)
        self.assertIn("1024x1024x1024", svgs["ladder-f32-hot.svg"])
        run = self.run_plots(self.save(a_document(*zero)), "--out", self.path("none"))
        self.assert_refused(run, "0x0x0", "neither times nor projections", "tools/course run")
        self.assertFalse(os.path.exists(self.path("none")))

    def test_below_the_resolution_of_the_clock(self):
        found = ladder()
        found[0].update(time=sample(0), tflops=None)
        names, svgs = self.drawn(a_document(*found))
        self.assertEqual(len(names), 4)
        self.assertNotIn("01 naive", svgs["roofline-f32-hot.svg"])

    def test_values_beyond_any_axis(self):
        found = ladder()
        found[0].update(time=sample(1e-299), tflops=1e299)
        found[1]["baselines"]["cublasGemmEx"] = sample(1e-299)
        self.assertEqual(len(self.drawn(a_document(*found))[0]), 4)

    def test_the_roof_is_that_of_the_instruction(self):
        with_wgmma = {**CEILINGS, "wgmma_f16_flops": 8e14}
        fma = (6e13, "FMA f32, CUDA cores", False)
        self.assertEqual(plots.roofs(with_wgmma, "f16", 8e14), [(8e14, "wgmma f16", True), (6e14, "mma.sync f16", False), fma])
        self.assertEqual(plots.roofs(with_wgmma, "f16", 6e14), [(6e14, "mma.sync f16", True), fma])
        self.assertEqual(plots.roofs(CEILINGS, "f16", 6e14), [(6e14, "mma.sync f16", True), fma])
        self.assertEqual(plots.roofs(with_wgmma, "f32", 6e13), [(6e13, "FMA f32", True)])

    def test_without_ceilings_there_is_no_roofline(self):
        names, _ = self.drawn(a_document(*ladder(), ceilings={"source": "measured"}))
        self.assertEqual(names, {"ladder-f32-hot.svg", "ladder-f32-hot.png"})

    def test_the_latest_of_what_ran_twice(self):
        _, svgs = self.drawn(a_document(*ladder(), a_result(*TILES[2][:3], 0.7)))
        self.assertIn(">70.0 %<", svgs["ladder-f32-hot.svg"])
        self.assertNotIn(">60.0 %<", svgs["ladder-f32-hot.svg"])

    def test_any_text_is_text(self):
        found = ladder(mode="../../$x")
        found[2]["tile"] = r"$\frac{<&>$ 100 % " + 80 * "x"
        names, svgs = self.drawn(a_document(*found))
        self.assertIn("ladder-f32-_x.svg", names)
        self.assertIn(r"$\frac{&lt;&amp;&gt;$", svgs["ladder-f32-_x.svg"])

    def test_ten_steps(self):
        found = [a_result(f"{step:02}_some_long_name_of_a_step", "a tile", True, 0.9 + step / 1000) for step in range(10)]
        _, svgs = self.drawn(a_document(*found))
        labels = re.findall(r'<text [^>]*?(?:translate\(\S+ |y=")([\d.]+)[^>]*>(?:0\d some|cublas)', svgs["roofline-f32-hot.svg"])
        self.assertEqual(len(labels), 12)
        heights = sorted(map(float, labels))
        self.assertGreater(min(b - a for a, b in zip(heights, heights[1:])), 10)  # of letters 9 high

    def test_spread(self):
        self.assertEqual(plots.spread([], 0.1), [])
        self.assertEqual(plots.spread([0.5], 0.1), [0.5])
        self.assertEqual(plots.spread([0.9, 0.1], 0.1), [0.9, 0.1])
        for places in ([1, 1, 1], [0, 0, 0], [0.5, 0.52, 0.51], [0.5] * 40):
            moved = plots.spread(places, 0.1)
            order = sorted(moved)
            self.assertTrue(order[0] >= -1e-9 and order[-1] <= 1 + 1e-9)
            self.assertGreater(min(b - a for a, b in zip(order, order[1:])), min(0.1, 1 / 39) - 1e-9)

    def test_labels_of_sizes_keep_apart(self):
        self.assertEqual(sorted(plots.named_sizes([256, 512, 4095, 4096, 4097])), [256, 512, 4096])

    def test_the_same_input_gives_the_same_bytes(self):
        two_tuned = (tuned(size, size, size, (SMALL, 1, None), (LARGE, 2, None), (MIDDLE, None, None)) for size in (64, 128))
        file = self.save(a_document(*ladder(512), *ladder(1024), *bench(CONTENDERS[:2]), *two_tuned))
        for out, seed in (("one", "1"), ("two", "2")):
            run = self.run_plots(file, "--out", self.path(out), env={"PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"})
            self.assertEqual(run.returncode, 0, run.stderr)
        names = sorted(os.listdir(self.path("one")))
        self.assertEqual(len(names), 2 * (len(plots.ALL_PLOTS) + 2))  # and ladder and roofline of attention
        for name in names:
            with open(self.path("one", name), "rb") as one, open(self.path("two", name), "rb") as two:
                self.assertEqual(one.read(), two.read(), name)

    def test_the_readers_matplotlibrc_does_not_matter(self):
        file = self.save(a_document(*ladder()))
        self.save("axes.facecolor: ff0000\nsvg.fonttype: path\n", "matplotlibrc")
        run = self.run_plots(file, "--out", self.path("out"), env={"MATPLOTLIBRC": self.folder})
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("out", "ladder-f32-hot.svg"), encoding="utf-8") as svg:
            text = svg.read()
        self.assertIn("swapped</text>", text)
        self.assertNotIn("#ff0000", text)


# --- files ---


@draws
class Files(Case):
    def test_the_first_of_two_files_with_the_same_plot(self):
        one, two = self.save(a_document(*ladder())), self.save(a_document(*ladder(512), *ladder(2048)), "sizes.json")
        run = self.run_plots(one, two)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(run.stdout.splitlines()), 6)
        self.assertIn("ladder-f32-hot is from", run.stderr)
        with open(self.path("plots", "ladder-f32-hot.svg"), encoding="utf-8") as svg:
            self.assertIn("1024x1024x1024", svg.read())

    def test_an_older_plot_is_replaced(self):
        file = self.save(a_document(*ladder()))
        os.mkdir(self.path("plots"))
        self.save("old", os.path.join("plots", "ladder-f32-hot.svg"))
        self.assertEqual(self.run_plots(file).returncode, 0)
        self.assertGreater(os.path.getsize(self.path("plots", "ladder-f32-hot.svg")), 1000)

    def test_a_full_disk(self):
        file = self.save(a_document(*ladder()))
        os.mkdir(self.path("plots"))
        self.save("old", os.path.join("plots", "roofline-f32-hot.png"))
        # The largest file that the process may write is smaller than a PNG, larger than matplotlib's cache needs.
        self.assertEqual(self.run_plots(file, "--out", self.path("fill the cache")).returncode, 0)
        limit = 21000
        run = self.run_plots(file, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assert_refused(run, "cannot write", "File too large", "--out")
        self.assertEqual(os.listdir(self.path("plots")), ["roofline-f32-hot.png"])
        with open(self.path("plots", "roofline-f32-hot.png"), encoding="utf-8") as old:
            self.assertEqual(old.read(), "old")

    def test_no_space_left(self):
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with unittest.mock.patch("os.fsync", side_effect=[None, error]):
            with self.assertRaisesRegex(results.BadFile, "cannot write .*two.*No space left"):
                results.write_all({self.path("new", "one"): b"1", self.path("new", "two"): b"2"})
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_folder_that_cannot_be(self):
        file = self.save(a_document(*ladder()))
        self.assert_refused(self.run_plots(file, "--out", self.path("results.json", "below")), "cannot write", "--out")
        self.assert_refused(self.run_plots(file, "--out", file), "cannot write", "--out")
        os.makedirs(self.path("plots", "ladder-f32-hot.svg"))
        self.assert_refused(self.run_plots(file), "ladder-f32-hot.svg", "not a regular file")
        self.assertEqual(os.listdir(self.path("plots")), ["ladder-f32-hot.svg"])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_an_unwritable_folder(self):
        file = self.save(a_document(*ladder()))
        os.mkdir(self.path("locked"), 0o555)
        self.assert_refused(self.run_plots(file, "--out", self.path("locked")), "Permission denied", "--out")

    def test_nothing_to_draw(self):
        self.assert_refused(self.run_plots(self.save(interpreted(projected=False))), "--as h200")
        self.assert_refused(self.run_plots(self.save(a_document())), "no results")
        self.assertFalse(os.path.exists(self.path("plots")))


class Refusals(Case):
    """All before matplotlib is looked for: they need none."""

    def test_bad_arguments(self):
        for arguments in (["--colour"], ["--out"], ["--out="], ["--ou", "x"], ["--only"], ["--only="]):
            self.assert_refused(self.run_plots(*arguments))
        self.assert_refused(self.run_plots("--only", "roofline", "--step", "3"), "--step 3", "two digits")
        self.assert_refused(self.run_plots("--step", "03"), "add --only roofline")
        self.assert_refused(self.run_plots("--only", "rows,stairs"), "--only stairs", "there are: ladder, roofline, sizes, rows")

    def test_bad_files(self):
        good = a_document(*ladder())
        later, damaged = copy.deepcopy(good), copy.deepcopy(good)
        later["version"] = 1000
        damaged["results"][0]["time"]["median"] = "fast"
        for content, words in ((later, "newer version"), (damaged, "is damaged"), ("{", "damaged"), ({}, "no result file")):
            self.assert_refused(self.run_plots(self.save(content)), words)
        self.assert_refused(self.run_plots(self.path("missing.json")), "cannot read", "missing.json")
        self.assert_refused(self.run_plots(self.folder), "cannot read")
        # One of them is enough for none to be drawn.
        self.assert_refused(self.run_plots(self.save(good, "good.json"), self.path("missing.json")), "missing.json")
        self.assertFalse(os.path.exists(self.path("plots")))

    def test_without_matplotlib_the_code_asks_for_it(self):
        os.mkdir(self.path("broken"))
        self.save("raise AttributeError('of another NumPy')", os.path.join("broken", "matplotlib.py"))
        file = self.save(a_document(*ladder()))
        run = self.run_plots(file, env={"PYTHONPATH": self.path("broken")})
        self.assertEqual((run.returncode, run.stdout, run.stderr), (plots.NEEDS_MATPLOTLIB, "", ""))

    def test_help(self):
        script = os.path.join(plots.ROOT, "tools", "plot")
        run = subprocess.run([script, "whatever", "--help"], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertTrue(run.stdout.startswith("Usage: tools/plot"))
        for plot in plots.ALL_PLOTS:
            self.assertRegex(run.stdout, rf"(?m)^  {plot} ")
        with open(os.path.join(plots.ROOT, "tools", "command", "scripts", "plot.py"), encoding="utf-8") as file:
            self.assertIn(f"NEEDS_MATPLOTLIB = {plots.NEEDS_MATPLOTLIB} ", file.read())


if __name__ == "__main__":
    unittest.main()
