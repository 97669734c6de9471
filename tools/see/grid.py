"""SMs and time: in which order a launch's blocks run, for how long, and which SMs are left without one.

One block is run, and timed by the cost model; the others do the same, or have a tile of C more or less. So a launch of any size takes no longer
than some tiles of it. What the steps' launchers compute from a shape is computed here again: Plan. test_grid.py compares it with the launches that
an H200 has seen.
"""

import dataclasses
import functools
import glob
import json
import os
import re

from .cost import RESULTS
from .replay import Replay

FIRST_PERSISTENT, FEW_ROWS, SPLIT_K, MULTICAST, FEWER_REQUESTS = 12, 15, 8, 16, 20
MOST_SPLIT, LEAD = 1024, 2  # of step 08: with more blocks it does not split k; tiles along k that the last share has more
NAIVE = {"coalesced": (4, 128, 1), "swapped": (128, 4, 1)}  # tiles of step 01, whose names do not say it
TILES_RUN = 3  # of a block that stays: the first, one as all others, the last; of two that take turns one more


def ceil_div(a, b):
    return -(-a // b)


def in_two_widths(tiles_m, cols, wide, narrow, blocks):
    """(wide tiles, all): as common/gemm/two_widths.h has it."""
    every = ceil_div(cols, wide)
    places = ceil_div(tiles_m * every, blocks) * blocks

    def cut(wide_rows, left, right):
        wide_tiles = wide_rows * every + (tiles_m - wide_rows) * left
        return wide_tiles, wide_tiles + (tiles_m - wide_rows) * right

    def cost(found):
        return ceil_div(found[0], blocks), found[0] * wide + (found[1] - found[0]) * narrow

    best = cut(tiles_m, every, 0)
    for left in range(max(0, every - 64), every):
        right = ceil_div(cols - left * wide, narrow)
        too_many = max(0, tiles_m * (left + right) - places)
        wide_rows = ceil_div(too_many, left + right - every) if too_many else 0
        if wide_rows < tiles_m:
            best = min(best, cut(wide_rows, left, right), key=cost)
    return best


class Plan:
    """Of a step's tile for a shape on so many SMs: `blocks` in clusters of `cluster`, that stay or not; of one that stays, tiles_of()."""

    def __init__(self, step, tile, shape, sms):
        """@param step its number"""
        self.step, self.tile, self.sms = step, tile, sms
        m, n, k = shape
        found = re.match(r"(\d+)x(\d+)x(\d+)", tile)
        self.rows, self.cols, self.block_k = map(int, found.groups()) if found else NAIVE[tile]
        self.takes_turns = "ping-pong" in tile
        self.narrow = self.named("narrow", 0)
        self.cluster, split, places = 1, 1, sms
        if step == FEW_ROWS:
            self.cluster = split = self.named("split", 1)
        elif step == SPLIT_K:
            split = self.named("split", 1)
            share = (ceil_div(k, self.block_k) - LEAD) // split
            if share < LEAD or ceil_div(m, self.rows) * ceil_div(n, self.cols) * split > MOST_SPLIT:
                split = 1
        if step == MULTICAST:
            self.cluster = 2
        if step == FEWER_REQUESTS:
            self.cluster, split = self.named("cluster", 1), self.named("split", 1)
            places = self.places_in_clusters()
        self.split = split
        # Clusters that run at a time, one block on each SM. Blocks that stay are in as many; others begin where there is room.
        self.room = max(self.places_in_clusters() // self.cluster, min(1, sms // self.cluster))
        self.stays = step >= FIRST_PERSISTENT and step != FEW_ROWS and split == 1
        # What a cluster's blocks have of C, side by side or one below the other.
        sharing = self.cluster if step == MULTICAST else self.cluster // split
        self.wide = sharing if step == FEWER_REQUESTS and self.rows > self.cols else 1
        self.high = max(1, sharing // self.wide)
        tiles_m, tiles_n = ceil_div(m, self.high * self.rows), ceil_div(n, self.wide * self.cols)
        self.tiles_m, self.tiles_n = tiles_m, tiles_n
        self.tiles = self.wide_tiles = tiles_m * tiles_n  # of clusters, where there are some
        if self.narrow:
            self.wide_tiles, self.tiles = in_two_widths(tiles_m, n, self.cols, self.narrow, sms)
        self.units = min(self.tiles, max(1, places // self.cluster)) if self.stays else self.tiles * (split if step == SPLIT_K else 1)
        self.blocks = self.units * self.cluster

    def places_in_clusters(self):
        """SMs that blocks in such clusters can have: a cluster lies within a GPC, whose number of SMs need not be a multiple of it. As the launcher
        of step 20 has it, and cudaOccupancyMaxActiveClusters: of an H200's 132 SMs, clusters of eight find room for 15."""
        return self.sms * (10 if self.cluster > 2 else 11) // 11

    def named(self, word, default):
        found = re.search(rf"\b{word} ?(\d+)", self.tile)
        return int(found[1]) if found else default

    def tiles_of(self, unit):
        """Of a block or cluster that stays, for each of its tiles whether it is narrow."""
        return [number >= self.wide_tiles for number in range(unit, self.tiles, self.units)]

    def most_tiles(self):
        return ceil_div(self.tiles, self.units)

    def tiles_to_run(self):
        """Of one that stays."""
        return min(self.most_tiles(), TILES_RUN + self.takes_turns)

    def small_shape(self, k, narrow=False):
        """What is to run: a tile; of a block or cluster that stays, if it is told of as many SMs as it has blocks, some tiles."""
        tiles = self.tiles_to_run() if self.stays else 1
        return self.high * self.rows, self.wide * (self.narrow if narrow else self.cols) * tiles, k


def tile_ends(launch, clock, tiles):
    """When the products of each of the first block's tiles are over: the same number of operations each, one tile after the other."""
    kinds = {launch.kinds.index("mma"), launch.kinds.index("wgmma")}
    products = sorted((end, launch.events[event][4]) for event, warp, _, end in clock.spans if launch.events[event][1] in kinds and warp < launch.warps)
    whole, done, ends = sum(size for _, size in products), 0, []
    for end, size in products:
        done += size
        while len(ends) < tiles and done * tiles >= whole * (len(ends) + 1):
            ends.append(end)
    return ends


@dataclasses.dataclass
class Stay:
    """What a block that stays takes, in clocks, of one width: until the first tile is multiplied, for each more, after the last one."""

    first: float
    next: float
    last: float

    @classmethod
    def of(cls, launch, clock, tiles, takes_turns):
        ends = tile_ends(launch, clock, tiles)
        step = min(len(ends) - 1, 2 if takes_turns else 1)
        return cls(ends[0], (ends[-1] - ends[-1 - step]) / step if step else ends[0], clock.all_clocks - ends[-1])


def tile_times(narrow_tiles, wide, narrow=None):
    """[(begin, end)] of a block's tiles. @param narrow_tiles whether each is narrow"""
    of, at, times = {False: wide, True: narrow or wide}, 0.0, []
    for number, is_narrow in enumerate(narrow_tiles):
        end = at + (of[is_narrow].next if number else of[is_narrow].first)
        times.append((at, end))
        at = end
    times[-1] = (times[-1][0], at + of[narrow_tiles[-1]].last)
    return times


@dataclasses.dataclass
class Piece:
    """What an SM does for some time: a block, or a tile of one that stays."""

    sm: int
    place: int  # of those for blocks that an SM runs side by side
    begin: float
    end: float
    block: int
    tile: int = -1  # of C, or of the cluster's
    narrow: bool = False


def in_waves(plan, resident, duration):
    """Blocks that are alike: as many as there is room for begin together, and end together. @param duration of that many on an SM"""
    units = plan.room
    if not units:
        raise ValueError(f"a cluster of {plan.cluster} blocks needs as many SMs")
    pieces, at, done = [], 0.0, 0
    while done < plan.units:
        count = min(plan.units - done, units * resident)
        for i in range(count):
            here = count // units + (i % units < count % units)
            for rank in range(plan.cluster):
                pieces.append(Piece(i % units * plan.cluster + rank, i // units, at, at + duration(here), (done + i) * plan.cluster + rank))
        at += duration(ceil_div(count, units))
        done += count
    return pieces


def that_stay(plan, wide, narrow=None):
    pieces = []
    for unit in range(plan.units):
        kinds = plan.tiles_of(unit)
        for i, (begin, end) in enumerate(tile_times(kinds, wide, narrow)):
            for rank in range(plan.cluster):
                pieces.append(Piece(unit * plan.cluster + rank, 0, begin, end, unit * plan.cluster + rank, unit + i * plan.units, kinds[i]))
    return pieces


class Grid:
    def __init__(self, plan, pieces, resident):
        """@param resident blocks for which an SM has room"""
        self.plan, self.pieces, self.resident = plan, pieces, resident
        self.clocks = max(piece.end for piece in pieces)
        ends = [0.0] * plan.sms
        for piece in pieces:
            ends[piece.sm] = max(ends[piece.sm], piece.end)
        self.ends = ends

    def idle(self):
        """Share of all SMs' time after their last block."""
        return max(0.0, 1 - sum(self.ends) / (len(self.ends) * self.clocks))

    def waves(self):
        return self.plan.tiles / self.plan.units if self.plan.stays else self.plan.units / (self.plan.room * self.resident)

    def last_wave(self):
        """(how many it has, for how many it has room)."""
        room = self.plan.units if self.plan.stays else self.plan.room * self.resident
        count = self.plan.tiles if self.plan.stays else self.plan.units
        return (count - 1) % room + 1, room

    def alike(self):
        """[(first SM, how many side by side, their pieces)]: neighbours that do the same."""
        by_sm = [[] for _ in range(self.plan.sms)]
        for piece in self.pieces:
            by_sm[piece.sm].append(piece)
        groups = []
        for sm, mine in enumerate(by_sm):
            does = [(piece.place, piece.begin, piece.end, piece.narrow) for piece in mine]
            if groups and groups[-1][2] == does:
                groups[-1][1] += 1
            else:
                groups.append([sm, 1, does, mine])
        return [(sm, count, mine) for sm, count, _, mine in groups]


class Unlike(Exception):
    """What has run says nothing of the launch that was asked for."""


def timed(plan, k, record, costs, resident=1):
    """@param record of (shape, the number of SMs that the kernel is told of): the launch, which has run @param resident of blocks that do not
    stay, as many on an SM; or a function of the launch"""
    small = plan.small_shape(k)
    sms = plan.cluster if plan.stays else plan.sms
    launch = record(small, sms)
    ran = Plan(plan.step, plan.tile, small, sms)
    if ran.blocks != launch.blocks or ran.split != plan.split:
        raise Unlike("one tile alone is not cut as the whole of C is")
    if plan.stays:
        launches = {False: launch}
        if plan.wide_tiles < plan.tiles:
            launches[True] = record(plan.small_shape(k, narrow=True), sms)
        stay = {narrow: Stay.of(each, Replay(each, costs), plan.tiles_to_run(), plan.takes_turns) for narrow, each in launches.items()}
        return Grid(plan, that_stay(plan, stay[False], stay.get(True)), 1)
    count = resident(launch) if callable(resident) else resident
    return Grid(plan, in_waves(plan, count, functools.cache(lambda here: Replay(launch, costs, here).all_clocks)), count)


def measured_launches():
    """Those of an H200: (file, result)."""
    for path in sorted(glob.glob(os.path.join(RESULTS, "*.json"))):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for each in document.get("results", ()) if isinstance(document, dict) else ():
            if isinstance(each, dict) and "launch" in each:
                yield os.path.basename(path), each


def measured(step, tile, dtype, shape=None):
    """The first result of the step's tile, for the shape if that is given; None: there is none."""
    for file, each in measured_launches():
        if (each["step"], each["tile"], each["in"]) == (step, tile, dtype) and shape in (None, (each["m"], each["n"], each["k"])):
            if each.get("mode") == "hot" and each.get("layout") == "nn" or shape is None:
                return file, each
    return None
