"""Plots from result files: ladder, roofline, TFLOP/s against size and rows, ratios, tuning. 'tools/plot --help' says more.

The background is transparent, so that a plot fits a light page and a dark one: every colour has a contrast of at least 3 to
white and to GitHub's dark #0d1117 (the test computes it). Colours never stand alone: markers, hatches and labels differ too.
The same files give the same bytes, so that a committed plot changes only if its data do.
"""

import io
import math
import os
import re
import statistics
import sys
import textwrap

from . import results, shapes
from .ladder import ROOT, by_step, machine, projected
from .terminal import NOTHING, Arguments, rounded, run_command, tera

NEEDS_MATPLOTLIB = 69  # the exit code that tells tools/plot to install it

TEXT = "#767b82"  # also axes and cuBLAS
COLOURS = ("#1a7fc1", "#d55e00", "#008f68", "#b95f90", "#9a7d00")  # Okabe and Ito's, darker where too light for white
PEER_COLOURS = {"peer_triton": "#8468d8", "peer_cutlass": "#c2475a"}  # of lines that are dash-dotted, with hollow markers
# Of cells, from far worse to far better; the middle is even. Equally light, so that white numbers are read on each of them,
# and the cells on each page; orange and blue remain two colours for the colour-blind.
CELLS = ("#bb4300", "#aa542b", "#94624b", "#6e7073", "#5d6f8c", "#446fa4", "#006fba")
IN_CELLS = "#ffffff"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
FORMATS = ("svg", "png")
WIDTH = 10  # inches

SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": TEXT,
    "axes.edgecolor": TEXT,
    "axes.labelcolor": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "grid.color": TEXT,
    "grid.alpha": 0.25,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "gemm-course",
}


# --- what is drawn, from results ---


def drawable(flops_per_second):
    """A damaged file's 1e300 has no place on an axis."""
    return flops_per_second is not None and 0 < flops_per_second < 1e30


def rate(result):
    """FLOP/s, measured or else projected; None if it could not be had."""
    found = projected(result)
    if result.get("time"):
        found = None if result.get("tflops") is None else result["tflops"] * 1e12
    return found if drawable(found) else None


def rates(flops, sample):
    """The FLOP/s at a sample's 80 % quantile, median and 20 % quantile, in this order; or None."""
    if not sample or not flops or not all(sample[name] for name in ("q80", "median", "q20")):
        return None
    found = tuple(flops / sample[name] for name in ("q80", "median", "q20"))
    return found if all(map(drawable, found)) else None


def baseline_rates(group, name):
    """Of one shape. Every result brings a baseline of its own, measured in turn with it: the medians of all."""
    each = [rates(result["flops"], (result.get("baselines") or {}).get(name)) for result in group]
    each = [three for three in each if three]
    return tuple(map(statistics.median, zip(*each))) if each else None


def kind(result):
    """What one file of plots is about: everything of a setting but the shape."""
    return results.setting(result)[3:]


def kind_of_all_layouts(result):
    a, c, _, mode = kind(result)
    return a, c, None, mode


def most_telling_shape(group):
    """The results of the shape with the most steps, and of those the largest; [] if no shape has a rate."""
    by_shape = results.grouped([each for each in group if rate(each)], shapes.of)
    if not by_shape:
        return []
    best = max(by_shape, key=lambda each: (len({r["step"] for r in by_shape[each]}), math.prod(each)))
    return [each for each in group if shapes.of(each) == best]


def first_tiles(group):
    """Of one shape: from each step to the tile that stands for it."""
    return {step: tiles[0] for step, tiles in by_step(group).items() if rate(tiles[0])}


def projection(group):
    """The title of the GPU that the rates are projected for, or '' if they are measured."""
    return ", ".join(sorted({each["projection"]["gpu"] for each in group if not each.get("time") and projected(each)}))


# --- words ---


def plain(words):
    """As it is: matplotlib would take what stands between dollars for a formula."""
    return words.replace("$", r"\$")


def shortened(words, length):
    return words if len(words) <= length else words[: length - 1] + "…"


def step_name(step):
    return results.PEERS.get(step) or shortened(step.replace("_", " ", 1), 24)


def describe(group):
    """'4096x4096x4096, f32, nn, hot'; without the shape or the layout if there are several."""
    shape, types, layout, mode = results.describe(results.setting(group[0]))
    one_shape = len({shapes.of(each) for each in group}) == 1
    one_layout = len({each["layout"] for each in group}) == 1
    return ", ".join([shape] * one_shape + [types] + [layout] * one_layout + [mode])


def caption(document, group, *notes):
    where = [f"projected for {projection(group)} from the interpreter's counters", "no measurement"]
    if document["backend"] == "gpu":
        where = machine(document)
    made = f"commit {document.get('commit') or NOTHING}, {document['created']}"
    return "\n".join(plain(shortened(line, 130)) for line in (", ".join(where), f"{describe(group)}; {made}", *notes))


def title(what, group):
    gpu = projection(group)
    return plain(shortened(f"{what}: projected, not measured, {gpu}" if gpu else f"{what}: {describe(group)}", 90))


# --- the canvas ---


def spread(places, gap):
    """Moves labels that want to be at PLACES, from 0 to 1, apart by GAP; their order stays."""
    gap = min(gap, 1 / max(1, len(places) - 1))
    order = sorted(range(len(places)), key=lambda each: places[each])
    moved, lowest = list(places), 0
    for index in order:
        moved[index] = max(places[index], lowest)
        lowest = moved[index] + gap
    highest = 1
    for index in reversed(order):
        moved[index] = min(moved[index], highest)
        highest = moved[index] - gap
    return moved


class Canvas:
    """A figure with one pair of axes, a title above and a caption below; all distances in inches."""

    def __init__(self, height, left, right, heading, small_print, top=0.9, bottom=0.95):
        from matplotlib.figure import Figure

        self.height = height
        self.total = total = height + top + bottom
        self.figure = Figure(figsize=(WIDTH, total))
        self.width = WIDTH - left - right
        self.axes = self.figure.add_axes([left / WIDTH, bottom / total, self.width / WIDTH, height / total])
        self.heading = heading
        self.figure.text(0.15 / WIDTH, 1 - 0.15 / total, heading, fontsize=12, va="top")
        self.figure.text(0.15 / WIDTH, 0.1 / total, small_print, fontsize=7.5, va="bottom", linespacing=1.4)
        self.legend_at = (0.15 / WIDTH, 1 - 0.42 / total)

    def legend(self, handles, columns):
        self.figure.legend(handles=handles, loc="upper left", bbox_to_anchor=self.legend_at, ncol=columns, borderaxespad=0)

    def key(self, edges, words):
        """A strip of CELLS' colours below the title, EDGES between them, WORDS beside it."""
        width, left = 0.42 * len(CELLS), 0.15
        axes = self.figure.add_axes([left / WIDTH, 1 - 0.62 / self.total, width / WIDTH, 0.14 / self.total])
        for index, colour in enumerate(CELLS):
            axes.barh(0, 0.96, left=index + 0.02, height=1, color=colour, lw=0)
        axes.set_xlim(0, len(CELLS))
        axes.set_ylim(-0.5, 0.5)
        axes.set_xticks(range(1, len(CELLS)), labels=edges)
        axes.tick_params(length=0, labelsize=7.5, pad=2)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.text(len(CELLS) + 0.25, 0, words, va="center", fontsize=8)

    def name_points(self, points):
        """POINTS: (x, y, label, colour). The labels stand right of the axes, apart, each tied to its point."""
        from matplotlib.lines import Line2D

        inverse = self.axes.transAxes.inverted()
        places = [inverse.transform(self.axes.transData.transform((x, y))) for x, y, _, _ in points]
        for (_, _, label, colour), (x, y), at in zip(points, places, spread([y for _, y in places], 0.19 / self.height)):
            inside = {"transform": self.axes.transAxes, "color": colour}
            self.axes.add_line(Line2D([x, 1, 1.03], [y, y, at], lw=0.6, ls=":", clip_on=False, **inside))
            self.axes.text(1.035, at, plain(label), va="center", **inside)

    def render(self, extension):
        """Bytes, the same ones every time."""
        data = io.BytesIO()
        metadata = {"Date": None, "Creator": "tools/plot", "Title": self.heading.replace(r"\$", "$")}
        if extension == "png":
            metadata = {"Software": None}
        self.figure.savefig(data, format=extension, dpi=160, transparent=True, metadata=metadata)
        return data.getvalue()


def colour_of(index, step):
    return PEER_COLOURS.get(step) or COLOURS[index % len(COLOURS)]


# --- the ladder ---


def whisker_style():
    """Seen on a bar, on white and on black: a white line with a border."""
    from matplotlib.patheffects import withStroke

    border = [withStroke(linewidth=3, foreground=TEXT)]
    return {"color": "white", "lw": 1, "marker": "|", "ms": 6, "mew": 1, "path_effects": border, "solid_capstyle": "butt"}


def bar_style(is_first, is_projected, step=None):
    from matplotlib.colors import to_rgba

    colour = colour_of(0, step)
    face = to_rgba(colour, 1 if is_first else 0.3)
    if is_projected:
        return {"facecolor": "none", "edgecolor": colour, "hatch": "////" if is_first else "\\\\", "linewidth": 1}
    return {"facecolor": face, "edgecolor": colour, "linewidth": 1}


def share_of_cublas(result):
    for name in results.BASELINES:
        ratio = results.ratio(result, name)
        if ratio:
            return f"{rounded(100 * ratio['median'])} %" + (" of Lt" if name == "cublasLt" else "")
    return NOTHING


def draw_ladder(document, everything):
    """Or the reason why not, as text."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    group = most_telling_shape(everything)
    if not group:
        return "it has neither times nor projections"
    gpu, steps = projection(group), by_step(group)
    rows, at = [], 0
    for tiles in steps.values():
        for index, each in enumerate(tiles):
            rows.append((at, each, index == 0))
            at += 1 if index == 0 else 0.8
        at += 0.5
    canvas = Canvas(0.28 * at + 0.2, 3.7, 2.0, title("Ladder", group), caption(document, group))
    axes = canvas.axes
    labels, whiskers = [], False
    beside = {"transform": axes.get_yaxis_transform(), "va": "center", "ha": "right"}
    for at, each, is_first in rows:
        style = bar_style(is_first, gpu, each["step"])
        axes.barh(at, (rate(each) or 0) * 1e-12, height=0.8 if is_first else 0.6, **style)
        three = None if gpu else rates(each["flops"], each.get("time"))
        if three:
            low, _, high = (value * 1e-12 for value in three)
            axes.plot([low, high], [at, at], **whisker_style())
            whiskers = True
        name = f"{step_name(each['step'])}   {each['tile']}" if is_first else each["tile"]
        labels.append(plain(shortened(name, 50)))
        axes.text(1.17, at, tera(rate(each)), **beside)
        if not gpu:
            axes.text(1.42, at, share_of_cublas(each), **beside)
    axes.text(1.17, -0.75, "TFLOP/s", weight="bold", **beside)
    if not gpu:
        axes.text(1.42, -0.75, "of cuBLAS", weight="bold", **beside)

    handles = [Patch(label="best tile", **bar_style(True, gpu))]
    if any(not is_first for _, _, is_first in rows):
        handles.append(Patch(label="other tiles", **bar_style(False, gpu)))
    if whiskers:
        handles.append(Line2D([], [], label="20-80 % of the rounds", **whisker_style()))
    for name, style in zip(results.BASELINES, ("--", ":")):
        three = baseline_rates(group, name)
        if three:
            axes.axvline(three[1] * 1e-12, color=TEXT, ls=style, lw=1.5)
            handles.append(Line2D([], [], color=TEXT, ls=style, lw=1.5, label=f"{name} {tera(three[1])}"))
    canvas.legend(handles, 5)
    axes.set_yticks([at for at, _, _ in rows], labels=labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(rows[-1][0] + 0.7, -1.1)
    axes.set_xlim(left=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.set_xlabel("TFLOP/s, projected" if gpu else "TFLOP/s, median")
    return canvas


# --- the roofline ---

PALE = 0.35  # opacity of what a plot is not about

MODEL_STYLES = {  # marker, size, in words
    "no_reuse": ("v", 8, "bytes if nothing is reused"),
    "tile_reuse": ("s", 5, "if read once per tile"),
    "compulsory": ("o", 8, "if moved once: the step"),
}


def roofs(ceilings, type_name, peak):
    """(FLOP/s, label, is this the peak of the type): the peak, and below it what older units can do."""
    found = []
    mma = ceilings.get(f"mma_{type_name}_flops")
    wgmma = peak and mma and peak == ceilings.get(f"wgmma_{type_name}_flops") and peak != mma
    if peak:
        unit = "FMA" if type_name == "f32" else "wgmma" if wgmma else "mma.sync"
        found.append((peak, f"{unit} {type_name}", True))
    if wgmma:
        found.append((mma, f"mma.sync {type_name}", False))
    fma = ceilings.get("fma_f32_flops")
    if type_name != "f32" and fma:
        found.append((fma, "FMA f32, CUDA cores", False))
    return found


def roof_style(is_peak):
    return {"color": TEXT, "lw": 2 if is_peak else 1, "ls": "-" if is_peak else "--"}


def powers_of_ten(low, high):
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def draw_roofline(document, everything, shown=None):
    """SHOWN: the number of the step that it is about; the others are pale. None: about all."""
    from matplotlib.lines import Line2D

    group = most_telling_shape(everything)
    if not group:
        return "it has neither times nor projections"
    ceilings, gpu = document["ceilings"], projection(group)
    steps = {step: each for step, each in first_tiles(group).items() if each["intensity"].get("compulsory")}
    about = [step for step in steps if shown and step.split("_")[0] == shown]
    if shown and not about:
        return f"it has no step {shown}"
    bandwidth = ceilings.get("copy_bytes_per_second")
    if not steps or not bandwidth or not group[0].get("peak"):
        return "it lacks intensities, the copy bandwidth or the peak of the type"
    found = roofs(ceilings, group[0]["in"], group[0]["peak"])
    peak = found[0][0]
    ridge = peak / bandwidth

    once = next(iter(steps.values()))["intensity"]["compulsory"]
    colours = {step: TEXT if about and step not in about else colour_of(index, step) for index, step in enumerate(steps)}
    points = [(once, rate(each), step_name(step), colours[step]) for step, each in steps.items()]
    cublas = []
    for name, marker in zip(results.BASELINES, "*X"):
        three = baseline_rates(group, name)
        if three:
            cublas.append((once, three[1], name, TEXT, marker))
    intensities = [each["intensity"].get(model) for each in steps.values() for model in results.MODELS]
    intensities = [ridge, *filter(None, intensities)]
    heights = [y for _, y, *_ in points + cublas]
    left, right = min(intensities) / 2, max(intensities) * 1.8
    bottom, top = min(heights + [peak / 30]) / 2, max(heights + [each[0] for each in found]) * 2

    canvas = Canvas(max(4.2, 0.2 * len(points + cublas)), 0.8, 2.3, title(", ".join(["Roofline", *map(step_name, about)]), group), caption(document, group))
    axes = canvas.axes
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.grid(which="major")
    axes.set_axisbelow(True)
    for height, _, is_peak in found:
        axes.plot([height / bandwidth, right], [height, height], **roof_style(is_peak))
    axes.plot([left, ridge], [left * bandwidth, peak], **roof_style(True))
    axes.plot([ridge, ridge], [bottom, peak], color=TEXT, lw=1, ls="-.")
    axes.text(ridge, bottom * 1.08, f" ridge: {rounded(ridge)} FLOP/byte", va="bottom")

    for (_, y, _, colour), (step, each) in zip(points, steps.items()):
        alpha = PALE if about and step not in about else 1
        marks = [(each["intensity"].get(model), style) for model, style in MODEL_STYLES.items()]
        marks = [(x, style) for x, style in marks if x]
        axes.plot([min(x for x, _ in marks), once], [y, y], color=colour, lw=1, alpha=alpha)
        for x, (marker, size, _) in marks:
            face = colour if marker == "o" and not gpu else "none"
            axes.plot(x, y, marker=marker, ms=size, color=colour, mfc=face, mew=1.4, ls="", alpha=alpha)
    for x, y, _, _, marker in cublas:
        axes.plot(x, y, marker=marker, ms=11 if marker == "*" else 7, color=TEXT, ls="")
    canvas.name_points([(x, y, f"{name}  {tera(y)}", colour) for x, y, name, colour, *_ in points + cublas])

    handles = []
    for marker, size, words in MODEL_STYLES.values():
        face = TEXT if marker == "o" and not gpu else "none"
        handles.append(Line2D([], [], ls="", marker=marker, ms=size, color=TEXT, mfc=face, mew=1.4, label=words))
    if cublas:
        handles.append(Line2D([], [], ls="", marker="*", ms=11, color=TEXT, label="cuBLAS"))
    for height, label, is_peak in found:
        words = f"{label}: {tera(height)} TFLOP/s"
        words = f"copy: {tera(bandwidth)} TB/s; {words} ({ceilings['source']})" if is_peak else words
        handles.append(Line2D([], [], label=plain(shortened(words, 70)), **roof_style(is_peak)))
    canvas.legend(handles, 3)
    axes.set_xlabel("FLOP/byte")
    axes.set_ylabel("TFLOP/s, projected" if gpu else "TFLOP/s, median")
    axes.set_xticks(powers_of_ten(left, right), labels=[f"{each:g}" for each in powers_of_ten(left, right)])
    axes.set_yticks(powers_of_ten(bottom, top), labels=[f"{each * 1e-12:g}" for each in powers_of_ten(bottom, top)])
    return canvas


# --- TFLOP/s against size ---


def curves(sizes):
    """From each step and baseline to its points: (size, rate at q80, median, at q20)."""
    found = {}
    for size, group in sizes.items():
        for step, each in first_tiles(group).items():
            median = rate(each)
            low, _, high = (rates(each["flops"], each.get("time")) if each.get("time") else None) or (median,) * 3
            found.setdefault(step, []).append((size, low, median, high))
    steps = sorted(found)
    for name in results.BASELINES:
        for size, group in sizes.items():
            three = baseline_rates(group, name)
            if three:
                found.setdefault(name, []).append((size, *three))
    return steps, {name: found[name] for name in [*steps, *results.BASELINES] if name in found}


def is_even(sizes):
    """Whether a linear axis shows them well: a sweep in equal steps, of which a few may be missing."""
    gaps = [right - left for left, right in zip(sizes, sizes[1:])]
    return len(sizes) >= 4 and max(gaps) <= 2 * min(gaps)


def named_sizes(sizes):
    """Those whose tick gets a label: the roundest first, as long as there is room."""
    place = (lambda size: size) if is_even(sizes) else math.log
    named, apart = [], (place(max(sizes)) - place(min(sizes))) / 18
    for size in sorted(sizes, key=lambda each: (each & -each, each), reverse=True):
        if all(abs(place(size) - place(other)) >= apart for other in named):
            named.append(size)
    return named


def line_style(index, name, is_projected, is_dense):
    """Of a step's curve, a peer's or a baseline's."""
    if name in results.BASELINES:
        lt = name == "cublasLt"
        size = (6 if lt else 9) * (0.6 if is_dense else 1)
        return {"color": TEXT, "marker": "X" if lt else "*", "ls": ":" if lt else "--", "ms": size}
    style = {"color": colour_of(index, name), "marker": MARKERS[index % len(MARKERS)], "ms": 3.5 if is_dense else 5}
    if name in results.PEERS:
        style["mfc"] = "none"
    if is_projected:
        return {**style, "ls": ":", "mfc": "none"}
    return {**style, "ls": "-." if name in results.PEERS else "-"}


def draw_curves(document, by_size, words, axis, missing):
    """BY_SIZE: from each place on the x axis, which is called AXIS, to its results. Or MISSING, the reason why not."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import NullFormatter, NullLocator

    steps, lines = curves(by_size)
    sizes = sorted({point[0] for points in lines.values() for point in points})
    if len(sizes) < 2 or not steps:
        return missing
    group = [each for of_size in by_size.values() for each in of_size]
    gpu, dense = projection(group), len(sizes) > 12
    canvas = Canvas(max(4.2, 0.2 * len(lines), 5.2 * dense), 0.8, 2.3, title(words, group), caption(document, group))
    axes = canvas.axes
    if is_even(sizes):
        room = 0.02 * (sizes[-1] - sizes[0])
        axes.set_xlim(sizes[0] - room, sizes[-1] + room)
    else:
        axes.set_xscale("log", base=2)
        axes.set_xlim(sizes[0] / 1.1, sizes[-1] * 1.1)
    axes.set_ylim(0, 1.05e-12 * max(point[3] for points in lines.values() for point in points))
    ends = []
    for index, (name, points) in enumerate(lines.items()):
        style = line_style(index, name, gpu, dense)
        x = [point[0] for point in points]
        low, middle, high = ([point[at] * 1e-12 for point in points] for at in (1, 2, 3))
        if not gpu:
            axes.fill_between(x, low, high, color=style["color"], alpha=0.3, lw=0)
        axes.plot(x, middle, lw=1 if dense else 1.5, **style)
        ends.append((x[-1], middle[-1], f"{step_name(name)}  {rounded(middle[-1])}", style["color"]))
    canvas.name_points(ends)
    what = {"ls": ":", "label": "projected, best tile"} if gpu else {"label": "median, best tile"}
    handles = [Line2D([], [], color=TEXT, **what)]
    if not gpu:
        handles.append(Patch(color=TEXT, alpha=0.3, lw=0, label="20-80 % of the rounds"))
    canvas.legend(handles, 2)
    named = named_sizes(sizes)
    axes.set_xticks(sizes, labels=[str(each) if each in named else "" for each in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid()
    axes.set_axisbelow(True)
    axes.set_xlabel(axis)
    axes.set_ylabel("TFLOP/s, projected" if gpu else "TFLOP/s, median")
    return canvas


def draw_sizes(document, everything):
    by_size = shapes.squares(everything)
    words = "Size" if projection([each for group in by_size.values() for each in group]) else "TFLOP/s against size"
    return draw_curves(document, by_size, words, "m = n = k", "it has fewer than two square sizes with times or projections")


# --- TFLOP/s against rows ---


def draw_rows(document, everything):
    by_rows = shapes.sweep([each for each in everything if rate(each)])
    missing = f"it has no n and k with {shapes.SWEEP_FROM} different m that have times or projections"
    if not by_rows:
        return missing
    first = next(iter(by_rows.values()))[0]
    columns = f"{first['n']}×{first['k']}"
    words = f"Rows, m×{columns}" if projection([first]) else f"TFLOP/s of m×{columns}"
    return draw_curves(document, by_rows, words, f"m, with n = {first['n']}, k = {first['k']}", missing)


# --- heat maps ---


def bin_of(value, edges):
    """The index of its colour in CELLS, whose EDGES ascend."""
    return sum(value > edge for edge in edges)


def draw_cells(canvas, cells, rows, columns):
    """CELLS: from (row, column) to (colour, hatch, words in it); a cell without colour is an empty frame, perhaps hatched.

    ROWS, COLUMNS: their labels. Cells that look the same are one path: a file ten times smaller than with a patch for each.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    axes, gap = canvas.axes, 0.025  # nothing is drawn in the gaps: the page is seen, whatever its colour
    looks = {}
    for (row, column), (colour, hatch, _) in cells.items():
        left, right, top, bottom = column + gap, column + 1 - gap, row + gap, row + 1 - gap
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        looks.setdefault((colour or "", hatch or ""), []).append(Path(corners, closed=True))
    for (colour, hatch), paths in sorted(looks.items()):
        style = {"fc": colour, "lw": 0} if colour else {"fc": "none", "ec": TEXT, "lw": 0.5, "hatch": hatch or None}
        axes.add_patch(PathPatch(Path.make_compound_path(*paths), **style))
    width, height = canvas.width / len(columns), canvas.height / len(rows)
    size = min(9, 72 * width / 2.3, 72 * height * 0.65)  # so that three digits fit
    for (row, column), (colour, _, words) in cells.items():
        if words:
            style = {"color": IN_CELLS if colour else TEXT, "fontsize": size}
            axes.text(column + 0.5, row + 0.5, plain(words), ha="center", va="center_baseline", **style)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_xticks([each + 0.5 for each in range(len(columns))], labels=columns)
    axes.set_yticks([each + 0.5 for each in range(len(rows))], labels=rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)


# --- ratios to cuBLAS ---

RATIO_EDGES = (0.5, 0.8, 0.95, 1.05, 1.25, 2)


def two_digits(ratio):
    if ratio >= 999.5:
        return "…"  # a damaged file's
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.3f}"


def column_label(step):
    return "\n".join(textwrap.wrap(step_name(step).replace("_", " "), 10))


def draw_ratios(document, everything):
    """Of shapes that are neither square nor of the sweep: these have curves."""
    baseline = results.BASELINES[0]
    by_shape = {}
    for shape, group in shapes.others(everything).items():
        found = {step: results.ratio(tile, baseline) for step, tile in first_tiles(group).items()}
        found = {step: ratio["median"] for step, ratio in found.items() if ratio and ratio["median"] > 0}
        if found:
            by_shape[shape] = group, found
    if len(by_shape) < 2:
        return f"it has fewer than two shapes with ratios to {baseline} that are neither squares nor a sweep of m"
    group = [each for of_shape, _ in by_shape.values() for each in of_shape]
    steps = sorted({step for _, found in by_shape.values() for step in found})
    rows = [plain(shortened(shapes.name(of_shape[0]), 40)) for of_shape, _ in by_shape.values()]
    cells = {}
    for row, (_, found) in enumerate(by_shape.values()):
        for column, step in enumerate(steps):
            cells[row, column] = (None, None, NOTHING)
            if step in found:
                cells[row, column] = (CELLS[bin_of(found[step], RATIO_EDGES)], None, two_digits(found[step]))
    for column, step in enumerate(steps):
        # A mean of fewer shapes would not compare with the others'.
        if all(step in found for _, found in by_shape.values()):
            mean = statistics.geometric_mean(found[step] for _, found in by_shape.values())
            cells[len(rows), column] = (CELLS[bin_of(mean, RATIO_EDGES)], None, two_digits(mean))
    if any(row == len(rows) for row, _ in cells):
        rows.append("geometric mean")

    fused = sorted({step_name(each["step"]) for each in group if results.epilogue(each)})
    notes = [f"{', '.join(fused)}: with an activation, which {baseline} does not compute"] if fused else []
    left, widest = 2.75, 0.9
    right = max(0.15, WIDTH - left - widest * len(steps))
    heading = title(f"Ratio to {baseline}", group)
    canvas = Canvas(0.3 * len(rows), left, right, heading, caption(document, group, *notes), top=1.5, bottom=0.75)
    draw_cells(canvas, cells, rows, [plain(column_label(step)) for step in steps])
    canvas.key(RATIO_EDGES, f"time of {baseline} / time of the kernel; above 1 the kernel is faster")
    return canvas


# --- what tuning found ---

TUNING_EDGES = (2, 5, 10, 25, 50, 100)  # % above the best tile's time
# Why a tile was not timed: what the reason begins with, in words, its hatch.
NOT_TIMED = (
    ("shared memory", "too much shared memory", "\\\\\\\\"),
    ("registers", "too many registers", "xxxx"),
    ("occupancy", "no block fits an SM", "++++"),
    ("compiled for", "not compiled for the layout", "...."),
    ("", "cannot run", "oo"),
)
LEFT_OUT = ("cannot win: its bound is above the best time", "////")


def why_not_timed(candidate):
    """In words, and the hatch."""
    reason = candidate.get("pruned")
    if not reason:
        return LEFT_OUT
    return next((words, hatch) for start, words, hatch in NOT_TIMED if reason.startswith(start))


def tile_order(tile):
    """Small tiles first; what has no size in its name, last."""
    numbers = re.match(r"(\d+)x(\d+)x(\d+)\b", tile)
    m, n, k = map(int, numbers.groups()) if numbers else (math.inf,) * 3
    return m * n, m, k, tile


def draw_tuning(document, everything):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tuned = [each for each in everything if each.get("tuning") and each["step"] not in results.PEERS]
    tuned = [each for each in tuned if any(tile["seconds"] for tile in each["tuning"])]
    by_step = results.grouped(tuned, lambda each: each["step"])
    columns = []  # of the step that tuned the most shapes
    for step in sorted(by_step):
        by_shape = {**shapes.squares(by_step[step]), **shapes.others(by_step[step])}
        if len(by_shape) >= max(2, len(columns)):
            columns = [group[0] for group in by_shape.values()]
    if not columns:
        return "it has no step with what tuning found for two shapes"
    tiles = sorted({tile["tile"] for each in columns for tile in each["tuning"]}, key=tile_order)
    cells, reasons, stars = {}, {}, []
    for column, each in enumerate(columns):
        best = min(tile["seconds"] for tile in each["tuning"] if tile["seconds"])
        for tile in each["tuning"]:
            place = (tiles.index(tile["tile"]), column)
            if not tile["seconds"]:
                words, hatch = why_not_timed(tile)
                reasons[words] = hatch
                cells[place] = (None, hatch, "")
                continue
            slower = 100 * (tile["seconds"] / best - 1)
            words = f"{slower:.0f}" if slower < 999.5 else "…"
            if slower == 0:
                words = ""
                stars.append(place)
            cells[place] = (CELLS[-1 - bin_of(slower, TUNING_EDGES)], None, words)

    heading = title(f"Tuning of {step_name(columns[0]['step'])}", columns)
    labels = [str(each["m"]) if shapes.is_square(each) else shortened(shapes.dimensions(each), 24) for each in columns]
    longest = max(map(len, labels))
    left, widest = 2.25, 0.45
    right = max(0.15, WIDTH - left - widest * len(columns))
    more = 0.1 * len(reasons)
    top = 0.95 + more + 0.075 * longest
    canvas = Canvas(0.2 * len(tiles), left, right, heading, caption(document, columns), top=top, bottom=0.6)
    draw_cells(canvas, cells, [plain(shortened(tile, 36)) for tile in tiles], labels)
    canvas.axes.tick_params(axis="x", rotation=90)
    canvas.axes.text(-0.2, -0.35, "tile, and m = n = k or m×n×k", ha="right", fontsize=8)
    star = {"ls": "", "marker": "*", "mew": 0}
    at = [[each + 0.5 for each in places] for places in zip(*stars)]
    canvas.axes.plot(at[1], at[0], color=IN_CELLS, ms=min(9, 60 * canvas.width / len(columns)), **star)
    canvas.key([f"{edge} %" for edge in reversed(TUNING_EDGES)], "")
    handles = [Line2D([], [], color=CELLS[-1], ms=9, label="the best tile; numbers: % above its time", **star)]
    handles += [Patch(fc="none", ec=TEXT, lw=0.5, hatch=hatch, label=words) for words, hatch in sorted(reasons.items())]
    if len(cells) < len(tiles) * len(columns):
        handles.append(Patch(fc="none", ec="none", label="blank: not in the file"))
    canvas.figure.legend(
        handles=handles, loc="upper left", ncol=2, borderaxespad=0, fontsize=8,
        bbox_to_anchor=(3.4 / WIDTH, 1 - 0.46 / canvas.total),
    )
    return canvas


PLOTS = {"ladder": draw_ladder, "roofline": draw_roofline, "sizes": draw_sizes, "rows": draw_rows, "tuning": draw_tuning}
# In some transformers' multiplications B is column-major: they stand beside the others.
PLOTS_OF_ALL_LAYOUTS = {"ratios": draw_ratios}
ALL_PLOTS = (*PLOTS, *PLOTS_OF_ALL_LAYOUTS)


# --- files ---


def name_of(plot, kind_of_results):
    """'ladder-f32-hot': letters, digits and dashes only, whatever the file says."""
    a, c, layout, mode = kind_of_results
    parts = [plot, a, *([] if a == c else [c]), *([] if layout in ("nn", None) else [layout]), mode]
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part) for part in parts)


def draw(document, only=ALL_PLOTS, steps=()):
    """From names of files, without their extension, to Canvases; and why there are not more. STEPS: numbers; a roofline of each."""
    canvases, reasons = {}, []
    unique = results.latest(document["results"])
    for key, plots in ((kind, PLOTS), (kind_of_all_layouts, PLOTS_OF_ALL_LAYOUTS)):
        for which, group in results.grouped(unique, key).items():
            for plot, draw_one in plots.items():
                if plot not in only:
                    continue
                for step in steps or (None,):
                    drawn = draw_one(document, group, *([step] if step else []))
                    if isinstance(drawn, str):
                        reasons.append(f"no {plot} of {describe(group)}: {drawn}")
                    else:
                        canvases["-".join([name_of(plot, which), *([step] if step else [])])] = drawn
    return canvases, reasons


def prepare_matplotlib():
    """Without what the reader may have set in a matplotlibrc. Exits if there is no matplotlib."""
    try:
        import matplotlib
        import matplotlib.figure
    except Exception:  # a NumPy of another version raises more than ImportError
        sys.exit(NEEDS_MATPLOTLIB)
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(SETTINGS)


def default_file():
    path = os.path.join(ROOT, "build", "results", "ladder.json")
    if not os.path.exists(path):
        raise results.BadFile(f"there is no {path} yet: make it with 'tools/course run', or name a result file.")
    return path


def main():
    arguments = Arguments(prog="tools/plot", add_help=False, allow_abbrev=False)
    arguments.add_argument("files", metavar="FILE", nargs="*")
    arguments.add_argument("--out", metavar="FOLDER")
    arguments.add_argument("--only", metavar="PLOT,...", default=",".join(ALL_PLOTS))
    arguments.add_argument("--step", metavar="NUMBER,...")
    given = arguments.parse_intermixed_args()
    steps = given.step.split(",") if given.step is not None else []
    for step in steps:
        if not re.fullmatch(r"\d\d", step):
            arguments.error(f"--step {step}: a step's number has two digits, as in 03")
    if steps and given.only != "roofline":
        arguments.error("--step is about the roofline: add --only roofline")
    if given.out == "":
        arguments.error("--out is empty")
    only = given.only.split(",")
    for plot in only:
        if plot not in ALL_PLOTS:
            arguments.error(f"--only {plot}: no such plot; there are: {', '.join(ALL_PLOTS)}")
    documents = {path: results.load(path) for path in given.files or [default_file()]}
    prepare_matplotlib()

    chosen, reasons = {}, []  # path without extension: (Canvas, file that it is from)
    for file, document in documents.items():
        folder = given.out or os.path.join(os.path.dirname(file), "plots")
        canvases, why = draw(document, only, steps)
        reasons += [f"{file}: {each}" for each in why] or ([] if canvases else [f"{file}: it has no results"])
        for name, canvas in canvases.items():
            path = os.path.join(folder, name)
            if path in chosen:
                print(f"course: {name} is from {chosen[path][1]}, not from {file}.", file=sys.stderr)
            else:
                chosen[path] = (canvas, file)
    if not chosen:
        raise results.BadFile(
            f"nothing to draw: {reasons[0]}."
            " Measure on a GPU, or project with 'tools/course run --on interpreter --as h200', and draw that."
        )
    files = {f"{path}.{each}": canvas.render(each) for path, (canvas, _) in chosen.items() for each in FORMATS}
    results.write_all(files)
    for path in files:
        print(path)
    return 0


if __name__ == "__main__":
    run_command(main)
