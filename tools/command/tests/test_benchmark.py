"""Tests of benchmark.py."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
import unittest

from command import benchmark as bench
from command.cli import steps
from command.messages import Refused
from command.places import ROOT

from report import results, tables
from report.terminal import Style
from report.test_report import InFolder, make_document

MINIMAL = {"flops": 2, "bytes": {"no_reuse": 1, "tile_reuse": 1, "compulsory": 1}, "intensity": {}, "bound": {}}


def option(command, name):
    return command[command.index(name) + 1]


def result_of(step, shape, dtype="f16", layout="nn", mode="hot", ratio=0.5, tile="64x64"):
    m, n, k = shape
    ratios = {"cublasGemmEx": {"median": ratio, "q20": ratio, "q80": ratio}, "cublasLt": None}
    return {
        "step": step,
        "tile": tile,
        "first": True,
        "m": m,
        "n": n,
        "k": k,
        "in": dtype,
        "out": dtype,
        "layout": layout,
        "mode": mode,
        **MINIMAL,
        "ratio": ratios,
        "tuning": [{"tile": tile, "seconds": 1.0, "model": 1.0}],
    }


class Machine:
    """Stands in for the programs: writes results as they do. CODES: exit codes by program and first shape."""

    def __init__(self):
        self.calls, self.codes, self.lacks, self.gpu, self.before = [], {}, (), "NVIDIA H200", lambda program: None
        self.last_line = "the last line"

    def run(self, command, log):
        program = os.path.basename(command[0])
        if program.startswith("python"):
            program = "peer_triton"
        shapes = option(command, "--shape").split(",")
        self.calls.append((program, shapes[0]))
        self.before(program)
        with open(log, "w", encoding="utf-8") as file:
            file.write(f"first line\n{self.last_line}\n")
        code = self.codes.get((program, shapes[0]), self.codes.get(program, 0))
        if code == 0:
            setting = (
                [option(command, name) for name in ("--dtype", "--layout", "--mode")]
                if "--mode" in command
                else ["f16", "nn", "hot"]
            )
            shapes = [tuple(map(int, shape.split("x"))) for shape in shapes if shape not in self.lacks]
            document = make_document("gpu", [result_of(program, shape, *setting) for shape in shapes])
            document["gpu"]["name"] = self.gpu
            results.write(option(command, "--json"), document)
        return code


class OfParts(unittest.TestCase):
    STEPS = ["01_naive", "06_autotune"]

    def plan(
        self, suites=("squares", "rows", "transformer"), programs=None, dtypes=("f16", "bf16"), modes=("hot", "cold")
    ):
        return bench.plan(programs or self.STEPS, suites, dtypes, modes)

    def test_the_suites(self):
        square, row = ([shapes for _, shapes in bench.SUITES[suite]] for suite in ("squares", "rows"))
        self.assertEqual(len(square[0]), 31)
        self.assertEqual((square[0][0], square[0][1], square[0][-1]), ((256,) * 3, (384,) * 3, (4096,) * 3))
        self.assertEqual((len(row[0]), row[0][0], row[0][-1]), (31, (256, 4096, 4096), (4096, 4096, 4096)))
        self.assertIn(("nt", [(2048, 2048, 128)]), bench.SUITES["transformer"])

    def test_every_shape_once_in_each_kind(self):
        parts = self.plan()
        measured = [(part.program, part.kind, part.layout, shape) for part in parts for shape in part.shapes]
        self.assertEqual(len(measured), len(set(measured)))
        self.assertEqual(len(measured), 2 * 4 * (31 + 30 + 8))
        self.assertLessEqual(max(len(part.shapes) for part in parts), 16)
        self.assertEqual(len({part.file for part in parts}), len(parts))
        # One kind after the other, so that its file is there early.
        kinds = [part.kind for part in parts]
        self.assertEqual(kinds, sorted(kinds, key=list(dict.fromkeys(kinds)).index))
        self.assertEqual(len(self.plan(("rows",), ["01_naive"], ["f16"], ["hot"])[-1].shapes), 15)

    def test_names(self):
        parts = self.plan(programs=["01_naive"], dtypes=["f16"], modes=["hot"])
        self.assertEqual(str(parts[0]), "01_naive squares 256..2176 f16 hot")
        self.assertEqual(parts[0].file, "01_naive-f16-hot-nn-squares-256..2176.json")
        self.assertEqual(str(parts[-1]), "01_naive transformer 2048x2048x128 nt f16 hot")
        self.assertEqual(
            parts[-1].arguments(),
            ["--shape", "2048x2048x128", "--dtype", "f16", "--layout", "nt", "--mode", "hot", "--first", "--seconds", "0.2"],
        )

    def test_peers(self):
        parts = self.plan(programs=["01_naive", "peer_cutlass", "peer_triton"], dtypes=["f16", "f32"])
        self.assertEqual({part.dtype for part in parts if part.program in results.PEERS}, {"f16"})

    def test_types(self):
        self.assertTrue(steps.has_type("01_naive", "f32"))
        self.assertFalse(steps.has_type("03_tensor_core", "f32"))
        for dtype in ("f16", "bf16"):
            self.assertTrue(steps.has_type("03_tensor_core", dtype))
        programs = {
            part.program for part in bench.plan(["01_naive", "03_tensor_core"], ["squares"], ["f32"], ["hot"])
        }
        self.assertEqual(programs, {"01_naive"})


class Time(unittest.TestCase):
    def test_durations(self):
        for seconds, text in ((0.2, "1 s"), (89, "89 s"), (91, "2 min"), (3600, "60 min"), (5400, "1 h 30 min")):
            self.assertEqual(bench.duration(seconds), text)

    def test_slow_programs_and_tuning_take_longer(self):
        parts = bench.plan(["01_naive", "06_autotune"], ["squares"], ["f16"], ["hot", "cold"])
        naive, tuned, naive_cold, tuned_cold = (
            sum(
                seconds
                for part, seconds in zip(parts, bench.expected_seconds(parts, ["06_autotune"]))
                if (part.program, part.mode) == kind
            )
            for kind in (("01_naive", "hot"), ("06_autotune", "hot"), ("01_naive", "cold"), ("06_autotune", "cold"))
        )
        self.assertGreater(tuned, naive)
        self.assertGreater(naive, naive_cold)  # twice on each of many sets
        self.assertLess(tuned_cold, naive)  # the best tiles are known

    def test_pace(self):
        pace = bench.Pace([10] * 10)
        self.assertEqual(pace.seconds_left(), 100)  # as expected, before anything is known
        for _ in range(9):
            pace.add(10, 20)
        self.assertAlmostEqual(pace.seconds_left(), 10 * (10 + 180) / 100)
        pace.add(10, 20)
        self.assertEqual(pace.seconds_left(), 0)


class Running(InFolder):
    def setUp(self):
        super().setUp()
        self.machine = Machine()
        self.out, self.build = str(self.root / "out"), str(self.root / "build")
        os.makedirs(os.path.join(self.out, "parts"))
        os.makedirs(os.path.join(self.build, "logs"))
        self.put("steps/01_naive/gemm.cuh", "the kernel")
        self.put("steps/02_tiled/gemm.cuh", "another kernel")
        self.commit, self.uuid = "0123456789ab", "GPU-1"

    def run_bench(self, names=("01_naive", "02_tiled"), dtypes=("f16",), modes=("hot",), suites=("transformer",)):
        """Sets self.errors; returns the Bench, whose code is the exit code."""
        self.machine.calls.clear()
        programs = bench.Programs(str(self.root), self.build)
        programs.versions["peer_triton"] = "Triton 1"
        header = {**make_document("gpu", []), "commit": self.commit}
        header["gpu"]["uuid"] = self.uuid
        parts = bench.plan(names, suites, dtypes, modes)
        made = bench.Bench(programs, parts, [], self.out, header, self.machine.run)
        errors = io.StringIO()
        try:
            with contextlib.redirect_stderr(errors):
                made.measure_all()
        finally:
            self.errors = errors.getvalue()
        return made

    def merged(self, kind="f16-hot"):
        return results.load(os.path.join(self.out, f"bench-{kind}.json"))

    def test_all_parts_once_then_none(self):
        done = self.run_bench()
        decode, attention = "1x4096x4096", "2048x2048x128"
        self.assertEqual(
            self.machine.calls,
            [("01_naive", decode), ("01_naive", attention), ("02_tiled", decode), ("02_tiled", attention)],
        )
        self.assertEqual(done.code, 0)
        self.assertRegex(
            self.errors,
            r"\[1/4\] 01_naive transformer 1x4096x4096..4096x4096x11008 f16 hot \.\.\. \d+\.\d s, about \d+ s left\n",
        )
        self.assertRegex(self.errors, r"\[4/4\] .*\.\.\. \d+\.\d s\n")
        document = self.merged()
        self.assertEqual([each["step"] for each in document["results"]], ["01_naive"] * 8 + ["02_tiled"] * 8)
        self.assertNotIn("tuning", document["results"][0])
        self.assertNotIn("made_from", document)
        with open(os.path.join(self.out, "bench-f16-hot.json"), encoding="utf-8") as file:
            self.assertEqual(sum('"step"' in line for line in file), 16)  # a line each
        self.assertEqual(self.names_in("build/logs"), [])

        before = self.merged()
        self.run_bench()
        self.assertEqual(self.machine.calls, [])
        self.assertIn("4 of 4 parts are kept", self.errors)
        self.assertEqual(self.merged(), before)

    def names_in(self, folder):
        return sorted(os.listdir(self.root / folder))

    def test_goes_on_after_an_interruption(self):
        def stop_at_second(program):
            if program == "02_tiled":
                raise KeyboardInterrupt

        self.machine.before = stop_at_second
        with self.assertRaises(KeyboardInterrupt):
            self.run_bench()
        self.assertFalse(os.path.exists(os.path.join(self.out, "bench-f16-hot.json")))
        self.machine.before = lambda program: None
        done = self.run_bench()
        self.assertEqual({program for program, _ in self.machine.calls}, {"02_tiled"})
        self.assertIn("2 of 4 parts are kept", self.errors)
        self.assertIn("[3/4] 02_tiled", self.errors)
        self.assertEqual((len(self.merged()["results"]), done.done()), (16, 4))

    def test_stale_parts_are_measured_again(self):
        self.run_bench()
        self.put("steps/02_tiled/gemm.cuh", "a better kernel")
        self.run_bench()
        self.assertEqual({program for program, _ in self.machine.calls}, {"02_tiled"})
        self.put("steps/02_tiled/README.md", "a better lesson")
        self.run_bench()
        self.assertEqual(self.machine.calls, [])
        self.put("common/gemm/gemm.h", "the contract")
        self.run_bench()
        self.assertEqual(len(self.machine.calls), 4)
        self.commit = "ba9876543210"
        self.run_bench()
        self.assertEqual(len(self.machine.calls), 4)
        self.uuid = "GPU-2"  # of the same model
        self.run_bench()
        self.assertEqual(len(self.machine.calls), 4)
        path = os.path.join(self.out, "parts", self.names_in("out/parts")[0])
        with open(path, "r+", encoding="utf-8") as file:  # damaged
            file.truncate(100)
        self.run_bench()
        self.assertEqual(len(self.machine.calls), 1)

    def test_a_failed_part(self):
        self.put("out/bench-f16-hot.json", "precious")
        self.machine.codes = {("01_naive", "2048x2048x128"): 2, ("02_tiled", "1x4096x4096"): 1}
        done = self.run_bench(dtypes=("f16", "bf16"))
        self.assertEqual(done.code, 1)  # comes before 2
        self.assertEqual(len(self.machine.calls), 8)
        self.assertIn(
            "FAILED: a wrong result.\n  | first line\n  | the last line\ncourse: the whole log: ", self.errors
        )
        self.assertIn("f16 hot has results: ", self.errors)
        self.assertEqual((self.root / "out/bench-f16-hot.json").read_text(), "precious")
        self.assertIn("01_naive, 7 of them", done.summary(Style(False)))
        self.machine.codes = {}
        self.assertEqual(self.run_bench(dtypes=("f16", "bf16")).code, 0)
        self.assertEqual(len(self.machine.calls), 4)
        self.machine.codes = {"01_naive": 2}
        self.commit = "ba9876543210"
        self.assertEqual(self.run_bench().code, 2)

    def test_crashes_and_results_that_are_no_results(self):
        for setting, message in (
            ({"codes": {"01_naive": -11}}, "exit code -11, which it never should"),
            ({"lacks": ("8x4096x4096",)}, "it wrote no result of 8x4096x4096"),
            ({"gpu": "another"}, "it ran on another, not on NVIDIA H200"),
        ):
            self.machine = Machine()
            vars(self.machine).update(setting)
            self.assertEqual(self.run_bench(["01_naive"]).code, 1)
            self.assertIn(message, self.errors)
            self.assertNotIn("unfinished.json", [name for name in self.names_in("out/parts") if name in message])
        self.machine = Machine()
        self.machine.run = lambda command, log: 0  # and no file
        self.assertEqual(self.run_bench(["01_naive"]).code, 1)
        self.assertIn("cannot read", self.errors)

    def test_peers(self):
        self.put("tools/peers/triton_matmul.py", "a program")
        self.machine.codes = {("peer_cutlass", "2048x2048x128"): 2}
        self.machine.lacks = ("1x4096x4096",)
        self.machine.last_line = "peer_cutlass: out of memory; choose a smaller --shape"  # today
        done = self.run_bench(["peer_cutlass", "peer_triton"])
        self.assertEqual(done.code, 2)
        self.assertIn("it cannot run 1 of them, such as 1x4096x4096: ", self.errors)
        self.assertIn("it refused.", self.errors)
        self.assertIn("out of memory", self.errors)
        self.machine.last_line = "peer_cutlass: nothing of this can be run: 2048x2048x128: its tiles want rows of 16 bytes"
        done = self.run_bench(["peer_cutlass", "peer_triton"])
        self.assertEqual(done.code, 0)
        self.assertIn("it cannot run 1 of them, such as 2048x2048x128: peer_cutlass: nothing of this can be run", self.errors)
        self.assertEqual(len(self.merged()["results"]), 6 + 7)
        text = done.summary(Style(False))
        self.assertRegex(text, r"peer_cutlass, 6 of them +50\.0")
        self.run_bench(["peer_cutlass", "peer_triton"])
        self.assertEqual(self.machine.calls, [])
        self.put("tools/peers/triton_matmul.py", "another program")
        self.run_bench(["01_naive", "peer_triton"])
        self.assertEqual({program for program, _ in self.machine.calls}, {"01_naive", "peer_triton"})

    def test_which_peers_can_run(self):
        programs = bench.Programs(str(self.root), self.build)
        self.assertIn("not built", programs.reason_against("peer_cutlass"))
        self.assertIn("does not have it", programs.reason_against("peer_triton"))
        self.put("build/gpu/bin/peer_cutlass", "")
        os.chmod(self.root / "build/gpu/bin/peer_cutlass", 0o755)
        self.assertIsNone(programs.reason_against("peer_cutlass"))
        self.put("tools/peers/triton_matmul.py", "import sys; print('peer_triton: no module torch'); sys.exit(2)")
        self.assertEqual(programs.reason_against("peer_triton"), "no module torch")
        before = programs.made_of("peer_triton")
        self.put("tools/peers/triton_matmul.py", "print('Triton', 2)")
        self.assertIsNone(programs.reason_against("peer_triton"))
        self.assertTrue(programs.made_of("peer_triton").endswith(" Triton 2"))
        self.assertNotEqual(programs.made_of("peer_triton"), before)

    def test_merged_files_can_be_compared(self):
        self.put("tools/peers/triton_matmul.py", "a program")
        self.run_bench(["01_naive", "peer_triton"])
        old = os.path.join(self.out, "bench-f16-hot.json")
        document = self.merged()
        same = self.run_script("compare", "--fail-beyond", "3", old, old)
        self.assertEqual((same.returncode, same.stderr), (0, ""))
        self.assertIn("16 compared", same.stdout)
        self.assertIn("peer_triton, 64x64", same.stdout)
        for each in document["results"]:
            if each["step"] == "peer_triton":
                each["tile"] = "128x128"  # another one turned out to be the best
                each["ratio"]["cublasGemmEx"] = {"median": 0.4, "q20": 0.4, "q80": 0.4}
        new = self.put("new.json", document)
        changed = self.run_script("compare", "--fail-beyond", "3", old, new)
        self.assertEqual(changed.returncode, 1)
        self.assertIn("16 compared; 8 changes", changed.stdout)
        self.assertIn("peer_triton, 64x64 → 128x128", changed.stdout)

    def test_tables_read_merged_files(self):
        self.put("tools/peers/triton_matmul.py", "a program")
        self.run_bench(["01_naive", "02_tiled", "peer_triton"], suites=tuple(bench.SUITES))
        self.assertEqual(len(self.merged()["results"]), 3 * 69)
        lesson = self.root / "README.md"
        lesson.write_text("<!-- table ratios out/bench-f16-hot.json -->\n<!-- end of table -->\n", encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(tables.run(str(self.root), False), 0)
        text = lesson.read_text(encoding="utf-8")
        self.assertEqual(text.count("| peer_triton 64x64 "), 69)
        self.assertIn("| peer_triton 64x64 4096x11008x4096 | 0.500 |\n", text)
        self.assertIn("69 shapes", text)

    def test_fresh_forgets_parts_and_nothing_else(self):
        self.run_bench(["01_naive"])
        for name in ("mine.json", "notes.txt", "unfinished.json.17.new"):
            self.put(f"out/parts/{name}", "[1]")
        bench.forget_all(os.path.join(self.out, "parts"))
        self.assertEqual(self.names_in("out/parts"), ["mine.json", "notes.txt"])

    def test_one_at_a_time(self):
        with bench.lock(os.path.join(self.out, "parts")):
            with self.assertRaisesRegex(Refused, "another benchmark is running in .*out: wait"):
                bench.lock(os.path.join(self.out, "parts"))

    def test_the_machine_is_asked_first(self):
        programs = bench.Programs(str(self.root), self.build)
        folder = os.path.join(self.out, "parts")
        header = bench.header_of_this_machine(programs, "01_naive", "f16", folder, self.machine.run)
        self.assertEqual((header["gpu"]["name"], header["results"]), ("NVIDIA H200", []))
        self.assertEqual(self.names_in("out/parts"), [])
        self.machine.codes = {"01_naive": 2}
        with self.assertRaisesRegex(bench.Failed, "does not run here.\n.*first line"):
            bench.header_of_this_machine(programs, "01_naive", "f16", folder, self.machine.run)


class Summary(unittest.TestCase):
    def test_numbers(self):
        parts = bench.plan(["01_naive"], ["squares"], ["f16"], ["hot"])
        shapes = [shape for part in parts for shape in part.shapes]
        measured = [result_of("01_naive", shape, ratio=0.25) for shape in shapes]
        measured[3] = result_of("01_naive", shapes[3], ratio=0.125)
        measured[5] = result_of("01_naive", shapes[5], ratio=0.75)
        text = "\n".join(bench.summary(("f16", "hot"), parts, measured, Style(False)))
        mean = 25 * (0.5 * 3) ** (1 / 31)
        self.assertRegex(
            text, rf"squares, 31 shapes\n  01_naive +{mean:.1f} +12\.5 +640x640x640 +75\.0 +896x896x896 +–"
        )
        self.assertLess(max(map(len, text.split("\n"))), 120)

    def test_means(self):
        self.assertIsNone(bench.geometric_mean([]))
        self.assertIsNone(bench.geometric_mean([1.0, None]))
        self.assertAlmostEqual(bench.geometric_mean([0.5, 2.0, 1.0]), 1)


# A step's program that waits for its end: a stand-in for a measurement that somebody interrupts.
PROGRAM = """#!/bin/sh
case "$*" in *0x0x0*) : ;; *) touch "$0.running"; exec sleep 20 ;; esac
while [ $# -gt 1 ]; do [ "$1" != --json ] || cp "$0.json" "$2"; shift; done
"""


# As the command's main() runs it, but for another folder.
COMMAND = """
import functools, sys
from unittest import mock
from command import benchmark, main
root, build, out = sys.argv[1:]
programs = functools.partial(benchmark.Programs, root, build)
def dispatch(words):
    main.processes.take_signals()
    with mock.patch.object(benchmark, "Programs", programs):
        return benchmark.run(["01_naive"], ["squares"], ["f16"], ["hot"], [], out, False, False, False)
with mock.patch.object(main, "dispatch", dispatch):
    sys.exit(main.main([]))
"""


class Process(InFolder):
    def test_signals(self):
        program = self.put("build/gpu/bin/01_naive", PROGRAM)
        os.chmod(program, 0o755)
        self.put("build/gpu/bin/01_naive.json", make_document("gpu", []))
        command = [sys.executable, "-c", COMMAND, self.root, self.root / "build", self.root / "out"]
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with subprocess.Popen(
                list(map(str, command)),
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.path.join(ROOT, "tools")},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            ) as process:
                running = self.root / "build/gpu/bin/01_naive.running"
                deadline = time.monotonic() + 20
                while not running.exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                if number == signal.SIGINT:
                    os.killpg(process.pid, number)  # as a terminal does
                else:
                    process.send_signal(number)
                output, errors = process.communicate(timeout=20)
            self.assertEqual((process.returncode, output), (code, ""), errors)
            self.assertNotIn("Traceback", errors)
            if number == signal.SIGINT:
                self.assertIn("interrupted: 0 of 2 parts are there; the same command goes on", errors)
            self.assertEqual([name for name in self.names() if "unfinished" in name], [])
            running.unlink()


if __name__ == "__main__":
    unittest.main()
