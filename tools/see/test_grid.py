"""Tests of the grid. With COURSE_BUILD, blocks that run are compared with what is said of them."""

import csv
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from see import cost, grid, grid_page, l2, replay
from see.test_see import COSTS, PROGRAMS, launch, timed_of

CUBE = (4096, 4096, 4096)
NARROW = "128x256x64 s4 g8 cooperative narrow 240"


class Plans(unittest.TestCase):
    def test_the_blocks_of_all_launches_that_an_h200_has_seen(self):
        compared = 0
        for file, each in grid.measured_launches():
            if not each["step"][0].isdigit() or "fallback" in each["tile"]:
                continue
            plan = grid.Plan(int(each["step"][:2]), each["tile"], (each["m"], each["n"], each["k"]), 132)
            self.assertEqual(plan.blocks, each["launch"]["blocks"], (file, each["step"], each["tile"], each["m"], each["n"], each["k"]))
            compared += 1
        self.assertGreater(compared, 4000)

    def test_tiles_of_blocks_that_stay(self):
        plan = grid.Plan(12, "128x256x64 s4 g8", CUBE, 132)
        tiles = [plan.tiles_of(block) for block in range(132)]
        self.assertEqual((sum(map(len, tiles)), [len(each) for each in (tiles[0], tiles[115], tiles[116], tiles[131])]), (512, [4, 4, 3, 3]))
        two = grid.Plan(19, NARROW, CUBE, 132)
        self.assertEqual((two.tiles, two.wide_tiles), (528, 272))  # as the lesson's figure has them
        self.assertEqual((two.tiles_of(7), two.tiles_of(8)), ([False, False, False, True], [False, False, True, True]))

    def test_what_a_small_problem_leaves_of_a_cluster(self):
        self.assertEqual(grid.Plan(16, "128x256x64 s4 g8 cooperative", CUBE, 132).small_shape(64), (256, 768, 64))
        self.assertEqual(grid.Plan(20, "176x192x64 s4 g8 cluster 2", CUBE, 132).small_shape(64), (352, 576, 64))
        self.assertEqual(grid.Plan(20, "192x128x64 s4 g8 cluster 2", CUBE, 132).small_shape(64), (192, 768, 64))
        self.assertEqual(grid.Plan(15, "8x64x128 s5 split 2", (8, 4096, 4096), 132).small_shape(64), (8, 64, 64))


class Times(unittest.TestCase):
    def test_ends_of_tiles(self):
        events = [(0, "wgmma", 1024 * 100)] * 4 + [(0, "wgmma commit"), (0, "wgmma wait", 0)]
        self.assertEqual(grid.tile_ends(launch(*events), timed_of(*events), 2), [200, 400])
        stay = grid.Stay.of(launch(*events), timed_of(*events), 2, False)
        self.assertEqual((stay.first, stay.next, stay.last), (200, 200, 1))
        self.assertEqual(grid.tile_times([False, False, True], grid.Stay(100, 80, 9), grid.Stay(0, 60, 5)), [(0, 100), (100, 180), (180, 245)])

    def test_waves(self):
        plan = grid.Plan(4, "128x128x64 s3", (128 * 5, 128 * 2, 64), 3)
        pieces = grid.in_waves(plan, 2, lambda count: {1: 60, 2: 100}[count])
        self.assertEqual([(p.block, p.sm, p.place, p.begin, p.end) for p in pieces if p.block in (0, 2, 3, 5, 6, 8, 9)], [(0, 0, 0, 0, 100), (2, 2, 0, 0, 100), (3, 0, 1, 0, 100), (5, 2, 1, 0, 100), (6, 0, 0, 100, 200), (8, 2, 0, 100, 160), (9, 0, 1, 100, 200)])
        drawn = grid.Grid(plan, pieces, 2)
        self.assertEqual((drawn.clocks, drawn.ends, drawn.last_wave()), (200, [200, 160, 160], (4, 6)))
        self.assertAlmostEqual(drawn.idle(), 80 / 600)
        self.assertEqual([(sm, count) for sm, count, _ in drawn.alike()], [(0, 1), (1, 2)])

    def test_clusters_are_side_by_side(self):
        plan = grid.Plan(15, "8x64x128 s5 split 2", (8, 192, 4096), 4)
        pieces = grid.in_waves(plan, 1, lambda _: 10)
        self.assertEqual([(p.block, p.sm, p.begin) for p in pieces], [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 0, 10), (5, 1, 10)])

    def test_clusters_of_eight_leave_some_sms(self):
        """As the launcher and cudaOccupancyMaxActiveClusters have it for an H200."""
        plan = grid.Plan(20, "128x64x64 s8 g8 split 2 cluster 8", (2360, 224, 7328), 132)
        self.assertEqual((plan.blocks, plan.units, plan.room), (152, 19, 15))
        found = grid.Grid(plan, grid.in_waves(plan, 1, lambda _: 10.0), 1)
        self.assertEqual((found.last_wave(), {sm for sm, end in enumerate(found.ends) if not end}), ((4, 15), set(range(120, 132))))
        facts = grid_page.facts(found, launch((0, "mma", 4096)), None)
        self.assertEqual(facts[0], "19 clusters of 8 blocks (32 threads each); 132 SMs have room for 15 clusters at a time, as a cluster lies within a GPC: 1.27 waves. The last one has 4 clusters, where there is room for 15.")
        for what in ("There is no time of an H200 for it.", "What is not in L2 is not counted for this step."):
            self.assertIn(what, facts)
        self.assertEqual(grid_page.document(found, "")["unfit"], 120)
        self.assertEqual(grid_page.document(self.waves(), "")["unfit"], 3)
        self.assertEqual([grid.Plan(20, f"128x64x64 s8 g8 cluster {size}", CUBE, 8).room for size in (2, 8)], [4, 1])

    def waves(self):
        plan = grid.Plan(4, "128x128x64 s3", (128 * 5, 128 * 2, 64), 3)
        return grid.Grid(plan, grid.in_waves(plan, 2, lambda count: {1: 60, 2: 100}[count]), 2)

    def test_the_heading_says_why_a_block_alone_takes_less(self):
        self.assertEqual(grid_page.alone_and_beside(self.waves()), "A block takes so many clocks: 60 alone on an SM, 100 beside 1 more. Those on one SM share its tensor cores and its way to L2.")
        plan = grid.Plan(4, "128x128x64 s3", (128 * 3, 128 * 2, 64), 3)
        self.assertEqual(grid_page.alone_and_beside(grid.Grid(plan, grid.in_waves(plan, 2, lambda _: 100), 2)), "")

    def test_a_page_of_many_blocks_is_small(self):
        plan = grid.Plan(1, "coalesced", CUBE, 132)
        found = grid.Grid(plan, grid.in_waves(plan, 4, lambda count: 100.0 * count), 4)
        text = grid_page.page_of(found, "a < b", grid_page.facts(found, launch((0, "mma", 4096)), None), COSTS)
        self.assertLess(len(text), 1_000_000)
        self.assertIn("<h1>a &lt; b</h1>", text)
        self.assertNotRegex(text, r"@[A-Z_]+@")
        self.assertIn("32,768 blocks of 32 threads; an SM has room for 4 of them at a time: 62.06 waves. The last one has 32 blocks, where there is room for 528.", text)


class L2(unittest.TestCase):
    def launch(self, shape, group, sms=132, resident=2):
        plan = grid.Plan(5, f"128x128x64 warp 64x64 s3 g{group}", shape, sms)
        return grid.Grid(plan, grid.in_waves(plan, resident, lambda count: 100.0 * count), resident)

    def test_who_asks_first_misses_and_what_was_used_longest_ago_is_forgotten(self):
        part = 128 * 64 * 2  # of A or B, a step along k
        found = self.launch((256, 256, 128), 1, sms=2)  # four blocks at once, two steps
        self.assertEqual(l2.misses(found, 128, 2, 1 << 30), ([4 * part, 2 * part, 2 * part, 0], 4 * part))
        found = self.launch((128, 256, 128), 1, sms=1, resident=1)  # one after the other, with the same of A
        self.assertEqual(l2.misses(found, 128, 2, 1 << 30)[0], [4 * part, 2 * part])
        self.assertEqual(l2.misses(found, 128, 2, 4 * part)[0], [4 * part, 4 * part])  # C has taken their place

    def test_a_tile_without_a_group_is_row_by_row(self):
        plan = grid.Plan(9, "128x128x64 warp 64x64 s3", (256, 384, 64), 132)
        self.assertEqual([l2.tile_of(plan, number) for number in range(4)], [(0, 0), (0, 1), (0, 2), (1, 0)])

    def test_dram_as_ncu_counts_it(self):
        """Of step 05 on an H200; and what arrives in the SMs exactly. Where waves need more than the cache has, SMs that drift apart cost more."""
        off = {}
        for path in glob.glob(os.path.join(cost.RESULTS, "l2", "05_l2_swizzle-*.csv")):
            shape = tuple(map(int, re.search(r"-(\d+)x(\d+)x(\d+)-", path).groups()))
            with open(path, encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    group = int(re.search(r"64, 3, (\d+)>", row["Kernel Name"])[1])
                    found = self.launch(shape, group)
                    missed, asked = l2.misses(found, shape[2], 2, l2.room(cost.ladder()["gpu"]))
                    self.assertEqual(asked * len(found.pieces), 32 * int(row["l1tex__m_xbar2l1tex_read_sectors.sum"]))
                    off.setdefault((shape[0], shape[2], group), []).append(sum(missed) / float(row["dram__bytes_read.sum"]))
        off = {which: sum(each) / len(each) for which, each in off.items()}
        self.assertGreaterEqual(len(off), 20)
        self.assertLess(off.pop((8192, 8192, 1)), 0.4)
        self.assertLess(off.pop((8192, 8192, 16)), 0.7)
        for which, ratio in off.items():
            self.assertAlmostEqual(ratio, 1, delta=0.25, msg=which)


class Refusals(unittest.TestCase):
    def test_what_a_grid_cannot_show(self):
        for words, why in (
            (["6", "--launch", "1"], "--launch is for the timeline of a block"),
            (["6", "--perfetto", "x.json"], "--perfetto is for the timeline of a block"),
            (["6", "--show-block", "1"], "--show-block is for the timeline of a block"),
            (["docs/examples/saxpy.cu"], "--grid is for a step"),
            (["solutions/31"], "--grid is for a step"),
            (["6", "--shape", "1024,2048"], "name one --shape"),
            (["3", "--shape", "4096x4095x4096"], "no multiple of 16 bytes"),
            (["3", "--shape", "4096x4096x4095"], "no multiple of 16 bytes"),
        ):
            with self.subTest(words):
                done = subprocess.run([os.path.join(cost.ROOT, "tools/course"), "see", "--grid", *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(why, done.stderr)
        done = subprocess.run([os.path.join(cost.ROOT, "tools/course"), "see", "6", "--as", "a100"], capture_output=True, text=True)
        self.assertIn("--as chooses the GPU for --grid", done.stderr)


@unittest.skipUnless(os.path.isdir(PROGRAMS), "needs COURSE_BUILD, the interpreter's")
class Steps(unittest.TestCase):
    def record(self, step, tile, shape, sms):
        with tempfile.TemporaryDirectory() as scratch:
            events, results = os.path.join(scratch, "events"), os.path.join(scratch, "results")
            command = [os.path.join(PROGRAMS, step), "--dtype", "f16", "--shape", "x".join(map(str, shape)), "--force", "--json", results, "--multiprocessors", str(sms)]
            command += ["--tile", tile] if tile else ["--first"]
            subprocess.run(command, env={**os.environ, "COURSE_EVENTS": events}, stdout=subprocess.DEVNULL, check=True)
            with open(results, encoding="utf-8") as file:
                tile = json.load(file)["results"][0]["tile"]
            return max(replay.read(events), key=lambda each: len(each.events)), tile

    def test_tiles_are_in_the_order_of_the_kernels(self):
        said = json.loads(subprocess.run([os.path.join(PROGRAMS, "figures")], stdout=subprocess.PIPE, check=True).stdout)
        for order in said["wave"]:
            plan = grid.Plan(5, f"128x128x64 g{order['group_m']}", (8192, 8192, 8192), 132)
            self.assertEqual([list(l2.tile_of(plan, number)) for number in range(len(order["tiles"]))], order["tiles"])

    def test_a_block_asks_for_what_it_copies(self):
        for step, tile in (("05_l2_swizzle", None), ("12_persistent", None)):
            run, tile = self.record(step, tile, (256, 256, 256), 1)
            plan = grid.Plan(int(step[:2]), tile, (256, 256, 256), 1)
            copied = sum(32 * event[5] if run.kinds[event[1]] == "copy" else event[4] for event in run.events if run.kinds[event[1]] in ("copy", "bulk load"))
            found = grid.Grid(plan, [grid.Piece(0, 0, 0.0, 1.0, 0, 0)], 1)
            self.assertEqual(l2.misses(found, 256, 2, 1 << 30)[1] * len(plan.tiles_of(0) if plan.stays else [0]), copied)

    def test_what_is_not_run_is_as_what_is(self):
        """From some tiles, the time of more of them; of two blocks, that each has as many as the plan says."""
        for step, shape, sms in (("12_persistent", (128, 1280, 256), 1), ("13_ping_pong", (64, 1536, 256), 1), ("16_multicast", (256, 1280, 128), 2), ("19_two_widths", (128, 1280, 256), 1)):
            with self.subTest(step):
                whole, tile = self.record(step, None, shape, sms)
                plan = grid.Plan(int(step[:2]), tile, shape, sms)
                self.assertEqual((plan.blocks, plan.wide_tiles), (whole.blocks, plan.tiles))
                found = grid.timed(plan, shape[2], lambda small, few, step=step, tile=tile: self.record(step, tile, small, few)[0], COSTS)
                self.assertGreater(len(found.pieces), plan.tiles_to_run() * plan.cluster)
                clocks = replay.Replay(whole, COSTS).all_clocks
                self.assertLess(abs(found.clocks / clocks - 1), 0.03, (found.pieces, clocks))

    def test_narrow_tiles_come_after_the_wide_ones(self):
        shape = (1024, 496, 64)
        recorded, tile = self.record("19_two_widths", None, shape, 3)
        plan = grid.Plan(19, tile, shape, 3)
        columns = [event[7] for event in recorded.events if recorded.kinds[event[1]] == "wgmma" and event[0] == 0]
        of_tiles = columns[:: len(columns) // len(plan.tiles_of(0))]
        self.assertEqual([each == plan.narrow for each in of_tiles], plan.tiles_of(0))
        self.assertEqual(set(plan.tiles_of(0)), {False, True})


if __name__ == "__main__":
    unittest.main()
