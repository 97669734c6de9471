"""Draws the figures of the lessons: the memories, from grid to fragment, who copies what, the swizzle, the pipeline, the order of the
blocks.

What they show comes from bin/figures (steps/figures.cpp), which asks the steps' own functions; what is computed here is only where
things stand on the page. As plots.py's, the figures suit light pages and dark ones, and the same code gives the same bytes.
"""

import json
import os
import subprocess
import sys
from xml.sax.saxutils import escape

from .ladder import ROOT
from .plots import COLOURS, TEXT
from .results import BadFile, write_all
from .terminal import Arguments, run_command

HELP = """\
Usage: tools/figures [--check] [--program PROGRAM]

Draws the figures of the lessons, steps/*/*.svg, from what the code says, and prints the path of every file that changed.

  --check             change nothing, name the figures that are not what the code says now
  --program PROGRAM   the built program that asks the code   [build/interpreter/bin/figures, else build/gpu/bin/figures]
  --help              show this

Exit code: 0 all are current (now), 1 with --check: some are not; steps/figures.cpp has another main loop than step 04,
2 the program is missing or fails, refused input."""

PROGRAMS = ("build/interpreter/bin/figures", "build/gpu/bin/figures")
KERNEL, COPY_OF_LOOP = "steps/04_pipelined_num_stages/gemm.cuh", "steps/figures.cpp"
LOOP_BEGINS, LOOP_ENDS = "  // clang-format off\n", "  // clang-format on\n"

ON_COLOUR = "#ffffff"  # text on a filled shape, whatever the page
BLUE, ORANGE, GREEN, PINK, _ = COLOURS
TINT = 0.16  # opacity of fills with TEXT on them
PROSE = 17  # pixels from line to line


# --- SVG ---


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Svg:
    def __init__(self, title, description):
        self.title, self.description, self.parts = title, description, []

    def add(self, tag, content=None, **attributes):
        """Underscores in the names of ATTRIBUTES stand for dashes; numbers are rounded to 1/100 pixel."""
        words = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else number(value)}"'
            for name, value in attributes.items()
            if value is not None
        )
        self.parts.append(f"<{tag}{words}/>" if content is None else f"<{tag}{words}>{escape(content)}</{tag}>")

    def box(self, x, y, width, height, colour, filled=None, line=1.0, **more):
        """FILLED: opacity of the fill; None: empty."""
        fill = {"fill": "none"} if filled is None else {"fill": colour, "fill_opacity": filled}
        self.add("rect", x=x, y=y, width=width, height=height, **fill, stroke=colour, stroke_width=line, **more)

    def line(self, x1, y1, x2, y2, colour=TEXT, width=1.0, dashes=None, opacity=None):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width, stroke_dasharray=dashes, opacity=opacity)

    def text(self, x, y, words, anchor="middle", size=11, bold=False, colour=None):
        """Y is the middle of the line."""
        font = {"font_size": None if size == 11 else size, "font_weight": "bold" if bold else None}
        self.add("text", words, x=x, y=y + 0.35 * size, text_anchor=None if anchor == "start" else anchor, **font, fill=colour)

    def heading(self, x, y, words):
        self.text(x, y, words, anchor="start", bold=True, size=12)

    def prose(self, x, y, *lines):
        """Below each other, the first of which is at Y. Returns where one more would be."""
        for index, words in enumerate(lines):
            self.text(x, y + PROSE * index, words, anchor="start")
        return y + PROSE * len(lines)

    def cell(self, x, y, width, height, colour, words, size, shown, tint=TINT / 2, line=0.6):
        """A box with WORDS in its middle. SHOWN: filled, as what the figure is about."""
        self.box(x, y, width, height, colour, filled=1 if shown else tint, line=line)
        self.text(x + width / 2, y + height / 2, words, size=size, bold=shown, colour=ON_COLOUR if shown else None)

    def render(self, width, height):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}"'
            f' viewBox="0 0 {number(width)} {number(height)}" role="img" aria-labelledby="title desc"'
            f' font-family="DejaVu Sans, Verdana, sans-serif" font-size="11" fill="{TEXT}">'
        )
        names = [f'<title id="title">{escape(self.title)}</title>', f'<desc id="desc">{escape(self.description)}</desc>']
        return "\n".join([head, *names, *self.parts, "</svg>", ""]).encode()


# --- 01: the memories ---


def binary_size(number):
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if number >= factor:
            return f"{number / factor:g} {unit}"
    return f"{number} B"


def draw_memory(data):
    sms = data["multiprocessors"]
    levels = (
        ("registers", f"{binary_size(data['register_bytes'])} in each of {sms} SMs", "a thread's own", None),
        (
            "L1 cache, shared memory",
            f"{binary_size(data['l1_bytes'])} in each of {sms} SMs, {binary_size(data['shared_bytes'])} of it may be shared",
            "a block's",
            data["l1_bytes_per_second"],
        ),
        ("L2 cache", binary_size(data["l2_bytes"]), "all blocks'", data["l2_bytes_per_second"]),
        ("DRAM", f"{data['dram_bytes'] / 1e9:g} GB", "all blocks'", data["dram_bytes_per_second"]),
    )
    svg = Svg(f"The memories of an {data['gpu']}, and how fast they are read", "")
    left, row, gap, middle = 16, 34, 30, 300
    described = []
    for index, (name, size, whose, rate) in enumerate(levels):
        y, half = 34 + index * (row + gap), 110 + index * 60
        svg.box(middle - half, y, 2 * half, row, (BLUE, GREEN, ORANGE, PINK)[index], filled=TINT)
        svg.text(middle, y + 11, name, bold=True, size=12)
        svg.text(middle, y + 25, size, size=10)
        svg.text(middle + 305, y + row / 2, whose, anchor="start")
        described.append(f"{name}: {size}")
        if rate:
            up = y - gap / 2
            words = f"{rate / 1e12:.3g} TB/s, all SMs together"
            svg.text(middle, up, f"▲ {words} ▲", size=10)
            described[-1] += f", {words}"
    svg.text(middle, 14, f"{data['gpu']}, {sms} SMs", bold=True, size=12)
    svg.text(middle + 305, 14, "who sees it", anchor="start", bold=True)
    bottom = 34 + 4 * row + 3 * gap
    svg.prose(
        left,
        bottom + 20,
        "Data travel in sectors of 32 bytes; four sectors in a row are a line. DRAM: the datasheet's rate.",
        "L2 and L1: 64 and 128 bytes for each SM and clock, at the highest clock. No kernel gets all of it.",
    )
    svg.description = "From small and fast to large and slow. " + "; ".join(described) + "."
    return svg.render(middle + 400, bottom + 50)


# --- 03: from the grid to a fragment ---


def draw_levels(data):
    extent, block_m, block_n = data["extent"], data["block_m"], data["block_n"]
    warp_m, warp_n, fragment, mma_n = data["warp_m"], data["warp_n"], data["fragment"], data["mma_n"]
    svg = Svg("From the grid of blocks to a fragment: who computes which part of C", "")
    side, gap, top, left = 160, 56, 54, 14
    parts = (
        ("grid", f"C: {extent} × {extent}", extent // block_m, extent // block_n, f"{extent // block_m} × {extent // block_n} blocks"),
        ("block", f"{block_m} × {block_n}", block_m // warp_m, block_n // warp_n, f"{block_m // warp_m} × {block_n // warp_n} warps"),
        (
            "warp",
            f"{warp_m} × {warp_n}",
            warp_m // fragment,
            warp_n // mma_n,
            f"{warp_m // fragment} × {warp_n // mma_n} products for each k of {fragment}",
        ),
        ("mma.sync", f"{fragment} × {mma_n}", fragment, mma_n // 2, "32 lanes, 2 pairs of sums each"),
    )
    described = []
    for index, (name, size, rows, cols, words) in enumerate(parts):
        x = left + index * (side + gap)
        width = side if index < 3 else side / 2
        colour = (BLUE, GREEN, ORANGE, PINK)[index]
        svg.heading(x, 14, name)
        svg.text(x, 31, size, anchor="start", size=10)
        svg.box(x, top, width, side, colour, filled=TINT / 2, line=1.5)
        for row in range(1, rows):
            svg.line(x, top + row * side / rows, x + width, top + row * side / rows, colour, 0.6)
        for col in range(1, cols):
            svg.line(x + col * width / cols, top, x + col * width / cols, top + side, colour, 0.6)
        if index < 3:  # the first of them is drawn beside
            first_width, first_height = width / cols, side / rows
            svg.box(x, top, first_width, first_height, colour, filled=1)
            svg.line(x + first_width, top, x + side + gap, top, dashes="3 3")
            svg.line(x + first_width, top + first_height, x + side + gap, top + side, dashes="3 3")
        else:
            for pair in range(rows * cols):  # of neighbours in a row; rows below each other by 8 have the same lanes
                middle = (x + (pair % cols + 0.5) * width / cols, top + (pair // cols + 0.5) * side / rows)
                svg.text(*middle, str(pair % 32), size=8)
        svg.text(x, top + side + 16, words, anchor="start", size=10)
        described.append(f"{name}, {size}: {words}")
    lines = (
        f"For each k of {fragment}, a warp loads {warp_m // fragment} fragments of A and {warp_n // fragment} of B into its registers, each"
        f" {fragment} × {fragment}.",
        f"It uses each fragment of A for {warp_n // mma_n} products, and each one of B for {2 * (warp_m // fragment)}.",
    )
    svg.prose(left, top + side + 40, *lines)
    svg.description = "Four squares, each the first part of the one before. " + "; ".join(described) + ". " + " ".join(lines)
    return svg.render(left + 3 * (side + gap) + side + 20, top + side + 68)


# --- 03: who copies which chunk ---

SHOWN_ROWS, SHOWN_THREAD = 18, 8


def draw_copies(data):
    chunks, step = data["chunks"], data["step"]
    svg = Svg("Which thread copies which chunk of a tile of A, and where it goes in shared memory", "")
    cell, height, left, top, gap = 34, 18, 66, 58, 90
    x_shared = left + chunks * cell + gap
    for x, title in ((left, "A in global memory"), (x_shared, "the tile in shared memory, swizzled")):
        svg.heading(x, 14, title)
    svg.text(left - 8, top - 11, "chunk", anchor="end", size=9)
    svg.text(x_shared - 8, top - 11, "bank", anchor="end", size=9)
    for chunk in range(chunks):
        svg.text(left + (chunk + 0.5) * cell, top - 11, str(chunk), size=9)
        svg.text(x_shared + (chunk + 0.5) * cell, top - 11, str(chunk % 8 * 4), size=9)
    for row in range(SHOWN_ROWS):
        y = top + row * height
        for x in (left, x_shared):
            svg.text(x - 8, y + height / 2, f"row {row}", anchor="end", size=9)
        for chunk in range(chunks):
            thread, place = data["table"][row][chunk]
            shown = thread == SHOWN_THREAD
            for x, at in ((left, chunk), (x_shared, place)):
                svg.cell(x + at * cell, y, cell, height, ORANGE if shown else BLUE, str(thread), 9, shown)
    bottom = top + SHOWN_ROWS * height
    svg.text(left, bottom + 12, "⋮", size=12)
    svg.text(x_shared, bottom + 12, "⋮", size=12)
    first = [thread for thread, _ in data["table"][SHOWN_THREAD // chunks]].index(SHOWN_THREAD)
    copied = data["rows"] // step
    lines = (
        f"Numbers are threads. A warp copies {32 // chunks} rows of {chunks} chunks with one instruction, {data['threads']} threads copy"
        f" {step} rows.",
        f"Then they copy the next {step} rows, {copied} times in all. A row is 128 bytes: 4 sectors of A, and all 32 banks.",
        f"Filled: thread {SHOWN_THREAD} copies chunk {first} of rows {SHOWN_THREAD // chunks}, {SHOWN_THREAD // chunks + step}, ...",
    )
    end = svg.prose(left - 50, bottom + 34, *lines)
    svg.description = (
        "Two grids of chunks with the numbers of the threads that copy them: as they lie in A, and as they lie in shared memory, where"
        " each row has another order. " + " ".join(lines)
    )
    return svg.render(x_shared + chunks * cell + 60, end)


# --- 03: swizzle ---

READ_CHUNK = 2


def draw_swizzle(data):
    described = []
    svg = Svg("Chunks of a tile in shared memory, row-major and swizzled", "")
    left, width, gap, height = 62, 336, 62, 20
    top = 0
    for each in data:
        chunks = each["row"] // 8
        cell = width / chunks
        for side, (kind, title) in enumerate((("row_major", "row by row"), ("swizzled", "swizzled"))):
            x0, y0 = left + side * (width + gap), top + 56
            layout = each[kind]
            waves = layout["wavefronts"][READ_CHUNK]
            svg.heading(x0, top + 16, f"rows of {each['row']} elements, {title}")
            svg.text(x0 - 8, y0 - 11, "bank", anchor="end", size=9)
            for column in range(chunks):
                svg.text(x0 + (column + 0.5) * cell, y0 - 11, str(column % 8 * 4), size=9)
            banks = set()
            for row, places in enumerate(layout["places"]):
                svg.text(x0 - 8, y0 + (row + 0.5) * height, f"row {row}", anchor="end", size=9)
                for chunk, place in enumerate(places):
                    # Rows lie below each other, so that a column of the figure is a group of four banks.
                    x, y = x0 + place % each["row"] // 8 * cell, y0 + place // each["row"] * height
                    read = chunk == READ_CHUNK
                    if read:
                        banks.add(place // 8 % 8)
                    svg.cell(x, y, cell, height, ORANGE if read else BLUE, str(chunk), 10, read, line=0.8)
            for column in range(8, chunks, 8):  # a row longer than all banks together
                svg.line(x0 + column * cell, y0 - 18, x0 + column * cell, y0 + 8 * height, width=2)
            where = "the same 4 banks" if len(banks) == 1 else f"{len(banks)} groups of 4 banks"
            times = "1 wavefront" if waves == 1 else f"{waves} wavefronts"
            svg.text(x0, y0 + 8 * height + 15, f"chunk {READ_CHUNK} of eight rows: {where}", anchor="start")
            svg.text(x0 + width, y0 + 8 * height + 15, times, anchor="end", bold=True)
            described.append(f"{each['row']} elements per row, {title}: chunk {READ_CHUNK} of eight rows lies in {where}, {times}.")
        top += 56 + 8 * height + 40
    svg.description = (
        "Grids of eight rows; a column is four banks of shared memory, 16 bytes, a number the chunk of 8 elements that lies there. "
        + " ".join(described)
    )
    svg.prose(
        left,
        top + 4,
        "Numbers are chunks of 8 elements, 16 bytes; a column is four banks, named after the first of them.",
        f"Filled: what eight lanes of ldmatrix read for one matrix, here chunk {READ_CHUNK} of each row.",
    )
    return svg.render(left + 2 * width + gap + 16, top + 36)


# --- 04: pipeline ---


def tiles_multiplied(pipeline):
    """From the slices' multiplications: (tile, stage, start, end), in this order; a tile is in parts if it was waited in between."""
    tiles = []
    for each in pipeline["multiplications"]:
        if tiles and tiles[-1][0] == each["tile"] and tiles[-1][3] == each["start"]:
            tiles[-1][3] = each["end"]
        else:
            tiles.append([each["tile"], each["stage"], each["start"], each["end"]])
    return tiles


def draw_pipeline(data):
    svg = Svg("When tiles are copied and multiplied, with 1, 2 and 3 stages", "")
    left, tick, row, column_width = 74, 10, 22, 130
    slices = data[0]["slices"]
    y, described = 8, []
    width = left + max(5 * column_width, *(each["ticks"] * tick for each in data)) + 84

    def bar(start, end, at, colour, words, shown):
        svg.cell(left + start * tick, at + 2, (end - start) * tick, row - 4, colour, words, 10, shown, TINT, 1.0)

    # Legend
    svg.box(left, y, 34, 14, BLUE, filled=TINT)
    svg.text(left + 42, y + 7, "copied: from cp.async until it is there", anchor="start")
    svg.box(left + 292, y, 34, 14, ORANGE, filled=1)
    svg.text(left + 334, y + 7, "multiplied", anchor="start")
    svg.line(left + 422, y + 7, left + 456, y + 7, BLUE, 2, "2 3")
    svg.text(left + 464, y + 7, "there, not yet multiplied", anchor="start")
    words = f"Numbers are tiles. Multiplying one takes 1; here a copy takes {data[0]['copy_ticks'] / slices:g}."
    svg.text(left, y + 27, words, anchor="start")
    y += 50
    for each in data:
        units = f"{each['ticks'] / slices:g}"
        svg.heading(left, y + 8, f"kNumStages = {each['stages']}")
        words = f"cp_async_wait_group<{each['waits'][-1]['groups']}>"
        if each["empty_groups"]:
            words += f", empty groups at the end: {each['empty_groups']}"
        svg.text(left + 128, y + 8, words, anchor="start", size=10)
        y += 20
        multiplied = tiles_multiplied(each)
        starts = {tile: start for tile, _, start, _ in reversed(multiplied)}
        for stage in range(each["stages"]):
            at = y + stage * row
            svg.text(left - 8, at + row / 2, f"stage {stage}", anchor="end")
            svg.line(left, at + row, left + each["ticks"] * tick, at + row, width=0.5, opacity=0.5)
        for copy in each["copies"]:
            at = y + copy["stage"] * row
            bar(copy["start"], copy["end"], at, BLUE, str(copy["tile"]), False)
            if starts[copy["tile"]] > copy["end"]:
                middle = at + row / 2
                svg.line(left + copy["end"] * tick, middle, left + starts[copy["tile"]] * tick, middle, BLUE, 2, "2 3")
        for tile, stage, start, end in multiplied:
            bar(start, end, y + stage * row, ORANGE, str(tile), True)
        y += each["stages"] * row
        svg.text(left - 8, y + row / 2, "waiting", anchor="end")
        waiting = 0
        for wait in each["waits"]:
            if wait["end"] > wait["start"]:
                waiting += wait["end"] - wait["start"]
                svg.line(left + wait["start"] * tick, y + row / 2, left + wait["end"] * tick, y + row / 2, TEXT, 6)
        end = left + each["ticks"] * tick
        svg.line(end, y - each["stages"] * row, end, y + row, width=1.5)
        svg.heading(end + 8, y + row / 2, f"takes {units}")
        stages = "1 stage" if each["stages"] == 1 else f"{each['stages']} stages"
        described.append(
            f"{stages}: {len(starts)} tiles take {units} times as long as multiplying one, {waiting / slices:g} of that waiting."
        )
        y += row + 16

    # Inside a tile. A load shares its column with the next multiplication, unless that needs what it loads.
    done = 0
    words = "One level down, in registers: two sets of fragments, while one tile is multiplied"
    svg.heading(left, y + 8, words)
    y += 20
    for index in range(2):
        svg.text(left - 8, y + (index + 0.5) * row, f"set {index}", anchor="end")
    for step in data[0]["steps_of_tile"]:
        loads = step["what"] == "load"
        column = done + (0 if loads and step["slice"] == done else 1)
        start = (column * column_width) / tick
        slice_name = "next tile" if loads and step["slice"] < done else f"slice {step['slice']}"
        words = f"{'ldmatrix' if loads else 'mma'}, {slice_name}"
        bar(start, start + column_width / tick, y + step["set"] * row, BLUE if loads else ORANGE, words, not loads)
        done += not loads
    y += 2 * row
    svg.description = (
        "Timelines, a row per stage of shared memory, as the main loop's calls give them if a copy takes"
        f" {data[0]['copy_ticks'] / slices:g} times as long as multiplying a tile. {' '.join(described)} Within a tile, the"
        " fragments of the next slice are loaded while those of this slice are multiplied, at the end those of the next tile's"
        " first slice."
    )
    return svg.render(width, y + 14)


# --- 05: order ---


def draw_order(data):
    svg = Svg("The order of the blocks over C, row by row and in groups", "")
    cell, left, top, gap = 22, 34, 54, 40
    x, described = left, []
    lowest = max(each["tiles_m"] for each in data) * cell + top
    for each in data:
        tiles, first, group = each["tiles"], each["first"], each["group_m"]
        width = each["tiles_n"] * cell
        name = "row by row (kGroupM = 1)" if group == 1 else f"kGroupM = {group}"
        svg.heading(x, 14, name)
        for block, (m, n) in enumerate(tiles):
            at = (x + n * cell, top + m * cell, cell, cell)
            if not first:
                svg.box(*at, COLOURS[m // group % 3], filled=TINT, line=0.5)
            elif block < first:
                svg.box(*at, BLUE, filled=TINT, line=0.8)
            else:
                svg.box(*at, TEXT, line=0.3)
        # The path runs right of the numbers and below them, but for its jumps.
        points = [(x + (n + 0.82) * cell, top + (m + 0.75) * cell) for m, n in tiles]
        svg.add("circle", cx=points[0][0], cy=points[0][1], r=2.6, fill=ORANGE)
        for (start, to), (one, other) in zip(zip(points, points[1:]), zip(tiles, tiles[1:])):
            if abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1:
                svg.line(*start, *to, ORANGE, 1.4)
            else:
                svg.line(*start, *to, ORANGE, 0.8, "3 2", 0.6)
        for block, (m, n) in enumerate(tiles):
            svg.text(x + n * cell + 2.5, top + m * cell + 6.5, str(block), anchor="start", size=8.5, bold=block < first)
        for m in range(group, each["tiles_m"], group) if group > 1 else ():
            svg.line(x - 4, top + m * cell, x + width + 4, top + m * cell, width=2)
        rows, cols = ({tile[axis] for tile in tiles[:first]} for axis in (0, 1))
        if first:
            for m in rows:
                svg.box(x - 13, top + m * cell + 2, 7, cell - 4, GREEN, filled=1)
            for n in cols:
                svg.box(x + n * cell + 2, top - 13, cell - 4, 7, PINK, filled=1)
            svg.text(x - 20, top + cell / 2, "A", size=10, bold=True, colour=GREEN)
            svg.text(x - 9.5, top - 9.5, "B", size=10, bold=True, colour=PINK)
            caption = f"loads {each['loads']} blocks"
            needed = [f"{len(some)} {word}{'s' * (len(some) > 1)}" for some, word in ((rows, "row"), (cols, "column"))]
            sums = f"({' + '.join(needed)}) × {each['tiles_k']}"
            described.append(
                f"{name}: the first {first} need {needed[0]} of A and {needed[1]} of B, {each['loads']} blocks of these."
            )
        else:
            last = each["tiles_m"] % group or group
            last = f"{last} row{'s' * (last > 1)}"
            caption, sums = f"{each['tiles_m']} × {each['tiles_n']} tiles", f"last group: {last}"
            described.append(f"{name} on {each['tiles_m']} x {each['tiles_n']} tiles: the last group has {last}.")
        svg.heading(x, lowest + 16, caption)
        svg.text(x, lowest + 33, sums, anchor="start")
        x += width + gap
    svg.description = (
        "Grids of C's tiles with the numbers of the blocks that compute them, and the path through them. " + " ".join(described)
    )
    svg.prose(
        left,
        lowest + 58,
        f"Numbers are blockIdx.x: blocks start about in this order. Blue: the first {data[0]['first']}.",
        f"What they load: the rows of A and the columns of B that are marked beside them, of {data[0]['tiles_k']} blocks each.",
    )
    return svg.render(x - gap + 14, lowest + 90)


# --- files ---

FIGURES = {
    "steps/01_naive/memory.svg": ("memory", draw_memory),
    "steps/03_tensor_core/levels.svg": ("levels", draw_levels),
    "steps/03_tensor_core/copies.svg": ("copies", draw_copies),
    "steps/03_tensor_core/swizzle.svg": ("swizzle", draw_swizzle),
    "steps/04_pipelined_num_stages/pipeline.svg": ("pipeline", draw_pipeline),
    "steps/05_l2_swizzle/order.svg": ("order", draw_order),
}


def read(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}.") from None


def same_loop(root):
    """Whether steps/figures.cpp still runs the kernel's main loop."""
    copy = read(root, COPY_OF_LOOP)
    _, begin, rest = copy.partition(LOOP_BEGINS)
    loop, end, _ = rest.partition(LOOP_ENDS)
    return bool(begin and end and loop.strip()) and loop in read(root, KERNEL)


def find_program(root):
    for path in PROGRAMS:
        if os.path.exists(os.path.join(root, path)):
            return os.path.join(root, path)
    raise BadFile(f"there is no {' and no '.join(PROGRAMS)} yet: build it with 'tools/course test'.")


def ask(program):
    """What the code says."""
    try:
        done = subprocess.run([program], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise BadFile(f"{program} does not say what to draw: {error}. Build it again with 'tools/course test'.") from None


def draw(data):
    """From path to bytes."""
    return {path: draw_one(data[name]) for path, (name, draw_one) in FIGURES.items()}


def current(path, content):
    try:
        with open(path, "rb") as file:
            return file.read() == content
    except OSError:
        return False


def main():
    arguments = Arguments(prog="tools/figures", add_help=False, allow_abbrev=False)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--program")
    arguments.add_argument("-h", "--help", action="store_true")
    given = arguments.parse_args()
    if given.help:
        print(HELP)
        return 0
    if not same_loop(ROOT):
        print(
            f"course: the main loop in {COPY_OF_LOOP} is not that of {KERNEL} any more: copy it from there, build, and run"
            " 'tools/figures'.",
            file=sys.stderr,
        )
        return 1
    drawn = draw(ask(given.program or find_program(ROOT)))
    old = {path: content for path, content in drawn.items() if not current(os.path.join(ROOT, path), content)}
    if given.check:
        for path in old:
            print(f"course: {path} is not what the code says now: run 'tools/figures' and look at it.", file=sys.stderr)
        return 1 if old else 0
    write_all({os.path.join(ROOT, path): content for path, content in old.items()})
    for path in old:
        print(path)
    return 0


if __name__ == "__main__":
    run_command(main)
