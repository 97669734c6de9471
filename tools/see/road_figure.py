"""Draws the front page's ladder: which step is built on which, and each one's share of cuBLAS."""

import json
import os

from report import ladder, plots
from report.figures import TEXT
from report.terminal import rounded

from .share_figures import best_tiles, results_of
from .svg import Svg

FILE = "road-f16.json"
SQUARE, FEW = (4096, 4096, 4096), (8, 4096, 4096)
FOR_FEW = ("08_split_k", "15_few_rows")  # whose problem that is
NAMES, BARS, NUMBERS = 56, 222, 354  # where they begin; where numbers end
HIGH, COLUMN = 17, 11
PALE = 0.45


OF_GPUS, TOKENS = "docs/results/h200-x2/tensor_parallel.json", 4096


def of_several_gpus():
    """What the best plan of steps/tensor_parallel reaches: cuBLAS's time on one GPU, divided by GPUs and by the plan's, in percent."""
    with open(os.path.join(ladder.ROOT, OF_GPUS), encoding="utf-8") as file:
        block = next(each for each in json.load(file)["results"] if each["tokens"] == TOKENS)
    return block["ranks"], 100 * max(each["efficiency"] for each in block["times"] if each["name"].startswith(("plain", "overlapped")))


def branches(steps):
    """From each step to the column of its line, and to the step that it is built on: one's first successor goes on in its column."""
    rows = {step: row for row, step in enumerate(steps)}
    bases = {step: base if (base := ladder.built_on(step)) in rows else "" for step in steps}
    lines, line_of = [], {}  # a line: its steps, one built on the other
    for step in steps:
        base = bases[step]
        if base and line_of[base][-1] == base:
            line_of[step] = line_of[base]
        else:
            line_of[step] = []
            lines.append(line_of[step])
        line_of[step].append(step)
    columns, taken = {}, []  # of each column the rows that are taken
    for line in lines:
        begin = rows[bases[line[0]] or line[0]]
        needs = set(range(begin + bool(bases[line[0]]), rows[line[-1]] + 1))
        column = next((index for index, each in enumerate(taken) if not each & needs), len(taken))
        if column == len(taken):
            taken.append(set())
        taken[column] |= needs
        columns.update(dict.fromkeys(line, column))
    return columns, bases


def draw_road(_):
    def shares(shape, steps):
        every = {step: best_tiles(FILE, step, lambda each: (each["m"], each["n"], each["k"]) == shape or None) for step in steps}
        return {step: 100 * found[True][0] for step, found in every.items()}

    steps = sorted({each["step"] for each in results_of(FILE) if ladder.part(each["step"])})
    square, few = shares(SQUARE, steps), shares(FEW, FOR_FEW)
    said = ", ".join(f"step {step[:2]} {rounded(few[step])} (8 rows, cold)" if step in few else f"step {step[:2]} {rounded(share)}" for step, share in square.items())
    gpus, share_of_gpus = of_several_gpus()
    said += f", tensor parallel {rounded(share_of_gpus)} ({gpus} GPUs, {TOKENS} tokens)"
    svg = Svg("Which step is built on which, and its share of cuBLAS", f"% of cuBLAS at 4096³, f16, hot: {said}")
    y, colours = 4, dict(zip(ladder.PARTS, plots.COLOURS))
    for x, parts in ((4, ("I", "II", "III")), (190, ("IV", "appendix"))):
        for row, part in enumerate(parts):
            svg.add("rect", x=x, y=y + 1 + HIGH * row, width=14, height=12, fill=colours[part])
            svg.text(x + 20, y + 7 + HIGH * row, f"{part}: {ladder.PARTS[part][0]}" if part.isupper() else part)
    svg.add("rect", x=190, y=y + 1 + 2 * HIGH, width=14, height=12, fill=colours[ladder.part(FOR_FEW[0])], fill_opacity=PALE)
    svg.text(210, y + 7 + 2 * HIGH, f"8 rows, cold; {gpus} GPUs")
    top = y + 3 * HIGH + 24
    columns, bases = branches(steps)
    scale = (NUMBERS - 48 - BARS) / max(*square.values(), *few.values())

    def at(step):
        return 10 + COLUMN * columns[step], top + HIGH * steps.index(step)

    cublas = BARS + 100 * scale
    svg.text(cublas, top - HIGH, "cuBLAS", anchor="middle")
    svg.line(cublas, top - 9, cublas, top + HIGH * len(steps) + HIGH - 8, dashes="4 3")
    for step in steps:
        x, y = at(step)
        if bases[step]:
            base_x, base_y = at(bases[step])
            svg.add("path", d=f"M{base_x} {base_y}L{x} {min(base_y + HIGH / 2, y)}V{y}", fill="none", stroke=TEXT, stroke_width=1.2)
    for step in steps:
        x, y = at(step)
        colour, share = colours[ladder.part(step)], few.get(step, square[step])
        svg.add("circle", cx=x, cy=y, r=4, fill=colour)
        svg.text(NAMES, y, ladder.title(step)[0])
        svg.add("rect", x=BARS, y=y - 6, width=max(share * scale, 0.6), height=12, fill=colour, fill_opacity=PALE if step in few else 1)
        svg.text(NUMBERS, y, f"{rounded(share)} %", anchor="end")
    y, colour = top + HIGH * len(steps), colours["IV"]  # of the call, which is built on no one step
    svg.add("circle", cx=10, cy=y, r=4, fill=colour)
    svg.text(NAMES, y, "tensor parallel")
    svg.add("rect", x=BARS, y=y - 6, width=share_of_gpus * scale, height=12, fill=colour, fill_opacity=PALE)
    svg.text(NUMBERS, y, f"{rounded(share_of_gpus)} %", anchor="end")
    return svg.render(y + HIGH)


FIGURES = {"docs/road.svg": ("01_naive", draw_road)}
