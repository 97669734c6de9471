"""Tests of course profile: whose launch it is, what was recorded of it, what ncu is asked. whole/ tests the command from end to end."""

import contextlib
import csv
import io
import json
import os
import stat
import tempfile
import unittest
from unittest import mock

from command import files
from command.cli import steps
from command.messages import Failed, Refused
from command.places import ROOT
from command.profiling import ncu, recorded, subjects
from command.subcommands import profile

KERNEL = "void gemm_kernel<Tile<{}>, 0, 1, __half, __half, {}>(Matrix<const T4>, Matrix<T5>)".format


def chosen(*words):
    return subjects.chosen(profile.COMMAND.parse(words))


class Subjects(unittest.TestCase):
    def test_steps(self):
        for words, name in (
            (("1",), "01_naive-256x256x256-f32"),
            (("steps/02_tiled/", "--dtype", "fp16"), "02_tiled-256x256x256-f16"),
            (("3",), "03_tensor_core-1024x1024x1024-f16"),
            (("4", "--shape", "064x0100x032"), "04_pipelined_num_stages-64x100x32-f16"),
            (("5", "--tile", "s3 g4"), "05_l2_swizzle-1024x1024x1024-f16-s3-g4"),
        ):
            self.assertEqual(chosen(*words).name, name)

    def test_exercises_and_solutions(self):
        for word, file, kind in (
            ("exercises/5", "exercises/05_padding_and_vectors/gemm.cuh", "exercise"),
            ("solutions/05_padding", "solutions/05_padding_and_vectors/gemm.cuh", "solution"),
            ("solutions/05_padding_and_vectors/gemm.cuh", "solutions/05_padding_and_vectors/gemm.cuh", "solution"),
            (os.path.join(ROOT, "exercises", "05_padding_and_vectors"), "exercises/05_padding_and_vectors/gemm.cuh", "exercise"),
        ):
            subject = chosen(word)
            self.assertEqual((os.path.relpath(subject.file, ROOT).replace("exercises/my", "exercises"), subject.kind), (file, kind))

    def test_bad_words(self):
        for words, message in (
            ((), "needs one step, exercise or solution"),
            (("99",), "no step '99'"),
            (("exercises/99",), "no exercise"),
            (("3", "--dtype", "f32"), "has no kernels for f32"),
            (("solutions/5", "--tile", "g8"), "--tile is for steps"),
            (("solutions/99",), "no exercise 'solutions/99'"),
            (("3", "--tile", "nosuch"), "no tile of 03_tensor_core has 'nosuch' in its name"),
            (("1", "--tile", "swappe"), "no tile of 01_naive has 'swappe'"),
        ):
            with self.assertRaisesRegex(Refused, message):
                chosen(*words)

    def test_tiles_that_there_may_be(self):
        for words in (("1", "--tile", "swapped"), ("2", "--tile", "64x64x8, 4x4 per thread"), ("13", "--tile", "s8 ping-pong")):
            chosen(*words)

    def test_every_tile_that_was_measured_may_be_named(self):
        for dtype in ("f32", "f16"):
            with open(os.path.join(ROOT, f"docs/results/interpreter/ladder-{dtype}.json"), encoding="utf-8") as file:
                for each in json.load(file)["results"]:
                    steps.check_tile(each["step"], each["tile"])

    def test_large_problems_are_not_interpreted(self):
        with mock.patch("os.sched_getaffinity", return_value={0, 1}):
            self.assertTrue(chosen("3").is_short())
            self.assertFalse(chosen("3", "--shape", "4096x4096x4096").is_short())

    def test_the_largest_problem_of_an_exercise(self):
        def problem(m, words, heads=1):
            return {"m": m, "n": 2, "k": 3, "heads": heads, "words": words, "in": "f16", "launches": []}

        problems = [problem(8, "a"), problem(16, "b"), problem(16, "c"), problem(4, "d", heads=3)]
        answer = chosen("solutions/5")
        self.assertEqual(answer.select(problems)["words"], "c")
        self.assertEqual(answer.select([*problems, problem(8, "e", heads=3)])["words"], "e")
        self.assertIsNone(answer.select([]))
        self.assertEqual(chosen("solutions/5", "--shape", "8x2x3").select(problems)["words"], "a")
        with self.assertRaisesRegex(Refused, "no such problem; it has 8x2x3 16x2x3 4x2x3"):
            chosen("solutions/5", "--shape", "1x1x1").select(problems)

    def test_an_exercise_without_a_product(self):
        problem = {"words": "w", "m": 0, "launches": [{"kernel": "exercise::step_kernel", "counters": {}}]}

        def counted(_exercise, _file, path):
            files.write(path, json.dumps({"problems": [problem]}))

        with mock.patch.object(subjects, "Workshop") as workshop:
            workshop.return_value.profile.side_effect = counted
            with self.assertRaisesRegex(Failed, "is no product of matrices.*'tools/course check 14' counts"):
                chosen("solutions/14").interpret()
            problem["launches"] = []
            workshop.return_value.profile.return_value = ""
            with self.assertRaisesRegex(Failed, "solves none of its test's problems yet"):
                chosen("solutions/14").interpret()

    def test_the_kernel_that_loads_most(self):
        answer = chosen("solutions/5")
        sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
        launches = [("void exercise::add<float>(int)", 3), ("exercise::gemm_kernel(Matrix<float>)", 9)]
        launches = [{"kernel": kernel, "counters": {sectors: count}} for kernel, count in launches]
        answer.problem = {"words": "w", "launches": launches}
        built = mock.MagicMock(path="/judge", refused="")
        with mock.patch.object(subjects, "Workshop") as workshop:
            workshop.return_value.program.return_value.__enter__.return_value = built
            with answer.on_gpu() as (kernel, program):
                self.assertEqual((kernel, program), ("^gemm_kernel$", ["/judge", answer.file, "word", "w"]))
            built.refused = "gemm.cuh:7: error"
            with self.assertRaisesRegex(Failed, "does not compile for the GPU"), answer.on_gpu():
                pass


class Recorded(unittest.TestCase):
    def test_tiles(self):
        for numbers, tile, expected in (
            ("128, 128, 64, 64, 64, 3, 8", "128x128x64 warp 64x64 s3 g8", True),
            ("128, 128, 64, 64, 64, 3, 8, 1", "128x128x64 warp 64x64 s3 g8", True),
            ("128, 128, 64, 64, 64, 3, 16", "128x128x64 warp 64x64 s3 g1", False),
            ("128, 128, 8, 8, 8", "128x128x8, 8x8 per thread", True),
            ("0", "coalesced", True),
            ("1", "coalesced", False),
            ("1", "swapped", True),
            ("128, 128, 64, 64, 64", "128x128x64 warp 64x64, fallback", False),
            ("128, 128, 3", "128x128x64 warp 64x64 s3", True),
            ("128, 128, 6", "128x128x64 warp 64x64 s3", False),
            ("128, 256, 4, 8", "128x256x64 s4 g8", True),
            ("128, 256, 3, 8", "128x256x64 s4 g8", False),
        ):
            self.assertEqual(recorded.is_of_tile(KERNEL(numbers, "Identity"), tile), expected, (numbers, tile))

    def test_the_kernel_that_all_steps_share(self):
        found = recorded.find(chosen("3", "--shape", "301x203x97"), "128x128x64 warp 64x64, fallback")
        self.assertIn("fallback_kernel<64", found["kernel"])

    def test_what_lies_in_the_repository(self):
        found = recorded.find(chosen("3", "--shape", "4096x4096x4096"), "128x128x64 warp 64x64")
        self.assertEqual((found["gpu"], found["is_recorded"]), ("NVIDIA H200", True))
        folders = [os.path.basename(os.path.dirname(path)) for path in found["files"]]
        self.assertEqual(folders, ["profile", "h200"])
        # Of what has no profile of its own, ncu's other tables have parts.
        in_parts = recorded.find(chosen("3", "--shape", "256x256x256"), "128x128x64 warp 64x64")
        self.assertEqual([os.path.basename(os.path.dirname(path)) for path in in_parts["files"]], ["ncu"])
        self.assertEqual(found["counters"]["launch__registers_per_thread"], 220)
        self.assertAlmostEqual(found["counters"]["launch__waves_per_multiprocessor"], 1024 / 264, places=2)  # as ncu rounds it
        self.assertIn("256x256x256", recorded.shapes(chosen("3")))

    def test_of_fused_steps_the_fused_launch(self):
        found = recorded.find(chosen("7", "--shape", "256x256x256"), "128x128x64 warp 64x64 s3 g8")
        self.assertIn("LeakyRelu>", found["kernel"])

    def test_many_launches_are_one_on_average_and_a_whole_profile_comes_first(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(recorded, "RESULTS", folder):
            subject, tile = chosen("3"), "128x128x64 warp 64x64"
            self.assertIsNone(recorded.find(subject, tile))
            kernels = [KERNEL("128, 128, 64, 64, 64", "Identity")] * 2 + [KERNEL("64, 64, 64, 64, 64", "Identity")]
            self.write(folder, "ncu-caches", subject.name, [(kernels[0], 10), (kernels[1], 20), (kernels[2], 99)])
            self.assertEqual(recorded.find(subject, tile)["counters"], {"dram__bytes_read.sum": 15})
            self.assertIsNone(recorded.find(subject, "32x32x64 warp 16x16"))
            self.write(folder, "profile", subject.name, [(kernels[0], 12)])
            self.assertEqual(recorded.find(subject, tile)["counters"], {"dram__bytes_read.sum": 12})

    @staticmethod
    def write(folder, kind, name, launches):
        os.makedirs(os.path.join(folder, "h200", kind))
        with open(os.path.join(folder, "h200", kind, f"{name}.csv"), "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["ID", "Kernel Name", "dram__bytes_read.sum"])
            table.writerows([[0, kernel, value] for kernel, value in launches])


FAKE = """#!/bin/sh
echo "$*" >>"{folder}/calls"
case "$*" in
  *--import*) cat "{folder}/raw.csv" ;;
  *) cat "{folder}/says"; exit "$(cat "{folder}/code")" ;;
esac
"""


class Ncu(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.ncu = os.path.join(self.folder, "ncu")
        self.write("ncu", FAKE.format(folder=self.folder))
        os.chmod(self.ncu, stat.S_IRWXU)
        self.write("says", "==PROF== Profiling \"gemm_kernel\" - 0: 0%....100% - 9 passes\n")
        self.write("code", "0")
        patch = mock.patch.object(ncu, "LOGS", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def write_table(self, launches):
        table = io.StringIO()
        rows = csv.writer(table, quoting=csv.QUOTE_ALL)
        rows.writerow(["ID", "Process ID", "Kernel Name", "Device", "CC", *ncu.METRICS])
        rows.writerow(["", "", "", "", "", *["byte"] * len(ncu.METRICS)])
        for index in range(launches):
            rows.writerow([index, 7, "gemm_kernel(int, int)", 0, "9.0", *["1,234.5"] * len(ncu.METRICS)])
        self.write("raw.csv", "a program's own output\n" + table.getvalue())

    def profile(self):
        with contextlib.redirect_stderr(io.StringIO()):
            return ncu.profile(self.ncu, "name", self.folder, "^gemm_kernel$", ["/bin/step", "--once"])

    def test_one_launch(self):
        self.write_table(1)
        path, said = self.profile()
        self.assertIn("9 passes", said)
        self.assertEqual(path, os.path.join(self.folder, "name.csv"))
        self.assertEqual(ncu.rows(path), [("gemm_kernel(int, int)", dict.fromkeys(ncu.METRICS, 1234.5))])
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
            first, second = file.read().splitlines()
        self.assertIn(" --launch-count 1 ", first)
        self.assertIn(" --kernel-name regex:^gemm_kernel$ ", first)
        self.assertTrue(first.endswith(" /bin/step --once"))
        self.assertIn(f"--import {self.folder}/name.ncu-rep", second)

    def test_no_launch_is_refused(self):
        self.write_table(0)
        with self.assertRaisesRegex(Failed, "look at it with 'ncu --import"):
            self.profile()

    def test_what_goes_wrong(self):
        self.write("says", f"==ERROR== {ncu.FORBIDDEN} - The user has no permission\n==WARNING== No kernels were profiled.\n")
        with self.assertRaises(ncu.NotAllowed):
            self.profile()
        for says, code in (("==WARNING== No kernels were profiled.\n", "0"), ("==ERROR== no such metric\n", "1")):
            self.write("says", says)
            self.write("code", code)
            with self.assertRaisesRegex(Failed, "ncu profiled nothing"):
                self.profile()

    def test_metrics_are_named_once(self):
        self.assertEqual(len(set(ncu.METRICS)), len(ncu.METRICS))


if __name__ == "__main__":
    unittest.main()
