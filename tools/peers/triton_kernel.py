"""The peer's kernel: a block of C a program, blocks in groups, sums in float. What a course about Triton ends with, as steps 05 and 06 are
what this course reaches with mma.sync. The compiler chooses the rest: shared memory, its swizzle, the pipeline, on Hopper wgmma."""

import dataclasses

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a,
    b,
    c,
    m,
    n,
    k,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    WHOLE_K: tl.constexpr,
    WIDE: tl.constexpr,
):
    # 1. Which tile is mine? Within a group of GROUP_M rows of tiles, programs go down the columns.
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = tl.program_id(0) // (GROUP_M * tiles_n)
    in_group = tl.program_id(0) - group * GROUP_M * tiles_n
    rows_of_group = min(tiles_m - group * GROUP_M, GROUP_M)  # the last group may have fewer
    m_0 = (group * GROUP_M + in_group % rows_of_group) * BLOCK_M
    n_0 = in_group // rows_of_group * BLOCK_N

    # Rows and columns beyond the last are others again, for nobody stores what comes of them: so loads need no mask for them.
    of_m, of_n, of_k = m_0 + tl.arange(0, BLOCK_M), n_0 + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    row, col = of_m % m, of_n % n
    if WIDE:  # offsets that pass 2^31
        row, col, of_m = row.to(tl.int64), col.to(tl.int64), of_m.to(tl.int64)
    from_a = a + row[:, None] * a_row + of_k[None, :] * a_col
    from_b = b + of_k[:, None] * b_row + col[None, :] * b_col

    # 2. Main loop
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k_0 in range(0, k, BLOCK_K):
        if WHOLE_K:
            tile_a, tile_b = tl.load(from_a), tl.load(from_b)
        else:
            left = k - k_0
            tile_a = tl.load(from_a, mask=of_k[None, :] < left, other=0.0)
            tile_b = tl.load(from_b, mask=of_k[:, None] < left, other=0.0)
        sums = tl.dot(tile_a, tile_b, sums)
        from_a += BLOCK_K * a_col
        from_b += BLOCK_K * b_row

    # 3. Epilogue
    inside = (of_m < m)[:, None] & (of_n < n)[None, :]
    tl.store(c + of_m[:, None] * c_row + of_n[None, :], sums.to(c.dtype.element_ty), mask=inside)


@dataclasses.dataclass(frozen=True)
class Tile:
    """A configuration that is compiled and timed."""

    m: int
    n: int
    k: int
    stages: int
    warps: int
    group: int = 8

    def __str__(self):
        return f"{self.m}x{self.n}x{self.k} s{self.stages} w{self.warps} g{self.group}"


TILES = [
    # Large: for Hopper, whose wgmma wants at least 64 rows a warp group.
    Tile(128, 256, 64, 3, 8),
    Tile(128, 256, 64, 4, 8),
    Tile(256, 128, 64, 3, 8),
    Tile(256, 128, 64, 4, 8),
    Tile(128, 128, 64, 3, 4),
    Tile(128, 128, 64, 4, 4),
    Tile(128, 128, 64, 4, 8),
    Tile(128, 128, 128, 3, 8),
    Tile(64, 256, 64, 4, 4),
    # What lessons publish for earlier GPUs.
    Tile(128, 256, 32, 3, 8),
    Tile(128, 128, 32, 4, 4),
    Tile(64, 256, 32, 4, 4),
    Tile(128, 64, 32, 4, 4),
    Tile(64, 128, 32, 4, 4),
    # Problems that have too few of those to fill a GPU.
    Tile(64, 128, 64, 4, 4),
    Tile(128, 64, 64, 4, 4),
    Tile(64, 64, 64, 4, 4),
    Tile(64, 64, 128, 4, 4),
    Tile(32, 64, 64, 5, 2),
    Tile(64, 32, 64, 5, 2),
    Tile(32, 32, 128, 4, 2),
    # Few rows: the weights are all that is read, in deep rings of long slices.
    Tile(16, 64, 128, 5, 4),
    Tile(16, 128, 64, 5, 4),
    Tile(16, 32, 256, 4, 2),
    Tile(16, 64, 256, 4, 4),
    Tile(32, 64, 128, 5, 4),
    Tile(32, 128, 128, 4, 4),
]


def round_up_to_power(value):
    return 1 << max(0, value - 1).bit_length()


def candidates(m, n):
    """The tiles that are worth a try: none that is larger than C twice over, no small rows for many."""
    least = 16 if m <= 64 else 32 if m <= 512 else 64
    fitting = [
        tile
        for tile in TILES
        if least <= tile.m <= max(64, round_up_to_power(m)) and tile.n <= max(64, round_up_to_power(n))
    ]
    if m <= 32:
        fitting = [tile for tile in fitting if tile.m <= 32]
    return fitting


def launch(tile, a, b, c):
    """C = A · B on the current stream. @return the compiled kernel"""
    (m, k), n = a.shape, b.shape[1]
    blocks = triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n)
    reach = max(
        (rows - 1) * matrix.stride(0) + (cols - 1) * matrix.stride(1)
        for matrix, rows, cols in ((a, m, k), (b, k, n), (c, m, n))
    )
    return matmul_kernel[(blocks,)](
        a,
        b,
        c,
        m,
        n,
        k,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        BLOCK_M=tile.m,
        BLOCK_N=tile.n,
        BLOCK_K=tile.k,
        GROUP_M=tile.group,
        WHOLE_K=k % tile.k == 0,
        WIDE=reach + max(tile.m, tile.n) * max(1, c.stride(0)) >= 2**31,
        num_stages=tile.stages,
        num_warps=tile.warps,
    )
