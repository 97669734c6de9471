"""What a launch's blocks find in the L2 cache: for each how much of A and B is not there when it asks.

Blocks that run at a time go along k together, tile by tile, and the first of a row or a column of tiles to ask is the one that misses. What was
asked for last stays: a cache that forgets what was used longest ago. docs/see.md says how near that is to what ncu counts.
"""

import re
from collections import OrderedDict, defaultdict

SHOWN = {*range(2, 15), 17}  # steps whose order of tiles is computed here; others have clusters, or tiles of two widths
TWO_PARTS = {80, 90}  # compute capabilities: each part keeps what its SMs ask for, so what all ask for has half of the cache


def is_known(plan):
    return plan.step in SHOWN and plan.cluster == plan.split == 1


def room(gpu):
    """Bytes for what all SMs ask for. @param gpu as result files have it"""
    return gpu["l2_bytes"] // (2 if gpu["compute_capability"] in TWO_PARTS else 1)


def tile_of(plan, number):
    """(row, column) of tile NUMBER of C: as common/device/learnt/tile_order.cuh has it, or row by row where the tile names no group."""
    found = re.search(r"\bg(\d+)", plan.tile)
    group = int(found[1]) if found else 1
    first = number // plan.tiles_n // group * group
    rows = min(group, plan.tiles_m - first)
    column, row = divmod(number - first * plan.tiles_n, rows)
    return first + row, column


class Cache:
    def __init__(self, size):
        self.left, self.parts = size, OrderedDict()  # from a part to its bytes, the one used longest ago first

    def misses(self, part, size):
        """Whether PART was not there; now it is."""
        if part in self.parts:
            self.parts.move_to_end(part)
            return False
        self.parts[part] = size
        self.left -= size
        while self.left < 0:
            self.left += self.parts.popitem(last=False)[1]
        return True


def misses(grid, k, element_bytes, size):
    """{index of a piece: bytes that it asks for and that are not there}, and what each piece asks for. @param size of the cache"""
    plan, cache, missed = grid.plan, Cache(size), [0] * len(grid.pieces)
    steps, of_a, of_b = -(-k // plan.block_k), plan.rows * plan.block_k * element_bytes, plan.cols * plan.block_k * element_bytes
    together = defaultdict(list)
    for index, piece in enumerate(grid.pieces):
        together[piece.begin].append((index, tile_of(plan, piece.tile if plan.stays else piece.block)))
    for _, running in sorted(together.items()):
        rows, columns = {}, {}  # of tiles, and who asks first
        for index, (row, column) in running:
            rows.setdefault(row, index)
            columns.setdefault(column, index)
        for step in range(steps):
            for name, first, bytes_of in (("A", rows, of_a), ("B", columns, of_b)):
                for place, index in first.items():
                    if cache.misses((name, place, step), bytes_of):
                        missed[index] += bytes_of
        for _, tile in running:
            cache.misses(("C", *tile), plan.rows * plan.cols * element_bytes)  # what is written is kept, too
    return missed, steps * (of_a + of_b)
