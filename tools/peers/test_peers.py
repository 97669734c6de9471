"""Tests of this folder, for which neither PyTorch nor a GPU is needed: python3 -m unittest discover -s tools/peers"""

import contextlib
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import peer
import rounds
import triton_matmul

try:
    os.environ["TRITON_INTERPRET"] = "1"  # read when the kernel is defined
    import numpy
    import triton
    import triton.language as tl
    import triton_kernel
except ImportError:
    triton_kernel = None
try:
    import torch
except (ImportError, OSError):
    torch = None

results = peer.results
PROGRAM = pathlib.Path(triton_matmul.__file__)
CEILINGS = {
    "source": "measured",
    "copy_bytes_per_second": 4e12,
    "fma_f32_flops": 60e12,
    "mma_f16_flops": 640e12,
    "mma_bf16_flops": 650e12,
}
GPU = {"name": "GPU", "uuid": "GPU-1", "compute_capability": 90, "multiprocessors": 132, "l2_bytes": 60 << 20, "memory_bytes": 10**11}


def parse(*arguments):
    return peer.parse(arguments, "peer_triton", "A peer.")


class CommandLine(unittest.TestCase):
    def test_what_a_step_takes(self):
        typed = parse("--shape", "8x4096x4096,512x512x512", "--dtype", "bf16", "--layout", "tn", "--mode", "cold")
        self.assertEqual([spec.shape for spec in typed.specs], ["8x4096x4096", "512x512x512"])
        self.assertEqual(typed.specs[0], peer.Spec(8, 4096, 4096, "bf16", "tn"))
        self.assertEqual(typed.specs[0].flops, 2 * 8 * 4096 * 4096)
        typed = parse("--first", "--seconds", "0.25", "--json", "x.json", "--ceilings", "c.json", "--dtype", "fp16")
        self.assertEqual((typed.seconds, typed.json, typed.ceilings), (0.25, "x.json", "c.json"))
        self.assertEqual(typed.specs, [peer.Spec(256, 256, 256, "f16", "nn")])
        typed = parse("--shape", "256,1x2x3", "--dtype", "half")
        self.assertEqual(typed.specs, [peer.Spec(256, 256, 256, "f16", "nn"), peer.Spec(1, 2, 3, "f16", "nn")])
        self.assertEqual(parse("--dtype", "bfloat16").specs[0].dtype, "bf16")

    def test_what_it_refuses(self):
        for arguments, message in (
            (["--shape", "4x4"], "--shape 4x4: expected MxNxK"),
            (["--shape", "4x4x4,"], "--shape : expected MxNxK"),
            (["--shape=-1x4x4"], "--shape -1x4x4: expected MxNxK"),
            (["--shape", "4x4x12345678901"], "at most 10 digits"),
            (["--shape", "４x4x4"], "expected MxNxK"),
            (["--dtype", "f32"], "no kernel for f32"),
            (["--dtype", "int8"], "--dtype int8: expected f16 or bf16"),
            (["--layout", "xn"], "--layout xn: expected nn, nt, tn or tt"),
            (["--mode", "warm"], "--mode warm: expected hot, cold or single"),
            (["--seconds", "0"], "--seconds 0: expected a number from 0.01 to 60"),
            (["--seconds", "61"], "--seconds 61: expected a number from 0.01 to 60"),
            (["--seconds", "nan"], "--seconds nan: expected a number"),
            (["--seconds", "soon"], "--help lists the arguments"),
            (["--sha", "4x4x4"], "--help lists the arguments"),
            (["512x512x512"], "--help lists the arguments"),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(peer.BadInput, message):
                parse(*arguments)


class Numbers(unittest.TestCase):
    def test_quantiles_are_those_of_the_steps(self):
        self.assertEqual(peer.quantile([3.0, 1.0, 2.0], 0.5), 2)
        self.assertAlmostEqual(peer.quantile([1.0, 2.0], 0.2), 1.2)
        self.assertAlmostEqual(peer.quantile(list(range(11)), 0.8), 8)
        self.assertEqual(peer.quantile([7.0], 0.2), 7)

    def test_ratios_are_taken_round_by_round(self):
        self.assertEqual(peer.ratio([1.0, 2.0, 4.0], [2.0, 2.0, 2.0])["median"], 1)
        # As common/harness/results/results_test.cpp: the clocks fall in the fourth round, between the two.
        slower = [4.2, 4.2, 4.2, 4.2, 5.25, 5.25, 5.25]
        for got, expected in zip(peer.comparable([[4, 4, 4, 5, 5, 5, 5], slower]), (5, 5.25)):
            self.assertAlmostEqual(got, expected)
        self.assertEqual(peer.comparable([[0, 0, 0], [2, 1, 3]])[1], 2)
        self.assertIsNone(peer.ratio([0.0], [1.0]))

    def test_the_roofline_is_that_of_the_steps(self):
        # As docs/roofline.md: 1/2 FLOP/byte without reuse in 16 bits; 128 x 128 tiles 64.
        roof = peer.roofline(peer.Spec(4096, 4096, 4096, "f16"), 128, 128, CEILINGS)
        self.assertEqual(roof["intensity"]["no_reuse"], 0.5)
        self.assertEqual(roof["intensity"]["tile_reuse"], 64)
        self.assertEqual(roof["bytes"]["compulsory"], 3 * 2 * 4096**2)
        self.assertEqual(roof["bound"], {"no_reuse": 2e12, "tile_reuse": 256e12, "compulsory": 640e12})
        self.assertEqual((roof["peak"], roof["ridge"]), (640e12, 160))
        self.assertEqual(peer.roofline(peer.Spec(1, 1, 1, "bf16"), 128, 128, CEILINGS)["peak"], 650e12)
        self.assertEqual(peer.roofline(peer.Spec(129, 1, 1, "f16"), 128, 128, CEILINGS)["bytes"]["tile_reuse"], 2 * (129 + 2))

    def test_the_roofline_of_a_committed_file(self):
        """Fields that both sides compute agree to the last digit with what a step's program wrote."""
        content = json.loads((peer.ROOT / "docs/results/h200/ladder-f16.json").read_text(encoding="utf-8"))
        ours = next(each for each in content["results"] if each["step"] == "03_tensor_core")
        tile_m, tile_n = (int(extent) for extent in ours["tile"].split(" ")[0].split("x")[:2])
        spec = peer.Spec(ours["m"], ours["n"], ours["k"], "f16")
        for name, value in peer.roofline(spec, tile_m, tile_n, content["ceilings"]).items():
            with self.subTest(name):
                self.assertEqual(value, ours[name])

    def test_words(self):
        self.assertEqual([peer.with_prefix(x) for x in (0.25, 999.6, 1.5e12)], ["0.250 ", "1.00 k", "1.50 T"])


class Ceilings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "ceilings.json")

    def keep(self, **changes):
        content = {"version": 1, "gpu": "GPU", "driver": "580.1", "ceilings": CEILINGS, **changes}
        pathlib.Path(self.path).write_text(json.dumps(content), encoding="utf-8")

    def test_what_the_steps_keep(self):
        self.keep()
        self.assertEqual(peer.read_ceilings(self.path, "GPU", "580.1"), CEILINGS)

    def test_what_is_of_no_use_says_what_to_do(self):
        advice = "tools/course run"
        with self.assertRaisesRegex(peer.BadInput, f"No such file.*{advice}"):
            peer.read_ceilings(self.path, "GPU", "580.1")
        self.keep()
        for gpu, driver in (("other", "580.1"), ("GPU", "590"), ("GPU", None)):
            with self.assertRaisesRegex(peer.BadInput, f"another GPU or driver.*{advice}"):
                peer.read_ceilings(self.path, gpu, driver)
        self.keep(ceilings={**CEILINGS, "mma_f16_flops": 0})
        with self.assertRaisesRegex(peer.BadInput, f"holds no ceilings.*{advice}"):
            peer.read_ceilings(self.path, "GPU", "580.1")
        for damaged in ("", "[]", '{"version": 1}', "\xff"):
            pathlib.Path(self.path).write_text(damaged, encoding="latin-1")
            with self.assertRaisesRegex(peer.BadInput, "holds no ceilings"):
                peer.read_ceilings(self.path, "GPU", "580.1")


def make_result(**changes):
    arguments = {
        "step": "peer_triton",
        "spec": peer.Spec(512, 512, 512, "f16"),
        "mode": "hot",
        "tile": "128x128x64 s4 w4 g8",
        "tile_m": 128,
        "tile_n": 128,
        "ceilings": CEILINGS,
        "timings": (([4e-6, 5e-6, 6e-6], 200, True), ([5e-6, 5e-6, 5e-6], 180, True)),
        "baseline": "cublasGemmEx",
        "tuning": [{"tile": "128x128x64 s4 w4 g8", "seconds": 5e-6, "bound": None, "model": None}],
        "conditions": None,
        "launch": None,
        "versions": {"name": "Triton", "version": "3.6.0"},
    }
    return peer.result(**{**arguments, **changes})


class ResultFile(unittest.TestCase):
    def test_a_result_is_what_the_readers_take(self):
        entry = make_result()
        self.assertAlmostEqual(entry["time"].pop("q20"), 4.4e-6)
        self.assertAlmostEqual(entry["time"].pop("q80"), 5.6e-6)
        self.assertEqual(entry["time"], {"median": 5e-6, "rounds": 3, "launches": 200, "graph": True})
        entry = make_result()
        self.assertAlmostEqual(entry["tflops"], 2 * 512**3 / 5e-6 * 1e-12)
        self.assertEqual(entry["ratio"]["cublasGemmEx"]["median"], 1)
        self.assertIsNone(entry["baselines"]["cublasLt"])
        self.assertIn("verified; 0.005 ms", peer.describe(entry))
        self.assertIn("this is 100.00 % of it", peer.describe(entry))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "peer.json")
            with mock.patch.dict(os.environ, COURSE_COMMIT="0123456789ab"):
                content = peer.document({**GPU, "driver": "580.1"}, "13.0", "13.1.0", CEILINGS, [entry])
            peer.check_writable(path)
            peer.write(path, content)
            self.assertEqual(results.load(path)["commit"], "0123456789ab")
            self.assertEqual(results.load(path)["results"], [entry])
            merged = results.merge([content, {**content, "results": [make_result(step="07")]}])
            self.assertEqual([each["step"] for each in merged["results"]], ["peer_triton", "07"])

    def test_it_has_the_fields_of_a_step_s_file(self):
        ours = json.loads((peer.ROOT / "docs/results/h200/ladder-f16.json").read_text(encoding="utf-8"))
        content = peer.document({**GPU, "driver": "580.1"}, "13.0", "13.1.0", CEILINGS, [make_result()])
        self.assertEqual(set(content), set(ours))
        self.assertEqual(set(content["gpu"]), set(ours["gpu"]))
        self.assertEqual(set(content["host"]), set(ours["host"]))
        of_steps = set(ours["results"][0]) | {"tuning", "peer"}
        self.assertEqual(set(make_result()), of_steps)

    def test_a_time_that_no_clock_resolves_gives_no_rate(self):
        entry = make_result(timings=(([0.0], 1, True), ([5e-6], 1, True)))
        self.assertIsNone(entry["tflops"])
        self.assertIsNone(entry["roofline"])
        self.assertIsNone(entry["ratio"]["cublasGemmEx"])

    def test_where_it_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (os.path.join(folder, "none", "x.json"), folder, "/dev/null"):
                with self.assertRaisesRegex(peer.BadInput, "cannot (write|create)"):
                    peer.check_writable(path)


class PretendedGpu:
    """Time passes with its launches alone, SECONDS_OF(now) with each."""

    def __init__(self, seconds_of):
        self.now, self.seconds_of, self.capturing = 0.0, seconds_of, False
        self.captured, self.replayed, self.launched = [], [], []  # sets, of each graph and of launches outside of graphs
        self.streams = 0

    def stream(self):
        self.streams += 1
        return mock.Mock()

    def launch(self, number):
        if self.capturing:
            self.captured[-1].append(number)
        else:
            self.launched.append(number)
            self.now += self.seconds_of(self.now)

    def graph(self):
        gpu = self

        class Graph:
            def capture_begin(self):
                gpu.capturing = True
                gpu.captured.append([])
                self.launches = gpu.captured[-1]

            def capture_end(self):
                gpu.capturing = False

            def replay(self):
                gpu.replayed.append(self.launches)
                for _ in self.launches:
                    gpu.now += gpu.seconds_of(gpu.now)

        return Graph()

    def time_in_rounds(self, contestants, plan):
        cuda = types.SimpleNamespace(
            Stream=self.stream,
            Event=FakeEvent,
            CUDAGraph=self.graph,
            stream=lambda _: contextlib.nullcontext(),
            synchronize=lambda: None,
        )
        with mock.patch.object(rounds.time, "monotonic", lambda: self.now), mock.patch.object(rounds, "the_stream", None):
            return rounds.time_in_rounds(types.SimpleNamespace(cuda=cuda), [self.launch] * contestants, plan)


class Rounds(unittest.TestCase):
    def test_everybody_runs_once_and_the_order_changes(self):
        for contestants in (1, 2, 3, 5):
            orders = [rounds.order_of(number, contestants) for number in range(2 * contestants)]
            for order in orders:
                self.assertEqual(sorted(order), list(range(contestants)))
            self.assertEqual({order[0] for order in orders}, set(range(contestants)))

    def test_a_graph_is_whole_turns_through_the_sets(self):
        self.assertEqual(rounds.launches_of(1e-3, 1), 1)
        self.assertEqual(rounds.launches_of(9e-6, 1), 112)
        self.assertEqual(rounds.launches_of(9e-6, 50), 150)
        self.assertLessEqual(rounds.launches_of(0, 1), 1001)

    def test_rounds_end_with_the_time_but_not_too_early(self):
        now = [0.0]
        called = []

        def seconds_of(run, then):
            now[0] += 1
            called.append(run)
            if then:
                then()
            return 10.0

        asked = []
        runners = [rounds.Runner(["a"], 5), rounds.Runner(["b"], 2)]
        plan = rounds.Plan(min_rounds=3, max_rounds=10, seconds=7)
        seconds = rounds.alternate(runners, plan, seconds_of, lambda: asked.append(1), lambda: now[0])
        self.assertEqual(seconds, [[2.0] * 5, [5.0] * 5])  # after four rounds eight seconds are over
        self.assertEqual(called[:4], ["a", "b", "b", "a"])
        self.assertEqual(asked, [1])
        seconds = rounds.alternate(runners, rounds.Plan(min_rounds=3, max_rounds=10, seconds=0), seconds_of, None, lambda: now[0])
        self.assertEqual(len(seconds[0]), 3)
        seconds = rounds.alternate(runners, rounds.Plan(min_rounds=3, max_rounds=4, seconds=1e9), seconds_of, None, lambda: now[0])
        self.assertEqual(len(seconds[0]), 4)

    def test_hot_rounds_take_the_sets_in_turn_each_twice(self):
        called = []
        runs = [lambda i=i: called.append(f"untimed {i}") for i in range(3)]
        runners = [rounds.Runner(runs, 5, True), rounds.Runner(["b"], 2)]

        def seconds_of(run, _):
            called.append(run if run == "b" else f"timed {runs.index(run)}")
            return 1.0

        rounds.alternate(runners, rounds.Plan(max_rounds=4), seconds_of)
        expected = "untimed 0,timed 0,b,b,untimed 1,timed 1,untimed 2,timed 2,b,b,untimed 0,timed 0"  # backwards in odd rounds
        self.assertEqual(",".join(called), expected)

    def test_each_hot_graph_is_of_one_set_a_cold_one_of_all(self):
        for cold, launches, captured in (
            (False, 2, [[0], [0], [0, 0], [1, 1], [2, 2], [0, 0], [1, 1], [2, 2]]),
            (True, 3, [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]),
        ):
            gpu = PretendedGpu(lambda now: 0.6e-3)
            timings = gpu.time_in_rounds(2, rounds.Plan(sets=3, cold=cold, max_rounds=11))
            self.assertEqual([count for _, count, _ in timings], [launches] * 2)
            self.assertEqual(gpu.captured, captured)
            # Both contestants, each twice, in each of 11 rounds.
            sets = [[0, 1, 2]] if cold else [[0] * 2, [1] * 2, [2] * 2]
            expected = [sets[number % len(sets)] for number in range(11) for _ in range(4)]
            self.assertEqual(gpu.replayed[-len(expected) :], expected)
            self.assertEqual(set(gpu.launched), {0, 1} if cold else {0})  # one launch each, to load modules

    def test_all_that_a_process_times_is_on_one_stream(self):
        gpu = PretendedGpu(lambda now: 0.6e-3)
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(Stream=gpu.stream))
        with mock.patch.object(rounds, "the_stream", None):
            self.assertIs(rounds.stream_for_timing(torch), rounds.stream_for_timing(torch))
        self.assertEqual(gpu.streams, 1)

    def test_launches_are_counted_when_all_are_warm(self):
        # A GPU whose clock rises 30 ms after its first launch: 1.1 ms become 0.9, of which a run has two.
        timings = PretendedGpu(lambda now: 1.1e-3 if now < 30e-3 else 0.9e-3).time_in_rounds(2, rounds.Plan())
        self.assertEqual([launches for _, launches, _ in timings], [2, 2])
        for seconds, _, graph in timings:
            self.assertTrue(graph)
            self.assertAlmostEqual(max(seconds), 0.9e-3)


class Program(unittest.TestCase):
    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = triton_matmul.main(list(arguments))
        return code, out.getvalue(), err.getvalue()

    def test_probe_without_pytorch(self):
        with mock.patch.dict(sys.modules, torch=None):
            self.assertEqual(
                self.run_main("--probe"),
                (1, "peer_triton: PyTorch cannot be imported (ModuleNotFoundError): install torch for CUDA\n", ""),
            )
            code, out, err = self.run_main("--shape", "64x64x64")
            self.assertEqual((code, out, err.count("\n")), (2, "", 1))

    def test_probe_without_triton_or_gpu(self):
        torch = mock.Mock()
        torch.cuda.is_available.return_value = False
        with mock.patch.dict(sys.modules, torch=torch, triton=None):
            self.assertRegex(self.run_main("--probe")[1], "Triton cannot be imported")
        with mock.patch.dict(sys.modules, torch=torch, triton=mock.Mock()):
            self.assertRegex(self.run_main("--probe")[1], "no GPU")
            torch.cuda.is_available.return_value = True
            torch.cuda.get_device_capability.return_value = (7, 5)
            self.assertRegex(self.run_main("--probe")[1], "7.5, needed is 8.0")
            torch.cuda.get_device_capability.return_value = (9, 0)
            self.assertEqual(self.run_main("--probe")[0], 0)

    def test_bad_input_is_one_line_and_2(self):
        code, out, err = self.run_main("--layout", "abc")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, "peer_triton: --layout abc: expected nn, nt, tn or tt\n")

    def test_as_a_program(self):
        done = subprocess.run([PROGRAM, "--shape", "1x1"], capture_output=True, text=True, cwd="/")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("for example 256x512x128", done.stderr)

    def test_cold_needs_so_many_sets_that_the_cache_is_flushed_hot_no_more_than_a_gib(self):
        spec = peer.Spec(4096, 4096, 4096, "f16")
        for size, sets in ((256, 32), (2048, 32), (4096, 10), (8192, 2), (16384, 1)):
            self.assertEqual(triton_matmul.sets_for(peer.Spec(size, size, size, "f16"), "hot", 60e6), sets)
        self.assertEqual(triton_matmul.sets_for(spec, "cold", 60e6), math.ceil(180e6 / (6 * 4096**2)) + 1)
        with self.assertRaisesRegex(peer.BadInput, "choose a larger --shape, or --mode hot"):
            triton_matmul.sets_for(peer.Spec(8, 8, 8, "f16"), "single", 60e6)


class FakeTensor:
    """As much of a tensor as Triton's interpreter asks for, around a numpy array."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def stride(self, axis=None):
        strides = [stride // self.array.itemsize for stride in self.array.strides]
        return strides if axis is None else strides[axis]

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, *_, **__):
        return FakeTensor(numpy.empty(0, self.dtype))

    def storage_offset(self):
        return 0

    def size(self):
        return self.shape

    def set_(self, storage, *_):
        self.array = storage.array

    def copy_(self, other):
        pass  # it is the same memory

    @property
    def device(self):
        return "cpu"


if triton_kernel:

    @triton.jit
    def count(out, n):
        for i in range(n):
            tl.store(out + i, i)


def trouble_with_interpreter():
    """Why Triton's interpreter can run no kernel here, such as 3.6's with NumPy 2.4 or newer; empty if it can."""
    if not triton_kernel:
        return "Triton or numpy is not installed"
    counted = numpy.zeros(3, numpy.int32)
    try:
        count[(1,)](FakeTensor(counted), 3)
    except Exception as error:
        return f"Triton {triton.__version__} cannot interpret with NumPy {numpy.__version__}: {error}"
    return "" if counted.tolist() == [0, 1, 2] else "Triton's interpreter counts wrongly"


TROUBLE = trouble_with_interpreter()


@unittest.skipIf(TROUBLE, TROUBLE)
class Kernel(unittest.TestCase):
    """The kernel's arithmetic, in Triton's interpreter on the CPU."""

    def check(self, m, n, k, tile, layout="nn"):
        random = numpy.random.default_rng(0)

        def operand(rows, cols, letter):
            values = random.integers(-4, 5, (cols, rows) if letter == "t" else (rows, cols)).astype(numpy.float16)
            return values.T if letter == "t" else values

        a, b = operand(m, k, layout[0]), operand(k, n, layout[1])
        padded = numpy.full((m + 2, n), numpy.nan, numpy.float16)
        c = padded[1:-1]
        with mock.patch.dict(os.environ, TRITON_INTERPRET="1"):
            triton_kernel.launch(tile, FakeTensor(a), FakeTensor(b), FakeTensor(c))
        numpy.testing.assert_array_equal(c, a.astype(numpy.float64) @ b.astype(numpy.float64))
        self.assertTrue(numpy.isnan(padded[[0, -1]]).all())

    def test_ragged_edges_groups_and_layouts(self):
        tile = triton_kernel.Tile(16, 32, 16, 2, 4, group=2)
        for layout in ("nn", "nt", "tn", "tt"):
            with self.subTest(layout):
                self.check(5 * 16 - 3, 3 * 32 + 1, 50, tile, layout)
        self.check(80, 96, 64, tile)
        self.check(1, 1, 1, tile)
        self.check(8, 64, 48, tile)

    def test_every_shape_has_tiles_and_each_tile_a_name_of_its_own(self):
        names = [str(tile) for tile in triton_kernel.TILES]
        self.assertEqual(len(set(names)), len(names))
        self.assertIn("128x256x64 s3 w8 g8", names)
        for m in (1, 8, 16, 33, 64, 65, 128, 512, 513, 4096):
            for n in (1, 64, 4096):
                self.assertGreaterEqual(len(triton_kernel.candidates(m, n)), 3, (m, n))
        self.assertTrue(all(tile.m <= 32 for tile in triton_kernel.candidates(8, 4096)))
        self.assertTrue(all(tile.m >= 64 for tile in triton_kernel.candidates(4096, 4096)))


class FakeEvent:
    def __init__(self, **_):
        self.at = 0

    def record(self, _):
        self.at = time.monotonic()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


class FakeGraph:
    def capture_begin(self):
        pass

    def capture_end(self):
        pass

    def replay(self):
        pass


@unittest.skipIf(TROUBLE or not torch, TROUBLE or "PyTorch is not installed")
class EndToEnd(unittest.TestCase):
    """The whole program on the CPU: PyTorch's tensors, Triton's interpreter, and a GPU that is pretended."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json, self.ceilings = (os.path.join(folder.name, name) for name in ("peer.json", "ceilings.json"))
        kept = {"version": 1, "gpu": "GPU", "driver": "", "ceilings": CEILINGS}
        pathlib.Path(self.ceilings).write_text(json.dumps(kept), encoding="utf-8")
        properties = types.SimpleNamespace(
            name="GPU", major=9, minor=0, multi_processor_count=132, L2_cache_size=10000, total_memory=10**11
        )
        cuda = {
            "Stream": mock.Mock,
            "Event": FakeEvent,
            "CUDAGraph": FakeGraph,
            "stream": lambda _: contextlib.nullcontext(),
            "synchronize": lambda: None,
            "init": lambda: None,
            "empty_cache": lambda: None,
            "current_device": lambda: 0,
            "mem_get_info": lambda: (10**9, 10**9),
            "get_device_properties": lambda _: properties,
        }
        ours = {"missing": lambda: "", "bus_id_of_gpu": lambda _: "", "prefer_cublas": lambda _: None, "DEVICE": "cpu"}
        tiles = [triton_kernel.Tile(16, 32, 32, 2, 4), triton_kernel.Tile(32, 32, 16, 2, 4, group=2)]
        for patch in (
            *(mock.patch.object(torch.cuda, name, value) for name, value in cuda.items()),
            *(mock.patch.object(triton_matmul, name, value) for name, value in ours.items()),
            mock.patch.object(triton_kernel, "TILES", tiles),
            mock.patch.dict(os.environ, TRITON_INTERPRET="1"),
            mock.patch.object(rounds, "WARM_UP_SECONDS", 0.01),
            mock.patch.object(rounds, "SAMPLE_SECONDS", 1e-5),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            always = ("--ceilings", self.ceilings, "--json", self.json, "--seconds", "0.01")
            code = triton_matmul.main([*always, *arguments])
        return code, out.getvalue(), err.getvalue()

    def test_verified_and_written(self):
        for arguments in (
            ("--layout", "tn"),
            ("--layout", "nt", "--mode", "cold"),
            ("--layout", "tt", "--mode", "single"),
        ):  # in f16: Triton's interpreter multiplies bf16 wrongly
            with self.subTest(arguments):
                code, out, err = self.run_main("--shape", "20x33x50,16x32x16", *arguments)
                self.assertEqual((code, err), (0, ""))
                self.assertEqual(out.count("verified"), 2)
                found = results.load(self.json)["results"]
                self.assertEqual([(each["m"], each["n"], each["k"]) for each in found], [(20, 33, 50), (16, 32, 16)])
                self.assertEqual({len(each["tuning"]) for each in found}, {2})
                self.assertEqual({each["mode"] for each in found}, {arguments[3] if len(arguments) > 2 else "hot"})
                self.assertGreaterEqual(found[0]["time"]["rounds"], 11)

    def test_what_cannot_be_run_is_left_out(self):
        code, out, _ = self.run_main("--shape", "0x8x8,16x32x16,16000x16000x16")
        self.assertEqual(code, 0)
        self.assertIn("cannot run this: there is nothing to multiply", out)
        self.assertRegex(out, "cannot run this: 16000x16000x16 needs .* of the GPU's memory")
        self.assertEqual([each["m"] for each in results.load(self.json)["results"]], [16])
        code, _, err = self.run_main("--shape", "0x8x8")
        self.assertEqual((code, err), (2, "peer_triton: nothing of this can be run: 0x8x8: there is nothing to multiply\n"))

    def test_wrong_results_are_not_written(self):
        right = triton_kernel.launch

        def launch(change):
            def changed(tile, a, b, c):
                right(tile, a, b, c)
                change(a, c)

            return changed

        for change, message in (
            (lambda a, c: c[3, 5].fill_(math.nan), r"C\[3, 5\] is nan"),
            (lambda a, c: c[3, 5].add_(0.5), r"C\[3, 5\] is .*, expected .* within"),
            (lambda a, c: torch.as_strided(c, (1,), (1,), c.storage_offset() - 1).fill_(0), "outside of C"),
            (lambda a, c: torch.as_strided(c, (1,), (1,), c.storage_offset() + c.numel()).fill_(0), "outside of C"),
            (lambda a, c: a[0, 0].add_(1), "input was overwritten"),
        ):
            with self.subTest(message), mock.patch.object(triton_kernel, "launch", launch(change)):
                code, out, _ = self.run_main("--shape", "16x32x16")
                self.assertEqual(code, 1)
                self.assertRegex(out, f"WRONG\n.*{message}")
                self.assertFalse(os.path.exists(self.json))

    def test_a_tile_that_cannot_run_is_pruned(self):
        right = triton_kernel.launch

        def launch(tile, a, b, c):
            if tile.m == 32:
                raise ValueError("out of resource: shared memory\nand more")
            right(tile, a, b, c)

        with mock.patch.object(triton_kernel, "launch", launch):
            self.assertEqual(self.run_main("--shape", "20x33x50")[0], 0)
        tuning = results.load(self.json)["results"][0]["tuning"]
        self.assertEqual(tuning[1]["pruned"], "ValueError: out of resource: shared memory")
        self.assertIsNone(tuning[1]["seconds"])


if __name__ == "__main__":
    unittest.main()
