"""Draws what two GPUs do in steps/tensor_parallel, plain and overlapped. When, is what the cost model says, from measured parts."""

import json
import os
import subprocess

from report.figures import BLUE, GREEN, ORANGE, TEXT, TINT

from . import cost
from .recorded import Axis, bar, idle
from .svg import ROW, Svg, sample

RESULTS, TOKENS = "docs/results/h200-x2/tensor_parallel.json", 4096
OF_GPU = (BLUE, ORANGE)  # whose tokens
WORDS = {"first": "X·W1", "second": "H·W2"}
PLANS = (("plain", "plain", "plain"), ("overlapped", "overlapped", "overlapped, 1, copy engines"))


def micros(seconds):
    return f"{1e6 * seconds:.0f}"


def span_colour(span, gpu):
    """Whose tokens it is about: a product of one's own, or of all where nothing else says so; a copy brings the other's X, or sums of one's own."""
    if span["work"] in ("first", "second"):
        return OF_GPU[gpu if span["mine"] else 1 - gpu]
    return OF_GPU[1 - gpu if span["work"] == "gather" else gpu]


def draw_lanes(svg, axis, y, spans, gpu, is_plain):
    """Returns where it ends."""
    lanes = {f"GPU {gpu}": ("first", "second", "add"), "its copies": ("gather", "exchange", "reduce")}
    for name, works in lanes.items():
        svg.text(axis(0) - 6, y + ROW / 2, name, anchor="end")
        if works[0] == "first":
            mine = [span for span in spans if span["work"] in works]
            if is_plain:
                idle(svg, axis, y, 0, 1e6 * mine[0]["from"], "")
                idle(svg, axis, y, 1e6 * mine[-1]["to"], 1e6 * spans[-1]["to"], "")
        for span in spans:
            if span["work"] not in works:
                continue
            is_product = span["work"] in WORDS
            colour = GREEN if is_plain else TEXT if span["work"] == "add" else span_colour(span, gpu)
            bar(svg, axis, y, 1e6 * span["from"], 1e6 * span["to"], colour, WORDS.get(span["work"], ""), 1.0 if is_product or span["work"] == "add" else TINT)
        y += ROW
    return y + 4


def draw_ranks(build):
    command = [os.path.join(build, "bin", "timeline"), os.path.join(cost.ROOT, RESULTS), str(TOKENS)]
    said = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    ends = {plan: said[plan][-1]["to"] for plan, *_ in PLANS}
    measured = {plan: said["measured"][name] for plan, _, name in PLANS}
    copies = sum(span["to"] - span["from"] for span in said["overlapped"] if span["work"] in ("gather", "exchange"))
    svg = Svg(
        f"Copies and products of two GPUs, {TOKENS} tokens",
        f"Plain, one after the other: {micros(ends['plain'])} µs predicted, {micros(measured['plain'])} measured. Overlapped: {micros(ends['overlapped'])} µs"
        f" predicted, {micros(measured['overlapped'])} measured, with {micros(copies)} µs of copies behind products.",
    )
    y = svg.legend(
        4,
        (150, sample(svg, 1.0, BLUE), "tokens of GPU 0"),
        (150, sample(svg, 1.0, ORANGE), "tokens of GPU 1"),
        (150, sample(svg, 1.0, GREEN), "of both at once"),
        (150, sample(svg, TINT, BLUE), "a copy"),
        (150, sample(svg, "idle", TEXT), "nothing to multiply"),
    )
    axis = Axis(0, 1e6 * max([*ends.values(), *measured.values()]))
    y += 6
    for plan, words, _ in PLANS:
        svg.text(4, y + 8, f"{words}: {micros(ends[plan])} µs predicted, {micros(measured[plan])} measured", bold=True)
        y += 20
        top = y
        for gpu in (0, 1):
            y = draw_lanes(svg, axis, y, said[plan], gpu, plan == "plain")
        svg.line(axis(1e6 * measured[plan]), top, axis(1e6 * measured[plan]), y, dashes="3 2")
        y += 4
    return svg.render(axis.draw(svg, y, 200, "µs"))


FIGURES = {"steps/tensor_parallel/timeline.svg": ("timeline", draw_ranks)}
