"""Draws the lessons' pictures of where data lie: which addresses a warp asks for, who computes what, what a descriptor names. As figures.py's,
they come from what the interpreter recorded."""

import json
import os
import re
import subprocess
import tempfile

from report import figures
from report.figures import BLUE, GREEN, ORANGE, PINK, TINT

from . import accesses, descriptors, fragments, picture, replay
from .svg import WIDTH, Svg, sample


def launches_of(build, step, shape, *words, dtype="f16", block=0):
    """@param block whose events are recorded"""
    with tempfile.TemporaryDirectory() as scratch:
        events = os.path.join(scratch, "events")
        command = [os.path.join(build, "bin", step), "--dtype", dtype, "--shape", shape, "--force", *(words or ["--first"])]
        subprocess.run(command, env={**os.environ, "COURSE_EVENTS": events, "COURSE_EVENTS_BLOCK": str(block)}, stdout=subprocess.DEVNULL, check=True)
        return replay.read(events)


def launch_of(*arguments, **more):
    """The launch in which most happened."""
    return max(launches_of(*arguments, **more), key=lambda each: len(each.events))


def accesses_of(launch, warp, kind):
    """Of a warp, in the order of its program."""
    found = sorted(each for each in launch.addresses if launch.events[each[0]][0] == warp and launch.kinds[launch.events[each[0]][1]] == kind)
    return [accesses.Access(launch, *each) for each in found]


# --- 01: what a warp's loads touch ---

SECTOR_WIDTH = 40  # units
UNIT = SECTOR_WIDTH / accesses.SECTOR  # a byte


def several(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def sectors_of(access):
    return f"{several(sum(map(len, access.lines.values())), 'sector')}, {several(len(access.lines), 'line')}"


def draw_request(svg, x, y, name, access):
    """Its lines below each other: pale the sectors that move, solid the bytes that are asked for. Returns where it ends."""
    svg.text(x, y + 8, f"{name}: {sectors_of(access)}", bold=True)
    y += 18
    is_tall = len(access.lines) > 4
    height = 5 if is_tall else 16
    for line in sorted(access.lines):
        for i in range(4):
            at, lanes = x + i * SECTOR_WIDTH, access.lines[line].get(4 * line + i)
            if not lanes:
                if not is_tall:
                    svg.box(at, y, SECTOR_WIDTH, height - 1, BLUE, line=0.4)
                continue
            svg.box(at, y, SECTOR_WIDTH, height - 1, BLUE, filled=2 * TINT, line=0.4)
            asked = [access.address[lane] % accesses.SECTOR for lane in lanes]
            begin, end = min(asked), max(asked) + access.size
            svg.add("rect", x=at + begin * UNIT, y=y, width=(end - begin) * UNIT, height=height - 1, fill=BLUE)
            words, is_full = accesses.named(lanes), end - begin == accesses.SECTOR
            if not is_tall:
                svg.text(at + SECTOR_WIDTH / 2 if is_full else at + end * UNIT + 3, y + 7.5, words, "middle" if is_full else "start", colour=figures.ON_COLOUR if is_full else None)
            elif lanes[0] in (0, 31):
                svg.text(at + SECTOR_WIDTH + 5, y + (6 if lanes[0] == 0 else -2), f"lane {words}")
        y += height
    return y


def draw_sectors(build):
    found = {}
    for mapping in ("coalesced", "swapped"):
        of_a, of_b, *_ = accesses_of(launch_of(build, "01_naive", "64x64x64", "--tile", mapping, dtype="f32"), 0, "global load")
        found[mapping] = {"A": of_a, "B": of_b}
    said = ". ".join(f"{mapping.capitalize()}: " + "; ".join(f"of {name} {sectors_of(each)}" for name, each in of.items()) for mapping, of in found.items())
    svg = Svg("The sectors that a warp's first loads of A and B touch, in step 01", f"{said}.")
    places = dict(zip(found, (4, WIDTH - 4 * SECTOR_WIDTH - 4)))
    for mapping, x in places.items():
        svg.text(x, 12, mapping)
    y = 22
    for name in "AB":
        ends = [draw_request(svg, x, y, name, found[mapping][name]) for mapping, x in places.items()]
        if max(ends) - ends[0] > 40:  # there is room
            sample(svg, 1.0, BLUE)(4, ends[0] + 22)
            svg.text(30, ends[0] + 29, "is asked for")
            svg.box(4, ends[0] + 42, 20, 14, BLUE, filled=2 * TINT, line=0.4)
            svg.text(30, ends[0] + 49, "moves, too")
            svg.text(4, ends[0] + 71, "Numbers are lanes.")
        y = max(ends) + 10
    return svg.render(y - 4)


# --- 02: a thread's part of a tile, and the banks of a store ---

TILED = "02_tiled"
SHOWN_THREAD = 21
FLOAT = 4  # bytes


class Tiled:
    """What warp 0 did with the first slice of A and B in shared memory, of a tile of `extent` squared."""

    def __init__(self, build):
        self.extent, self.slices = 128, 4
        launch = launch_of(build, TILED, f"{self.extent}x{self.extent}x{8 * self.slices}", dtype="f32")
        self.stores = [each for each in accesses_of(launch, 0, "shared store") if each.size == FLOAT]  # of A, one for each k
        reads = accesses_of(launch, 0, "shared load")
        self.base = min(self.stores[0].address.values())
        self.pitch = min(self.stores[1].address.values()) - self.base
        self.of_a, of_b = reads[:2], reads[2:4]
        self.rows, self.columns = (self.runs(each, base) for each, base in ((self.of_a, self.base), (of_b, min(of_b[0].address.values()))))

    @staticmethod
    def runs(reads, base):
        """By lane, the first element of each of its runs."""
        return {lane: [(read.address[lane] - base) // FLOAT for read in reads] for lane in range(32)}

    def without_padding(self, access):
        """{lane: address}, if rows had no more than a tile's elements."""
        places = {lane: divmod(at - self.base, self.pitch) for lane, at in access.address.items()}
        return {lane: row * self.extent * FLOAT + column for lane, (row, column) in places.items()}

    def row(self, access, lane):
        return (access.address[lane] - self.base) // self.pitch


def joined(runs, length):
    """0–3, 64–67 of runs that begin at 0 and 64."""
    return picture.listed({first + i for first in runs for i in range(length)})


def draw_thread(build):
    tiled, run, scale = Tiled(build), 4, 2
    side, slice_size = scale * tiled.extent, 8 * scale
    left, top = WIDTH - side - 4, 24 + slice_size * tiled.slices
    rows, columns = tiled.rows[SHOWN_THREAD], tiled.columns[SHOWN_THREAD]
    of_thread = f"thread {SHOWN_THREAD}: rows {joined(rows, run)}; columns {joined(columns, run)}"
    every_row, every_column = (joined({first for runs in each.values() for first in runs}, run) for each in (tiled.rows, tiled.columns))
    of_warp = f"warp 0: rows {every_row}; columns {every_column}"
    svg = Svg("Tile, slice and thread, in step 02", f"C's tile of {tiled.extent} × {tiled.extent}, left of it A's and above it B's {tiled.slices} slices of 8 along k. Of C, {of_warp}; {of_thread}.")
    for i in range(tiled.slices):
        is_first, width = i == 0, 1.5 if i == 0 else 0.5
        x, y = left - 8 + slice_size * (i - tiled.slices), top - 8 + slice_size * (i - tiled.slices)
        svg.box(x, top, slice_size, side, BLUE, filled=TINT if is_first else None, line=width)
        svg.box(left, y, side, slice_size, GREEN, filled=TINT if is_first else None, line=width)
        if is_first:
            for first in rows:
                svg.add("rect", x=x, y=top + scale * first, width=scale, height=scale * run, fill=BLUE)
            for first in columns:
                svg.add("rect", x=left + scale * first, y=y, width=scale * run, height=scale, fill=GREEN)
            svg.text(x + slice_size / 2, top - 8, "sA", anchor="middle", bold=True)
            svg.text(left - 6, y + slice_size / 2, "sB", anchor="end", bold=True)
    svg.text(left - 10, top + side + 10, "A, along k ▸", anchor="end")
    svg.text(left, 6, "B, along k ▾")
    svg.box(left, top, side, side, ORANGE, line=1.5)
    for of_lane_rows, of_lane_columns in zip(tiled.rows.values(), tiled.columns.values()):
        for row in of_lane_rows:
            for column in of_lane_columns:
                svg.add("rect", x=left + scale * column, y=top + scale * row, width=scale * run, height=scale * run, fill=ORANGE, fill_opacity=TINT)
    for row in rows:
        for column in columns:
            svg.add("rect", x=left + scale * column, y=top + scale * row, width=scale * run, height=scale * run, fill=ORANGE)
    svg.text(left + side / 2, top + side / 4 + 10, f"C's tile, {tiled.extent} × {tiled.extent}", anchor="middle", bold=True)
    y = top + side + 28
    for filled, words in ((2 * TINT, of_warp), (1.0, of_thread)):
        svg.box(4, y, 14, 14, ORANGE, filled=filled, line=0.4)
        svg.text(24, y + 7, words)
        y += 18
    return svg.render(y)


def draw_banks(build):
    tiled = Tiled(build)
    store = tiled.stores[0]
    rows = sorted({tiled.row(store, lane) for lane in store.address})
    colour = dict(zip(rows, (BLUE, ORANGE)))
    lanes = {row: [lane for lane in store.address if tiled.row(store, lane) == row] for row in rows}
    cell = (WIDTH - 8) / accesses.BANKS
    kinds = ((f"rows of {tiled.pitch // FLOAT} floats, padded", store.address), (f"rows of {tiled.extent} floats", tiled.without_padding(store)))
    waves = [accesses.wavefronts(accesses.passes_of("shared store", FLOAT, address)) for _, address in kinds]
    asked = [len({at // FLOAT % accesses.BANKS for at in address.values()}) for _, address in kinds]
    said = "; ".join(f"{words}: {of_banks} banks, {several(count, 'wavefront')}" for (words, _), of_banks, count in zip(kinds, asked, waves))
    svg = Svg("The banks of a warp's store of A to shared memory, with padding and without, in step 02", f"{said}.")
    entries = [(176, sample(svg, 1.0, colour[row]), f"lanes {each[0]}, {each[1]} … {each[-1]}: row {row}") for row, each in lanes.items()]
    y = svg.legend(4, *entries) + 4
    for (words, address), count in zip(kinds, waves):
        svg.text(4, y + 8, f"{words}: {several(count, 'wavefront')}", bold=True)
        y += 20
        (banks,) = accesses.passes_of("shared store", FLOAT, address)
        for depth in range(count):
            for bank, stack in enumerate(banks):
                asked = list(stack.values())
                is_asked = depth < len(asked)
                svg.box(4 + bank * cell, y, cell - 1, 13, colour[tiled.row(store, asked[depth][0])] if is_asked else figures.TEXT, filled=1.0 if is_asked else None, line=0 if is_asked else 0.4)
            y += 16
        y += 8
    for bank in (0, 8, 16, 24, 31):
        svg.text(4 if bank == 0 else 4 + (bank + 0.5) * cell, y, str(bank) if bank else "bank 0", anchor="start" if bank == 0 else "end" if bank == 31 else "middle")
    return svg.render(y + 10)


# --- 03: who holds what ---

TENSOR = "03_tensor_core"
SHOWN_LANE = 5
OF_MATRIX = 8  # rows and columns, of ldmatrix


def first_product(launch):
    """(lanes of each ldmatrix that has filled A's registers of the first mma, [(words along k, lanes)] of that mma)"""
    registers = {}
    for event in launch.events:
        kind = launch.kinds[event[1]]
        if event[0] == 0 and kind == "ldmatrix":
            registers[event[8] & ~1] = event
        if event[0] == 0 and kind == "mma":
            return registers[event[5]], event
    raise ValueError("there is no product")


def draw_grid(svg, x, y, grid, width, height):
    for row, line in enumerate(grid.cells):
        for column, (lane, register) in enumerate(line):
            is_shown = lane == SHOWN_LANE
            words = f"d{register},{register + 1}" if grid.name == "C" else f"{grid.name.lower()}{register}"
            if is_shown:
                svg.add("rect", x=x + column * width, y=y + row * height, width=width, height=height, fill=BLUE)
            svg.text(x + (column + 0.5) * width, y + (row + 0.5) * height, words if is_shown else str(lane), anchor="middle", colour=figures.ON_COLOUR if is_shown else None)
    columns, rows, across, below = len(grid.cells[0]), len(grid.cells), OF_MATRIX // grid.wide, OF_MATRIX // grid.deep
    for i in range(columns + 1):
        svg.line(x + i * width, y, x + i * width, y + rows * height, colour=BLUE, width=0.6 if i % across else 1.8)
    for i in range(rows + 1):
        svg.line(x, y + i * height, x + columns * width, y + i * height, colour=BLUE, width=0.6 if i % below else 1.8)


def draw_fragments(build):
    load, product = first_product(launch_of(build, TENSOR, "128x128x64"))
    a, b, c = fragments.of_mma(product[7])
    lanes = len(accesses.lanes_in(load[3]))
    row, gap = 15, 8
    wide_a, wide_b = 208, WIDTH - 208 - gap - 8
    high_b = 17 * len(b.cells)
    svg = Svg(
        "Which lane holds which element of A, B and C in mma.sync m16n8k16",
        f"Below A of 16 × 16 and right of it C of 16 × 8, above C B of 16 × 8. Lane {SHOWN_LANE} holds "
        + "; ".join(f"of {grid.name} " + " ".join(f"({i}, {j})" for i, j in fragments.held(grid, SHOWN_LANE)) for grid in (a, b, c))
        + f". The first mma of warp 0 has its A from an ldmatrix with addresses of {lanes} lanes, each a row of 16 bytes.",
    )
    draw_grid(svg, 4 + wide_a + gap, 22, b, wide_b / len(b.cells[0]), 17)
    top = 22 + high_b + 26
    draw_grid(svg, 4, top, a, wide_a / len(a.cells[0]), row)
    draw_grid(svg, 4 + wide_a + gap, top, c, wide_b / len(c.cells[0]), row)
    svg.text(4 + wide_a + gap, 10, "B: 16 of k × 8", bold=True)
    svg.text(4, top - 10, "A: 16 rows × 16 of k", bold=True)
    svg.text(4 + wide_a + gap, top - 10, "C: 16 rows × 8", bold=True)
    words = ("Numbers are lanes.", f"Filled: what lane {SHOWN_LANE} holds;", "a0 is its register a[0].", "A cell is two elements.", "", "Thick lines: the matrices", "of ldmatrix, 8 × 8 each.")
    for i, line in enumerate(words):
        svg.text(4, 30 + 17 * i, line)
    return svg.render(top + row * len(a.cells) + 6)


# --- 05: what a wave needs ---

L2_SWIZZLE = "05_l2_swizzle"
EXTENT, BLOCK, OF_K = 8192, 128, 64  # of the matrices, of a tile of C, of its step along k
HALF = 2  # bytes


def draw_wave(build):
    """The blocks that an H200 holds at a time, by the steps' own function from numbers to tiles."""
    said = json.loads(subprocess.run([os.path.join(build, "bin", "figures")], stdout=subprocess.PIPE, check=True).stdout)
    svg = Svg("The first wave of blocks of step 05 at 8192 × 8192 × 8192, and the strips of A and B that it needs", "")
    side, top, described = 154, 44, []
    scale = side / (EXTENT // BLOCK)
    for i, order in enumerate(said["wave"]):
        x = 20 + i * (side + 28)
        wave = order["tiles"][: order["first"]]
        rows, columns = ({tile[axis] for tile in wave} for axis in (0, 1))
        name = "row by row" if order["group_m"] == 1 else f"in groups of {order['group_m']}"
        svg.text(x, 10, name, bold=True)
        svg.box(x, top, side, side, figures.TEXT, line=0.6)
        for row in sorted(rows):  # a run of columns is one box
            mine = sorted(n for m, n in wave if m == row)
            svg.add("rect", x=x + mine[0] * scale, y=top + row * scale, width=(mine[-1] - mine[0] + 1) * scale, height=scale, fill=BLUE)
            svg.add("rect", x=x - 12, y=top + row * scale, width=8, height=scale - 0.4, fill=GREEN)
        for column in sorted(columns):
            svg.add("rect", x=x + column * scale, y=top - 12, width=scale - 0.4, height=8, fill=PINK)
        strips = len(rows) + len(columns)
        lines = (f"{len(rows)} of A + {len(columns)} of B =", f"{strips} strips, {strips * BLOCK * EXTENT * HALF / 1e6:.0f} MB;", f"a slice of each: {strips * BLOCK * OF_K * HALF / 1e6:.2g} MB")
        for j, words in enumerate(lines):
            svg.text(x, top + side + 14 + 17 * j, words)
        described.append(f"{name.capitalize()}, {order['first']} blocks need {len(rows)} rows of A and {len(columns)} columns of B: {' '.join(lines[1:])}.")
    svg.description = " ".join(described)
    y = svg.legend(top + side + 68, (120, sample(svg, 1.0, BLUE), "C: the wave"), (110, sample(svg, 1.0, GREEN), "rows of A"), (120, sample(svg, 1.0, PINK), "columns of B"))
    return svg.render(y)


# --- 10: what a descriptor names ---

WGMMA = "10_wgmma"
OF_SLICES = (BLUE, ORANGE, GREEN, PINK)
ROWS_OF_PANEL = 64


def draw_raster(svg, x, y, rows, width, height):
    """Rows of 128 bytes; the letters of each are slices. Equal neighbours are one box."""
    svg.box(x, y, 8 * width, height * len(rows), figures.TEXT, line=0.6)
    first = 0
    for i in range(1, len(rows) + 1):
        if i < len(rows) and rows[i] == rows[first]:
            continue
        for found in re.finditer(r"(\d)\1*", rows[first]):
            begin, end = found.span()
            svg.add("rect", x=x + begin * width, y=y + first * height, width=(end - begin) * width, height=(i - first) * height, fill=OF_SLICES[int(found[1])])
        first = i
    for pattern in range(8, len(rows), 8):
        svg.line(x, y + pattern * height, x + 8 * width, y + pattern * height, colour=figures.ON_COLOUR, width=0.7)


def draw_descriptors(build):
    launch = launch_of(build, WGMMA, "128x256x64")
    issued = [descriptors.matrices_of(event[4:]) for event in launch.events if event[0] == 0 and launch.kinds[event[1]] == "wgmma"]
    slices = list(zip(*issued))  # of A, of B
    (begin_a, of_a), (_, of_b) = map(descriptors.raster, slices)
    a, b = issued[0]
    step_a, step_b = (each[1].address - each[0].address for each in slices)
    svg = Svg("What the descriptors of step 10's first four wgmma name in shared memory", f"{a.in_words()} The next slice begins {step_a:,} bytes on. {b.in_words()} The next slice begins {step_b:,} bytes on.")
    y = svg.legend(4, *((80, sample(svg, 1.0, colour), f"slice {i}") for i, colour in enumerate(OF_SLICES))) + 6
    svg.text(4, y + 8, f"A, {'MN' if a.is_mn_major else 'K'}-major: rows of 128 bytes along k", bold=True)
    y += 20
    width, height = 16, 3
    draw_raster(svg, 4, y, of_a, width, height)
    for warp in range(4):
        at = y + 16 * warp * height
        svg.line(4 + 8 * width, at, 12 + 8 * width, at)
        svg.text(8 + 8 * width, at + 8 * height, f"warp {warp}")
    x = 68 + 8 * width
    for i, words in enumerate((f"stride_bytes {a.stride:,}", "is the next pattern:", "8 rows, along m.", "leading_bytes: unused.", "", f"{step_a} bytes on is the", "next slice, in the same", "rows. The swizzle puts", "it elsewhere in each.")):
        svg.text(x, y + 10 + 17 * i, words)
    y += len(of_a) * height + 12
    svg.text(4, y + 8, f"B, {'MN' if b.is_mn_major else 'K'}-major: rows of 128 bytes along n", bold=True)
    y += 20
    panels = [of_b[i : i + ROWS_OF_PANEL] for i in range(0, len(of_b), ROWS_OF_PANEL)]
    gap, height = 8, 2
    width = (WIDTH - 8 - gap * (len(panels) - 1)) / len(panels) / 8
    for i, panel in enumerate(panels):
        x = 4 + i * (8 * width + gap)
        draw_raster(svg, x, y, panel, width, height)
        svg.text(x, y + ROWS_OF_PANEL * height + 10, f"panel {i}")
    y += ROWS_OF_PANEL * height + 28
    for words in (f"leading_bytes {b.leading:,} is the next panel, along n.", f"stride_bytes {b.stride:,} is the next pattern, along k.", f"{step_b:,} bytes on is the next slice, {step_b // 128} rows below."):
        svg.text(4, y, words)
        y += 17
    return svg.render(y - 4)


# --- 09: where the engine puts a box, and ldmatrix finds it ---

TMA = "09_tma"
PANEL_ROW, CHUNK = 128, 16  # bytes
CELL_WIDTH, CELL_HEIGHT = 19, 15  # units


def draw_panel(build):
    """Rows and chunks that the first ldmatrix of warp 0 wants of A, and where in the panel its lanes read."""
    read = accesses_of(launch_of(build, TMA, "128x128x64"), 0, "ldmatrix")[0]
    base = min(read.address.values()) // PANEL_ROW * PANEL_ROW
    wanted = {lane: (lane % 16, lane // 16) for lane in read.address}  # four matrices: two down, then two along k
    found = {lane: (row, place // CHUNK) for lane, (row, place) in ((lane, divmod(at - base, PANEL_ROW)) for lane, at in read.address.items())}
    if any((row, place) != (to, chunk ^ row % 8) for (row, chunk), (to, place) in ((wanted[lane], found[lane]) for lane in wanted)):
        raise ValueError("the chunks of a box do not lie where the picture says")
    banks = [{found[lane][1] for lane in range(first, first + 8)} for first in range(0, 32, 8)]
    said = "each eight lanes read in eight places, so all banks work once" if all(len(each) == 8 for each in banks) else "lanes share banks"
    svg = Svg("A box of A and its panel, in step 09", f"Left, rows 0 to 15 of the box, chunks 0 and 1; right, where they lie in the panel. The numbers are the lanes of the first ldmatrix: {said}.")
    rows = 1 + max(row for row, _ in found.values())
    top = 56
    svg.text(22, top - 10, "row", "end")
    for left, name, which, places in ((28, "rows of the box, in A", "chunk", wanted), (WIDTH - 8 * CELL_WIDTH - 4, "in shared memory", "place", found)):
        svg.text(left, 12, name, bold=True)
        svg.text(left + 4 * CELL_WIDTH, top - 26, which, "middle")
        lane_at = {place: lane for lane, place in places.items()}
        for column in range(8):
            svg.text(left + (column + 0.5) * CELL_WIDTH, top - 10, str(column), "middle")
            for row in range(rows):
                lane, x, y = lane_at.get((row, column)), left + column * CELL_WIDTH, top + row * CELL_HEIGHT
                if lane is None:
                    svg.box(x, y, CELL_WIDTH - 1, CELL_HEIGHT - 1, BLUE, line=0.4)
                    continue
                svg.add("rect", x=x, y=y, width=CELL_WIDTH - 1, height=CELL_HEIGHT - 1, fill=(BLUE, ORANGE)[wanted[lane][1]])
                svg.text(x + CELL_WIDTH / 2, y + 7.5, str(lane), "middle", colour=figures.ON_COLOUR)
    for row in range(rows):
        svg.text(22, top + 7.5 + row * CELL_HEIGHT, str(row), "end")
    y = svg.legend(top + 8 + rows * CELL_HEIGHT, (156, sample(svg, 1.0, BLUE), "lanes read chunk 0"), (110, sample(svg, 1.0, ORANGE), "chunk 1"))
    svg.text(4, y + 8, "place = chunk XOR (row mod 8)", bold=True)
    return svg.render(y + 20)


FIGURES = {
    "steps/01_naive/sectors.svg": ("01_naive", draw_sectors),
    "steps/02_tiled/thread.svg": (TILED, draw_thread),
    "steps/02_tiled/banks.svg": (TILED, draw_banks),
    "steps/03_tensor_core/fragments.svg": (TENSOR, draw_fragments),
    "steps/05_l2_swizzle/wave.svg": (L2_SWIZZLE, draw_wave),
    "steps/09_tma/panel.svg": (TMA, draw_panel),
    "steps/10_wgmma/descriptors.svg": (WGMMA, draw_descriptors),
}
