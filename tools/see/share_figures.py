"""Draws how fast the steps from 10 on are, and why: the share of cuBLAS against size, as an H200 took it, and what the tensor cores do meanwhile,
by the clock of the model."""

import functools
import json
import math
import os
from collections import Counter

from report import figures, ladder
from report.figures import BLUE, GREEN, ORANGE, TEXT, TINT

from . import cost, grid
from .recorded import STEP_K, STORES, record
from .svg import IDLE, LEFT, RIGHT, ROW, Svg

HIGH, ABOVE = 100, 24  # units: of the axis, and for a number above it
BESIDE = ((0, -12), (0, 13), (-12, -12), (12, -12), (-12, 13), (12, 13), (-20, -12), (20, -12), (0, -18), (-16, -18), (16, -18), (0, 19))  # of a point, where its number may stand
PARTS = ("multiply", "copy", "store", "wait")
COPY_WAITS = {"mbarrier wait", "copy wait"}
K, FIRST_WGMMA = 1024, 10  # of what is run; before that step two blocks share an SM
BEFORE = TEXT  # the colour of the step that a step is compared with


# --- the share of cuBLAS ---


@functools.lru_cache
def results_of(file):
    with open(os.path.join(cost.RESULTS, file), encoding="utf-8") as opened:
        return json.load(opened)["results"]


def best_tiles(file, step, place):
    """{place of a problem on the axis: (share of cuBLAS, result)}, of the step's best tile. @param place of a result; None: it has none"""
    best = {}
    for each in results_of(file):
        at, share = place(each), ladder.of_baseline(each, "cublasGemmEx")
        if each["step"] == step and at is not None and share and share > best.get(at, (0,))[0]:
            best[at] = (share, each)
    return best


def squares(each):
    return each["m"] if each["m"] == each["n"] == each["k"] else None


def rows(each):
    return each["m"] if each["n"] == each["k"] == 4096 else None


def named(step):
    return f"step {step[:2]}"


def placed(lines, shares, x, height):
    """Where the numbers of SHARES stand, next to their points, where the fewest lines are: [(left, right, middle, words)]"""
    taken = [(px, py) for points in lines.values() for px, py in points]
    for points in lines.values():
        for (x_0, y_0), (x_1, y_1) in zip(points, points[1:]):
            taken += [(x_0 + (x_1 - x_0) * i / 40, y_0 + (y_1 - y_0) * i / 40) for i in range(40)]

    def all_of(order):
        found, total = [], 0
        for at in order:
            hits, box = min((place_of(at, beside, found) for beside in BESIDE), key=lambda each: each[0])
            found.append(box)
            total += hits
        return total, found

    def place_of(at, beside, found):
        words = f"{shares[at]:.1f}"
        half = 4 * len(words)
        x_mid, middle = min(x(at) + beside[0], RIGHT + 6 - half), height(shares[at]) + beside[1]
        left, right = x_mid - half, x_mid + half
        others = sum(left < other[1] and other[0] < right and abs(middle - other[2]) < 12 for other in found)
        return sum(left <= px <= right and abs(py - middle) < 8 for px, py in taken) + 100 * others, (left, right, middle, words)

    return min(all_of(sorted(shares)), all_of(sorted(shares, reverse=True)))[1]


def draw_shares(svg, y, steps, places, words):
    """@param steps {step: {place: (share, result)}}, the last one is what the picture is about"""
    shares = {step: {at: 100 * share for at, (share, _) in found.items() if at in places} for step, found in steps.items()}
    every = [100, *(share for found in shares.values() for share in found.values())]
    room = max(2, 0.2 * (max(every) - min(every)))  # for a number below
    tick = next(tick for tick in (5, 10, 25, 50, 100) if max(every) - min(every) + room <= 4 * tick)
    least, most = tick * math.floor((min(every) - room) / tick), tick * math.ceil(max(every) / tick)
    column = (RIGHT - LEFT / 2) / len(places)

    def x(at):
        return LEFT / 2 + (places.index(at) + 0.5) * column

    def height(share):
        return y + ABOVE + HIGH * (most - share) / (most - least)

    lines = {step: [(x(at), height(found[at])) for at in places if at in found] for step, found in shares.items()}
    labels = placed(lines, shares[list(shares)[-1]], x, height)
    for share in range(least, most + 1, tick):
        begin = LEFT / 2  # no line behind a number
        behind = [(left, right) for left, right, middle, _ in labels if abs(middle - height(share)) < 8]
        for left, right in [*sorted(behind), (RIGHT, RIGHT)]:
            if left > begin + 8:
                svg.line(begin, height(share), left, height(share), dashes="4 3" if share == 100 else None, width=1.2 if share == 100 else 0.5)
            begin = max(begin, right)
        svg.text(LEFT / 2 - 5, height(share), str(share), anchor="end")
    for step in shares:
        is_own = step == list(shares)[-1]
        colour = ORANGE if is_own else BEFORE
        points = lines[step]
        path = "M" + "L".join(f"{figures.number(px)} {figures.number(py)}" for px, py in points)
        svg.add("path", d=path, fill="none", stroke=colour, stroke_width=2 if is_own else 1.4)
        for px, py in points:
            size = 3.5 if is_own else 2.5
            svg.add("rect", x=px - size, y=py - size, width=2 * size, height=2 * size, fill=colour)
    for left, right, middle, share in labels:
        svg.text((left + right) / 2, middle, share, anchor="middle", bold=True)
    for at in places:
        svg.text(x(at), y + ABOVE + HIGH + 12, str(at), anchor="middle")
    svg.text(RIGHT, y + ABOVE + HIGH + 28, words, anchor="end")
    return y + ABOVE + HIGH + 38


# --- what the time goes into ---


def stores(spans):
    """[(begin, end)] of what a warp stores between its products."""
    found, is_new = [], True
    for kind, _, begin, _ in spans:
        is_new = is_new or kind == "wgmma"
        if kind in STORES:
            if is_new:
                found.append([begin, begin])
            found[-1][1], is_new = begin + 1, False
    return found


def split(run):
    """{part: its share of the time} of the first block's tensor cores. What one does not multiply is a copy's if a warp of its quarter waits for
    one, else a store's if one stores; and all after the last product."""
    mine = [warp for warp in run.drawn.warps_of(0) if run.spans.get(warp) and run.of(warp, "mma", "wgmma")]
    last = max(end for warp in mine for *_, end in run.of(warp, "mma", "wgmma"))
    parts = Counter()
    for quarter in range(cost.QUARTERS):
        here = [warp for warp in mine if warp % cost.QUARTERS == quarter]
        pieces = [("multiply", begin, end) for warp in here for *_, begin, end in run.of(warp, "mma", "wgmma")]
        pieces += [("copy", begin, end) for warp, kind, _, begin, end in run.waits if warp in here and kind in COPY_WAITS]
        pieces += [("store", begin, end) for warp in here for begin, end in stores(run.spans[warp])] + [("store", last, run.clocks)]
        edges = sorted([(begin, part, 1) for part, begin, _ in pieces] + [(end, part, -1) for part, _, end in pieces])
        now, at = Counter(), 0
        for time, part, change in [*edges, (run.clocks, "wait", 0)]:
            doing = next((each for each in PARTS[:-1] if now[each]), "wait")
            parts[doing] += (time - at) / run.clocks / cost.QUARTERS
            now[part] += change
            at = time
    return {part: parts[part] for part in PARTS}


def draw_part(svg, part, x, y, width):
    colour = {"multiply": ORANGE, "copy": BLUE, "store": GREEN}.get(part)
    if colour:
        svg.box(x + 0.4, y + 1, max(width - 0.8, 0.4), ROW - 3, colour, filled=1.0 if part == "multiply" else 2 * TINT, line=0 if part == "multiply" else 0.8)
    else:
        svg.add("rect", x=x, y=y + 1, width=width, height=ROW - 3, fill=TEXT, fill_opacity=IDLE)


def draw_splits(svg, y, splits):
    for step, parts in splits.items():
        svg.lane(y, named(step))
        x = LEFT
        for part, share in parts.items():
            width = share * (RIGHT - LEFT)
            if width < 0.5:
                continue
            draw_part(svg, part, x, y, width)
            if width > 26:
                svg.text(x + width / 2, y + ROW / 2, f"{100 * share:.0f}", anchor="middle", bold=part == "multiply", colour=figures.ON_COLOUR if part == "multiply" else None)
            x += width
        y += ROW + 2
    return y


def run_for(step, result, shape):
    """What a block, or a cluster, is to do of a launch: (some of its tiles, in how many blocks)"""
    plan = grid.Plan(int(step[:2]), result["tile"], shape, result["launch"]["blocks"])
    return plan.small_shape(shape[2]), plan.cluster


def said_of(small):
    """@param small {step: (its shape, blocks)}"""
    if len(set(small.values())) == 1:
        small = {None: next(iter(small.values()))}
    words, before = [], None
    for step, (shape, blocks) in small.items():
        who = "" if blocks == before else f"{'a block' if blocks == 1 else {2: 'two'}.get(blocks, str(blocks))}: "
        words.append(f"{who}{'×'.join(map(str, shape))}" + (f" ({step[:2]})" if step else ""))
        before = blocks
    return ", ".join(words)


@functools.lru_cache
def run_of(build, step, tile, small, cluster):
    return record(build, step, "x".join(map(str, small)), "--tile", tile, "--multiprocessors", str(cluster), costs=cost.h200(all_busy=True))


def split_of(build, step, result):
    shape = (result["m"], result["n"], result["k"] if result["m"] < STEP_K else min(result["k"], K))
    small, cluster = run_for(step, result, shape)
    return split(run_of(build, step, result["tile"], small, cluster)), (small, cluster)


def split_of_launches(build, step, result):
    """The same of all the time from one launch's beginning to the next one's, which an H200 took."""
    small, cluster = run_for(step, result, (result["m"], result["n"], result["k"]))
    run = run_of(build, step, result["tile"], small, cluster)
    share = run.clocks / clocks_of(result)
    parts = {part: each * share for part, each in split(run).items()}
    return {**parts, "wait": parts["wait"] + 1 - share}, (small, cluster)


def clocks_of(result):
    return result["time"]["median"] * result["conditions"]["sm_hz"]


def draw(build, file, steps, place=squares, words="m = n = k", at=4096, splitting=split_of):
    """@param steps two, the second one is what the picture is about  @param at the place whose best tiles' time is split"""
    found = {step: best_tiles(file, step, place) for step in steps}
    places = sorted(found[steps[-1]])
    modelled = {step: splitting(build, step, found[step][at][1]) for step in steps if int(step[:2]) >= FIRST_WGMMA}
    splits = {step: parts for step, (parts, _) in modelled.items()}
    shown = said_of({step: small for step, (_, small) in modelled.items()})
    of_what = ", of the measured time" if splitting is split_of_launches else ""
    own = ", ".join(f"{at}: {100 * share:.1f} %" for at, (share, _) in sorted(found[steps[-1]].items()))
    described = ". ".join(f"{named(step).capitalize()}: " + ", ".join(f"{part} {100 * share:.0f} %" for part, share in parts.items()) for step, parts in splits.items())
    svg = Svg(f"How fast {named(steps[-1])} is beside cuBLAS, and what its tensor cores do", f"Share of cuBLAS of {named(steps[-1])}, measured, {words}, {own}. Of a tensor core's time, by the model, of {shown}{of_what}. {described}.")
    svg.text(4, 10, "% of cuBLAS, measured", bold=True)
    x = RIGHT - 78 * len(steps)
    for step in steps:
        svg.add("rect", x=x, y=6.5, width=7, height=7, fill=ORANGE if step == steps[-1] else BEFORE)
        svg.text(x + 12, 10, named(step))
        x += 90
    y = draw_shares(svg, 14, found, places, words)
    svg.text(4, y + 8, "% of a tensor core's time, by the model", bold=True)
    svg.text(4, y + 8 + ROW, f"{shown}{of_what}")
    y += 20 + ROW
    x = 4
    for part, said, width in zip(PARTS, ("multiplies", "waits for copies", "stores", "else"), (98, 134, 72, 52)):
        draw_part(svg, part, x, y, 20)
        svg.text(x + 25, y + ROW / 2 - 0.5, said)
        x += width
    return svg.render(draw_splits(svg, y + ROW + 4, splits) + 2)


PICTURES = {
    "10_wgmma": {"file": "wgmma-f16.json", "before": "09_tma"},
    "11_warp_specialized": {"file": "wgmma-f16.json", "before": "10_wgmma"},
    "12_persistent": {"file": "wgmma-f16.json", "before": "11_warp_specialized"},
    "13_ping_pong": {"file": "wgmma-f16.json", "before": "12_persistent"},
    "14_dependent_launch": {"file": "dependent-f16.json", "before": "13_ping_pong", "at": 256, "splitting": split_of_launches},
    "15_few_rows": {"file": "rows-f16.json", "before": "14_dependent_launch", "place": rows, "words": "m, with n = k = 4096", "at": 8},
    "16_multicast": {"file": "multicast-f16.json", "before": "14_dependent_launch"},
    "17_store_later": {"file": "store-later-f16.json", "before": "14_dependent_launch"},
    "19_two_widths": {"file": "two-widths-f16.json", "before": "17_store_later"},
}


def drawing(step, *, file, before, **more):
    return lambda build: draw(build, file, (before, step), **more)


FIGURES = {f"steps/{step}/share.svg": (step, drawing(step, **given)) for step, given in PICTURES.items()}
