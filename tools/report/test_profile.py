"""Tests of what 'course profile' predicts, and of its table."""

import csv
import json
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import profile_table, results
from report.ladder import ROOT
from report.prediction import ELEMENT_BYTES, Problem, predict, tile_named
from report.profile_table import Profile
from report.terminal import Style

H200 = {"name": "NVIDIA H200 141 GB", "multiprocessors": 132, "l2_bytes": 62914560}
CEILINGS = {"copy_bytes_per_second": 4.8e12, "fma_f32_flops": 67e12, "mma_f16_flops": 989.4e12, "mma_bf16_flops": 989.4e12}
KEYS = ("load_sectors", "asked", "store_sectors", "shared_loads", "shared_stores", "copies", "bulk_stored", "wgmma", "mma")
ASKED, REQUESTS = results.GLOBAL_LOAD_SECTORS, results.GLOBAL_LOAD_REQUESTS


def problem_of(result):
    return Problem(result["m"], result["n"], result["k"], ELEMENT_BYTES[result["in"]], ELEMENT_BYTES[result["out"]])


def committed(*path):
    with open(os.path.join(ROOT, "docs", "results", *path), encoding="utf-8") as file:
        return json.load(file)["results"]


class Predicting(unittest.TestCase):
    def test_bytes_are_those_of_the_programs(self):
        files = (("interpreter", "ladder-f32.json"), ("h200", "ragged-f16.json"), ("h200", "fused-f16-hot.json"))
        everything = [result for file in files for result in committed(*file)]
        self.assertGreater(len({each["tile"] for each in everything}), 5)
        for result in everything:
            problem, tile = problem_of(result), tile_named(result["tile"])
            bias = problem.out_bytes * problem.n * bool((result.get("epilogue") or {}).get("bias"))
            self.assertEqual(problem.flops, result["flops"])
            self.assertEqual(problem.input_bytes + problem.output_bytes + bias, result["bytes"]["compulsory"], result["tile"])
            if tile:
                self.assertEqual(problem.tile_bytes(*tile.block[:2]), result["bytes"]["tile_reuse"], result["tile"])

    def test_what_the_interpreter_counts_of_the_steps(self):
        """Where they differ, there is a sentence: lanes share values, sectors are whole, tiles are loaded past the end."""
        differ = {}
        for result in committed("interpreter", "ladder-f32.json") + committed("interpreter", "ladder-f16.json"):
            known = predict(problem_of(result), tile_named(result["tile"]), CEILINGS, result["in"])
            known = profile_table.without_others(known, result["counters"])
            counted = profile_table.figures(result["counters"])
            for key in KEYS:
                if profile_table.differ(known.get(key), counted.get(key), 1e-9):
                    differ.setdefault(result["step"][:2] + result["in"], set()).add(key)
        self.assertEqual(
            differ,
            {
                "01f32": {"asked"},
                "01f16": {"asked"},
                "02f16": {"asked", "load_sectors"},
                **{f"0{step}f16": {"shared_loads"} for step in (5, 9)},
                **{f"0{step}f16": {"shared_loads", "copies"} for step in (4, 6, 7, 8)},
                # Panels of 40 or 56 columns begin within a sector: it is counted for both. B comes in whole panels of 64 in 17.
                **{f"{step}f16": {"bulk_stored"} for step in (14, 16)},
                "17f16": {"bulk_stored", "asked"},
                "19f16": {"asked", "shared_stores", "wgmma"},  # of narrow tiles nothing is predicted
            },
        )

    def test_of_the_copy_engine_bytes_are_asked_and_nothing_is_copied_by_threads(self):
        copied = next(each for each in committed("interpreter", "ladder-f16.json") if each["step"] == "09_tma")
        found = profile_table.figures(copied["counters"])
        self.assertEqual((found["asked"], found["copies"]), (copied["bytes"]["tile_reuse"], None))

    def test_warpgroups(self):
        """What the interpreter counts at 256³ of 10 and of 12, whose C the engine stores."""
        problem = Problem(256, 256, 256, 2, 2)
        known = predict(problem, tile_named("128x256x64 s4 g8"), CEILINGS, "f16")
        of_both = {"asked": 12288 * 32, "shared_stores": 1024, "wgmma": 5120, "registers": 128}
        by_threads = profile_table.without_others(known, {profile_table.BULK_SECTORS: 1})
        self.assertLessEqual({**of_both, "shared_loads": 1024, "store_sectors": 16}.items(), by_threads.items())
        self.assertFalse({"bulk_stored", "copies", "load_sectors"} & set(by_threads))
        by_engine = profile_table.without_others(known, {profile_table.BULK_SECTORS: 1, profile_table.BULK_STORE_SECTORS: 1})
        self.assertLessEqual({**of_both, "bulk_stored": 4096 * 32}.items(), by_engine.items())
        self.assertFalse({"shared_loads", "store_sectors"} & set(by_engine))
        known = predict(problem, tile_named("64x256x64 s4 g8 ping-pong"), CEILINGS, "f16")
        self.assertLessEqual({"asked": 20480 * 32, "wgmma": 5120, "registers": 128}.items(), known.items())

    def test_what_dram_delivers_at_4096(self):
        """Within 10 % of what ncu counted, in waves of as many blocks as the GPU had room for; others stand in lessons."""
        far = []
        for step in ("02_tiled", "03_tensor_core", "04_pipelined_num_stages", "05_l2_swizzle"):
            for dtype in ("f32", "f16") if step == "02_tiled" else ("f16",):
                tiles = [each for each in committed("h200", f"ladder-{dtype}.json") if each["step"] == step]
                path = os.path.join(ROOT, "docs/results/h200/ncu-caches", f"{step}-4096x4096x4096-{dtype}.csv")
                with open(path, encoding="utf-8", newline="") as file:
                    launches = list(csv.DictReader(file))
                self.assertEqual(len(tiles), len(launches))
                for result, launch in zip(tiles, launches):
                    blocks = 132 * result["launch"]["blocks_per_sm"]
                    known = predict(problem_of(result), tile_named(result["tile"]), CEILINGS, dtype, blocks, 60e6)
                    if profile_table.differ(known["dram_read"], float(launch["dram__bytes_read.sum"]), 0.1):
                        far.append(f"{step[:2]} {dtype} {result['tile'].split(',')[0].split('warp 64x64 ')[-1]}")
        self.assertEqual(far, ["02 f32 32x32x32", "02 f16 32x32x32", "04 f16 s3", "05 f16 s3 g1", "05 f16 s3 g4"])

    def test_waves(self):
        tile = tile_named("128x128x64 warp 64x64 s3 g2")  # a grid of 5 x 3, as 0 2 4 / 1 3 5 / 6 8 10 / 7 9 11 / 12 13 14
        problem = Problem(640, 384, 64, 2, 2)
        self.assertEqual(tile.panels(problem, 15), [5, 3])
        self.assertEqual(tile.panels(problem, 4), [2 + 4 + 2 + 1, 2 + 2 + 2 + 3])
        self.assertEqual(predict(problem, tile, CEILINGS, "f16", 4, 1e9)["dram_read"], problem.input_bytes)
        self.assertEqual(predict(problem, tile, CEILINGS, "f16", 4, 1e3)["dram_read"], 2 * 64 * 128 * (9 + 9))

    def test_a_duration_is_the_roofline(self):
        for shape, dtype in (((4096, 4096, 4096), "f16"), ((64, 64, 64), "f16"), ((4096, 4096, 4096), "f32")):
            problem = Problem(*shape, ELEMENT_BYTES[dtype], ELEMENT_BYTES[dtype])
            peak = CEILINGS["fma_f32_flops" if dtype == "f32" else "mma_f16_flops"]
            intensity = problem.flops / (problem.input_bytes + problem.output_bytes)
            bound = min(peak, intensity * CEILINGS["copy_bytes_per_second"])
            self.assertAlmostEqual(predict(problem, None, CEILINGS, dtype)["seconds"], problem.flops / bound)

    def test_names(self):
        tile = tile_named("128x64x64 warp 64x32 s3 g8, unfused")
        self.assertEqual((tile.block, tile.warp, tile.thread, tile.threads), ((128, 64, 64), (64, 32), None, 128))
        tile = tile_named("128x128x8, 8x8 per thread")
        self.assertEqual((tile.block, tile.warp, tile.thread, tile.threads), ((128, 128, 8), None, (8, 8), 256))
        self.assertEqual(tile_named("swapped").mapping, "swapped")
        for unknown in (None, "", "128x128x64 warp 64x64 s3, fallback", "coalesced, fallback", "something else"):
            self.assertIsNone(tile_named(unknown), unknown)


def document(tile="128x128x64 warp 64x64 s3", shape=(1024, 1024, 1024), dtype="f16", interpreted=None, measured=None, **more):
    problem = {**dict(zip("mnk", shape)), "heads": 1, "in": dtype, "out": dtype}
    fields = {"name": "04-x", "title": "04 x", "tile": tile, "problem": problem, "allowed": {}, "gpu": H200, "ceilings": CEILINGS}
    fields["blocks_per_wave"] = 264
    recorded = {"gpu": "NVIDIA H200", "is_recorded": True, "files": ["a.csv", "b.csv"], "kernel": "gemm_kernel<Tile<1>>"}
    return {
        **fields,
        "interpreted": interpreted and {"counters": interpreted, "flops_per_second": None},
        "measured": measured and {**recorded, "counters": measured},
        **more,
    }


class Table(unittest.TestCase):
    def page(self, *args, **fields):
        with mock.patch.object(profile_table, "width", return_value=120):
            return profile_table.page(Profile(document(*args, **fields)), Style(False))

    def why(self, key, *args, **fields):
        profile = Profile(document(*args, **fields))
        row, values = next(each for each in profile.rows() if each[0].key == key)
        return profile.why(row, values)

    def test_columns_are_those_that_there_are(self):
        counters = {ASKED: 1048576, REQUESTS: 65536}
        page = self.page(interpreted=counters)
        self.assertIn("global loads: sectors per request       16.0         16.0\n", page)
        self.assertNotIn("measured", page)
        self.assertNotIn("Why they differ", page)
        page = self.page(measured=counters)
        self.assertNotIn("interpreted", page)
        self.assertIn("measured: by ncu, NVIDIA H200, recorded: a.csv, b.csv.\n", page)
        self.assertEqual(self.page(interpreted=counters, measured=counters).count("33.6 MB"), 3)

    def test_what_warps_wait_for(self):
        stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format
        waiting = {"wait": 2.0, "barrier": 0.5, "lg_throttle": 3.0, "mio_throttle": 0, "not_selected": 0.75}
        page = self.page(measured={stall(name): warps for name, warps in waiting.items()})
        found = [line.split()[3:] for line in page.splitlines() if line.startswith("warps waiting")]
        expected = ["the queue of global memory", "the instruction before", "their turn"]
        self.assertEqual([" ".join(words[:-2]) for words in found], expected)

    def test_tensor_cores_are_shown_where_there_is_an_mma(self):
        busy = {"sm__inst_executed_pipe_tensor_op_hmma.sum": 512}
        self.assertIn("mma", self.page(interpreted=busy))
        self.assertNotIn("mma", self.page("coalesced", measured=busy))  # other instructions use them, too

    def test_reasons(self):
        for key, sentence, fields in (
            ("asked", "A warp asks once for what several", {"tile": "coalesced", "interpreted": {ASKED: 1000}}),
            ("asked", "a sector comes whole", {"tile": "swapped", "interpreted": {ASKED: 1e9}}),
            ("asked", "each copies and stores whole panels", {"tile": "128x256x64 s4 g8 cooperative narrow 240", "interpreted": {ASKED: 1e9}}),
            ("load_sectors", "Some lanes want the same bytes", {"interpreted": {ASKED: 15, REQUESTS: 1}}),
            ("shared_loads", "loads fragments for nothing", {"interpreted": {results.SHARED_LOAD_WAVEFRONTS: 6e5}}),
            ("copies", "fill their stage with zeros", {"interpreted": {profile_table.COPY_WAVEFRONTS: 3e5}}),
            ("conflicts", "different words of one bank", {"interpreted": {results.SHARED_LOAD_CONFLICTS: 7}}),
            ("conflicts", "no warp has a conflict", {"measured": {results.SHARED_LOAD_CONFLICTS: 7}}),
            ("dram_written", "is written later", {"measured": {"dram__bytes_write.sum": 1e6}}),
            ("dram_written", "written more than once", {"measured": {"dram__bytes_write.sum": 1e8}}),
            ("dram_read", "counts where the matrices are small", {"measured": {"dram__bytes_read.sum": 6e6}}),
            ("dram_read", "what L2 drops is read again", {"shape": (4096,) * 3, "measured": {"dram__bytes_read.sum": 212e6}}),
            ("registers", "the sums alone", {"measured": {"launch__registers_per_thread": 220}}),
            ("seconds", "only 64 blocks", {"measured": {"gpu__time_duration.sum": 9000, "launch__grid_size": 64}}),
            ("seconds", "Warps do wait", {"measured": {"gpu__time_duration.sum": 9000, "launch__grid_size": 999}}),
        ):
            self.assertIn(sentence, self.why(key, **fields), key)

    def test_hits_and_misses_belong_together(self):
        counters = {profile_table.L2_READS: 110, profile_table.L2_HITS: 75}
        self.assertAlmostEqual(profile_table.figures(counters)["hit_rate"], 100 * 75 / 110)
        self.assertAlmostEqual(profile_table.figures({**counters, profile_table.L2_MISSES: 25})["hit_rate"], 75)
        self.assertIsNone(profile_table.figures({})["hit_rate"])

    def test_what_agrees_has_no_reason(self):
        counters = {ASKED: 1048576, REQUESTS: 65536, results.SHARED_LOAD_CONFLICTS: 0, "dram__bytes_read.sum": 4.26e6}
        for key in ("asked", "load_sectors", "conflicts", "dram_read"):
            self.assertEqual(self.why(key, interpreted=counters, measured=counters), "")

    def test_the_model_of_the_cache_is_one(self):
        read = "dram__bytes_read.sum"
        fields = {"interpreted": {read: 4.2e6}, "measured": {read: 4.75e6}, "shape": (1024, 1100, 1024)}
        self.assertIn("L2 model is a model", self.why("dram_read", **fields))

    def test_an_exercises_bounds_are_its_prediction(self):
        fields = {"tile": None, "allowed": {"load_sectors": 2.5}}
        self.assertEqual(self.why("load_sectors", interpreted={ASKED: 25, REQUESTS: 10}, **fields), "")
        self.assertEqual(self.why("load_sectors", interpreted={ASKED: 20, REQUESTS: 10}, **fields), "")
        self.assertIn("allows less", self.why("load_sectors", interpreted={ASKED: 40, REQUESTS: 10}, **fields))
        self.assertIn("the most that the exercise's test allows", self.page(interpreted={ASKED: 25, REQUESTS: 10}, **fields))

    def test_every_row_that_is_explained_can_be(self):
        """Whatever is counted, the sentence can be made."""
        for tile in ("coalesced", "128x128x8, 8x8 per thread", "128x128x64 warp 64x64", "128x256x64 s4 g8 cooperative narrow 240", None):
            for factor in (0, 0.5, 3):
                profile = Profile(document(tile, interpreted={ASKED: 1}, measured={ASKED: 1}))
                known = {row.key: 1000.0 for row in profile_table.ROWS}
                for column in ("interpreted", "measured"):
                    profile.columns = {"predicted": known, column: {key: factor * value for key, value in known.items()}}
                    for row, values in profile.rows():
                        is_explained = row.key in profile_table.WHY and differs(row, values)
                        self.assertEqual(is_explained, bool(profile.why(row, values)), row.key)

    def test_json(self):
        profile = Profile(document(interpreted={ASKED: 1048576, REQUESTS: 65536}))
        found = json.loads(profile_table.as_json(profile))
        self.assertIsNone(found["measured"])
        first = {"name": "global loads: sectors per request", "predicted": 16.0, "interpreted": 16.0, "measured": None, "why": None}
        self.assertEqual(found["rows"][0], first)


def differs(row, values):
    known = [value for value in values if value is not None]
    return any(profile_table.differ(known[0], value, row.tolerance) for value in known[1:])


if __name__ == "__main__":
    unittest.main()
