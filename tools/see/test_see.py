"""Tests of the clock, of what is drawn, of the page and the trace. With COURSE_BUILD, steps are run, and compared with their counters."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from see import accesses, cost, data_figures, descriptors, figures, fragments, operands, page, perfetto, picture, recorded, replay, road_figure, share_figures, svg

KINDS = list(replay.Replay.KINDS)
ALL = 0xFFFFFFFF
COSTS = cost.h200()
PROGRAMS = os.path.join(os.environ.get("COURSE_BUILD", ""), "bin")
RESULTS = os.path.join(cost.ROOT, "docs/results/h200/ladder-f16.json")
STAGES = "04_pipelined_num_stages"


def launch(*events, warps=1, **more):
    """Of events (warp, kind, a, b, ...); the place of each is the line of its number."""
    listed = [[warp, KINDS.index(kind), i, ALL, *values, *[0] * (5 - len(values))] for i, (warp, kind, *values) in enumerate(events)]
    document = {
        "kernel": "kernel", "grid": [1, 1, 1], "block": [32 * warps, 1, 1], "cluster": [1, 1, 1], "shared_bytes": 0, "whole": True,
        "kinds": KINDS, "names": {}, "addresses": [], "places": [["kernel.cu", i + 1, "kernel.cu", 0] for i in range(len(listed))], "events": listed,
        **more,
    }  # fmt: skip
    return replay.Launch(document)


def timed(*events, blocks=1, **more):
    """{number of the event: (begin, end)} of block 0."""
    return {event: (begin, end) for event, _, begin, end in replay.Replay(launch(*events, **more), COSTS, blocks).spans}


class Clock(unittest.TestCase):
    def test_a_copy_takes_latency_and_bytes(self):
        spans = timed((0, "copy", 512, 16, 0, 512), (0, "copy commit"), (0, "copy wait", 0))
        self.assertEqual(spans[0], (0, 690 + 512 / 64))
        self.assertEqual(spans[2], (2, 698))

    def test_copies_share_the_way_but_not_the_latency(self):
        spans = timed(*[(0, "copy", 512, 16, 0, 512)] * 8)
        self.assertEqual([spans[i][1] for i in range(8)], [698 + 8 * i for i in range(8)])

    def test_a_wait_leaves_so_many_groups(self):
        copies = [(0, "copy", 512, 16, 0, 512), (0, "copy commit")] * 2
        self.assertEqual(timed(*copies, (0, "copy wait", 1))[4][1], 698)
        self.assertEqual(timed(*copies, (0, "copy wait", 0))[4][1], 706)
        self.assertEqual(timed(*copies, (0, "copy wait", 2))[4], (4, 4))

    def test_products_take_turns_on_a_tensor_core(self):
        spans = timed((0, "mma", 4096), (0, "mma", 4096), (4, "mma", 4096), (1, "mma", 4096), warps=5)
        self.assertEqual(spans[3][0], 0)  # a core of its own
        ends = sorted(spans[i] for i in (0, 1, 2))
        for before, after in zip(ends, ends[1:]):
            self.assertAlmostEqual(after[0], before[1])
            self.assertAlmostEqual(after[1] - after[0], COSTS.mma)

    def test_a_product_waits_for_its_registers_alone(self):
        loads = [(0, "ldmatrix", 16, 4, 0, 4, 100), (0, "ldmatrix", 16, 4, 512, 4, 200)]
        self.assertEqual(timed(*loads, (0, "mma", 4096, 100))[2][0], 44)
        self.assertEqual(timed(*loads, (0, "mma", 4096, 200))[2][0], 48)
        self.assertEqual(timed(*loads, (0, "mma", 4096, 300))[2][0], 48)  # from elsewhere: all that was loaded

    def test_who_stores_what_it_loads_waits_for_it(self):
        clock = replay.Replay(launch((0, "global load", 4, 4), (0, "shared store", 4, 1, 0, 1)), COSTS)
        self.assertEqual(clock.stalls, [(1, 0, 1, 692)])
        drawn = picture.Picture(clock.launch, clock, "")
        self.assertEqual([(s["k"], s["a"], s["b"]) for s in drawn.segments], [("access", 0, 1), ("wait-loads", 1, 692), ("access", 692, 693)])

    def test_wgmma_is_under_way_while_the_warp_goes_on(self):
        spans = timed((0, "wgmma", 131072), (0, "wgmma commit"), (0, "mbarrier init", 8, 1), (0, "wgmma wait", 0))
        self.assertEqual(spans[0], (0, 128))
        self.assertEqual(spans[2], (2, 2))
        self.assertEqual(spans[3], (3, 128))

    def test_a_barrier_waits_for_the_last_warp(self):
        spans = timed((0, "copy", 512, 16, 0, 512), (0, "copy commit"), (0, "copy wait", 0), (0, "barrier"), (1, "barrier"), warps=3)
        self.assertEqual(spans[3], (699, 699))
        self.assertEqual(spans[4], (0, 699))  # and not for one that has ended

    def test_who_comes_to_a_barrier_has_used_what_it_has_loaded(self):
        self.assertEqual(timed((0, "shared load", 4, 32, 0, 1), (0, "barrier"))[1], (72, 72))
        self.assertEqual(timed((0, "ldmatrix", 16, 4, 0, 4, 100), (0, "barrier"))[1], (1, 1))  # may be for later: a prefetch

    def test_lanes_that_come_apart_are_one_warp(self):
        events = launch((0, "barrier"), (0, "mma", 4096), (0, "barrier"), (1, "barrier"), warps=2)
        events.events[0][3], events.events[2][3] = 0xFFFFFFFE, 1
        self.assertEqual([op[1] for op in events.programs()[0]], ["mma", "barrier"])

    def test_a_phase_needs_arrivals_and_bytes(self):
        begin = [(1, "mbarrier init", 8, 1), (0, "barrier"), (1, "barrier")]
        events = launch(*begin, (1, "mbarrier arrive", 8, 1, 128), (1, "bulk load", 128, 8, 0, 1), (0, "mbarrier wait", 8, 0), warps=2)
        for one_lane in (0, 3, 4):
            events.events[one_lane][3] = 1
        clock = replay.Replay(events, COSTS)
        spans = {event: (begin, end) for event, _, begin, end in clock.spans}
        self.assertEqual(spans[5][1], 3 + 128 / 64 + 690)
        (phase, begin, end, arrived, landed, expected), *rest = clock.blocks[0].mbarriers[8].phases
        self.assertEqual((phase, end, sum(a[2] for a in arrived), landed, expected), (0, 695, 1, [(695, 128)], 128))
        self.assertEqual(rest, [])

    def test_what_a_tensor_cores_time_goes_into(self):
        copied = [(0, "copy", 512, 16, 0, 512), (0, "copy commit"), (0, "copy wait", 0)]  # 0 to 698
        events = [*copied, (0, "wgmma", 131072), (0, "wgmma commit"), (0, "wgmma wait", 0), (0, "global store", 4, 16)]
        others = [(warp, *event[1:]) for warp in (1, 2, 3) for event in events]
        run = recorded.Recorded(launch(*events, *others, warps=4), "", 64)
        begin, end = next(span[2:] for span in run.spans[0] if span[0] == "wgmma")
        parts = share_figures.split(run)
        self.assertAlmostEqual(sum(parts.values()), 1)
        self.assertAlmostEqual(parts["multiply"], run.drawn.tensor_share())
        self.assertAlmostEqual(parts["multiply"], (end - begin) / run.clocks, delta=0.01)
        self.assertAlmostEqual(parts["copy"], begin / run.clocks, delta=0.03)
        self.assertAlmostEqual(parts["store"], (run.clocks - end) / run.clocks, delta=0.03)

    def test_a_tree_of_steps(self):
        steps = ("03_tensor_core", "04_pipelined_num_stages", "05_l2_swizzle", "09_tma")
        columns, bases = road_figure.branches(steps)
        self.assertEqual(columns, {steps[0]: 0, steps[1]: 0, steps[2]: 0, steps[3]: 1})  # 05 goes on where 04 is, 09 branches off
        self.assertEqual(bases, {steps[0]: "", steps[1]: steps[0], steps[2]: steps[1], steps[3]: steps[1]})

    def test_a_dependent_launch_waits_for_the_one_before(self):
        events = launch((0, "launch hint"), (0, "launch wait"), (0, "mma", 4096))
        spans = {event: (begin, end) for event, _, begin, end in replay.Replay(events, COSTS, launch_before=500).spans}
        self.assertEqual((spans[0], spans[1], spans[2][0]), ((0, 0), (1, 500), 501))
        drawn = picture.Picture(events, replay.Replay(events, COSTS, launch_before=500), "")
        self.assertEqual([s["k"] for s in drawn.segments if s["l"] == drawn.lane_of[0]], ["mark", "wait-launch", "product"])
        self.assertEqual(timed(*[(0, "launch wait")] * 2)[1], (1, 1))  # nothing is under way

    def test_the_other_parity_of_a_new_mbarrier_is_over(self):
        spans = timed((0, "mbarrier init", 8, 1), (0, "mbarrier wait", 8, 1, 2**64 - 1))
        self.assertEqual(spans[1], (1, 1))

    def test_named_barriers_count_threads(self):
        spans = timed((0, "mma", 4096), (0, "named barrier", 1, 64, 0), (1, "named barrier", 1, 64, 1), warps=2)
        self.assertEqual(spans[2][1], spans[1][0])

    def test_a_store_is_read_before_it_is_written(self):
        store = [(0, "bulk store", 6400), (0, "bulk commit")]
        self.assertEqual(timed(*store, (0, "bulk wait", 0, 1))[2][1], 100)
        self.assertEqual(timed(*store, (0, "bulk wait", 0, 0))[2][1], 381)

    def test_another_block_shares_the_sm(self):
        alone, beside = [replay.Replay(launch(*[(0, "mma", 4096)] * 100), COSTS, blocks).clocks for blocks in (1, 2)]
        self.assertGreater(beside, 1.9 * alone)

    def test_who_waits_in_vain_is_refused(self):
        with self.assertRaisesRegex(replay.Unable, "wait for ever"):
            timed((0, "mbarrier init", 8, 1), (0, "mbarrier wait", 8, 0))

    def test_unless_a_check_has_said_so(self):
        stuck = [(0, "mbarrier init", 8, 1), (0, "mbarrier wait", 8, 0), (1, "wgmma", 1024 * 1000)]
        clock = replay.Replay(launch(*stuck, warps=2, diagnosis={"check": "synccheck"}), COSTS)
        self.assertEqual(clock.waits, [(1, 0, 1, 1000)])

    def test_who_comes_first_does_the_rest_after_the_last(self):
        events = launch((0, "mbarrier wait", 8, 1), (0, "shared load", 4, 1, 0, 1), (0, "bulk load", 64, 8, 0, 1), (0, "mbarrier wait", 8, 1))
        for event, lanes in zip(events.events, (0xFFFFFFFE, 0xFFFFFFFE, 1, 1)):
            event[3] = lanes
        self.assertEqual([op[1:3] for op in events.programs()[0]], [["bulk load", 1], ["mbarrier wait", ALL], ["shared load", 0xFFFFFFFE]])

    def in_cluster(self, *events, one_lane=(), **more):
        """Of a cluster of two blocks with a warp each."""
        recorded = launch(*events, grid=[2, 1, 1], cluster=[2, 1, 1], **more)
        for each in one_lane:
            recorded.events[each][3] = 1
        return replay.Replay(recorded, COSTS)

    def test_a_multicast_lands_in_both_blocks(self):
        mbarriers = [(block, "mbarrier init", 8, 1) for block in (0, 1)] + [(block, "mbarrier arrive", 8, 1, 640, block) for block in (0, 1)]
        waits = [(block, "mbarrier wait", 8, 0) for block in (0, 1)]
        clock = self.in_cluster(*mbarriers, (0, "bulk load", 640, 8, 0, 0b11), *waits, one_lane=(2, 3, 4))
        self.assertEqual(clock.landed, {(2, 0): 1, (3, 1): 1, (4, 0): 2 + 700, (4, 1): 2 + 700})
        self.assertEqual([block.mbarriers[8].phases[0][4] for block in clock.blocks], [[(702, 640)], [(702, 640)]])
        self.assertEqual({event: end for event, _, _, end in clock.spans if event in (5, 6)}, {5: 702, 6: 702})
        busy = self.in_cluster((1, "copy", 6400, 1, 0, 6400), *mbarriers, (0, "bulk load", 640, 8, 0, 0b11), one_lane=(3, 4, 5))
        self.assertEqual((busy.landed[5, 0], busy.landed[5, 1]), (702, 800))  # each SM has a way of its own

    def test_an_arrival_at_another_block_takes_its_time(self):
        clock = self.in_cluster((1, "mbarrier init", 8, 1), (0, "mbarrier arrive", 8, 1, 0, 1), (1, "mbarrier wait", 8, 0), one_lane=(1,))
        self.assertEqual(clock.blocks[1].mbarriers[8].phases[0][2:4], (180, [(180, 0, 1, 1)]))
        self.assertEqual(clock.spans[-1], (2, 1, 1, 180))
        self.assertEqual(clock.blocks[0].mbarriers[8].phases, [])

    def test_st_async_brings_bytes_to_another_block(self):
        clock = self.in_cluster((1, "mbarrier init", 8, 1), (1, "mbarrier arrive", 8, 1, 128, 1), (0, "st.async", 4, 8, 64, 1), one_lane=(1,))
        self.assertEqual(clock.landed[2, 1], 128 / 64 + 180)
        self.assertEqual(clock.blocks[1].mbarriers[8].phases[0][4], [(182, 128)])

    def test_memory_of_another_block(self):
        clock = self.in_cluster((0, "cluster load", 4, 0, 0, 1), (0, "cluster store", 4, 0, 0, 1))
        self.assertEqual(clock.spans, [(0, 0, 0, 182), (1, 0, 182, 364)])
        self.assertEqual(clock.landed, {(0, 1): 182, (1, 1): 364})
        adds = self.in_cluster((0, "cluster load", 4, 0, 0, 1), (0, "cluster atomic", 4, 0, 0, 1))
        self.assertEqual(adds.spans[1], (1, 0, 182, 364))  # what it adds has come by then

    def test_the_barrier_of_a_cluster_waits_for_all_its_warps(self):
        meet = [(block, kind) for kind in ("cluster arrive", "cluster wait") for block in (0, 1)]
        clock = self.in_cluster((1, "copy", 64, 2, 0, 64), (1, "copy commit"), (1, "copy wait", 0), *meet)
        self.assertEqual({event: end for event, _, _, end in clock.spans if event > 4}, {5: 692 + 180, 6: 692 + 180})
        alone = replay.Replay(launch((0, "cluster arrive"), (0, "cluster wait"), (0, "cluster arrive"), (0, "cluster wait")), COSTS)
        self.assertEqual(alone.clocks, 4)
        ended = self.in_cluster((0, "cluster arrive"), (0, "cluster wait"))  # the other block's warp has nothing to do
        self.assertEqual(ended.clocks, 181)

    def test_clusters_may_share_their_multiprocessors(self):
        recorded = launch(*[(block, "mma", 4096) for block in (0, 1)] * 100, grid=[4, 1, 1], cluster=[2, 1, 1])
        alone, beside = [replay.Replay(recorded, COSTS, clusters).clocks for clusters in (1, 2)]
        self.assertAlmostEqual(alone, 100 * COSTS.mma, delta=2)  # each block has a tensor core of its own
        self.assertGreater(beside, 1.9 * alone)

    def test_a_cluster_is_drawn_block_by_block(self):
        events = [(block, "mbarrier init", 8, 1) for block in (0, 1)] + [(block, "mbarrier arrive", 8, 1, 640, block) for block in (0, 1)]
        events += [(0, "bulk load", 640, 8, 0, 0b11), (1, "mbarrier arrive", 8, 1, 0, 0)]
        clock = self.in_cluster(*events, one_lane=(2, 3, 4, 5))
        drawn = picture.Picture(clock.launch, clock, "")
        self.assertEqual([(lane["b"], lane["g"], lane["n"]) for lane in drawn.lanes], [(block, *lane) for block in (0, 1) for lane in (("ring", "stage 0"), ("warps", "warp 0"), ("mbarriers", "mbarrier at 8"))])
        (copy,) = [s for s in drawn.segments if s["k"] == "copy"]
        self.assertEqual(copy["to"], [[3, 702]])
        self.assertIn("Warp 0 of block 0 issues 1 box, 1 of them multicast to blocks 0–1 to stage 0: 640 bytes.", copy["t"])
        self.assertEqual([(s["l"], s["a"], s["b"]) for s in drawn.segments if s["k"] == "fill"], [(0, 2, 702), (3, 2, 702)])
        (arrival,) = [s for s in drawn.segments if s.get("to") and s["k"] == "mark"]
        self.assertEqual((arrival["l"], arrival["to"]), (4, [[2, 182]]))
        self.assertIn("arrives at mbarrier at 8 of block 0, 1 arrival", arrival["t"])
        arrows = [(e["ph"], e["pid"], e["tid"], e["ts"]) for e in perfetto.trace(drawn)["traceEvents"] if e["ph"] in "sf"]
        self.assertEqual(arrows, [("s", 1, 2, 2), ("s", 2, 5, 2), ("f", 1, 3, 182), ("f", 2, 4, 702)])

    def test_every_kind_that_is_recorded_has_a_cost(self):
        with open(os.path.join(cost.ROOT, "common/interpreter/observe/events.cpp"), encoding="utf-8") as file:
            names = re.search(r"kNames\[\] = \{(.*?)\}", file.read(), re.DOTALL)[1]
        self.assertEqual(set(re.findall(r'"(.*?)"', names)), set(KINDS))

    def test_constants_name_files_that_are_there(self):
        for constant in COSTS.constants:
            self.assertTrue(os.path.isfile(os.path.join(cost.ROOT, constant.source.split(":")[0])), constant)


class Accesses(unittest.TestCase):
    def passes(self, kind, size, address_of):
        return accesses.passes_of(kind, size, {lane: address_of(lane) for lane in range(32)})

    def test_a_row_is_one_wavefront_and_a_column_32(self):
        self.assertEqual(accesses.wavefronts(self.passes("shared load", 4, lambda lane: 4 * lane)), 1)
        self.assertEqual(accesses.wavefronts(self.passes("shared load", 4, lambda lane: 128 * lane)), 32)
        self.assertEqual(accesses.wavefronts(self.passes("shared load", 4, lambda lane: 132 * lane)), 1)  # with padding
        self.assertEqual(accesses.wavefronts(self.passes("shared load", 4, lambda lane: 0)), 1)

    def test_16_bytes_go_in_passes_of_8_lanes(self):
        passes = self.passes("ldmatrix", 16, lambda lane: 128 * lane)
        self.assertEqual((len(passes), accesses.wavefronts(passes)), (4, 32))

    def test_sectors_of_a_row_and_of_a_column(self):
        self.assertEqual({line: sorted(sectors) for line, sectors in accesses.lines_of(4, {lane: 4 * lane for lane in range(32)}).items()}, {0: [0, 1, 2, 3]})
        self.assertEqual(len(accesses.lines_of(4, {lane: 4096 * lane for lane in range(32)})), 32)

    def test_lanes_in_short(self):
        self.assertEqual([accesses.named(each) for each in ([3], [0, 1, 2], [0, 2])], ["3", "0–2", "0, …"])


class Works(unittest.TestCase):
    def test_what_instructions_work_on(self):
        layouts = 1 << 2 | (64 | 1 << 28) << 4 | (512 | 64 << 14 | 1 << 28) << 34  # as 10's, but for A's stride
        products = [(0, "wgmma", 131072, 32 * i, 16384 + 2048 * i, 256, layouts) for i in range(4)]
        recorded = launch((0, "ldmatrix", 16, 4, 0, 4, 101), (0, "ldmatrix", 16, 4, 0, 4, 200), (0, "mma", 4096, 100, 0, 8), (0, "mma", 512, 100), *products, *products)
        found = operands.Operands(recorded)
        self.assertEqual(found.of([0, 1, 2]), [0, 1, 2])
        self.assertEqual(found.of([1]), [1])
        self.assertEqual(found.of([3]), [])  # of doubles: not drawn
        self.assertEqual(found.of([4, 5, 6, 7]), found.of([8, 9, 10, 11]))  # drawn once
        texts = [each["t"] for each in found.documents]
        self.assertTrue(texts[0].startswith("ldmatrix.x4.trans: ") and texts[1].startswith("ldmatrix.x4: ") and texts[2].startswith("mma.sync m16n8k16: "), texts)
        self.assertIn("B, MN-major", found.documents[3]["p"][1]["t"])
        self.assertTrue(found.documents[3]["p"][1]["t"].endswith("They begin 0, 2,048, 4,096, 6,144 bytes from the first one."))
        in_registers = launch((0, "wgmma", 131072, 0, 0, 64, layouts | 1))
        found = operands.Operands(in_registers)
        found.of([0])
        self.assertEqual((len(found.documents[0]["p"]), found.documents[0]["t"].endswith("A is in registers.")), (1, True))


class Words(unittest.TestCase):
    def test_numbers_in_a_row(self):
        self.assertEqual(picture.listed([8, 0, 1, 2, 3, 5]), "0–3, 5, 8")

    def test_stages_are_what_copies_fill_again(self):
        events = [(0, "copy", 512, 16, 512 * i, 512) if i % 2 == 0 else (0, "copy commit") for i in range(4)]
        self.assertEqual(picture.Stages(launch(*events, *events)).ranges, [[0, 512], [1024, 1536]])

    def test_mbarriers_have_their_names_in_the_source(self):
        names = {"8": "bars (byte 8 of 16)", "64": "bar (byte 0 of 8)", "72": "dynamic shared memory (byte 72 of 96)"}
        recorded = launch(*[(0, "mbarrier init", int(address), 1) for address in names], names=names)
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        self.assertEqual(list(drawn.names.values()), ["bars[1]", "bar", "mbarrier at 72"])

    def test_several_mbarriers_of_a_line_take_turns(self):
        recorded = launch(*[(0, "mbarrier init", 8 * i, 1) for i in range(4)])
        for event in recorded.events:
            event[2] = 0
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        drawn.file, drawn.source = "kernel.cu", ["for (...) mbarrier_init(&full[i], 1), mbarrier_init(&empty[i], 4);"]
        self.assertEqual(list(drawn.name_mbarriers().values()), ["full[0]", "empty[0]", "full[1]", "empty[1]"])

    def test_a_stage_may_have_parts_between_those_of_others(self):
        groups = [[(0, "copy", 512, 16, 512 * i, 512), (0, "copy", 512, 16, 4096 + 512 * i, 512), (0, "copy commit")] for i in (0, 1)]
        stages = picture.Stages(launch(*[event for group in groups * 2 for event in group]))
        self.assertEqual(stages.ranges, [[0, 4608], [512, 5120]])
        self.assertEqual([stages.at(address) for address in (0, 511, 512, 4096 + 100, 4096 + 600, 3000)], [0, 0, 1, 0, 1, -1])
        self.assertEqual(stages.named(1), "Stage 1 (from byte 512 on, in parts)")

    def stopped(self, what, *events, **more):
        """The picture of two warps that a check has ended at line 7 in lane 3 of warp 1."""
        diagnosis = {"check": "racecheck", "what": what, "expected": "", "file": "kernel.cu", "line": 7, "called_at": 9, "called_in": "", "warp": 1, "lane": 3, "rank": 0, **more}
        recorded = launch(*events, warps=2, shared_bytes=96, diagnosis=diagnosis, names={"72": "dynamic shared memory (byte 72 of 96)"})
        return picture.Picture(recorded, replay.Replay(recorded, COSTS), "")

    def test_a_diagnosis_names_stages_and_mbarriers_and_stands_where_its_warp_ends(self):
        copies = [(0, "mbarrier init", 72, 1), (0, "copy", 64, 2, 0, 64), (0, "copy commit"), (1, "copy wait", 0), (1, "copy commit")]
        what = "race on dynamic shared memory (byte 16 of 96), not dynamic shared memory (byte 72 of 96) or dynamic shared memory (byte 80 of 96)"
        drawn = self.stopped(what, *copies)
        self.assertEqual(drawn.diagnosis()["what"], "race on stage 0 (byte 16), not mbarrier at 72 or dynamic shared memory (byte 80 of 96)")
        self.assertEqual(self.stopped("read by thread (37,0,0)", *copies).diagnosis()["what"], "read by thread (37,0,0) (warp 1, lane 5)")
        self.assertIn("lane 3 (this thread), line 7", self.stopped("read by this thread", *copies).diagnosis()["where"])
        self.assertEqual(drawn.diagnosis()["where"], "warp 1, lane 3, line 7, called at line 9")
        (stop,) = [s for s in drawn.segments if s.get("stop")]
        self.assertEqual((stop["k"], drawn.lanes[stop["l"]]["n"], stop["a"], stop["i"]), ("stop", "warp 1", 2, [7, 9]))
        elsewhere = self.stopped(what, *copies, rank=-1)
        self.assertEqual([s for s in elsewhere.segments if s.get("stop")], [])
        self.assertIn("another block", elsewhere.diagnosis()["where"])

    def test_who_is_in_a_deadlock_waits_to_the_end(self):
        what = "deadlock: block (0,0,0): 32 threads (the first: (0,0,0)) wait in bar.sync at kernel.cu:5; thread (35,0,0) waits in mbarrier.try_wait at kernel.cu:7 for phase 1 of dynamic shared memory (byte 72 of 96), which lacks 0 bytes and 1 of 4 arrivals"
        drawn = self.stopped(what, (0, "mbarrier init", 72, 4), (0, "copy", 64, 2, 0, 64))
        self.assertEqual(drawn.stuck("deadlock between blocks: " + what), {})
        drawn.launch.cluster, drawn.launch.cluster_size = [2, 1, 1], 2
        both = what + "; block (1,0,0): thread (0,0,0) waits in bar.sync at kernel.cu:5; block (2,0,0): thread (0,0,0) waits in bar.sync at kernel.cu:5"
        self.assertEqual({warp: line for warp, (line, _) in drawn.stuck(both).items()}, {0: 5, 1: 7, 2: 5})
        self.assertEqual(set(drawn.stuck("deadlock: block (1,0,0): thread (0,0,0) waits in bar.sync at kernel.cu:5")), {2})
        drawn.launch.cluster, drawn.launch.cluster_size = [1, 1, 1], 1
        waits = {drawn.lanes[s["l"]]["n"]: s for s in drawn.segments if s["k"] == "wait-ever"}
        self.assertEqual(len(waits), 2)
        self.assertEqual(waits["warp 0"]["t"], "Warp 0 waits for ever, in bar.sync.")
        self.assertEqual(waits["warp 1"]["t"], "Warp 1 waits for ever, in mbarrier.try_wait for phase 1 of mbarrier at 72, which lacks 1 of 4 arrivals.")
        self.assertEqual([(s["i"], s["b"], s.get("stop")) for _, s in sorted(waits.items())], [([5], drawn.document()["clocks"], None), ([7], drawn.document()["clocks"], 1)])

        waiting = [(0, "mbarrier init", 72, 1), (0, "copy", 64, 2, 0, 64), (0, "mbarrier wait", 72, 0, 0), (1, "barrier")]
        at_barrier = self.stopped("deadlock: block (0,0,0): 32 threads (the first: (32,0,0)) wait in bar.sync at kernel.cu:2", *waiting)
        (stop,) = [s for s in at_barrier.segments if s.get("stop")]
        self.assertEqual((stop["t"], stop["a"], stop["b"]), ("Warp 1 waits for ever, in bar.sync.", 0, at_barrier.document()["clocks"]))

    def test_a_check_may_have_ended_it_at_its_first_instruction(self):
        drawn = self.stopped("masks that differ")
        self.assertEqual([(drawn.lanes[s["l"]]["n"], s["k"], s["a"], s["i"]) for s in drawn.segments], [("warp 1", "stop", 0, [7, 9])])
        self.assertEqual(drawn.file, "kernel.cu")
        self.assertIn("Here racecheck has stopped", page.page(drawn, COSTS, []))

    def test_a_check_may_have_ended_another_block_than_the_first(self):
        what = "deadlock: block (2,0,0): 32 threads (the first: (0,0,0)) wait in bar.sync at kernel.cu:5"
        diagnosis = {"check": "synccheck", "what": what, "expected": "", "file": "kernel.cu", "line": 5, "called_at": 0, "called_in": "", "warp": 0, "lane": 0, "rank": 0}
        recorded = launch((0, "copy", 64, 2, 0, 64), (1, "copy", 64, 2, 0, 64), warps=2, grid=[3, 1, 1], first=[2, 0, 0], diagnosis=diagnosis)
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        self.assertEqual([(drawn.lanes[s["l"]]["n"], s["k"]) for s in drawn.segments if s.get("stop")], [("warp 0", "wait-ever")])
        self.assertEqual(drawn.diagnosis()["where"], "warp 0, lane 0, line 5")

    def test_of_a_deadlock_what_is_not_known_is_not_drawn(self):
        groups = "{} threads (the first: (0,0,0)) wait in a at kernel.cu:1; {} threads (the first: ({},0,0)) wait in b at kernel.cu:2"
        for counts, stuck in (((32, 32, 32), "ab"), ((1, 63, 1), "ab"), ((64, 0, 64), "aa"), ((32, 16, 32), "ab"), ((48, 0, 0), "a")):
            with self.subTest(counts):
                report = groups.format(*counts) if counts[1] else groups.split(";")[0].format(counts[0])
                found = self.stopped("deadlock: block (0,0,0): " + report, (0, "copy", 64, 2, 0, 64)).stuck("deadlock: block (0,0,0): " + report)
                self.assertEqual({warp: what for warp, (_, what) in found.items()}, {warp: f"in {what}." for warp, what in enumerate(stuck)})

    def test_a_wait_names_the_phase_that_is_over_on_the_clock(self):
        """Warp 0 has gone through three phases before warp 1 came to its wait, on the interpreter; on the clock it comes at once."""
        phases = [(0, "mbarrier arrive", 8, 1), (0, "wgmma", 1024 * 100), (0, "wgmma commit"), (0, "wgmma wait", 0)] * 3
        events = [(0, "mbarrier init", 8, 1), (0, "barrier"), (1, "barrier"), *phases, (1, "mbarrier wait", 8, 0, 2), (1, "mbarrier wait", 8, 1, 2**64 - 1)]
        recorded = launch(*events, warps=2)
        for event in recorded.events:
            if recorded.kinds[event[1]].startswith("mbarrier a"):
                event[3] = 1
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        waits = [s for s in drawn.segments if s.get("p")]
        self.assertRegex(waits[0]["t"], r"for mbarrier at 8, phase 0, parity 0: warp 0 arrives last, at 2. In the interpreter's order phase 2 was over already, which has this parity, too\.$")
        self.assertRegex(waits[1]["t"], "phase 1, parity 1: .* In the interpreter's order it was before the first phase")

    def test_a_race_shows_the_other_access(self):
        """The copy to stage 0 that comes after the read on the clock, though not on the interpreter."""
        copy = [(0, "mbarrier arrive", 72, 1, 64), (0, "bulk load", 64, 72, 0, 1)]
        events = [(0, "mbarrier init", 72, 1), (0, "barrier"), (1, "barrier"), *copy, (0, "mbarrier wait", 72, 0, 0), (0, "wgmma", 1024 * 100), (0, "wgmma commit"), (0, "wgmma wait", 0), *copy, (0, "mbarrier wait", 72, 1, 1), (1, "mbarrier wait", 72, 0, 0), (1, "ldmatrix", 16, 4, 0, 4, 100)]
        places = [["kernel.cu", 5 if event[1] == "bulk load" else 20 + i, "kernel.cu", 0] for i, event in enumerate(events)]
        what = "race on dynamic shared memory (byte 16 of 96): written by the bulk copy issued at kernel.cu:5, then read by this thread"
        diagnosis = {"check": "racecheck", "what": what, "expected": "", "file": "kernel.cu", "line": 7, "called_at": 0, "called_in": "", "warp": 1, "lane": 3, "rank": 0}
        recorded = launch(*events, warps=2, shared_bytes=96, diagnosis=diagnosis, places=places)
        for event in recorded.events:
            event[3] = 1 if recorded.kinds[event[1]] in ("mbarrier arrive", "bulk load") else ALL
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        (stop,) = [s for s in drawn.segments if s.get("stop")]
        copies = [s for s in drawn.segments if s["k"] == "copy"]
        self.assertLess(copies[0]["b"], stop["a"])
        self.assertGreater(copies[1]["a"], stop["a"])
        self.assertEqual(([s.get("f") for s in copies], stop["w"]), ([None, 1], [copies[1]["l"], copies[1]["a"]]))
        self.assertEqual([s.get("f") for s in drawn.segments if s["k"] == "fill"], [None, 1])
        self.assertIn("The interpreter let warp 0 run ahead", stop["t"])
        self.assertIn("The report's first copy is one of 2 of its line, perhaps that of warp 0", stop["t"])
        self.assertIn("ran ahead", copies[1]["t"])
        self.assertEqual(drawn.stopped_at, stop["a"])
        self.assertIn("has a red frame", drawn.diagnosis()["here"])

    def test_an_arrival_speaks_for_no_lane_that_has_not_synchronised(self):
        events = [(1, "mbarrier init", 72, 1), (1, "shared load", 4, 1, 0, 1), (1, "mbarrier arrive", 72, 1)]
        what = "race on s (byte 16 of 96): read by thread (48,0,0) at kernel.cu:2, then written by the cp.async.bulk.tensor that this thread issues"
        diagnosis = {"check": "racecheck", "what": what, "expected": "", "file": "kernel.cu", "line": 7, "called_at": 0, "called_in": "", "warp": 1, "lane": 0, "rank": 0}
        for lanes, is_said in ((1, True), (ALL, False)):  # all lanes arrive: it speaks for all of them
            recorded = launch(*events, warps=2, shared_bytes=96, diagnosis=diagnosis)
            recorded.events[2][3] = lanes
            drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
            (arrival,) = [s for s in drawn.segments if "arrives at mbarrier" in s["t"]]
            self.assertEqual((arrival.get("f"), "Lane 16 has not synchronised with lane 0" in arrival["t"]), (1, True) if is_said else (None, False))
            self.assertEqual("does not speak for lane 16" in drawn.diagnosis()["here"], is_said)

    def test_who_has_not_arrived_and_who_arrives_too_often(self):
        what = "deadlock: block (0,0,0): thread (0,0,0) waits in mbarrier.try_wait at kernel.cu:7 for phase 0 of dynamic shared memory (byte 72 of 96), which lacks 0 bytes and 1 of 2 arrivals"
        diagnosis = {"check": "synccheck", "what": what, "expected": "", "file": "kernel.cu", "line": 7, "called_at": 0, "called_in": "", "warp": 0, "lane": 0, "rank": 0}
        for arrivals, is_said in ((2, True), (3, False)):  # of two warps: of three arrivals nobody knows whose they are
            recorded = launch((0, "mbarrier init", 72, arrivals), (0, "mbarrier arrive", 72, 1), warps=2, diagnosis=diagnosis, names={"72": "dynamic shared memory (byte 72 of 96)"})
            recorded.events[1][3] = 1
            drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
            (wait,) = [s for s in drawn.segments if s["k"] == "wait-ever"]
            self.assertTrue(wait["t"].endswith("1 of 2 arrivals. Arrived: warp 0" + ("; not warp 1." if is_said else ".")), wait["t"])
            self.assertEqual([s["t"].count("of warp 0; not of warp 1") for s in drawn.segments if s["k"] == "phase0"], [int(is_said)])

        events = [(0, "mbarrier init", 72, 2), (0, "mbarrier arrive", 72, 1, 64), (0, "mbarrier arrive", 72, 1), (0, "mbarrier arrive", 72, 1)]
        recorded = launch(*events)
        for event in recorded.events:
            event[3] = 1
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        self.assertEqual([s["k"] for s in drawn.segments if "arrival 2 of" in s["t"] or "arrival 3 of" in s["t"]], ["arrival", "surplus"])
        self.assertTrue(any("3 of 2 arrivals, 1 too many" in s["t"] for s in drawn.segments))

    def test_the_heading_says_what_a_dependent_launch_cannot_show(self):
        drawn = picture.Picture(launch((0, "launch wait")), timed_of((0, "launch wait")), "")
        self.assertIn("between two launches, is not on this page", page.page(drawn, COSTS, []))
        self.assertEqual(picture.Picture(launch((0, "mma", 4096)), timed_of((0, "mma", 4096)), "").notes(), [])

    def test_a_stage_that_is_read_before_it_is_full(self):
        events = [(0, "copy", 512, 16, 0, 512), (0, "copy commit"), (0, "shared load", 4, 1, 0, 1)] * 2
        recorded = launch(*events)
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        ring = [(s["k"], s["a"], s["b"]) for s in drawn.segments if drawn.lanes[s["l"]]["g"] == "ring"]
        self.assertEqual(ring[:2], [("fill", 0, 2), ("early", 2, 698)])

    def test_an_mbarrier_counts_what_has_come(self):
        begin = [(0, "mbarrier init", 8, 2), (0, "mbarrier arrive", 8, 1, 192), (0, "bulk load", 128, 8, 0, 1), (0, "bulk load", 64, 8, 128, 1), (0, "mbarrier arrive", 8, 1, 0)]
        recorded = launch(*begin)
        for each in recorded.events:
            each[3] = 1
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        texts = [s["t"] for s in drawn.segments]
        for text in (
            "Warp 0 arrives at mbarrier at 8, 1 arrival by lane 0 alone, and says that 192 bytes are to come.",
            "mbarrier at 8, phase 0, parity 0: arrival 2 of 2, of warp 0.",
            "mbarrier at 8, phase 0, parity 0: 128 bytes have landed, so far 128 of 192.",
            "mbarrier at 8, phase 0, parity 0: 64 bytes have landed, so far 192 of 192.",
            "mbarrier at 8, phase 0, parity 0: 2 of 2 arrivals, of warp 0; 192 of 192 bytes. It is over at 695.",
            "mbarrier at 8, phase 1, parity 1: 0 of 2 arrivals. It is not over when the picture ends.",
        ):
            self.assertIn(text, texts)

    def test_idle_time_of_the_tensor_cores(self):
        recorded = launch((0, "copy", 512, 16, 0, 512), (0, "copy commit"), (0, "copy wait", 0), (0, "wgmma", 1024 * 100), (0, "bulk store", 64 * 50))
        drawn = picture.Picture(recorded, replay.Replay(recorded, COSTS), "")
        before, between, after = (share * drawn.replay.clocks for share in drawn.tensor_idle())
        self.assertEqual((round(before), round(after)), (699, 700 + 50 + 281 - 799))
        self.assertAlmostEqual(between, 75)  # three of four cores have nothing to do

    def test_the_page_holds_what_a_kernel_says(self):
        drawn = picture.Picture(launch((0, "mma", 4096)), timed_of((0, "mma", 4096)), "a < b </script>")
        text = page.page(drawn, COSTS, ["1 < 2"])
        self.assertEqual(text.count("</script>"), 2)
        self.assertIn("<h1>a &lt; b &lt;/script&gt;</h1>", text)
        self.assertNotRegex(text, r"@[A-Z_]+@")
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?://|src=|@import|url\((?!#|`)")  # nothing from elsewhere


def timed_of(*events):
    return replay.Replay(launch(*events), COSTS)


@unittest.skipUnless(os.path.isdir(PROGRAMS), "needs COURSE_BUILD, the interpreter's")
class Steps(unittest.TestCase):
    def record(self, step, shape, *words):
        """(launch, counters)."""
        with tempfile.TemporaryDirectory() as scratch:
            events, results = os.path.join(scratch, "events"), os.path.join(scratch, "results")
            command = [os.path.join(PROGRAMS, step), "--dtype", "f16", "--shape", shape, "--force", "--json", results, *(words or ["--first"])]
            subprocess.run(command, env={**os.environ, "COURSE_EVENTS": events}, stdout=subprocess.DEVNULL, check=True)
            with open(results, encoding="utf-8") as file:
                counters = json.load(file)["results"][0]["counters"]
            return max(replay.read(events), key=lambda each: len(each.events)), counters

    def test_events_of_one_block_add_up_to_the_counters(self):
        for step, shape in ((STAGES, "128x128x256"), ("09_tma", "128x128x256"), ("10_wgmma", "128x256x256"), ("13_ping_pong", "64x256x256")):
            with self.subTest(step):
                recorded, counters = self.record(step, shape)
                sums, counts = defaultdict(lambda: [0] * 5), defaultdict(int)
                for _, kind, _, _, *values in recorded.events:
                    counts[recorded.kinds[kind]] += 1
                    sums[recorded.kinds[kind]] = [a + b for a, b in zip(sums[recorded.kinds[kind]], values)]
                expected = {
                    "smsp__inst_executed_op_ldgsts.sum": counts["copy"],
                    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum": sums["copy"][1],
                    "smsp__inst_executed_op_ldsm.sum": counts["ldmatrix"],
                    "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum": sums["ldmatrix"][1],
                    "smsp__inst_executed_op_shared_ld.sum": counts["shared load"],
                    "smsp__inst_executed_op_shared_st.sum": counts["shared store"],
                    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": sums["shared store"][1],
                    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": sums["global store"][1],
                    "sm__sass_inst_executed_op_tma_ld.sum": counts["bulk load"],
                }
                for name, value in expected.items():
                    if name in counters:
                        self.assertEqual(counters[name], value, name)
                self.assertEqual(counters["sm__inst_executed_pipe_tensor_op_hmma.sum"], counts["mma"])
                self.assertEqual(counters["smsp__sass_inst_executed_op_shared_gmma.sum"], counts["wgmma"])
                m, n, k = map(int, shape.split("x"))
                self.assertEqual(sums["mma"][0] + sums["wgmma"][0], 2 * m * n * k)
                if counts["bulk load"]:
                    self.assertEqual(sums["bulk load"][0], 2 * (m + n) * k)

    def test_banks_and_sectors_are_as_the_interpreter_counts_them(self):
        kinds = set()
        for step, shape, *words in (("02_tiled", "64x64x64", "--tile", "64x64x8"), (STAGES, "128x128x128"), ("12_persistent", "128x256x64")):
            recorded, _ = self.record(step, shape, *words)
            for index, mask, addresses in recorded.addresses:
                access = accesses.Access(recorded, index, mask, addresses)
                kinds.add(access.kind)
                if access.is_shared:
                    self.assertEqual((accesses.wavefronts(access.passes), len(access.passes)), (access.values[1], access.values[3]), access.kind)
                elif addresses:
                    self.assertEqual(sum(map(len, access.lines.values())), access.values[1], access.kind)
            self.assertTrue(accesses.distinct(recorded))
        self.assertEqual(kinds, {"global load", "global store", "shared load", "shared store", "ldmatrix", "copy"})

    def test_pictures_of_the_steps(self):
        for step, shape, *words in (
            (STAGES, "256x256x256"), ("09_tma", "256x256x256"), ("10_wgmma", "512x512x256"), ("11_warp_specialized", "512x512x256"),
            ("12_persistent", "512x512x256", "--first", "--multiprocessors", "2"), ("13_ping_pong", "512x512x256", "--first", "--multiprocessors", "2"),
            ("16_multicast", "512x256x256", "--first", "--multiprocessors", "2"), ("20_fewer_requests", "512x512x128", "--first", "--multiprocessors", "2"),
            ("15_few_rows", "8x128x2048"),
        ):  # fmt: skip
            with self.subTest(step):
                recorded, _ = self.record(step, shape, *words)
                clock = replay.Replay(recorded, COSTS)
                self.assertEqual(len(clock.spans), sum(map(len, recorded.programs())))  # nothing was left out, nobody is stuck
                if "--multiprocessors" in words:
                    self.assertEqual(recorded.blocks, 2)
                drawn = picture.Picture(recorded, clock, step)
                self.assertLessEqual(sum(span[3] - span[2] for span in clock.spans if recorded.kinds[recorded.events[span[0]][1]] in ("mma", "wgmma")), 4 * recorded.cluster_size * clock.clocks)
                self.assertGreaterEqual(len(drawn.stages.ranges), 3)
                self.assertTrue(drawn.file.endswith("gemm.cuh"))
                for segment in drawn.segments:
                    self.assertLessEqual(0, segment["a"])
                    self.assertLessEqual(segment["a"], segment["b"])
                    for line in segment.get("i", ()):
                        self.assertTrue(drawn.source[line - 1].strip(), segment)
                # The phase that the interpreter saw end is the one that ends here, too.
                phases = {address: len(barrier.phases) for address, barrier in clock.blocks[0].mbarriers.items()}  # in all blocks alike
                self.assertEqual([s["t"] for s in drawn.segments if s["k"] == "early"], [])
                self.assertEqual(bool([s for s in drawn.segments if "to" in s]), recorded.cluster_size > 1)
                for event in recorded.events:
                    if recorded.kinds[event[1]] == "mbarrier wait" and event[6] < 1 << 63:
                        self.assertLess(event[6], phases[event[4]])
                self.check_trace(perfetto.trace(drawn))
                self.assertLess(len(page.page(drawn, COSTS, [])), 2_000_000)

    def test_pictures_in_the_lessons(self):
        """They are what the kernels do now, small, and legible on a phone; the lesson says what is seen, and how to make the live page."""
        for name, (step, draw) in figures.FIGURES.items():
            with self.subTest(name):
                is_of_lesson = name.startswith("steps/")
                with open(os.path.join(cost.ROOT, os.path.dirname(name) if is_of_lesson else "", "README.md"), encoding="utf-8") as file:
                    text = file.read()
                if not step[:2].isdigit():
                    self.assertRegex(text, rf"\n!\[[^\]]{{80,}}\]\({os.path.basename(name)}\)<br>\n\*[^*]*by the \[cost model\].*\*\n")
                elif is_of_lesson:
                    self.assertRegex(text, rf"\n!\[[^\]]{{80,}}\]\({os.path.basename(name)}\)<br>\n\*.*`tools/course see {int(step[:2])}\b.*\*\n")
                else:
                    self.assertRegex(text, rf"\n!\[[^\]]{{80,}}\]\({name}\)\n")
                with open(os.path.join(cost.ROOT, name), encoding="utf-8") as file:
                    text = file.read()
                self.assertLess(len(text), 40_000)
                self.assertIn(f'viewBox="0 0 {svg.WIDTH} ', text)
                self.assertGreaterEqual(min(map(int, re.findall(r"<text[^>]* font-size=\"(\d+)\"", text))), 12)
                self.assertEqual(len(re.findall("<text", text)), len(re.findall("<text[^>]* font-size", text)))
                if not os.path.exists(os.path.join(PROGRAMS, step)):
                    self.skipTest(f"{step} is not built")
                self.assertTrue(text == draw(os.environ["COURSE_BUILD"]).decode(), f"{name}: run 'python3 -B tools/see/figures.py' and look at it")

    def test_the_block_that_adds_loads_what_the_others_leave(self):
        tile, build = "16x32x128 warp 16x16 s8 g8 split 4", os.environ["COURSE_BUILD"]
        leaves, adds = (data_figures.launch_of(build, "08_split_k", "8x1024x4096", "--tile", tile, block=block) for block in (64, 96))
        self.assertEqual((leaves.first, adds.first), ([0, 2, 0], [0, 3, 0]))
        left, loaded = (sum(event[5] for event in each.events if each.kinds[event[1]] == kind) for each, kind in ((leaves, "global store"), (adds, "global load")))
        self.assertEqual(loaded, 3 * left)

    def test_descriptors_name_what_the_copies_have_written(self):
        """Of each stage all bytes, once, in every layout: the slices of A of both warpgroups, and those of B."""
        for layout in ("nn", "nt", "tn", "tt"):
            with self.subTest(layout):
                recorded, _ = self.record("10_wgmma", "128x256x128", "--first", "--layout", layout)
                events = [(recorded.kinds[event[1]], event[0], event[4:]) for event in recorded.events]
                copied = {piece for kind, _, v in events if kind == "bulk load" for piece in range(v[2], v[2] + v[0], descriptors.PIECE)}
                issued = [descriptors.matrices_of(v) for kind, warp, v in events if kind == "wgmma" and warp in (0, 4)]
                self.assertEqual({(each.name, each.is_mn_major) for pair in issued for each in pair}, {("A", layout[0] == "t"), ("B", layout[1] == "n")})
                read = [piece for a, b in issued for each in (a, b) for piece, *_ in each.pieces()]
                self.assertEqual(set(read), copied)
                self.assertEqual(len(read), len(copied) + sum(len(b.pieces()) for _, b in issued) // 2)  # B is both warpgroups'
                self.assertEqual("".join(descriptors.raster([a for a, _ in issued[:4]])[1]).count(descriptors.NO_SLICE), 0)
                # Chunk c of row r of a panel lies at c XOR r % 8: a row runs along k, or along m or n.
                for number, pair in enumerate(issued[:4]):
                    for first, each in zip(issued[0], pair):
                        for address, mn, k in each.pieces():
                            k += number * descriptors.OF_K
                            row, column = (k, mn % 64) if each.is_mn_major else (mn % 64, k)
                            self.assertEqual(address, first.address + mn // 64 * 8192 + row * descriptors.ROW + (column // 8 ^ row % 8) * descriptors.PIECE)

    def test_who_holds_what(self):
        """Each lane's registers are what instructions of a kernel put there."""
        said = defaultdict(dict)  # by matrix and lane, {(row, column): register}
        with tempfile.TemporaryDirectory() as scratch:
            program = [os.path.join(cost.ROOT, "tools/interpret/interpret.py"), "--build", os.environ["COURSE_BUILD"], "--cache", scratch]
            output = subprocess.run([sys.executable, "-B", *program, os.path.join(cost.ROOT, "tools/see/fragments.cu")], stdout=subprocess.PIPE, encoding="ascii", check=True).stdout
        for line in output.splitlines():
            name, *numbers = line.split()
            lane, register, row, column = map(int, numbers)
            said[name, lane][row, column] = register
        a, b, c = fragments.of_mma(8)
        for lane in range(fragments.LANES):
            for grid in (a, b, c):
                self.assertEqual(fragments.held(grid, lane), said[grid.name, lane])
            self.assertEqual(said["P", lane], said["C", lane])  # of A · 1 each lane has the elements of A: so its A was A
            # ldmatrix has loaded A as four matrices, and B as two that are transposed.
            whole = {}
            for i, matrix in enumerate(fragments.of_ldmatrix(4, False)):
                whole |= {(row + i % 2 * 8, column + i // 2 * 8): register for (row, column), register in fragments.held(matrix, lane).items()}
            self.assertEqual(whole, said["A", lane])
            whole = {}
            for i, matrix in enumerate(fragments.of_ldmatrix(2, True)):
                whole |= {(row + i * 8, column): register for (row, column), register in fragments.held(matrix, lane).items()}
            self.assertEqual(whole, said["B", lane])

    def test_everything_lies_within_the_pictures(self):
        for name in figures.FIGURES:
            with open(os.path.join(cost.ROOT, name), encoding="utf-8") as file:
                text = file.read()
            width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', text).groups())
            for found in re.finditer(r'<text x="([\d.]+)" y="([\d.]+)"(?: text-anchor="(\w+)")?[^>]*>([^<]*)<', text):
                x, y, anchor, words = found.groups()
                length = 0.56 * figures.SIZE * len(words)
                left = float(x) - {"middle": 0.5, "end": 1, None: 0}[anchor] * length
                self.assertGreaterEqual(left, -3, f"{name}: {words}")
                self.assertLessEqual(left + length, width + 4, f"{name}: {words}")
                self.assertLessEqual(float(y), height, f"{name}: {words}")
            for found in re.finditer(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', text):
                x, y, wide, high = map(float, found.groups())
                self.assertLessEqual((x + wide, y + high), (width + 0.01, height + 0.01), name)

    def test_numbers_on_curves_are_read(self):
        """All with one decimal; none on another one, none on a line of the grid. And the bars say that they are the model's."""
        for name in (name for name in figures.FIGURES if name.endswith("/share.svg")):
            with self.subTest(name):
                with open(os.path.join(cost.ROOT, name), encoding="utf-8") as file:
                    text = file.read()
                boxes = []
                for x, y, words in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle" font-size="12" font-weight="bold">([^<]*)<', text):
                    boxes.append((float(x) - 3.6 * len(words), float(x) + 3.6 * len(words), float(y) - 9, float(y)))
                    self.assertRegex(words, r"^\d+\.\d$")
                self.assertGreaterEqual(len(boxes), 4)
                for i, (left, right, top, bottom) in enumerate(boxes):
                    for other in boxes[:i]:
                        self.assertFalse(left < other[1] and other[0] < right and top < other[3] and other[2] < bottom)
                    for found in re.findall(r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', text):
                        x_0, y, x_1, _ = map(float, found)
                        self.assertFalse(x_0 < right and left < x_1 and top < y < bottom)
                self.assertIn(", measured</text>", text)
                self.assertIn(", by the model</text>", text)

    def test_pale_fills_are_seen_on_dark_pages(self):
        for name in figures.FIGURES:
            with open(os.path.join(cost.ROOT, name), encoding="utf-8") as file:
                text = file.read()
            self.assertEqual("prefers-color-scheme: dark" in text, f' fill-opacity="{svg.TINT}"' in text, name)

    def test_what_the_lessons_say_of_where_data_lie(self):
        build = os.environ["COURSE_BUILD"]
        for mapping, sectors, lines in (("coalesced", (1, 4), (1, 1)), ("swapped", (32, 1), (32, 1))):
            naive = data_figures.launch_of(build, "01_naive", "64x64x64", "--tile", mapping, dtype="f32")
            loads = data_figures.accesses_of(naive, 0, "global load")[:2]
            self.assertEqual(tuple(sum(map(len, each.lines.values())) for each in loads), sectors)
            self.assertEqual(tuple(len(each.lines) for each in loads), lines)
        tiled = data_figures.Tiled(build)
        self.assertEqual(tiled.pitch, (128 + 4) * data_figures.FLOAT)
        self.assertEqual(accesses.wavefronts(tiled.stores[0].passes), 1)
        self.assertEqual(accesses.wavefronts(accesses.passes_of("shared store", 4, tiled.without_padding(tiled.stores[0]))), 2)
        every = {(row + i, column + j) for lane in range(32) for row in tiled.rows[lane] for column in tiled.columns[lane] for i in range(4) for j in range(4)}
        self.assertEqual(len(every), 32 * 64)  # nobody computes what another lane does
        groups = figures.groups_of(recorded.record(build, "10_wgmma", "128x256x256"), 0)
        self.assertEqual([each.count for each in groups], [4] * 4)
        for before, after in zip(groups, groups[1:]):
            self.assertLess(after.since, before.end)

    def test_what_the_lessons_say_of_their_pictures(self):
        build, tiles, shape = os.environ["COURSE_BUILD"], 6, "256x512x256"
        one, three = (recorded.record(build, STAGES, "128x128x384", "--tile", f"s{n}") for n in (1, 3))
        for begin, end, _ in one.copies(tiles):
            self.assertFalse([piece for piece in one.products(0, tiles) if piece[1] < end and piece[2] > begin + picture.SHORTEST_STALL])  # idle during every copy
        pieces = [piece[1:] for piece in three.products(0, tiles)]
        self.assertEqual(figures.gaps(pieces, pieces[0][0], pieces[-1][1]), [])
        persistent = recorded.record(build, "12_persistent", shape, *figures.FEW)
        copies, on_cores = persistent.copies(2 * persistent.tiles_k), [persistent.products(warp, 2) for warp in (0, 4)]
        first_ends = max(end for pieces in on_cores for tile, _, end in pieces if tile == 0)
        next_begins = min(begin for pieces in on_cores for tile, begin, _ in pieces if tile == 1)
        self.assertLess(sorted(copies)[persistent.tiles_k][0], first_ends)
        written = [end for warp in (0, 4) for tile, _, end in figures.written_of(persistent, warp, [0, 1]) if tile == 0]
        self.assertLess(next_begins, min(written))
        later = recorded.record(build, "17_store_later", "256x512x320", *figures.FEW)
        pieces = figures.together([piece for warp in (0, 4) for piece in later.products(warp, 2)])
        self.assertEqual(figures.gaps([piece[1:] for piece in pieces], pieces[0][1], pieces[-1][2]), [])
        turns = recorded.record(build, "13_ping_pong", shape, *figures.FEW)
        pieces = figures.together([(2 * tile + i, *times) for i in (0, 1) for tile, *times in turns.products(4 * i, 2)])
        self.assertEqual([tile for tile, *_ in pieces], sorted(tile for tile, *_ in pieces))
        gaps = {True: [], False: []}  # by whether both are of one tile
        for before, after in zip(pieces, pieces[1:]):
            gaps[before[0] == after[0]].append(after[1] - before[2])
        self.assertLessEqual(max(gaps[False]), max(gaps[True]))

    def test_what_the_lessons_say_of_blocks_and_waves(self):
        build = os.environ["COURSE_BUILD"]
        multicast = recorded.record(build, "16_multicast", "256x256x448", *figures.FEW)
        for rank in (0, 1):
            fills = figures.fills_of(multicast, rank)
            self.assertEqual([len(fills[stage]) for stage in range(4)], [2, 2, 2, 1])
            self.assertTrue(all(set(each) == {0, 1} for rounds in fills.values() for each in rounds))  # both send to each stage
            (empty,) = [address for address, name in multicast.drawn.names.items() if name == "empty[0]"]
            arrived = [warp // multicast.launch.warps for _, warp, _, _ in multicast.clock.blocks[rank].mbarriers[empty].phases[0][3]]
            self.assertEqual((arrived.count(0), arrived.count(1)), (8, 8))
        few_rows = recorded.record(build, "15_few_rows", "8x64x2048")
        for rank in (0, 1):
            last = [(stage, rounds[-1]) for stage, rounds in figures.fills_of(few_rows, rank).items() if 1 - rank in rounds[-1]]
            self.assertEqual([(stage, set(each)) for stage, each in last], [(3, {1 - rank})])
            (ready,) = [address for address, name in few_rows.drawn.names.items() if name == "all_ready"]
            (phase,) = few_rows.clock.blocks[rank].mbarriers[ready].phases
            self.assertEqual({warp // few_rows.launch.warps for _, warp, _, _ in phase[3]}, {0, 1})
            self.assertLess(phase[2], last[0][1][1 - rank][0])  # who sends has waited for it

    def check_trace(self, trace):
        """Times do not run backwards; what lies on one thread lies side by side."""
        events = json.loads(json.dumps(trace))["traceEvents"]
        ends, last = defaultdict(float), 0
        for event in events:
            if event["ph"] == "M":
                continue
            self.assertGreaterEqual(event["ts"], last)
            last = event["ts"]
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
                self.assertGreaterEqual(round(event["ts"] - ends[event["tid"]], 1), 0, event)
                ends[event["tid"]] = event["ts"] + event["dur"]
        self.assertGreater(len(ends), 5)

    def test_stages_of_04_against_an_h200(self):
        """Nothing is fitted to these times."""
        with open(RESULTS, encoding="utf-8") as file:
            launches = {each["tile"].split()[-1]: each["launch"] for each in json.load(file)["results"] if each["step"] == STAGES}
        predicted = {}
        for stages in cost.PREDICTED:
            recorded, _ = self.record(STAGES, "128x128x4096", "--tile", stages)
            on_sm = launches[stages]["blocks_per_sm"]
            waves = -(-launches[stages]["blocks"] // (on_sm * COSTS.multiprocessors))
            predicted[stages] = waves * replay.Replay(recorded, cost.h200(all_busy=True), on_sm).all_clocks
        for stages, about in cost.PREDICTED.items():
            ratio = predicted[stages] / predicted["s3"]
            self.assertAlmostEqual(ratio, about, delta=0.0051, msg=stages)
            self.assertAlmostEqual(ratio, cost.measured_stages()[stages], delta=0.06, msg=stages)

    def test_the_manual_has_these_figures(self):
        with open(os.path.join(cost.ROOT, "docs/see.md"), encoding="utf-8") as file:
            text = file.read()
        for name, values in (("the model", cost.PREDICTED), ("measured", cost.measured_stages())):
            self.assertIn(f"| {name} | " + " | ".join(f"{value:.3g}" for value in values.values()) + " |", text)


if __name__ == "__main__":
    unittest.main()
