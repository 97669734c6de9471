"""What is known of a multiplication before it runs: arithmetic on its shape and its tile.

The interpreter and ncu count what a kernel does; this is what its lesson says that it should do.
"""

import dataclasses
import math
import re
from typing import Optional

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
SECTOR, WAVEFRONT, LANES = 32, 128, 32  # bytes, bytes, threads of a warp
MMA = 16  # the extent of a fragment: mma.sync does 16 x 8 x 16 products, ldmatrix.x4 loads 16 x 16 elements
WARPGROUP, WARPGROUP_ROWS = 128, 64  # its threads, and the rows of C that they multiply together with wgmma, 16 of k at a time
VECTOR = 4  # elements that 02 loads and stores at once, where its threads have as many
# Which lanes of 01 lie side by side: in a row of C, or in a column.
MAPPINGS = ("coalesced", "swapped")


@dataclasses.dataclass(frozen=True)
class Problem:
    """HEADS products of one shape, C = A * B; usually one."""

    m: int
    n: int
    k: int
    in_bytes: int
    out_bytes: int
    heads: int = 1

    @property
    def flops(self):
        return 2 * self.heads * self.m * self.n * self.k

    @property
    def input_bytes(self):
        return self.heads * self.in_bytes * (self.m + self.n) * self.k

    @property
    def output_bytes(self):
        return self.heads * self.out_bytes * self.m * self.n

    def tile_bytes(self, block_m, block_n):
        """Of reads, if each tile of C loads its rows of A and its columns of B once: docs/roofline.md."""
        return self.in_bytes * self.k * (self.m * math.ceil(self.n / block_n) + self.n * math.ceil(self.m / block_m))


@dataclasses.dataclass(frozen=True)
class Tile:
    """What a tile's name says, "128x128x64 warp 64x64 s3 g8" or "128x128x8, 8x8 per thread"; 01's are named after their mapping.

    From 10 on warpgroups multiply, each its 64 rows, and the name has nothing of a warp: "128x256x64 s4 g8".
    """

    mapping: str = ""
    block: tuple[int, int, int] = (1, 1, 1)
    thread: Optional[tuple[int, int]] = None  # what a thread, or a warp, has of it
    warp: Optional[tuple[int, int]] = None
    group_m: int = 1  # rows of tiles that blocks go through together: lesson 05

    @property
    def has_warpgroups(self):
        return not (self.mapping or self.warp or self.thread)

    @property
    def of_wgmma(self):
        """(rows, columns): those of C, or, where the rows are no multiple of a warpgroup's, the other way round (15, 18)."""
        rows, columns, _ = self.block
        return (columns, rows) if rows % WARPGROUP_ROWS else (rows, columns)

    @property
    def threads(self):
        """Those that multiply."""
        if self.has_warpgroups:
            return self.of_wgmma[0] // WARPGROUP_ROWS * WARPGROUP
        rows, cols = self.warp or self.thread
        return self.block[0] * self.block[1] // (rows * cols) * (LANES if self.warp else 1)

    def slices(self, problem):
        """(blocks, slices along k that each goes through)"""
        blocks = math.ceil(problem.m / self.block[0]) * math.ceil(problem.n / self.block[1])
        return blocks, math.ceil(problem.k / self.block[2])

    def copied_bytes(self, problem):
        """By the copy engine, from 10 on: the whole tile and 64 of k, zeros beyond the matrix among them."""
        blocks, slices = self.slices(problem)
        return blocks * slices * self.block[2] * (self.block[0] + self.block[1]) * problem.in_bytes

    def panels(self, problem, blocks_per_wave):
        """(rows, columns) of tiles that waves need: the sum over waves of blocks_per_wave blocks that run together."""
        tiles_m, tiles_n = math.ceil(problem.m / self.block[0]), math.ceil(problem.n / self.block[1])
        order = []
        for first in range(0, tiles_m, self.group_m):
            rows = range(first, min(first + self.group_m, tiles_m))
            order += [(row, col) for col in range(tiles_n) for row in rows]
        waves = [order[begin : begin + blocks_per_wave] for begin in range(0, len(order), blocks_per_wave)]
        return [sum(len({tile[axis] for tile in wave}) for wave in waves) for axis in (0, 1)]


def tile_named(name):
    """None for those of which nothing is known: the kernel that all steps share, and the learner's own."""
    if not name or "fallback" in name:
        return None
    if name.split(",")[0] in MAPPINGS:
        return Tile(mapping=name.split(",")[0])
    found = re.match(r"(\d+)x(\d+)x(\d+)(?: warp (\d+)x(\d+)|, (\d+)x(\d+) per thread|(?= s\d+ g\d))", name)
    if not found:
        return None
    numbers = [number and int(number) for number in found.groups()]
    block, warp, thread = (tuple(numbers[begin:end]) for begin, end in ((0, 3), (3, 5), (5, 7)))
    group = re.search(r" g(\d+)", name)
    return Tile("", block, thread if thread[0] else None, warp if warp[0] else None, int(group[1]) if group else 1)


def read_in_waves(problem, tile, blocks_per_wave):
    """Bytes of A and B, if blocks that run together share what they read, and a wave finds nothing of the one before: lesson 05."""
    rows, cols = tile.panels(problem, blocks_per_wave)
    return problem.in_bytes * problem.k * (rows * tile.block[0] + cols * tile.block[1])


def predict(problem, tile, ceilings, dtype, blocks_per_wave=None, l2_bytes=math.inf):
    """Figures by the names that profile_table.py gives them; what nothing is known of is missing."""
    known = {"dram_read": problem.input_bytes, "dram_written": problem.output_bytes, "conflicts": 0}
    moving = (problem.input_bytes + problem.output_bytes) / ceilings["copy_bytes_per_second"]
    known["seconds"] = max(moving, problem.flops / ceilings["fma_f32_flops" if dtype == "f32" else f"mma_{dtype}_flops"])
    if not tile:
        return known
    if tile.mapping:
        return {**known, **of_mapping(problem, tile.mapping)}
    known["asked"] = tile.copied_bytes(problem) if tile.has_warpgroups else problem.tile_bytes(*tile.block[:2])
    if blocks_per_wave and problem.input_bytes + problem.output_bytes > l2_bytes:
        known["dram_read"] = read_in_waves(problem, tile, round(blocks_per_wave))
    # What does not come from DRAM comes from L2.
    known["hit_rate"] = 100 * (1 - known["dram_read"] / known["asked"])
    known["registers"] = tile.block[0] * tile.block[1] // tile.threads  # sums
    of_kind = of_warpgroups if tile.has_warpgroups else of_warps if tile.warp else of_threads
    return {**known, **of_kind(problem, tile)}


def of_mapping(problem, mapping):
    """01: a warp is a row or a column of C, A and B are row-major. In one of its two loads all lanes want the same element."""
    neighbours = LANES * problem.in_bytes / SECTOR
    along, across = (1 + neighbours) / 2, (LANES + 1) / 2
    stored = LANES * problem.out_bytes / SECTOR
    is_coalesced = mapping == "coalesced"
    return {
        "asked": 2 * problem.in_bytes * problem.m * problem.n * problem.k,  # without reuse
        "load_sectors": along if is_coalesced else across,
        "store_sectors": stored if is_coalesced else LANES,
        "registers": 1,
    }


def of_threads(problem, tile):
    """02: tiles are floats in shared memory, a thread reads its rows and columns in vectors."""
    (block_m, block_n, block_k), (thread_m, thread_n) = tile.block, tile.thread
    blocks, slices = tile.slices(problem)
    reads = blocks * tile.threads // LANES * slices * block_k  # of a warp, for one k
    # A 16-byte read takes 4 wavefronts; 2 where lanes share their addresses, as those of A do.
    of_a = math.ceil(thread_m / VECTOR) * (2 if thread_m >= VECTOR else 1)
    of_b = math.ceil(thread_n / VECTOR) * (4 if thread_n >= VECTOR else 1)
    return {
        "load_sectors": LANES * VECTOR * problem.in_bytes / SECTOR,
        "store_sectors": LANES * min(VECTOR, thread_n) * problem.out_bytes / SECTOR,
        "shared_loads": reads * (of_a + of_b),
        "shared_stores": blocks * slices * 4 * (block_m + block_n) * block_k // WAVEFRONT,
    }


def of_warps(problem, tile):
    """From 03 on: copies of 16 bytes, ldmatrix without bank conflicts, mma.sync; C goes through shared memory on its way out."""
    (block_m, block_n, block_k), (warp_m, warp_n) = tile.block, tile.warp
    blocks, slices = tile.slices(problem)
    epilogue = blocks * block_m * block_n * problem.out_bytes // WAVEFRONT
    fragments = tile.threads // LANES * (warp_m + warp_n) // MMA * math.ceil(block_k / MMA)
    return {
        "load_sectors": LANES * 16 / SECTOR,
        "store_sectors": LANES * 16 / SECTOR,
        "shared_loads": blocks * slices * fragments * MMA * MMA * 2 // WAVEFRONT + epilogue,
        "shared_stores": epilogue,
        "copies": blocks * slices * problem.in_bytes * (block_m + block_n) * block_k // WAVEFRONT,
        "mma": blocks * slices * block_m * block_n * block_k // (MMA * MMA * 8),
    }


def of_warpgroups(problem, tile):
    """From 10 on: the copy engine loads, wgmma reads shared memory by itself. C goes through shared memory on its way out.

    Threads load it there and store it (10, 11), or the engine stores it (12, 13): profile_table.py leaves out what is not so. Where
    rows are wgmma's columns, stmatrix stores them there (18), which ncu counts apart.
    """
    block_m, block_n, block_k = tile.block
    blocks, slices = tile.slices(problem)
    epilogue = blocks * block_m * block_n * problem.out_bytes // WAVEFRONT
    rows, columns = tile.of_wgmma
    of_instruction = (WARPGROUP_ROWS + columns) * MMA * problem.in_bytes // WAVEFRONT
    return {
        "store_sectors": LANES * 16 / SECTOR,
        "shared_loads": epilogue,
        **({"shared_stores": epilogue} if rows == block_m else {}),
        "wgmma": blocks * slices * block_k // MMA * rows // WARPGROUP_ROWS * of_instruction,
        "bulk_stored": problem.output_bytes,
    }
