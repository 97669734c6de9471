"""Tests of this folder: python3 -m unittest discover -s tools/report"""

import copy
import errno
import io
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import compare, ladder, registers, results, shapes, tables, terminal

HERE = pathlib.Path(__file__).resolve().parent


# --- documents ---


def sample(median, spread=0.004):
    return {"median": median, "q20": median * (1 - spread), "q80": median * (1 + spread)}


def make_result(step, tile, tile_bytes, first):
    shape = {"m": 4096, "n": 4096, "k": 4096, "in": "f32", "out": "f32", "layout": "nn"}
    count = {"no_reuse": 550e9, "tile_reuse": tile_bytes, "compulsory": 201326592}
    flops = 2 * 4096**3
    return {
        "step": step,
        "tile": tile,
        "first": first,
        **shape,
        "verified": True,
        "flops": flops,
        "bytes": count,
        "intensity": {name: flops / value for name, value in count.items()},
        "bound": {name: min(66e12, flops / value * 4.26e12) for name, value in count.items()},
        "peak": 66e12,
        "ridge": 15.5,
        "note": f"what bounds {tile}",
    }


def gpu_result(step, tile, tile_bytes, first, seconds, cublas=0.00268, lt=0.0026):
    return {
        **make_result(step, tile, tile_bytes, first),
        "mode": "hot",
        "time": sample(seconds),
        "tflops": 2 * 4096**3 / seconds * 1e-12,
        "roofline": 2 * 4096**3 / seconds / 66e12,
        "baselines": {"cublasGemmEx": sample(cublas), "cublasLt": sample(lt)},
        "ratio": {"cublasGemmEx": sample(cublas / seconds), "cublasLt": sample(lt / seconds)},
    }


def bench_result(step, m, n, k, ratio, layout="nn", activation=None):
    """That runs at RATIO of cublasGemmEx, which runs at 100 TFLOP/s; cublasLt, which is not measured beside peers, at 125."""
    flops = 2 * m * n * k
    cublas = flops / 100e12
    made = {**gpu_result(step, "a tile", 1e6, True, cublas / ratio, cublas, cublas / 1.25), "flops": flops}
    made |= {"m": m, "n": n, "k": k, "in": "f16", "out": "f16", "layout": layout, "tflops": 100 * ratio}
    if step in results.PEERS:
        made["baselines"]["cublasLt"] = made["ratio"]["cublasLt"] = None
    if activation:
        made["epilogue"] = {"activation": activation, "bias": False}
    return made


BENCH = [
    *(("01_naive", *each, 0.1) for each in ((256,) * 3, (1024,) * 3, *((m, 4096, 4096) for m in (1024, 2048, 3072, 4096, 8)))),
    ("01_naive", 2048, 2048, 128, 0.1, "nt"),
    ("02_tiled", 256, 256, 256, 0.2),
    ("02_tiled", 1024, 1024, 1024, 0.8),
    *(("02_tiled", m, 4096, 4096, 0.5) for m in (1024, 2048, 3072, 4096, 8)),
    ("02_tiled", 2048, 2048, 128, 0.5, "nt"),
    *(("07_fused", size, size, size, 0.9, "nn", "gelu") for size in (256, 1024)),
    *(("peer_triton", *each, 0.8) for each in ((256,) * 3, (1024,) * 3, (4096,) * 3, (8, 4096, 4096))),
    *(("peer_cutlass", size, size, size, 1) for size in (256, 1024, 4096)),
]


def interpreter_result(step, tile, tile_bytes, first, sectors, wavefronts, conflicts):
    return {
        **make_result(step, tile, tile_bytes, first),
        "mode": "count",
        "counters": {
            results.GLOBAL_LOAD_REQUESTS: 1048576,
            results.GLOBAL_LOAD_SECTORS: sectors,
            results.GLOBAL_STORE_REQUESTS: 2048,
            results.GLOBAL_STORE_SECTORS: 8192,
            results.SHARED_LOAD_REQUESTS: 32768,
            results.SHARED_LOAD_WAVEFRONTS: wavefronts,
            results.SHARED_LOAD_CONFLICTS: conflicts,
            "bytes": 32 * (sectors + 8192),
        },
        "seconds": 0.2,
        "projection": {"gpu": "NVIDIA H200 141 GB", "flops_per_second": 34.2e12},
    }


def make_document(backend, tiles):
    return {
        "schema": results.SCHEMA,
        "version": 1,
        "created": "2026-11-21T07:00:00Z",
        "commit": "0123456789ab",
        "backend": backend,
        "gpu": {"name": "NVIDIA H200", **({"driver": "580.1"} if backend == "gpu" else {})},
        "cuda": "13.0",
        "cublas": "13.1.0" if backend == "gpu" else None,
        "ceilings": {"source": "measured", "copy_bytes_per_second": 4.26e12, "fma_f32_flops": 66e12},
        "results": tiles,
    }


def gpu_document():
    return make_document(
        "gpu",
        [
            gpu_result("01_naive", "coalesced", 550e9, True, 0.0232),
            gpu_result("01_naive", "swapped", 550e9, False, 0.2769),
            gpu_result("02_tiled", "128x128x8, 8x8 per thread", 4.36e9, True, 0.0039),
            gpu_result("02_tiled", "64x64x8, 4x4 per thread", 8.66e9, False, 0.00527),
        ],
    )


def interpreter_document():
    return make_document(
        "interpreter",
        [
            interpreter_result("01_naive", "coalesced", 550e9, True, 2621440, 0, 0),
            interpreter_result("02_tiled", "128x128x8", 4.36e9, True, 32768, 98304, 32768),
        ],
    )


class Registers(unittest.TestCase):
    def test_each_version_differs_where_it_says(self):
        with open(HERE.parent.parent / registers.KERNEL, encoding="utf-8") as file:
            kernel = file.read()
        texts = registers.versions(kernel)
        self.assertEqual(texts["as it stands"], kernel)
        self.assertEqual(len(set(texts.values())), 3)
        with self.assertRaisesRegex(results.BadFile, "0 times, not once"):
            registers.versions(kernel.replace(registers.INDICES, ""))


class InFolder(unittest.TestCase):
    """Each test has a repository of its own, self.root, with two lessons."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="report test ")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for step, title in (
            ("01_naive", "# 01 naive: one thread, one element"),
            ("02_tiled", "# 02 tiled: load once, use often"),
        ):
            self.put(f"steps/{step}/README.md", title + "\n\nText.\n")

    def put(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def names(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())

    def run_script(self, script, *arguments, **options):
        # Without a terminal, as in a pipe.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **options.pop("env", {})}
        return subprocess.run(
            [sys.executable, str(HERE), script, *arguments],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
            env=environment,
            text=True,
            encoding="utf-8",
        )

    def assert_refused(self, process, message):
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn(message, process.stderr)
        self.assertEqual(process.stderr.count("\n"), 1, process.stderr)


# --- results.py ---


class Load(InFolder):
    def refused(self, content, message):
        with self.assertRaises(results.BadFile) as caught:
            results.load(self.put("bad.json", content))
        self.assertIn(message, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def changed(self, path, value):
        document = gpu_document()
        target = document
        *parents, last = path
        for name in parents:
            target = target[name]
        if value is None:
            del target[last]
        else:
            target[last] = value
        return document

    def test_good(self):
        for document in (gpu_document(), interpreter_document(), make_document("gpu", [])):
            self.assertEqual(results.load(self.put("good.json", document)), document)

    def test_unknown_fields_are_ignored(self):
        document = gpu_document()
        document["new"] = document["results"][0]["new"] = document["results"][0]["time"]["new"] = {"x": [1]}
        results.load(self.put("good.json", document))

    def test_values_that_could_not_be_had(self):
        document = gpu_document()
        for name in ("time", "tflops", "roofline", "baselines", "ratio", "note"):
            document["results"][0][name] = None
            del document["results"][1][name]
        document["results"][2]["ratio"]["cublasLt"] = None
        document["results"][2]["intensity"] = {"no_reuse": None}
        results.load(self.put("good.json", document))

    def test_no_file(self):
        for path in (self.root / "none.json", self.root):
            with self.assertRaisesRegex(results.BadFile, "cannot read"):
                results.load(str(path))

    def test_damaged_files(self):
        whole = json.dumps(gpu_document())
        for content in ("", " ", "{", whole[: len(whole) // 2], whole + "x", "[" * 100000, '{"x": NaN}', "\0"):
            self.refused(content, "is damaged or no result file")
        binary = self.root / "binary.json"
        binary.write_bytes(b"\xff\xfe\x00")
        with self.assertRaisesRegex(results.BadFile, "is damaged or no result file"):
            results.load(str(binary))

    def test_other_json(self):
        for content in ("[]", "1", "null", "{}", '{"schema": "other", "version": 1}'):
            self.refused(content, "is no result file")

    def test_future_version(self):
        for version in (2, 99):
            self.refused({"schema": results.SCHEMA, "version": version}, "update this checkout")

    def test_broken_documents(self):
        for path, value, message in (
            (["version"], None, "version"),
            (["version"], 0.5, "version is not a whole number"),
            (["version"], "1", "version is not a number"),
            (["created"], None, "created is missing"),
            (["backend"], "tpu", "backend is none of: gpu, interpreter"),
            (["gpu"], "H200", "gpu is not an object"),
            (["gpu", "name"], None, "gpu.name is missing"),
            (["ceilings", "fma_f32_flops"], "fast", "ceilings.fma_f32_flops is not a number"),
            (["results"], {}, "results is not a list"),
            (["results", 1], 7, "results[1] is not an object"),
            (["results", 1, "step"], None, "results[1].step is missing"),
            (["results", 1, "step"], "two\nlines", "results[1].step is not a line of text"),
            (["results", 1, "first"], 1, "results[1].first is neither"),
            (["results", 1, "m"], True, "results[1].m is not a number"),
            (["results", 1, "m"], -1, "results[1].m is not a number"),
            (["results", 1, "m"], 1.5, "results[1].m is not a whole number"),
            (["results", 1, "flops"], 10**400, "results[1].flops is not a number"),
            (["results", 1, "bytes", "compulsory"], None, "results[1].bytes.compulsory is missing"),
            (["results", 1, "time"], 3, "results[1].time is not an object"),
            (["results", 1, "time", "q20"], None, "results[1].time.q20 is missing"),
            (["results", 1, "ratio", "cublasLt"], "fast", "results[1].ratio.cublasLt is not an object"),
            (["results", 1, "counters"], {"bytes": "many"}, "results[1].counters.bytes is not a number"),
        ):
            with self.subTest(message):
                self.refused(self.changed(path, value), message)
        self.refused(json.dumps(gpu_document()).replace("0.0232", "1e999", 1), "results[0].time.median is not a number")

    def test_merge(self):
        first, second = gpu_document(), gpu_document()
        second["created"], second["results"] = "2026-11-21T07:00:01Z", second["results"][:1]
        merged = results.merge([first, second])
        self.assertEqual(merged["created"], second["created"])
        self.assertEqual(len(merged["results"]), 5)
        self.assertEqual(len(first["results"]), 4)
        for other in (interpreter_document(), {**gpu_document(), "gpu": {"name": "another"}}):
            with self.assertRaisesRegex(results.BadFile, "not of one run"):
                results.merge([first, other])


class Write(InFolder):
    def setUp(self):
        super().setUp()
        self.path = self.put("out.json", "precious")
        self.before = self.names()

    def refused(self, path, message):
        with self.assertRaises(results.BadFile) as caught:
            results.write(path, gpu_document())
        self.assertIn(message, str(caught.exception))
        self.assertEqual(self.names(), self.before)
        self.assertEqual(pathlib.Path(self.path).read_text(encoding="utf-8"), "precious")

    def test_good(self):
        for path in (self.path, str(self.root / "new.json")):
            results.write(path, gpu_document())
            self.assertEqual(results.load(path), gpu_document())
        self.assertEqual(self.names(), sorted([*self.before, "new.json"]))

    def test_full_disk(self):
        for call in ("fsync", "replace"):
            with mock.patch.object(results.os, call, side_effect=OSError(errno.ENOSPC, "No space left on device")):
                self.refused(self.path, "No space left on device")

    def test_no_room_while_writing(self):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        self.refused(self.path, "File too large")

    def test_interrupted(self):
        with mock.patch.object(results.os, "fsync", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                results.write(self.path, gpu_document())
        self.assertEqual(self.names(), self.before)

    def test_unwritable(self):
        self.refused(str(self.root / "nowhere" / "out.json"), "No such file or directory")
        self.refused(os.path.join(self.path, "out.json"), "Not a directory")
        self.refused(str(self.root), "not a regular file")
        self.refused("/dev/full", "not a regular file")
        self.refused("/proc/out.json", "cannot write /proc/out.json")

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_permissions(self):
        self.root.chmod(0o500)
        self.addCleanup(self.root.chmod, 0o700)
        self.refused(self.path, "Permission denied")


class Command(unittest.TestCase):
    def test_what_failed_is_named(self):
        for failing, where in ((open, "use /nowhere/x"), (lambda _: print("x" * 100000), "write to stdout")):
            errors = io.StringIO()
            with (
                open("/dev/full", "w", encoding="utf-8") as full,
                redirect_stdout(full),
                redirect_stderr(errors),
                mock.patch.object(os, "_exit", side_effect=SystemExit) as ended,
                self.assertRaises(SystemExit),
            ):
                terminal.run_command(lambda: failing("/nowhere/x"))
            ended.assert_called_with(2)
            self.assertIn(f"course: cannot {where}: ", errors.getvalue())


# --- numbers ---


class Numbers(unittest.TestCase):
    def test_numbers(self):
        for make, value, expected in (
            (terminal.rounded, None, "–"),
            (terminal.rounded, 0, "0"),
            (terminal.rounded, 0.25, "0.250"),
            (terminal.rounded, 0.99999, "1.00"),
            (terminal.rounded, 35.249, "35.2"),
            (terminal.rounded, 999.6, "1,000"),
            (terminal.rounded, 123456, "123,000"),
            (terminal.rounded, 1.234e-5, "1.23e-05"),
            (terminal.size, None, "–"),
            (terminal.size, 0, "0 B"),
            (terminal.size, 999, "999 B"),
            (terminal.size, 1000, "1.00 kB"),
            (terminal.size, 999999, "1.00 MB"),
            (terminal.size, 137.4e9, "137 GB"),
            (terminal.size, 1e15, "1.00 PB"),
            (terminal.size, 1e24, "1,000,000 EB"),
            (terminal.count, 1048576.0, "1,048,576"),
            (terminal.percent, 0.1153, "11.5"),
            (terminal.tera, 1.06e12, "1.06"),
            (terminal.times, 5.949, "5.95×"),
            (terminal.plus_minus, 0.0042, "±0.4%"),
        ):
            with self.subTest(expected):
                self.assertEqual(make(value), expected)

    def test_align(self):
        head, body = terminal.align(["name", "a\nb"], [["long name", "1"], ["x", "22"]], 10)
        self.assertEqual(head, ["         a", "name     b"])
        self.assertEqual(body, ["long name\n         1", "x       22"])
        self.assertEqual(terminal.breadth(["name", "a\nb"], [["long name", "1"], ["x", "22"]]), 13)

    def test_width(self):
        for columns, expected in (("72", 72), ("20", 60), ("999", 120), ("0", 80), ("abc", 80), ("", 80)):
            with mock.patch.dict(os.environ, {"COLUMNS": columns}), mock.patch.object(os, "get_terminal_size", side_effect=OSError):
                self.assertEqual(terminal.width(), expected)


# --- ladder.py ---

GPU_LADDER = """\
4096x4096x4096, f32, nn, hot
If all is moved once, 201 MB: at most 66.0 TFLOP/s. If nothing is reused, 550 GB: at most 1.06 TFLOP/s.
                              bytes,     FLOP/    bound,                                  % of
                                 per     byte,  TFLOP/s,                    % of   % of  roof-  speed
step, tile                      tile  per tile  per tile  TFLOP/s  noise  cuBLAS     Lt   line    -up
01_naive: one thread, one element
  coalesced                   550 GB     0.250      1.06     5.92  ±0.4%    11.6   11.2   8.98      –
  swapped                     550 GB     0.250      1.06    0.496  ±0.4%   0.968  0.939  0.752
02_tiled: load once, use often
  128x128x8, 8x8 per thread  4.36 GB      31.5      66.0     35.2  ±0.4%    68.7   66.7   53.4  5.95×
  64x64x8, 4x4 per thread    8.66 GB      15.9      66.0     26.1  ±0.4%    50.9   49.3   39.5
"""


class Ladder(InFolder):
    def text(self, document, coloured=False, width=120):
        with mock.patch.object(ladder, "width", lambda: width):
            return ladder.report(document, terminal.Style(coloured), str(self.root))

    def test_gpu(self):
        text = self.text(gpu_document())
        self.assertTrue(text.startswith("NVIDIA H200, driver 580.1, CUDA 13.0, cuBLAS 13.1.0, commit 0123456789ab, 2026-11-21T07:00:00Z\n\n"))
        self.assertIn("noise: half of the 20-80 % band", text)
        self.assertTrue(text.endswith("\n\n" + GPU_LADDER))  # what a terminal still shows
        self.assertNotIn("what bounds", text)  # a step's own run says that

    def test_of_many_steps_each_has_a_row(self):
        folder = pathlib.Path(ladder.ROOT, "docs", "results")
        for name, most in (("interpreter/ladder-f16.json", 36), ("h200/ladder-f16.json", 26)):
            document = results.load(folder / name)
            with mock.patch.object(ladder, "width", lambda: 80):
                lines = ladder.report(document, terminal.Style(False), all_tiles=False).splitlines()
            steps = list(dict.fromkeys(each["step"] for each in document["results"]))
            with self.subTest(name):
                self.assertEqual([line.split()[0] for line in lines[-len(steps) :]], sorted(steps))
                self.assertLessEqual(max(map(len, lines)), 80)
                self.assertLessEqual(len(lines), most)
                self.assertIn(f"best tile of {len(document['results'])} in all: --all-tiles shows", " ".join(" ".join(lines).split()))
        with mock.patch.object(ladder, "width", lambda: 120):
            self.assertRegex(ladder.report(document, terminal.Style(False), all_tiles=False), r"\n06_autotune +\d+x.* s4 g8 ")

    def test_every_tile_has_its_whole_name_in_a_narrow_terminal(self):
        folder = pathlib.Path(ladder.ROOT, "docs", "results")
        for file in sorted(folder.glob("*/ladder-*.json")) + sorted(folder.glob("*/fused-*.json")):
            document = results.load(file)
            for width in (60, 80, 100, 120):
                text = self.text(document, width=width)
                with self.subTest(file=file.name, width=width):
                    if width >= 80:
                        self.assertLessEqual(max(map(len, text.splitlines())), width)
                    for each in document["results"]:
                        self.assertIn("  " + results.title(each), text)
        wide, narrow = (self.text(gpu_document(), width=width) for width in (120, 80))
        self.assertIn("tile  per tile  per tile  TFLOP/s", wide)
        self.assertNotIn("tile  per tile  per tile  TFLOP/s", narrow)
        self.assertIn("35.2", narrow)

    def test_interpreter(self):
        text = self.text(interpreter_document())
        lines = text.splitlines()
        header = next(index for index, line in enumerate(lines) if line.startswith("step, tile"))
        self.assertIn("H200 141 GB", lines[header])
        self.assertIn("projected", lines[header - 2])
        tiles = [line.split("  ") for line in lines if line.startswith("  ") and " MB" in line]
        columns = [[cell.strip() for cell in tile if cell.strip()] for tile in tiles]
        self.assertEqual(
            columns,
            [
                ["coalesced", "550 GB", "0.250", "1.06", "84.1 MB", "1,630", "2.50", "–", "34.2"],
                ["128x128x8", "4.36 GB", "31.5", "66.0", "1.31 MB", "105,000", "0.0312", "1.50", "34.2"],
            ],
        )
        self.assertIn("no measurement", text)
        self.assertLessEqual(max(map(len, lines)), 120)

    def test_a_step_that_cannot_run_is_said_in_its_place(self):
        unavailable = {"01_a": "needs wgmma", "99_z": "needs " + "more " * 30}
        with mock.patch.object(ladder, "width", lambda: 80):
            lines = ladder.report(gpu_document(), terminal.Style(False), str(self.root), unavailable=unavailable).splitlines()
        first, last = (next(i for i, line in enumerate(lines) if line.startswith(step)) for step in unavailable)
        self.assertEqual(lines[first : first + 2], ["01_a: –", "  unavailable: needs wgmma"])
        self.assertTrue(lines[first + 2].startswith("01_naive: "))
        self.assertTrue(lines[last + 1].startswith("  unavailable: needs more"))
        self.assertLessEqual(max(map(len, lines[last : last + 4])), 80)

    def test_of_projections_each_steps_best_tile(self):
        document = interpreter_document()
        document["results"].append({**document["results"][0], "tile": "another", "first": False})
        document["results"][-1]["projection"] = dict(document["results"][-1]["projection"])
        tiles = [each for each in document["results"] if each["step"] == document["results"][0]["step"]]
        self.assertGreater(len(tiles), 1)
        tiles[-1]["projection"]["flops_per_second"] = 99e12
        texts = []
        for width in (80, 120):
            with mock.patch.object(ladder, "width", lambda: width):
                texts.append(ladder.report(document, terminal.Style(False), str(self.root), all_tiles=False))
        text, wide = texts
        rows = [line for line in wide.splitlines() if re.match(r"\d\d_", line)]
        self.assertEqual(len(rows), len({each["step"] for each in document["results"]}))
        self.assertRegex(rows[0], r"^01_naive +another .* 99\.0$")
        self.assertIn("cannot show what 04's stages", " ".join(text.split()))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_no_projection(self):
        document = interpreter_document()
        for each in document["results"]:
            del each["projection"]
        self.assertNotIn("projected", self.text(document))

    def test_nulls(self):
        document = gpu_document()
        for each in document["results"]:
            each.update(time=None, tflops=None, roofline=None, ratio=None)
            each["intensity"] = each["bound"] = {}
        text = self.text(document)
        self.assertRegex(text, r"coalesced +550 GB +– +– +– +– +– +– +–\n")
        document["results"][0]["time"] = sample(0.0)
        document["results"][0]["m"] = 0
        self.text(document)
        for each in interpreter_document()["results"]:
            each["counters"] = {}
            self.text(make_document("interpreter", [each]))

    def test_colours(self):
        plain, coloured = self.text(gpu_document()), self.text(gpu_document(), True)
        self.assertNotIn("\033", plain)
        self.assertIn("\033[1m01_naive: one thread, one element\033[0m", coloured)
        self.assertRegex(coloured, "\033\\[2m  swapped.*\033\\[0m")
        stream = mock.Mock()
        for is_terminal, environment, expected in (
            (True, {"TERM": "xterm"}, True),
            (True, {"TERM": "dumb"}, False),
            (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
            (False, {"TERM": "xterm"}, False),
        ):
            stream.isatty.return_value = is_terminal
            with mock.patch.dict(os.environ, environment, clear=True):
                self.assertEqual(bool(terminal.wants_colours(stream)), expected)

    def test_lt_only_where_it_is_faster(self):
        document = make_document("gpu", [gpu_result("01_naive", "a", 1e9, True, 0.01, lt=0.003)])
        self.assertNotRegex(self.text(document), r"cuBLAS +Lt ")

    def test_one_table_per_setting(self):
        document = gpu_document()
        for name, value in (("m", 64), ("in", "f16"), ("layout", "tn"), ("mode", "cold")):
            document["results"].append({**copy.deepcopy(document["results"][2]), name: value})
        text = self.text(document)
        self.assertEqual(text.count("02_tiled: load once, use often\n"), 5)
        self.assertIn("\n64x4096x4096, f32, nn, hot\n", text)
        self.assertIn("\n4096x4096x4096, f16 to f32, nn, hot\n", text)

    def test_order_of_files(self):
        document = gpu_document()
        document["results"].reverse()
        self.assertEqual(self.text(document), self.text(gpu_document()))

    def test_step_without_a_lesson(self):
        document = make_document("gpu", [gpu_result("77_new", "a", 1e9, True, 0.01)])
        self.assertIn("77_new: –\n", self.text(document))

    def test_program(self):
        one, two = gpu_document(), gpu_document()
        one["results"], two["results"] = one["results"][:2], two["results"][2:]
        files = [self.put("one.json", one), self.put("two.json", two)]
        out = str(self.root / "ladder.json")
        process = self.run_script("ladder", *files, "--out", out, "--all-tiles", env={"LC_ALL": "C"})
        self.assertEqual((process.returncode, process.stderr), (0, ""))
        self.assertIn("64x64x8, 4x4 per thread", process.stdout)
        self.assertNotIn("\033", process.stdout)
        self.assertEqual(results.load(out), gpu_document())
        process = self.run_script("ladder", *files, "--json")
        self.assertEqual(json.loads(process.stdout), gpu_document())

    def test_bad_input(self):
        good = self.put("good.json", gpu_document())
        self.assert_refused(self.run_script("ladder"), "required: FILE")
        self.assert_refused(self.run_script("ladder", good, "--what"), "unrecognized arguments: --what")
        self.assert_refused(self.run_script("ladder", good, str(self.root / "none")), "cannot read")
        self.assert_refused(self.run_script("ladder", self.put("empty.json", make_document("gpu", []))), "no results in")
        process = self.run_script("ladder", good, "--out", str(self.root / "nowhere" / "x.json"))
        self.assert_refused(process, "cannot write")
        self.assertIn("01_naive", process.stdout)  # what was measured is shown all the same
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assert_refused(self.run_script("ladder", good, stdout=full), "cannot write to stdout")


# --- compare.py ---


class Peers(InFolder):
    def test_they_are_no_steps(self):
        document = gpu_document()
        document["results"].append(gpu_result("peer_triton", "128x256x64", 4e9, True, 0.003))
        self.assertEqual(ladder.title("peer_triton", self.root), ("Triton", terminal.NOTHING))
        speed_up = ladder.speed_ups(ladder.by_step(document["results"]))
        self.assertEqual((speed_up["peer_triton"], speed_up["01_naive"]), (None, None))
        self.assertGreater(speed_up["02_tiled"], 5)
        self.assertIn("peer_triton: –\n", ladder.report(document, terminal.Style(False), self.root))


class Shapes(unittest.TestCase):
    def shape(self, m, n, k, layout="nn"):
        return {"m": m, "n": n, "k": k, "layout": layout}

    def test_names(self):
        self.assertEqual(shapes.name(self.shape(4096, 11008, 4096)), "Llama up 4096×11008×4096")
        self.assertEqual(shapes.name(self.shape(2048, 2048, 128, "nt")), "attention Q·Kᵀ 2048×2048×128 (nt)")
        self.assertEqual(shapes.name(self.shape(2048, 2048, 128)), "2048×2048×128")
        for m, n, k, layout in shapes.NAMED:
            self.assertFalse(shapes.is_square(self.shape(m, n, k, layout)))

    def test_a_sweep_has_neither_decoding_nor_another_layout(self):
        swept = [self.shape(m, 4096, 4096) for m in (4096, 256, 512, 1024)]
        rest = [self.shape(8, 4096, 4096), self.shape(300, 4096, 4096, "tn"), self.shape(0, 4096, 4096), self.shape(9, 9, 1)]
        self.assertEqual(list(shapes.sweep(swept + rest)), [256, 512, 1024, 4096])
        self.assertEqual(shapes.sweep(swept[1:] + rest), {})
        self.assertEqual(shapes.sweep([]), {})
        keys = [(8, 4096, 4096, "nn"), (9, 9, 1, "nn"), (300, 4096, 4096, "tn")]  # a name first, then by size; none empty
        self.assertEqual(list(shapes.others(swept + rest)), keys)
        self.assertEqual(list(shapes.squares(swept + rest)), [4096])


class Compare(InFolder):
    def compare(self, old, new, *arguments):
        return self.run_script("compare", self.put("old.json", old), self.put("new.json", new), *arguments)

    def slower(self, factor):
        document = gpu_document()
        for each in document["results"]:
            each["ratio"] = {name: sample(value["median"] / factor) for name, value in each["ratio"].items()}
            each["time"] = sample(each["time"]["median"] * factor)
        return document

    def test_equal(self):
        for document in (gpu_document(), interpreter_document()):
            process = self.compare(document, document, "--fail-beyond", "0")
            self.assertEqual((process.returncode, process.stderr), (0, ""))
            self.assertIn("0 changes beyond the noise.", process.stdout)
            self.assertNotIn("warning", process.stdout)

    def test_within_and_beyond_noise(self):
        # The bands are ±0.4 % each: it is the 1 % that counts.
        process = self.compare(gpu_document(), self.slower(1.009), "--fail-beyond", "0")
        self.assertEqual(process.returncode, 0)
        self.assertIn("4 compared; 0 changes", process.stdout)
        process = self.compare(gpu_document(), self.slower(1.02))
        self.assertEqual(process.returncode, 0)
        self.assertRegex(process.stdout, r"coalesced +% of cublasGemmEx +11\.6 +11\.3 +-1\.96% +±1\.0% +slower")
        self.assertIn("4 compared; 4 changes", process.stdout)
        self.assertIn("faster", self.compare(self.slower(1.02), gpu_document()).stdout)

    def test_of_tuning(self):
        def tuned(*seconds):
            document = gpu_document()
            tiles = [{"tile": f"tile {index}", "seconds": each, "bound": None, "model": None} for index, each in enumerate(seconds)]
            document["results"] = [{**make_result("06_autotune", "tile 0", 1e6, True), "mode": "hot", "tuning": tiles}]
            return document

        process = self.compare(tuned(2e-6, 3e-6, None), tuned(6e-6, 9e-6, None), "--fail-beyond", "1")
        self.assertEqual(process.returncode, 1)
        self.assertRegex(process.stdout, r"ms, best tile +0\.00200 +0\.00600 +\+200\.00% .* slower")
        self.assertEqual(self.compare(tuned(2e-6), tuned(2e-6), "--fail-beyond", "1").returncode, 0)
        # Nothing that both have: no answer.
        process = self.compare(tuned(2e-6), tuned(None), "--fail-beyond", "1")
        self.assertEqual(process.returncode, 2)
        self.assertIn("no result in common", process.stderr)

    def test_noise_of_both(self):
        old, new = gpu_document(), self.slower(1.05)
        for document, spread in ((old, 0.02), (new, 0.04)):
            for each in document["results"]:
                each["ratio"]["cublasGemmEx"] = sample(each["ratio"]["cublasGemmEx"]["median"], spread)
        self.assertRegex(self.compare(old, new).stdout, r"-4\.76% +±6\.0% +within the noise")

    def test_fail_beyond(self):
        self.assertEqual(self.compare(gpu_document(), self.slower(1.04), "--fail-beyond", "3").returncode, 1)
        self.assertEqual(self.compare(gpu_document(), self.slower(1.04), "--fail-beyond", "5").returncode, 0)
        self.assertEqual(self.compare(self.slower(1.04), gpu_document(), "--fail-beyond", "3").returncode, 1)

    def test_without_cublas(self):
        new = self.slower(1.05)
        for each in new["results"]:
            each["ratio"] = {"cublasGemmEx": None, "cublasLt": None}
        self.assertRegex(self.compare(gpu_document(), new).stdout, r"coalesced +ms +23\.2 +24\.4 +\+5\.00% +±1\.0% +slower")
        old = gpu_document()
        for each in [*old["results"], *new["results"]]:
            each["time"] = sample(0.0)
            each["ratio"] = None
        self.assertIn("0 changes", self.compare(old, new, "--fail-beyond", "0").stdout)

    def test_counters(self):
        new = interpreter_document()
        new["results"][1]["counters"][results.GLOBAL_LOAD_SECTORS] *= 2
        new["results"][1]["counters"]["a new one"] = 3
        process = self.compare(interpreter_document(), new, "--fail-beyond", "99")
        self.assertRegex(process.stdout, r"01_naive, coalesced +counters +equal\n")
        self.assertRegex(process.stdout, r"02_tiled, 128x128x8 +counters +1 differ\n")
        self.assertRegex(process.stdout, rf"    {results.GLOBAL_LOAD_SECTORS}\s+32,768 +65,536 +\+100\.00% +differs\n")
        self.assertRegex(process.stdout, r"    a new one +– +3 +not in both\n")
        self.assertEqual(process.returncode, 1)
        new["results"][1]["counters"] = {**interpreter_document()["results"][1]["counters"], results.SHARED_LOAD_CONFLICTS: 0}
        self.assertEqual(self.compare(new, interpreter_document(), "--fail-beyond", "99").returncode, 1)

    def test_epilogues_are_different_things(self):
        document = gpu_document()
        document["results"] = document["results"][:1]
        fused = copy.deepcopy(document)
        fused["results"][0]["epilogue"] = {"activation": "gelu", "bias": True}
        self.put("old.json", document)
        self.put("new.json", fused)
        text, _ = compare.report("old", document, "new", fused, terminal.Style(False))
        self.assertIn("0 compared", text)
        self.assertIn("only in new: 01_naive, coalesced, bias + gelu, ", text)
        self.assertIn("  coalesced, bias + gelu ", ladder.report(fused, terminal.Style(False), str(self.root)))
        fused["results"][0]["epilogue"] = {"activation": "gelu"}
        self.put("broken.json", fused)
        with self.assertRaisesRegex(results.BadFile, r"results\[0\].epilogue.bias is missing"):
            results.load(self.root / "broken.json")

    def test_only_in_one(self):
        new = gpu_document()
        new["results"][3]["tile"] = "another"
        new["gpu"]["driver"], new["commit"] = "580.2", None
        text = self.compare(gpu_document(), new).stdout
        self.assertIn("old.json: 02_tiled, 64x64x8, 4x4 per thread, 4096x4096x4096, f32, nn, hot\n", text)
        self.assertIn("new.json: 02_tiled, another, 4096x4096x4096, f32, nn, hot\n", text)
        self.assertIn("3 compared", text)
        self.assertIn("warning: the runs differ in driver: 580.1 and 580.2\n", text)
        self.assertIn("warning: the runs differ in commit: 0123456789ab and –\n", text)
        self.assertNotIn("differ in GPU", text)

    def test_many_are_only_in_one(self):
        new, peer = gpu_document(), gpu_document()["results"][0]
        for m in range(1, 10):  # a result more than are named one by one
            new["results"].append({**peer, "step": "peer_triton", "m": m})
        text = self.compare(gpu_document(), new).stdout
        self.assertIn("new.json: peer_triton, 9 results\n", text)
        self.assertEqual(text.count("only in"), 1)
        new["results"].pop()
        self.assertEqual(self.compare(gpu_document(), new).stdout.count("only in"), 8)

    def test_two_gpus_of_one_model(self):
        old, new = gpu_document(), gpu_document()
        old["gpu"]["uuid"] = "GPU-1"
        self.assertNotIn("warning", self.compare(old, new).stdout)  # the other one may be the same
        new["gpu"]["uuid"] = "GPU-2"
        self.assertIn("warning: the runs differ in GPU: GPU-1 and GPU-2\n", self.compare(old, new).stdout)
        new["gpu"]["uuid"] = "GPU-1"
        self.assertNotIn("warning", self.compare(old, new).stdout)

    def test_bad_input(self):
        self.assert_refused(self.compare(gpu_document(), interpreter_document()), "no result in common")
        self.assert_refused(self.compare(gpu_document(), "{"), "is damaged")
        self.assert_refused(self.compare({**gpu_document(), "version": 2}, gpu_document()), "update this checkout")
        for percent in ("x", "nan", "-1", "inf"):
            self.assert_refused(self.compare(gpu_document(), gpu_document(), "--fail-beyond", percent), "--fail-beyond")


# --- tables.py ---

BEGIN = "<!-- table tiles docs/results/gpu.json step=02_tiled -->"

TILES_TABLE = f"""\
Above.
{BEGIN}

| tile | ms | TFLOP/s | % of cuBLAS | % of roofline |
| --- | --- | --- | --- | --- |
| 128x128x8, 8x8 per thread | 3.90 | 35.2 ±0.4% | 68.7 | 53.4 |
| 64x64x8, 4x4 per thread | 5.27 | 26.1 ±0.4% | 50.9 | 39.5 |

NVIDIA H200, driver 580.1, 2026-11-21, commit 0123456789ab, 4096×4096×4096, f32, nn, hot: [gpu.json](docs/results/gpu.json)

{tables.END}
Below.
"""


class Tables(InFolder):
    def setUp(self):
        super().setUp()
        self.put("docs/results/gpu.json", gpu_document())
        self.put("docs/results/interpreter.json", interpreter_document())

    def run_tables(self, check):
        """The exit code, and what was printed."""
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            code = tables.run(str(self.root), check)
        return code, output.getvalue()

    def assert_broken(self, text, message):
        """That the README says MESSAGE for TEXT, which stays."""
        self.put("README.md", text)
        for check, expected in ((True, 1), (False, 2)):
            code, output = self.run_tables(check)
            self.assertEqual(code, expected)
            self.assertIn("README.md:", output)
            self.assertIn(message, output)
        self.assertEqual(self.read("README.md"), text)

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def test_a_table(self):
        self.put("README.md", f"Above.\n{BEGIN}\nold\n{tables.END}\nBelow.\n")
        code, output = self.run_tables(True)
        self.assertEqual(code, 1)
        self.assertIn(f"README.md:2: {BEGIN}", output)
        self.assertEqual(self.run_tables(False), (0, f"README.md:2: {BEGIN}\n"))
        self.assertEqual(self.read("README.md"), TILES_TABLE)
        self.assertEqual(self.run_tables(True), (0, ""))
        self.assertEqual(self.run_tables(False), (0, ""))

    def test_a_lesson_says_what_it_is_built_on(self):
        for name, title, base in (("01_naive", "01 naive: first", ""), ("02_tiled", "02 tiled: second", "01"), ("04_later", "04 later: third", "02")):
            self.put(f"steps/{name}/README.md", f"# {title}\n\n<!-- place -->\nold\n\nText.\n")
            self.put(f"steps/{name}/gemm.cuh", f"/// @file\n/// Changes since {base}:\n" if base else "/// @file\n")
        self.assertEqual(self.run_tables(True)[0], 1)
        self.assertEqual(self.run_tables(False)[0], 0)
        for name, line in (
            ("01_naive", "Part I: CUDA cores · next is [02 tiled](../02_tiled/README.md)"),
            (
                "02_tiled",
                "Part I: CUDA cores · built on [01 naive](../01_naive/README.md): `diff steps/{01_naive,02_tiled}/gemm.cuh` · "
                "next is [04 later](../04_later/README.md)",
            ),
            ("04_later", "Part II: tensor cores · built on [02 tiled](../02_tiled/README.md): `diff steps/{02_tiled,04_later}/gemm.cuh`"),
        ):
            self.assertIn(f"\n\n<!-- place -->\n{line}\n\nText.\n", self.read(f"steps/{name}/README.md"))
        self.assertEqual(self.run_tables(True), (0, ""))

    def test_every_step_is_in_one_part(self):
        numbers = sorted(number for _, of_part in ladder.PARTS.values() for number in of_part)
        self.assertEqual(numbers, sorted(name[:2] for name in os.listdir(os.path.join(ladder.ROOT, "steps")) if name[:2].isdigit()))

    def test_the_road_has_the_best_tile_of_each_step_and_some_elsewhere(self):
        document = gpu_document()
        few = [{**copy.deepcopy(each), "m": 8, "mode": "cold"} for each in document["results"] if each["step"] == "02_tiled"]
        for each in few:
            each["ratio"]["cublasGemmEx"]["median"] = 1.25
        document["results"] = [each for each in document["results"] if each["in"] == "f32"] + [each for each in few if each["in"] == "f32"]
        self.put("docs/results/road.json", document)
        self.put("README.md", f"<!-- table road docs/results/road.json elsewhere=02_tiled -->\n{tables.END}\n")
        code, output = self.run_tables(False)
        self.assertEqual(code, 0, output)
        rows = [line for line in self.read("README.md").split("\n") if line.startswith("| I |")]
        self.assertEqual(len(rows), 2)
        self.assertIn("| 11.6 | – |", rows[0])
        self.assertRegex(rows[1], r"\| 125 \| 8×\d+×\d+, cold \|$")

    def test_kinds_in_a_lesson(self):
        kinds = (
            ("tiles docs/results/gpu.json step=02_tiled dtype=f32", "| 64x64x8, 4x4 per thread | 5.27 | 26.1 ±0.4% | 50.9 | 39.5 |"),
            (
                "counts docs/results/interpreter.json step=02_tiled",
                "| 128x128x8 | 1,048,576 | 32,768 | 0.0312 | 4.00 | 32,768 | 98,304, 1.50 | 1.31 MB | 3.01e-04 |",
            ),
            (
                "counts docs/results/interpreter.json step=01_naive",
                "| coalesced | 1,048,576 | 2,621,440 | 2.50 | 4.00 | 32,768 | 0 | 84.1 MB | 1.53e-04 |",
            ),
        )
        self.put("steps/02_tiled/README.md", "".join(f"<!-- table {kind} -->\n{tables.END}\n" for kind, _ in kinds))
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("steps/02_tiled/README.md")
        for _, row in kinds:
            self.assertIn(row + "\n", text)
        self.assertIn(": [gpu.json](../../docs/results/gpu.json)\n", text)
        self.assertEqual(self.run_tables(True), (0, ""))
        self.put("steps/02_tiled/README.md", text.replace("5.27", "5.26"))
        self.assertEqual(self.run_tables(True)[0], 1)

    def test_caches(self):
        marker = "<!-- table caches docs/results/gpu.json step=01_naive -->"
        path = "docs/results/ncu-caches/01_naive-4096x4096x4096-f32.csv"
        header = f"ID,Kernel Name,{results.GLOBAL_LOAD_SECTORS},lts__t_sectors_srcunit_tex_op_read.sum,dram__bytes_read.sum\n"
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertRegex(self.run_tables(False)[1], f"{path} does not hold one launch for each tile")
        self.put(path, header + "0,a,1000000000,100000000,5000000\n")
        self.assertEqual(self.run_tables(False)[0], 2)  # two tiles
        self.put(path, header + "0,a,1000000000,100000000,5000000\n1,b,7000000000,200000000,6000000\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertRegex(self.read("README.md"), r"\| coalesced \| \S+ GB \| 32.0 GB \| 3.20 GB \| 5.00 MB \|\n\| swapped ")

    def test_limits(self):
        marker = "<!-- table limits docs/results/gpu.json step=01_naive -->"
        path = "docs/results/ncu-limits/01_naive-4096x4096x4096-f32.csv"
        names = [
            "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__cycles_active.avg",
            "sm__cycles_elapsed.max",
            "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
            "smsp__issue_active.avg.pct_of_peak_sustained_active",
            *(tables.STALL.format(name) for name in tables.STALLS),
        ]
        header = ",".join(["ID", "Kernel Name", *names]) + "\n"
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertRegex(self.run_tables(False)[1], f"{path} does not hold ncu's launches")
        self.put(path, header)
        self.assertRegex(self.run_tables(False)[1], "it is empty")
        self.put(path, header + '0,"gemm_kernel<int>",1,2,3,4,5,6,7,8,9,10\n')
        self.assertRegex(self.run_tables(False)[1], "has no tile in its name")
        kernels = ['"k<Tile<128, 64, 32, 64, 16, 3, 8, 1>, 0>"', '"k<Tile<128, 64, 32, 64, 16, 3>, 0>"', '"k<Tile<8, 4, 2, 1, 1>, 0>"']
        rows = (f"{at},{kernel},{busy},75,100,50,25,1.5,2.5,0.25,0,0.5\n" for at, (kernel, busy) in enumerate(zip(kernels, (60, 80, 70))))
        self.put(path, header + "".join(rows))
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        lines = [line for line in text.splitlines() if "warp" in line][1:]
        self.assertEqual([line.split(" |")[0] for line in lines], ["| 128x64x32 warp 64x16 s3", "| 8x4x2 warp 1x1", "| 128x64x32 warp 64x16 s3 g8"])
        self.assertIn("| 80.0 | 75.0 | 50.0 | 25.0 | 1.50 | 2.50 | 0.250 | 0 | 0.500 |\n", text)

    def test_fused(self):
        marker = "<!-- table fused docs/results/gpu.json step=01_naive -->"
        document = gpu_document()
        del document["results"][1:]
        names = (results.GEMM_EX_THEN, results.UNFUSED, results.UNFUSED_THEN)
        fused = {**copy.deepcopy(document["results"][0]), "epilogue": {"activation": "gelu", "bias": True}, "saved_bytes": 64e6}
        fused["ratio"] = {name: sample(1 + place / 8) for place, name in enumerate(names)} | {results.LT_FUSED: None}
        other = {**copy.deepcopy(fused), "m": 64, "epilogue": {"activation": "identity", "bias": True}, "time": None, "ratio": None}
        document["results"] = [fused, other]
        self.put("docs/results/gpu.json", document)
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertIn("| 4096×4096×4096 | bias + gelu | 23,200 | ±0.4% | 1.00× | – | 1.25× | 1.12× | 64.0 MB |\n", text)
        self.assertIn("| 64×4096×4096 | bias | – | – | – | – | – | – | 64.0 MB |\n", text)
        self.assertIn("commit 0123456789ab, 2 shapes, f32, nn, hot: [gpu.json]", text)
        other["layout"] = "tn"
        self.put("docs/results/gpu.json", document)
        self.assertIn("needs results of one shape, dtype, layout and mode", self.run_tables(False)[1])

    def test_latency(self):
        marker = "<!-- table latency docs/results/gpu.json -->"
        document = gpu_document()
        shapes = [(8, 64, 4096), (16, 64, 4096)]
        of_steps = [("06_autotune", 1.0), ("08_split_k", 1.25)]
        document["results"] = [bench_result(step, *shape, ratio) for step, ratio in of_steps for shape in shapes]
        self.put("docs/results/gpu.json", document)
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertIn("| shape | 06, µs | 08, µs | tile of 08 | cublasGemmEx | cublasLt |\n", text)
        self.assertIn("| 8×64×4096 | 0.0419 | 0.0336 | a tile | 1.25× | 1.00× |\n", text)
        self.assertIn("commit 0123456789ab, 2 shapes, f16, nn, hot: [gpu.json]", text)
        document["results"].append(bench_result("08_split_k", *shapes[0], 2.5) | {"tile": "a faster one", "first": False})
        self.put("docs/results/gpu.json", document)
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertIn("| 8×64×4096 | 0.0419 | 0.0168 | a faster one | 2.50×", self.read("README.md"))
        del document["results"][0]
        self.put("docs/results/gpu.json", document)
        self.assertIn("8x64x4096 was measured with 08_split_k, not with 06_autotune, 08_split_k", self.run_tables(False)[1])

    def test_passes(self):
        marker = "<!-- table passes docs/results/gpu.json step=01_naive -->"
        document = gpu_document()
        del document["results"][1:]
        document["results"][0] |= {"epilogue": {"activation": "gelu", "bias": True}, "saved_bytes": 64e6}
        self.put("docs/results/gpu.json", document)
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertRegex(self.run_tables(False)[1], "there is nothing for docs/results/gpu.json in ncu-fused/")
        path = "docs/results/ncu-fused/caches-4096x4096x4096-f32-bias-gelu.csv"
        header = f"ID,Kernel Name,{results.GLOBAL_LOAD_SECTORS},dram__bytes_read.sum,dram__bytes_write.sum\n"
        self.put(path, header + "0,a,1000000,2000000,3000000\n1,b,2000000,4000000,5000000\n")
        self.assertRegex(self.run_tables(False)[1], f"{re.escape(path)} does not hold three launches")
        self.put(path, header + "0,a,1000000,2000000,3000000\n1,b,2000000,4000000,5000000\n2,c,3000000,6000000,7000000\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertIn("| separate kernel | 64.0 MB | 64.0 MB | 4.00 MB | 5.00 MB |\n", self.read("README.md"))
        self.assertIn("| fused | – | 96.0 MB | 6.00 MB | 7.00 MB |\n", self.read("README.md"))

    def test_epilogues(self):
        marker = "<!-- table epilogues docs/results/interpreter.json step=01_naive -->"
        document = interpreter_document()
        fused = copy.deepcopy(document["results"][0])
        fused |= {"epilogue": {"activation": "relu", "bias": False}, "saved_bytes": 512e3}
        fused["counters"]["separate_pass_bytes"] = 524288
        document["results"].append(fused)
        self.put("docs/results/interpreter.json", document)
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertIn("| none | 84.1 MB | 262 kB | – | – |\n| relu | 84.1 MB | 262 kB | 512 kB | 524 kB |\n", text)

    def test_traffic(self):
        reads = "lts__t_sectors_srcunit_tex_op_read"
        names = (reads, reads + "_lookup_hit", reads + "_lookup_miss", "dram__bytes_read", "dram__bytes_write")
        header = "ID,Kernel Name," + ",".join(name + ".sum" for name in names) + "\n"
        path = "docs/results/l2/01_naive-4096x4096x4096-f32.csv"
        self.put("README.md", f"<!-- table traffic docs/results/gpu.json step=01_naive -->\n{tables.END}\n")
        self.assertRegex(self.run_tables(False)[1], f"{path} does not hold the launches of each tile")
        one = "0,a,1000,600,200,5000,70\n1,a,3000,900,300,7000,90\n"
        self.put(path, header + one)
        self.assertEqual(self.run_tables(False)[0], 2)  # two tiles
        self.put(path, header + one + "2,b,1000,1000,0,4000,20\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertIn("| coalesced | 75.0 | 64.0 kB | 6.00 kB | 80 B | ", text)
        self.assertIn("| swapped | 100 | 32.0 kB | 4.00 kB | 20 B | ", text)

    def test_what_a_kernel_takes(self):
        document = gpu_document()
        document["results"][2]["launch"] = {"registers": 234, "shared_bytes": 98304, "blocks_per_sm": 2}
        self.put("docs/results/gpu.json", document)
        self.put("README.md", f"<!-- table tiles docs/results/gpu.json step=02_tiled -->\n{tables.END}\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertRegex(text, r"(?m)^\| 128x128x8, 8x8 per thread .* \| 234 \| 98,304 \| 2 \|$")
        self.assertRegex(text, r"(?m)^\| 64x64x8, 4x4 per thread .* \| – \| – \| – \|$")

    def test_registers(self):
        path = "docs/results/registers/04.json"
        marker = f"<!-- table registers {path} -->\n{tables.END}\n"
        self.put("README.md", marker)
        self.assertRegex(self.run_tables(False)[1], "make it with tools/registers")
        versions = {"kept": {"nn": 231, "nt": 230}, "computed again": {"nn": 228, "nt": 224}}
        self.put(path, {"nvcc": "13.0.88", "architecture": "sm_90a", "registers": versions})
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertIn("| computed again | 228 | 224 |\n\nnvcc 13.0.88, sm_90a: [04.json]", self.read("README.md"))
        self.put("README.md", marker.replace(" -->", " step=x -->", 1))
        self.assertIn("takes no options", self.run_tables(False)[1])

    def test_view(self):
        counts = "counts docs/results/interpreter.json step=02_tiled"
        text = self.table_of(f"{counts} columns=wavefronts,sectors,bytes")
        self.assertIn("| tile | wavefronts, of ideal | sectors | bytes |\n", text)
        self.assertIn("| 128x128x8 | 98,304, 1.50 | 32,768 | 1.31 MB |\n", text)
        tiles = "tiles docs/results/gpu.json step=02_tiled"
        everything = self.table_of(tiles)
        self.assertEqual(everything.count(" per thread |"), 2)
        text = self.table_of(f"{tiles} rows=64x64 columns=ms")
        self.assertIn("| tile | ms |\n| --- | --- |\n| 64x64x8, 4x4 per thread | 5.27 |\n\nN", text)
        for option, message in (
            ("columns=nothing", "no column 'nothing'; there are: tile, ms, TFLOP_s, of_cuBLAS, of_roofline"),
            ("columns=of", "more than one column 'of'"),
            ("rows=32x32", "no row '32x32'; there are: 128x128x8"),
            ("merge=no", "merge=no: only merge=yes has a meaning"),
        ):
            self.assertIn(message, self.table_of(f"{tiles} {option}", 2))

    def test_merge(self):
        document = interpreter_document()
        one = next(each for each in document["results"] if each["step"] == "02_tiled")
        others = [{**one, "tile": tile, "first": False} for tile in ("8x8 warp s1", "8x8 warp s2", "8x8 warp s2 g4")]
        changed = {**one, "tile": "8x8 s9", "first": False, "counters": {**one["counters"], "bytes": 2e9}}
        document["results"] = [*others, changed, {**others[0], "tile": "8x8"}]
        self.put("docs/results/interpreter.json", document)
        text = self.table_of("counts docs/results/interpreter.json step=02_tiled columns=bytes merge=yes")
        rows = [line for line in text.split("\n") if line.startswith("| 8x8")]
        self.assertEqual(rows, ["| 8x8 warp s1, s2, s2 g4 | 1.31 MB |", "| 8x8 s9 | 2.00 GB |", "| 8x8 | 1.31 MB |"])

    def test_fragments(self):
        document = interpreter_document()
        document["results"][0]["counters"] |= {
            "smsp__inst_executed_op_ldgsts.sum": 1024,
            "smsp__inst_executed_op_ldsm.sum": 2048,
            "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum": 16384,
            "sm__inst_executed_pipe_tensor_op_hmma.sum": 8192,
            "sectors_per_request": 16.0,
            "wavefronts": 17000,
            "ideal_wavefronts": 8500,
        }
        self.put("docs/results/interpreter.json", document)
        step = document["results"][0]["step"]
        self.put("README.md", f"<!-- table fragments docs/results/interpreter.json step={step} -->\n{tables.END}\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertIn("| 1,024 | 16.0 | 2,048 | 16,384 | 2.00 | 8,192 |", self.read("README.md"))

    def test_tuning(self):
        document = gpu_document()
        marker = "<!-- table tuning docs/results/gpu.json step=02_tiled -->"
        self.put("README.md", f"{marker}\n{tables.END}\n")
        self.assertIn("found: none", self.run_tables(False)[1])  # no result of a step that tunes
        tuned = [each for each in document["results"] if each["step"] == "02_tiled"][0]
        first, other = tables.FIRST_TILE, "32x32x64 warp 16x16 s6 g8"
        tuned["tuning"] = [
            {"tile": other, "seconds": 2e-6, "bound": 1e-6, "model": 3e-6},
            {"tile": first, "seconds": 4e-6, "bound": 1e-6, "model": 2.5e-6},
            {"tile": "left out", "seconds": None, "bound": 5e-6, "model": 1e-6},
            {"tile": "too large", "seconds": None, "bound": 0, "model": 0, "pruned": "shared memory"},
        ]
        document["results"].append({**tuned, "m": 64, "n": 64, "k": 64, "flops": 2 * 64**3})
        self.put("docs/results/gpu.json", document)
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertIn(f"| 64×64×64 | {other} | 2.00 | 0.262 | 50.0 | {first}, 50.0 % |\n", text)
        self.assertIn("2 shapes, f32, nn, hot: [gpu.json]", text)
        tuned["tuning"] = tuned["tuning"][2:]
        self.put("docs/results/gpu.json", document)
        self.assertIn("nothing was timed for 4096x4096x4096", self.run_tables(False)[1])
        tuned["tuning"] = [{"tile": first, "seconds": "fast", "model": 1}]
        self.put("docs/results/gpu.json", document)
        self.assertIn("seconds", self.run_tables(False)[1])

    def put_bench(self, *changes):
        """A benchmark of many shapes: two steps, a fused one and two peers; CHANGES are made to its results."""
        kept = [bench_result(*each) for each in BENCH]
        for change in changes:
            change(kept)
        self.put("docs/results/gpu.json", make_document("gpu", kept))
        self.put("steps/07_fused/README.md", "# 07 fused: the activation in the epilogue\n")

    def table_of(self, marker, code=0):
        self.put("README.md", f"<!-- table {marker} -->\n{tables.END}\n")
        found, output = self.run_tables(False)
        self.assertEqual(found, code, output)
        if code == 0:
            self.assertEqual(self.run_tables(True), (0, ""))
        return self.read("README.md") if code == 0 else output

    def test_shapes_of_nothing_that_they_are_about(self):
        self.put_bench(lambda found: found.__setitem__(slice(None), [bench_result("01_naive", 3, 2, 1, 0.5)]))
        self.assertIn("found: none", self.table_of("shapes docs/results/gpu.json", 2))
        self.assertIn("found: none", self.table_of("peers docs/results/gpu.json", 2))

    def test_squares_in_two_layouts(self):
        self.put_bench(lambda found: found.append(bench_result("02_tiled", 512, 512, 512, 0.6, layout="tn")))
        self.assertIn("found:", self.table_of("peers docs/results/gpu.json", 2))

    def test_shapes(self):
        self.put_bench()
        text = self.table_of("shapes docs/results/gpu.json steps=peer_triton,02_tiled")
        self.assertIn("| TFLOP/s, % of cuBLAS | cuBLAS | Triton | [02 tiled](steps/02_tiled/README.md) |\n", text)
        rows = "| decode 8×4096×4096 | 100 | 80.0, 80.0 % | 50.0, 50.0 % |\n"
        rows += "| attention Q·Kᵀ 2048×2048×128 (nt) | 100 | – | 50.0, 50.0 % |\n"
        self.assertIn(rows, text)
        self.assertIn("2 shapes, f16, nn and nt, hot", text)
        text = self.table_of("shapes docs/results/gpu.json")
        self.assertIn("[01 naive](steps/01_naive/README.md) | [02 tiled](steps/02_tiled/README.md) | Triton |", text)
        for steps, words in (("99_none", "'99_none' for"), ("", "'' for"), ("02_tiled,", "'' for")):
            self.assertRegex(self.table_of(f"shapes docs/results/gpu.json steps={steps or ','}", 2), words)
        self.assertIn("no such option as sizes", self.table_of("shapes docs/results/gpu.json sizes=256", 2))

    def test_squares(self):
        self.put_bench()
        text = self.table_of("squares docs/results/gpu.json steps=peer_triton,02_tiled")
        self.assertIn("| TFLOP/s, % of cuBLAS | cuBLAS | Triton | [02 tiled](steps/02_tiled/README.md) |\n", text)
        self.assertIn("| 256³ | 100 | 80.0, 80.0 % | 20.0, 20.0 % |\n| 1024³ | 100 | 80.0, 80.0 % | 80.0, 80.0 % |\n", text)
        self.assertIn("'99_none' for squares", self.table_of("squares docs/results/gpu.json steps=99_none", 2))

    def test_tile_squares(self):
        def other(found):
            found.append({**bench_result("02_tiled", 1024, 1024, 1024, 0.6), "tile": "64x64x8 s2"})

        self.put_bench(other)
        text = self.table_of("tile_squares docs/results/gpu.json step=02_tiled")
        tile = bench_result("02_tiled", 256, 256, 256, 0.2)["tile"]
        self.assertIn(f"| % of cuBLAS | {tile} | 64x64x8 s2 |\n", text)
        self.assertIn("| 256³ | 20.0 | – |\n| 1024³ | 80.0 | 60.0 |\n", text)
        text = self.table_of("tile_squares docs/results/gpu.json step=02_tiled columns=64x64x8")
        self.assertIn("| % of cuBLAS | 64x64x8 s2 |\n", text)
        self.assertIn("add step=NAME", self.table_of("tile_squares docs/results/gpu.json", 2))

    def test_energy(self):
        def measured(found):
            found[:] = [bench_result("02_tiled", size, size, size, 0.5) for size in (256, 1024)]
            for each, joules in zip(found, (2e-12, 3e-12)):
                each["energy"] = {"joules": joules * each["flops"], "seconds": joules * each["flops"] / 500}
                each["baselines"]["cublasGemmEx"]["energy"] = {"joules": 1e-12 * each["flops"], "seconds": 1e-12 * each["flops"] / 700}

        self.put_bench(measured)
        text = self.table_of("energy docs/results/gpu.json")
        self.assertIn("| pJ/FLOP, power | 02: a tile | cublasGemmEx | cublasLt |\n", text)
        self.assertIn("| 256³ | 2.00, 500 W | 1.00, 700 W | – |\n| 1024³ | 3.00, 500 W | 1.00, 700 W | – |\n", text)

        def of_call(found):
            measured(found)
            for each in found:
                each.update(step="one_call", tile="chosen")

        self.put_bench(of_call)
        self.assertIn("| pJ/FLOP, power | one call | cublasGemmEx | cublasLt |\n", self.table_of("energy docs/results/gpu.json"))
        self.put_bench()
        self.assertIn("has no energy for 256³: measure with --energy", self.table_of("energy docs/results/gpu.json", 2))

    def test_peers(self):
        self.put_bench()
        text = self.table_of("peers docs/results/gpu.json")
        self.assertIn("| TFLOP/s at m = n = k | cuBLAS | cublasLt | best step (which) | Triton | CUTLASS |\n", text)
        # Not the fused one, which is faster. Triton's run has no cublasLt, the steps' have.
        self.assertIn("| 256 | 100 | 125 | 20.0 (02) | 80.0 | 100 |\n| 1024 | 100 | 125 | 80.0 (02) | 80.0 | 100 |\n", text)
        words = "best step / this, geometric mean of"
        self.assertIn(f"| {words} 3 sizes | 0.431× | 0.345× |  | 0.539× | 0.431× |\n", text)
        self.assertIn(f"| {words} 2 sizes up to 1024 | 0.400× | 0.320× |  | 0.500× | 0.400× |\n", text)
        self.assertIn("3 shapes, f16, nn, hot", text)
        short = self.table_of("peers docs/results/gpu.json sizes=4096,256")
        self.assertRegex(short, r"\n\| 4096 .*\n\| 256 .*\n\| best step / this, geometric mean of 3 sizes \|")
        self.assertIn("no results of size '512'; there are: 256, 1024, 4096", self.table_of("peers docs/results/gpu.json sizes=512", 2))
        self.assertIn("no results of size 'x'", self.table_of("peers docs/results/gpu.json sizes=x", 2))

    def test_peers_with_gaps(self):
        def only_one(found):
            found[:] = [each for each in found if each["step"] != "peer_cutlass" and (each["step"], each["m"]) != ("peer_triton", 256)]

        self.put_bench(only_one)
        text = self.table_of("peers docs/results/gpu.json")
        self.assertIn("| best step (which) | Triton |\n", text)
        self.assertIn("| 256 | 100 | 125 | 20.0 (02) | – |\n", text)
        self.assertIn("0.791× (2 of 3) |\n", text)
        self.put_bench(lambda found: found.__setitem__(slice(None), [each for each in found if each["step"] not in results.PEERS]))
        self.assertIn("has no peers", self.table_of("peers docs/results/gpu.json", 2))

    def test_new_results_are_drift(self):
        self.put("README.md", TILES_TABLE)
        document = gpu_document()
        document["commit"] = "another"
        self.put("docs/results/gpu.json", document)
        self.assertEqual(self.run_tables(True)[0], 1)

    def test_solutions(self):
        marker = f"<!-- table solutions docs/results/solutions.json -->\n{tables.END}\n"
        self.put("README.md", marker)
        self.assertRegex(self.run_tables(False)[1], "make it with tools/gpu-checks solutions")
        mode = {"time": {"median": 2e-5}, "ratio": {"median": 0.25}}
        entry = {"created": "2026-11-23T23:00:00Z", "commit": "abc", "gpu": {"name": "GPU", "driver": "1.2"}}
        entry["problems"] = [{"words": "8 x 16 x 32 (m, n, k) in f16, nn, where A is X", "hot": mode, "cold": mode}]
        names = ("01_first", "15_decode")
        self.put("docs/results/solutions.json", {"solutions": [{**entry, "name": name} for name in names]})
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("README.md")
        self.assertIn("| 15 | 8 x 16 x 32 in f16, nn | 20.0 µs, 25.0 % | 20.0 µs, 25.0 % |", text)
        self.assertIn("GPU, driver 1.2, 2026-11-23, commit abc: [solutions.json](docs/results/solutions.json)", text)
        self.assertNotIn("| 01 |", text)
        self.put("README.md", marker.replace(" -->\n<", " step=15 -->\n<"))
        self.assertRegex(self.run_tables(False)[1], "solutions takes no options")

    def test_options_choose(self):
        document = gpu_document()
        document["results"] += [{**each, "m": 64} for each in gpu_document()["results"]]
        self.put("docs/results/gpu.json", document)
        self.put("README.md", f"{BEGIN}\n{tables.END}\n")
        self.assertIn("found: 4096x4096x4096, f32, nn, hot; 64x4096x4096, f32, nn, hot", self.run_tables(False)[1])
        begin = BEGIN.replace(" -->", " shape=64x4096x4096 mode=hot layout=nn -->")
        self.put("README.md", f"{begin}\n{tables.END}\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertIn("64×4096×4096", self.read("README.md"))

    def test_broken_markers(self):
        marker = "<!-- table {} -->\n" + tables.END + "\n"
        self.put("docs/results/future.json", {**gpu_document(), "version": 2})
        for text, message in (
            (f"{BEGIN}\nno end\n", "has no <!-- end of table -->"),
            (f"{BEGIN}\n{BEGIN}\n{tables.END}\n", "has no <!-- end of table -->"),
            (f"text\n{tables.END}\n", "broken marker"),
            (f"{BEGIN}\n<!-- end of table  -->\n", "has no <!-- end of table -->"),
            (f" {BEGIN}\n{tables.END}\n", "broken marker"),
            (marker.format("tiles"), "broken marker"),
            (marker.format("tiles docs/results/gpu.json step=02_tiled step"), "broken marker"),
            (marker.format("stairs docs/results/gpu.json"), "no such kind of table; there are: road, tiles, conditions, counts, fragments, latency"),
            (marker.format("tiles docs/results/gpu.json step=02_tiled colour=red"), "no such option as colour"),
            (marker.format("road docs/results/gpu.json step=02_tiled"), "leave out step="),
            (marker.format("tiles docs/results/gpu.json"), "add step=NAME"),
            (marker.format("tiles docs/results/gpu.json step=99_none"), "found: none"),
            (marker.format("tiles docs/results/none.json step=02_tiled"), "cannot read"),
            (marker.format("tiles docs/results/future.json step=02_tiled"), "update this checkout"),
            (marker.format("tiles docs/results/interpreter.json step=02_tiled"), "needs a file whose backend is gpu"),
            (marker.format("counts docs/results/gpu.json step=02_tiled"), "needs a file whose backend is interpreter"),
        ):
            with self.subTest(message):
                # Another table, which would change.
                self.put("steps/01_naive/README.md", f"{BEGIN}\n{tables.END}\n")
                self.assert_broken(text, message)
                self.assertEqual(self.read("steps/01_naive/README.md"), f"{BEGIN}\n{tables.END}\n")

    def test_figures_in_prose(self):
        tiled = "<!-- figures docs/results/gpu.json step=02_tiled TFLOP_s={} of_cuBLAS={} -->"
        other = "<!-- figures docs/results/gpu.json step=02_tiled tile=64x64x8 ms={} -->"
        text = "{0}\n{1}\n- It has {2} TFLOP/s, not 135.2, {3} %;\n- the other one {4} ms.\n\nAlso {2}.\n"
        old = text.format(tiled.format("34.0", "5.27"), other.format("35.2"), "34.0", "5.27", "35.2")
        new = text.format(tiled.format("35.2", "68.7"), other.format("5.27"), "35.2", "68.7", "5.27").replace("Also 35.2", "Also 34.0")
        self.put("docs/page.md", old)
        code, output = self.run_tables(True)
        self.assertEqual(code, 1)
        self.assertIn(f"docs/page.md: {tiled.format('34.0', '5.27')}: is not what its file says", output)
        self.assertIn(f"docs/page.md: {other.format('35.2')}: is not what its file says", output)
        self.assertEqual(self.read("docs/page.md"), old)
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertEqual(self.read("docs/page.md"), new)
        self.assertEqual(self.run_tables(True), (0, ""))

    def test_figures_of_the_conditions(self):
        document = gpu_document()
        document["results"][2]["conditions"] = {"sm_hz": 1.965e9, "power": 585.048}
        self.put("docs/results/gpu.json", document)
        self.put("docs/page.md", "<!-- figures docs/results/gpu.json step=02_tiled µs=1 clock_MHz=2 power_W=3 copy_TB_s=4 FMA=5 -->\n1 2 3 4 5\n")
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertEqual(self.read("docs/page.md").split("\n")[1], "3,900 1,965 585 4.26 66.0")

    def test_figures_of_other_tables_and_of_ncu(self):
        document = gpu_document()
        document["results"][2]["tuning"] = [{"tile": f"tile {at}", "seconds": seconds, "model": 1} for at, seconds in enumerate((2e-6, 4e-6, None))]
        self.put("docs/results/gpu.json", document)
        self.put("docs/results/ncu.csv", 'ID,Kernel Name,a__b.sum\n0,"void first<1, 2>(int)",1200\n1,"void second<1>()",34\n')
        marker = "<!-- figures docs/results/{} -->\n"
        self.put(
            "docs/page.md",
            marker.format("gpu.json step=02_tiled table=candidates row=tile_1 µs=1")
            + marker.format("gpu.json step=02_tiled table=each tile=64x64x8 of_cuBLAS=2")
            + marker.format("ncu.csv row=second a__b_sum=3")
            + marker.format("gpus.json table=plans row=8_plain efficiency=4 hidden=5")
            + marker.format("gpus.json table=link row=nccl_all_gather_3000 GB_s=6")
            + "1 2 3 4 5 6\n",
        )
        time = {"name": "plain", "seconds": {"median": 4e-5}, "efficiency": 0.7, "hidden": 0.5}
        link = {"movers": "nccl", "call": "all_gather", "bytes": 3000, "seconds": 1e-6}
        self.put("docs/results/gpus.json", {"link": [link], "results": [{"tokens": 8, "times": [time]}]})
        self.assertEqual(self.run_tables(False)[0], 0)
        self.assertEqual(self.read("docs/page.md").split("\n")[5], "4.00 50.9 34 0.700 50.0 3.00")

    def test_computed_figures(self):
        self.put("docs/results/ncu.csv", 'ID,Kernel Name,a__b.sum\n0,"void first<1, 2>(int)",1200\n1,"void second<1>()",34\n')
        figures = "<!-- figures docs/results/{} -->\n"
        page = (
            figures.format("gpu.json step=02_tiled tile=64x64x8 as=small")
            + figures.format("gpu.json step=02_tiled table=tiles as=both")
            + figures.format("ncu.csv as=launches")
            + "<!-- computed small.ms/3.9=0.0 100*(1-min(both.ms)/max(both.ms))=0.0 small.µs=0,000 -->\n"
            + "<!-- computed max(2*launches.a__b_sum/2)=7 len(both.ms)=8 gmean(4,9)=5.0 -->\n"
            + "Small takes {} times, {} % less; {} launches, {}, {}: {}.\n\n"
            + "<!-- computed 2*small.ms-4=0.000 -->\nFurther down {}.\n"
        )
        page = page.replace("=0.0 100", "=1.0 100").replace("=0.0 small", "=0 small")
        self.put("docs/page.md", page.format("1.0", "0", "7", "8", "5.0", "0,000", "0.000"))
        self.assertEqual(self.run_tables(False)[0], 0)
        text = self.read("docs/page.md")
        self.assertIn("Small takes 1.4 times, 26 % less; 1200 launches, 2, 6.0: 5,270.\n", text)
        self.assertIn("<!-- computed small.ms/3.9=1.4 100*(1-min(both.ms)/max(both.ms))=26 small.µs=5,270 -->\n", text)
        self.assertIn("<!-- computed 2*small.ms-4=6.540 -->\nFurther down 6.540.\n", text)
        self.assertEqual(self.run_tables(True), (0, ""))

    def test_broken_computed_figures(self):
        figures = "<!-- figures docs/results/gpu.json step=02_tiled table=tiles as=both -->\n"
        for words, message in (
            ("none.ms=1", "no figures above are as=none"),
            ("both.ms=1", "has 2 values: take min(), max() or mean() of them"),
            ("max(both.colour)=1", "no column 'colour'"),
            ("max(both.tile)=1", "is no number"),
            ("1/0=1", "cannot be computed: division by zero"),
            ("open(1)=1", "'open(1)' is none of numbers"),
            ("1+=1", "cannot be computed"),
            ("2+2=5", "the text below does not say 5"),
            ("1=1  1=1", "broken marker"),
        ):
            with self.subTest(words):
                self.assert_broken(f"{figures}<!-- computed {words} -->\n1\n", message)
        self.assert_broken("<!-- figures docs/results/gpu.json step=02_tiled table=tiles ms=1 -->\n1\n", "2 rows: add row=NAME")

    def test_broken_figures(self):
        begin = "<!-- figures docs/results/gpu.json step=02_tiled "
        for text, message in (
            (f"{begin}TFLOP_s=35.2 -->\nIt has 135.2 or 35.25.\n\n35.2\n", "the text below does not say 35.2"),
            (f"{begin}TFLOP_s=1 ms=1 -->\n1 and 1\n", "1 would be two figures now, 35.2 and 3.90: mend the text by hand"),
            (f"{begin}tile=8 TFLOP_s=1 -->\n1\n", "no tile '8'; there are: 128x128x8_8x8_per_thread, 64x64x8_4x4_per_thread"),
            (f"{begin}tile=per_thread TFLOP_s=1 -->\n1\n", "more than one tile 'per_thread'"),
            (f"{begin}colour=1 -->\n1\n", "no column 'colour'"),
            (f"{begin}power_W=1 -->\n1\n", "the file has no power_W"),
            (f"{begin}dtype=f32 -->\n1\n", "names no figure"),
            (f"{begin}-->\n1\n", "names no figure"),
            (f"{begin} -->\n1\n", "broken marker"),
            (f"- {begin}TFLOP_s=35.2 -->\n35.2\n", "broken marker"),
            ("<!-- figures docs/results/none.json step=02_tiled ms=1 -->\n1\n", "cannot read"),
        ):
            with self.subTest(message):
                self.assert_broken(text, message)

    def test_what_a_roofline_shows(self):
        words = ["Roofline, 02 tiled: 8x4096x4096, f16, nn, hot", "02 tiled  35.2", "cublasGemmEx  51.4"]
        words += ["copy: 4.28 TB/s; mma.sync f16: 641 TFLOP/s (measured)"]
        self.put("docs/plots/roofline-f16-hot-02.svg", "".join(f"<text>{each}</text>" for each in words))
        link = "(../docs/plots/roofline-f16-hot-02.svg)"
        self.put("docs/page.md", f"![Roofline at 4096³]{link}\n")
        code, output = self.run_tables(True)
        self.assertEqual(code, 1)
        self.assertIn(f"docs/page.md: ![Roofline at 4096³]{link}: is not what its file says", output)
        self.assertEqual(self.run_tables(False)[0], 0)
        said = "Roofline at 8×4096×4096, f16, hot: step 02 at 35.2 TFLOP/s, cuBLAS at 51.4; the roof: 4.28 TB/s, 641 TFLOP/s"
        self.assertEqual(self.read("docs/page.md"), f"![{said}]{link}\n")
        self.put("docs/page.md", f"![{said}]{link.replace('02', '03')}\n")
        self.assertIn("docs/plots/roofline-f16-hot-03.svg is no such plot with step 03", self.run_tables(True)[1])

    def test_text_without_tables_stays(self):
        text = "A table, <!-- a comment -->, no newline at the end"
        self.put("README.md", text)
        self.assertEqual(self.run_tables(False), (0, ""))
        self.assertEqual(self.read("README.md"), text)


class Tuning(unittest.TestCase):
    """What tuning found once, as tuning from nothing saw it a second time (tools/gpu-checks tuning)."""

    def test_what_was_chosen_is_never_two_per_cent_slower_than_another_tile(self):
        folder = os.path.join(ladder.ROOT, "docs", "results", "h200")
        first, second = (results.load(os.path.join(folder, *name)) for name in (["tuning-f16.json"], ["repeat", "tuning-f16.json"]))
        again = {results.setting(each): {tile["tile"]: tile["seconds"] for tile in each["tuning"]} for each in second["results"]}
        squares = 0
        for each in first["results"]:
            seconds, chosen = again[results.setting(each)], each["tuning"][0]["tile"]
            with self.subTest(shape=(each["m"], each["n"], each["k"]), chosen=chosen):
                self.assertIsNotNone(seconds[chosen])
                self.assertLessEqual(seconds[chosen], 1.02 * min(time for time in seconds.values() if time))
            squares += each["m"] == each["n"] == each["k"]
        self.assertGreaterEqual(squares, 31)


class OfTheMeasuredBenchmark(unittest.TestCase):
    """The benchmark's squares, measured twice on one GPU (tools/gpu-checks bench repeat)."""

    @staticmethod
    def load(*name):
        return results.load(os.path.join(ladder.ROOT, "docs", "results", "h200", *name))

    def test_ratios_to_cublas_agree_from_1024_on(self):
        first, second = self.load("bench-f16-hot.json"), self.load("repeat", "bench-f16-hot.json")
        # Two GPUs of a model are not equally fast.
        self.assertIsNotNone(first["gpu"]["uuid"])
        self.assertEqual(first["gpu"]["uuid"], second["gpu"]["uuid"])
        before = {(each["step"], *results.setting(each)): each for each in first["results"]}
        sizes = {}
        for new in second["results"]:
            old = before[(new["step"], *results.setting(new))]
            if new["m"] < 1024:
                continue
            sizes.setdefault(new["step"], set()).add(new["m"])
            with self.subTest(step=new["step"], size=new["m"]):
                # Otherwise a round has other shares, and the power limit other clocks (timing.cpp).
                self.assertEqual(old["time"]["graph"], new["time"]["graph"])
                medians = [each["ratio"]["cublasGemmEx"]["median"] for each in (old, new)]
                self.assertLess(abs(medians[1] / medians[0] - 1), 0.03)
        self.assertEqual([len(measured) for measured in sizes.values()], 7 * [25])


if __name__ == "__main__":
    unittest.main()
