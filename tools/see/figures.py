"""Draws the lessons' pictures of execution, steps/*/*.svg, from what the interpreter recorded: the same events and clock as see's pages.

Nothing is drawn by hand: what is computed here is where things stand. As tools/figures', they suit light pages and dark ones, and the same
events give the same bytes. They are made for a phone's width: 360 units, and no text below 12.
"""

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import figures
from report.figures import BLUE, GREEN, ORANGE, PINK, TEXT, TINT
from see import cost, data_figures, grid, picture, ranks_figure, road_figure, share_figures
from see.data_figures import launch_of, launches_of
from see.recorded import STEP_K, STORES, Axis, bar, gaps, idle, record, together
from see.replay import Replay
from see.svg import IDLE, LEFT, RIGHT, ROW, SIZE, Svg, sample

QUEUED = 0.4  # opacity
OF_TILES = (BLUE, ORANGE, GREEN, PINK)
FEW = ("--first", "--multiprocessors", "2")  # as 'tools/course see' says it
WAITS_FOR = {"mbarrier wait": "copy", "named barrier": "turn"}  # of who multiplies


# --- 04: one stage, two, three ---


def draw_stages(build):
    tiles = 6
    shape = f"128x128x{tiles * STEP_K}"
    runs = [record(build, "04_pipelined_num_stages", shape, "--tile", f"s{n}") for n in (1, 2, 3)]
    axis = Axis(0, max(run.clocks for run in runs))
    shares = [run.share() for run in runs]
    svg = Svg(
        "Copies and products of a block, with 1, 2 and 3 stages",
        f"From what the kernel of step 04 did for {tiles} tiles along k, one block alone. The tensor cores work {shares[0]} of the time with 1 stage,"
        f" {shares[1]} with 2, {shares[2]} with 3.",
    )
    y = svg.legend(4, (90, sample(svg, TINT, BLUE), "copied"), (110, sample(svg, 1.0, ORANGE), "multiplied"), (150, sample(svg, "idle", TEXT), "tensor cores idle"))
    y += 6
    for n, run in enumerate(runs, 1):
        svg.text(4, y + 8, f"{n} stage{'s' if n > 1 else ''}: multiplies {run.share()} of {picture.number(run.clocks)} clocks", bold=True)
        y += 20
        for stage in range(n):
            svg.lane(y, f"stage {stage}")
            for tile, (begin, end, at) in enumerate(run.copies(tiles)):
                if at == stage:
                    bar(svg, axis, y, begin, end, BLUE, str(tile), TINT)
            y += ROW
        svg.lane(y, "products")
        pieces = run.products(0, tiles)
        for tile, begin, end in pieces:
            bar(svg, axis, y, begin, end, ORANGE, str(tile))
        for begin, end in gaps([piece[1:] for piece in pieces], 0, run.clocks):
            idle(svg, axis, y, begin, end)
        y += ROW + 10
    return svg.render(axis.draw(svg, y, 4000))


# --- 09: an mbarrier ---


def draw_phase(svg, x, y, width, parity, words=""):
    """White or grey, as on see's pages: there, too, colours are stages."""
    svg.box(x + 0.4, y + 1, width - 0.8, ROW - 3, TEXT, filled=1.0 if parity else None, line=0.8)
    svg.text(x + width / 2, y + ROW / 2, words, anchor="middle", bold=True, colour=figures.ON_COLOUR if parity else None)


def draw_phases(build):
    phases, tiles, name = 3, 8, "full[0]"
    run = record(build, "09_tma", f"128x128x{tiles * STEP_K}")
    address = next(address for address, called in run.drawn.names.items() if called == name)
    barrier = run.clock.blocks[0].mbarriers[address]
    asked = {phase: [] for phase in range(phases)}  # by phase, (warp, begin, end, parity)
    for warp in run.spans:
        for _, values, begin, end in run.of(warp, "mbarrier wait"):
            if values[0] == address and values[2] in asked:
                asked[values[2]].append((warp, begin, end, values[1]))
    for phase, (_, _, end, *_) in enumerate(barrier.phases[:phases]):
        if any(over < end or parity != phase & 1 for *_, over, parity in asked[phase]):
            raise ValueError(f"a wait for phase {phase} does not go on when the rule of the picture says it does")
    before, after = 300, 390  # what is shown before the arrival, and after the last who asks
    firsts = [max(0, phase[3][0][0] - before) for phase in barrier.phases[:phases]]
    length = max(max(end for _, _, end, _ in asked[i]) + after - first for i, first in enumerate(firsts))
    svg = Svg(
        f"Three phases of {name}, in step 09",
        " ".join(
            f"Phase {phase}, parity {phase & 1}: warp {arrived[0][1]} arrives at {picture.number(arrived[0][0])}; {len(landed)} boxes land, the last of {expected:,}"
            f" bytes at {picture.number(end)}, and the phase is over. Warps {picture.listed({each[0] for each in asked[phase]})} ask at"
            f" {picture.number(min(each[1] for each in asked[phase]))} or later."
            for phase, _, end, arrived, landed, expected in barrier.phases[:phases]
        ),
    )
    y = 4
    for parity in (0, 1):
        draw_phase(svg, 4 + 110 * parity, y, 20, parity)
        svg.text(30 + 110 * parity, y + ROW / 2, f"parity {parity}")
    y += ROW + 6
    for (phase, begun, end, arrived, landed, expected), first in zip(barrier.phases[:phases], firsts):
        axis, colour, top = Axis(first, first + length), BLUE, y + 20  # stage 0's
        svg.text(4, y + 8, f"{name}, phase {phase}, parity {phase & 1}: over at {picture.number(end)}", bold=True)
        y += 20
        svg.lane(y, "arrivals")
        came = arrived[0][0]
        if axis(came) - LEFT > 38:
            svg.text(axis(came) - 8, y + ROW / 2, f"0 of {barrier.arrivals}", anchor="end")
        svg.mark(axis(came), y, colour)
        svg.text(axis(came) + 9, y + ROW / 2, f"{sum(each[2] for each in arrived)} of {barrier.arrivals}: warp {arrived[0][1]}")
        svg.text(axis(end) + 4, y + ROW / 2, f"0 of {barrier.arrivals}")
        y += ROW
        height, there = 28, 0
        svg.text(LEFT - 6, y + height / 2, "bytes", anchor="end")
        svg.text(axis(came) + 4, y + height / 2, f"0 of {expected:,}")
        for i, (time, size) in enumerate(landed):
            there += size
            until = landed[i + 1][0] if i + 1 < len(landed) else time
            high = (height - 4) * there / expected
            svg.box(axis(time), y + height - high, max(axis(until) - axis(time), 0.4), high, colour, filled=0.5, line=0.8)
        svg.text(axis(end) + 4, y + height / 2, "all there")
        y += height + 2
        svg.lane(y, "phase")
        draw_phase(svg, axis(begun), y, axis(end) - axis(begun), phase & 1, f"{phase}, parity {phase & 1}")
        draw_phase(svg, axis(end), y, axis(axis.last) - axis(end), ~phase & 1, str(phase + 1))
        y += ROW
        svg.lane(y, f"warps {picture.listed({each[0] for each in asked[phase]})}")
        waits = [(begin, over) for _, begin, over, _ in asked[phase] if over > begin]
        if waits:
            since, until = min(w[0] for w in waits), max(w[1] for w in waits)
            if until - since < picture.SHORTEST_STALL:
                svg.add("rect", x=axis(until) - 2, y=y + 1, width=2, height=ROW - 3, fill=TEXT)
                svg.text(axis(until) - 5, y + ROW / 2, f"wait {picture.number(until - since)} clocks for parity {phase & 1} ▸", anchor="end")
            else:
                idle(svg, axis, y, since, until, f"wait for parity {phase & 1}")
            svg.text(axis(end) + 4, y + ROW / 2, "go on")
        passed = [begin for _, begin, over, _ in asked[phase] if over == begin and not waits]
        for time in passed:
            svg.mark(axis(time), y, TEXT)
        if passed:
            svg.text(axis(end) - 4, y + ROW / 2, f"ask for parity {phase & 1}: it is over", anchor="end")
        y += ROW
        svg.line(axis(end), top, axis(end), y + 2, dashes="3 2")
        y = axis.draw(svg, y + 2, 500) + 8
    for words in ("A wait for parity p goes on once the phase", "of that parity is over."):
        svg.text(4, y + 4, words, bold=True)
        y += 17
    return svg.render(y)


# --- 10: products under way ---


class Group:
    """Of a warp's wgmma: what one commit closes."""

    def __init__(self, fence, products, committed):
        self.since, self.begin, self.end, self.committed = fence, products[0][2], products[-1][3], committed
        self.count = len(products)


def groups_of(run, warp):
    groups, fence, products = [], 0, []
    for kind, values, begin, end in run.of(warp, "wgmma fence", "wgmma", "wgmma commit"):
        if kind == "wgmma fence":
            fence = begin
        elif kind == "wgmma":
            products.append((kind, values, begin, end))
        else:
            groups.append(Group(fence, products, begin))
            products = []
    return groups


def draw_in_flight(build):
    tiles = 4
    run = record(build, "10_wgmma", f"128x256x{tiles * STEP_K}")
    groups, waits = groups_of(run, 0), [(values[0], begin, end) for _, values, begin, end in run.of(0, "wgmma wait")]
    axis = Axis(groups[0].since - 100, waits[-1][2] + 100)
    locked = (groups[0].since, waits[-1][2])
    svg = Svg(
        "Products of a warp that are under way, in step 10",
        " ".join(f"Group {i}, {each.count} wgmma: issued from {picture.number(each.since)} on, multiplied from {picture.number(each.begin)} to {picture.number(each.end)}." for i, each in enumerate(groups))
        + f" The sums are the instruction's from {picture.number(locked[0])} to {picture.number(locked[1])}.",
    )
    y = svg.legend(4, (100, sample(svg, QUEUED, BLUE), "is queued"), (130, sample(svg, 1.0, BLUE), "is multiplied"), (110, sample(svg, "idle", TEXT), "warp 0 waits"), (100, sample(svg, "mark", TEXT), "commits"))
    y += 6
    for i, each in enumerate(groups):
        colour = OF_TILES[i % len(OF_TILES)]
        svg.lane(y, f"tile {i}")
        if each.begin > each.since:
            svg.add("rect", x=axis(each.since), y=y + 1, width=axis(each.begin) - axis(each.since), height=ROW - 3, fill=colour, fill_opacity=QUEUED)
        bar(svg, axis, y, each.begin, each.end, colour)
        y += ROW
    y += 4
    svg.lane(y, "warp 0")
    for each in groups:
        svg.mark(axis(each.committed), y, TEXT)
    for may_be, begin, end in waits:
        if end - begin >= picture.SHORTEST_STALL:
            idle(svg, axis, y, begin, end, f"<{may_be}>")
    y += ROW
    svg.lane(y, "the sums")
    bar(svg, axis, y, *locked, TEXT, "locked: nobody may touch them", TINT)
    return svg.render(axis.draw(svg, y + ROW + 4, 1000))


# --- 11, 12, 13, 17: warpgroups ---




def stores_of(run, warp, tiles):
    """(tile of C, begin, end) of what WARP stores between two of its products."""
    count, found, is_new = len(run.of(warp, "shared store", "stmatrix")), [], True
    stored = 0
    for kind, _, begin, _ in run.spans[warp]:
        is_new = is_new or kind == "wgmma"
        if kind not in STORES:
            continue
        if is_new:
            found.append([tiles[min(stored, count - 1) * len(tiles) // count], begin, begin])
        found[-1][2], is_new = begin + 1, False
        stored += kind in ("shared store", "stmatrix")
    return found


def written_of(run, warp, tiles):
    """By tile of C: (tile, begin, end) of what the copy engine stores for WARP's warpgroup, in the background."""
    mine = sorted(span for other in range(warp, warp + 4) for span in ((begin, end) for *_, begin, end in run.of(other, "bulk store")))
    return [(tiles[i * len(tiles) // len(mine)], *span) for i, span in enumerate(mine)]


def draw_warpgroups(build, step, shape, title, tiles_of, *words):
    """@param tiles_of by warpgroup, the tiles of C that it multiplies, counted as the block takes them"""
    run = record(build, step, shape, *words)
    axis = Axis(0, run.clocks)
    tiles = 1 + max(map(max, tiles_of))
    copies = run.copies(tiles * run.tiles_k)
    groups = {4 * i: mine for i, mine in enumerate(tiles_of)}  # by first warp
    products = {warp: [(mine[tile], *times) for tile, *times in run.products(warp, len(mine))] for warp, mine in groups.items()}
    on_cores = together(sum(products.values(), []))
    multiplies = f"multiplies {run.share()} of {picture.number(run.clocks)} clocks"
    svg = Svg(f"{title}: copies, products, waits and stores", f"What the first block did. It {multiplies}.")
    colour_of = [OF_TILES[tile % len(OF_TILES)] for tile in range(tiles)]
    svg.text(4, 12, f"{title}: {multiplies}", bold=True)
    entries = [(66, sample(svg, 1.0, colour), f"tile {tile}") for tile, colour in enumerate(colour_of)]
    entries += [(140, sample(svg, TINT, colour_of[0]), "copied, or stored"), (84, sample(svg, QUEUED, colour_of[0]), "queued"), (66, sample(svg, "idle", TEXT), "waits")]
    y = svg.legend(24, *entries) + 6
    for stage in range(len(run.drawn.stages.ranges)):
        svg.lane(y, f"stage {stage}")
        for i, (begin, end, at) in enumerate(copies):
            if at == stage:
                bar(svg, axis, y, begin, end, colour_of[i // run.tiles_k], str(i % run.tiles_k), TINT)
        y += ROW
    y += 4
    copying = next(warp for warp in run.spans if run.of(warp, "bulk load"))
    svg.lane(y, f"warp {copying}")
    for i, (begin, *_) in enumerate(copies):
        svg.mark(axis(begin), y, colour_of[i // run.tiles_k])
    for who, kind, _, begin, end in run.waits:
        if who == copying and kind == "mbarrier wait" and end - begin >= picture.SHORTEST_STALL:
            idle(svg, axis, y, begin, end, "room")
    y += ROW
    for warp in groups:
        svg.lane(y, f"warpgroup {warp // 4}")
        stores = stores_of(run, warp, groups[warp])
        for who, kind, _, begin, end in run.waits:
            is_in_store = any(first <= begin < last for _, first, last in stores)
            if who == warp and kind == "wgmma wait" and end > begin:
                tile = next(tile for tile, _, until in products[warp] if until >= end)
                svg.add("rect", x=axis(begin), y=y + 1, width=axis(end) - axis(begin), height=ROW - 3, fill=colour_of[tile], fill_opacity=QUEUED)
            if who == warp and kind in WAITS_FOR and not is_in_store and end - begin >= picture.SHORTEST_STALL:
                idle(svg, axis, y, begin, end, WAITS_FOR[kind])
        for tile, begin, end in products[warp]:
            bar(svg, axis, y, begin, end, colour_of[tile])
        for tile, begin, end in stores:
            bar(svg, axis, y, begin, end, colour_of[tile], "store", TINT)
        y += ROW
    svg.lane(y, "tensor cores")
    for tile, begin, end in on_cores:
        bar(svg, axis, y, begin, end, colour_of[tile], str(tile))
    for begin, end in gaps([piece[1:] for piece in on_cores], 0, run.clocks):
        idle(svg, axis, y, begin, end)
    y += ROW
    written = [written_of(run, warp, groups[warp]) for warp in groups]
    if any(written):
        svg.lane(y, "C is written")
        for tile, begin, end in together(sum(written, [])):
            bar(svg, axis, y, begin, end, colour_of[tile], str(tile), TINT)
        y += ROW
    return svg.render(axis.draw(svg, y + 4, 2000 if run.clocks < 9000 else 4000))


def draw_11(build):
    return draw_warpgroups(build, "11_warp_specialized", "256x512x256", "Step 11", [[0], [0]])


def draw_12(build):
    return draw_warpgroups(build, "12_persistent", "256x512x256", "Step 12", [[0, 1], [0, 1]], *FEW)


def draw_13(build):
    return draw_warpgroups(build, "13_ping_pong", "256x512x256", "Step 13", [[0, 2], [1, 3]], *FEW)


def draw_17(build):
    return draw_warpgroups(build, "17_store_later", "256x512x320", "Step 17", [[0, 1], [0, 1]], *FEW)


def draw_18(build):
    return draw_warpgroups(build, "18_swap_ab", "288x256x256", "Step 18", [[0, 1], [0, 1]], *FEW)


# --- 15, 16, 20: blocks of a cluster ---

OF_BLOCKS = (BLUE, ORANGE)


def arrow(svg, x, y, right, bottom, colour):
    svg.line(x, y, right, bottom, colour)
    up = -5 if bottom > y else 5
    svg.add("path", d=f"M{figures.number(right)} {figures.number(bottom)}l-3.5 {up}h7z", fill=colour)


def comes_to(run, rank):
    """What lands in the block's stages: [(stage, issued, landed, bytes, by which block)]."""
    found = []
    for event, warp, begin, end in sorted(run.clock.spans):
        if run.drawn.event(event)[0] in picture.COPIES and rank in run.drawn.targets(event):
            stage = run.drawn.stages.at(run.drawn.event(event)[2][2])
            found.append((stage, begin, run.clock.landed.get((event, rank), end), run.drawn.size_of(event), warp // run.launch.warps))
    return found


def fills_of(run, rank):
    """By stage, each time that it is filled: {block: (when it begins to send, when the last of that has landed)}."""
    fills, reads = {}, {}
    for warp in run.drawn.warps_of(rank):
        for kind, values, begin, _ in run.spans.get(warp, ()):
            if kind == "wgmma":
                reads.setdefault(run.drawn.stages.at(values[2]), []).append(begin)
    for stage, begin, landed, _, sender in sorted(comes_to(run, rank), key=lambda each: each[1]):
        rounds = fills.setdefault(stage, [])
        if not rounds or any(max(each[1] for each in rounds[-1].values()) < read < begin for read in reads.get(stage, ())):
            rounds.append({})
        first, last = rounds[-1].get(sender, (begin, landed))
        rounds[-1][sender] = (min(first, begin), max(last, landed))
    return fills


def draw_cluster(build, step, shape, title, barrier, *words, arrows):
    """@param barrier an mbarrier whose arrivals are shown @param arrows whether one is drawn for what is sent at such a time"""
    run = record(build, step, shape, *words)
    axis = Axis(0, run.clocks)
    multiplies = f"multiply {run.share()} of {picture.number(run.clocks)} clocks"
    svg = Svg(f"{title}: two blocks of a cluster, and what each of them copies or sends into the other", f"What both blocks of the first cluster did. They {multiplies}.")
    svg.text(4, 12, f"{title}: both blocks {multiplies}", bold=True)
    y = svg.legend(24, (104, sample(svg, TINT, BLUE), "by block 0"), (104, sample(svg, TINT, ORANGE), "by block 1"), (120, sample(svg, "mark", TEXT), "issues, arrives"), (96, sample(svg, 1.0, GREEN), "multiplies"))
    y += 4
    address = next(address for address, called in run.drawn.names.items() if called == barrier)
    tops, copying, sent = {}, {}, []  # where lanes are, to draw arrows between them
    for rank in (0, 1):
        svg.text(4, y + 9, f"block {rank}", bold=True)
        y += 20
        fills = fills_of(run, rank)
        for stage in sorted(fills):
            svg.lane(y, f"stage {stage}")
            tops[rank, stage] = y
            for each in fills[stage]:
                parts = [(sender, each[sender]) for sender in (0, 1) if sender in each]
                for i, (sender, (begin, landed)) in enumerate(parts):
                    x, high = axis(begin), (ROW - 3) / len(parts)
                    svg.box(x + 0.4, y + 1 + i * high, max(axis(landed) - x - 0.8, 0.4), high, OF_BLOCKS[sender], filled=TINT, line=0.8)
            y += ROW
        svg.lane(y, "tensor cores")
        pieces = together([(0, begin, end) for warp in run.drawn.warps_of(rank) if warp in run.spans for _, _, begin, end in run.of(warp, "wgmma")])
        for _, begin, end in pieces:
            bar(svg, axis, y, begin, end, GREEN)
        y += ROW
        senders = [warp for warp in run.drawn.warps_of(rank) if warp in run.spans and run.of(warp, "bulk load", "st.async")]
        for kind in ("bulk load", "st.async"):
            mine = [warp for warp in senders if run.of(warp, kind)]
            if mine:
                numbers = picture.listed([warp % run.launch.warps for warp in mine])
                svg.lane(y, f"warp {numbers}" if len(mine) == 1 else f"warps {numbers}")
                for begin in sorted({begin for warp in mine for _, _, begin, _ in run.of(warp, kind)}):
                    svg.mark(axis(begin), y, OF_BLOCKS[rank])
                copying[rank, kind] = y
                y += ROW
        svg.lane(y, barrier)
        for _, _, end, arrived, _, _ in run.clock.blocks[rank].mbarriers[address].phases:
            for time, warp, _, _ in arrived:
                svg.mark(axis(time), y, OF_BLOCKS[warp // run.launch.warps])
            svg.line(axis(end), y, axis(end), y + ROW, dashes="3 2")
        y += ROW + 8
    for event, warp, begin, _ in sorted(run.clock.spans):
        kind, _, values = run.drawn.event(event)
        rank = warp // run.launch.warps
        if kind in ("bulk load", "st.async") and arrows(begin) and 1 - rank in run.drawn.targets(event):
            sent.append((rank, kind, begin, run.clock.landed[event, 1 - rank], run.drawn.stages.at(values[2])))
    for rank, kind, stage in sorted({(rank, kind, stage) for rank, kind, *_, stage in sent}):  # of what goes to one stage, one
        mine = [each for each in sent if (each[0], each[1], each[4]) == (rank, kind, stage)]
        begin, landed = min(each[2] for each in mine), max(each[3] for each in mine)
        arrow(svg, axis(begin), copying[rank, kind] + ROW / 2, axis(landed), tops[1 - rank, stage] + ROW / 2, OF_BLOCKS[rank])
    return svg.render(axis.draw(svg, y, 1000 if axis.last < 6000 else 4000))


def draw_15(build):
    return draw_cluster(build, "15_few_rows", "8x64x2048", "Step 15", "all_ready", arrows=lambda _: True)


def draw_16(build):
    return draw_cluster(build, "16_multicast", "256x256x448", "Step 16", "empty[0]", *FEW, arrows=lambda begin: begin < 400)


def draw_20(build):
    return draw_cluster(build, "20_fewer_requests", "352x192x448", "Step 20", "empty[0]", *FEW, arrows=lambda begin: begin < 400)


# --- 06, 19: SMs and time ---


def draw_waves(build, title, tiles):
    """@param tiles (step, tile, shape, what it is called), each of which is drawn"""
    grids, costs = [], cost.h200(all_busy=True)
    for step, tile, shape, _ in tiles:
        plan = grid.Plan(int(step[:2]), tile, shape, costs.multiprocessors)
        known = grid.measured(step, tile, "f16")

        def record(small, sms, step=step, tile=tile):
            return launch_of(build, step, "x".join(map(str, small)), "--tile", tile, "--multiprocessors", str(sms))

        grids.append(grid.timed(plan, shape[2], record, costs, known[1]["launch"]["blocks_per_sm"] if known else 1))
    axis = Axis(0, max(each.clocks for each in grids))
    said = [f"{name}: {len(each.pieces)} {'tiles' if each.plan.stays else 'blocks'}, {each.waves():.2f} waves, {picture.number(each.clocks)} clocks" for (*_, name), each in zip(tiles, grids)]
    svg = Svg(title, ". ".join(said) + ".")
    has_several = any(each.plan.stays for each in grids)
    entries = [(104, sample(svg, 1.0, BLUE), "first, third")] if has_several else [(90, sample(svg, 1.0, BLUE), "a block")]
    if has_several:
        entries.append((124, sample(svg, 1.0, ORANGE), "second, fourth"))
    if any(piece.narrow for each in grids for piece in each.pieces):
        entries.append((80, sample(svg, 1.0, GREEN), "narrow"))
    y = svg.legend(4, *entries, (90, sample(svg, "idle", TEXT), "no work"))
    y += 4
    for words, each in zip(said, grids):
        svg.text(4, y + 8, words, bold=True)
        y += 20
        for sm, count, pieces in each.alike():
            top, high = y + sm, count
            if high >= SIZE:
                svg.text(LEFT - 6, top + high / 2, f"SM {sm}–{sm + count - 1}", anchor="end")
            one = high / max((1 + piece.place for piece in pieces), default=1)
            begins = sorted({piece.begin for piece in pieces})
            for piece in pieces:
                colour = GREEN if piece.narrow else OF_TILES[begins.index(piece.begin) % 2]
                svg.add("rect", x=axis(piece.begin) + 0.4, y=top + piece.place * one, width=axis(piece.end) - axis(piece.begin) - 0.8, height=one - 0.4, fill=colour)
            end = max((piece.end for piece in pieces), default=0)
            if end < each.clocks:
                svg.add("rect", x=axis(end), y=top, width=axis(each.clocks) - axis(end), height=high, fill=TEXT, fill_opacity=IDLE)
        y += each.plan.sms + 8
    return svg.render(axis.draw(svg, y, 10000 if axis.last < 60000 else 20000))


def draw_06(build):
    shape = (1536, 1536, 1536)
    tiles = (("128x128x64 warp 64x64 s3 g8", "128 × 128"), ("160x128x64 warp 80x32 s3 g8", "160 × 128"))
    return draw_waves(build, "1536³ on 132 SMs, with two tiles of step 06", [("06_autotune", tile, shape, name) for tile, name in tiles])


def draw_19(build):
    shape = (4096, 4096, 1024)
    tiles = (("17_store_later", "128x256x64 s4 g8 cooperative", "Step 17"), ("19_two_widths", "128x256x64 s4 g8 cooperative narrow 240", "Step 19"))
    return draw_waves(build, "4096 × 4096 × 1024 on 132 SMs, in steps 17 and 19", [(step, tile, shape, name) for step, tile, name in tiles])


# --- 07: the kernel that fusing saves ---


def sectors(launch, *kinds):
    """Bytes that the launch moves, in sectors, of blocks that are all alike."""
    return 32 * launch.blocks * sum(event[5] for event in launch.events if launch.kinds[event[1]] in kinds)


def span_of(clock, *kinds):
    """From when to when a launch does something of KINDS."""
    mine = [(begin, end) for event, _, begin, end in clock.spans if clock.launch.kinds[clock.launch.events[event][1]] in kinds]
    return min(begin for begin, _ in mine), max(end for _, end in mine)


def draw_07(build):
    step, tile, extent, depth = "07_fused_leaky_relu", "128x128x64 warp 64x64 s3 g8", 128, 256
    shape = f"{extent}x{extent}x{depth}"
    fused = record(build, step, shape, "--tile", tile)
    separate = record(build, step, shape, "--tile", tile, "--activation", "identity")
    last = min(launches_of(build, step, shape, "--tile", tile), key=lambda each: len(each.events))
    second = Replay(last, cost.h200(), resident=last.blocks)
    begin = separate.clocks
    axis = Axis(0, begin + second.clocks)
    read, written = sectors(fused.launch, "copy"), sectors(fused.launch, "global store")
    again = [sectors(last, "global load"), sectors(last, "global store")]
    said = f"Fused, {extent} × {extent} of C take {picture.number(fused.clocks)} clocks and {(read + written) / 1024:.0f} KB. In two kernels they take {picture.number(axis.last)} clocks and {(read + written + sum(again)) / 1024:.0f} KB."
    svg = Svg("A tile of C with its activation fused, and with a second kernel, in step 07", said)
    y = svg.legend(4, (120, sample(svg, TINT, BLUE), "A, B are read"), (124, sample(svg, 1.0, ORANGE), "is multiplied"), (120, sample(svg, TINT, PINK), "C is read"), (124, sample(svg, TINT, GREEN), "C is written"))
    y += 6
    for name, run, after in (("fused", fused, None), ("separate", separate, second)):
        clocks = run.clocks if after is None else axis.last
        svg.text(4, y + 8, f"{name}: {picture.number(clocks)} clocks" + (", and a second launch" if after else ""), bold=True)
        y += 20
        top = y
        svg.lane(y, "A, B")
        bar(svg, axis, y, *span_of(run.clock, "copy"), BLUE, filled=TINT)
        y += ROW
        svg.lane(y, "products")
        for _, since, until in run.products(0, depth // STEP_K):
            bar(svg, axis, y, since, until, ORANGE)
        y += ROW
        svg.lane(y, "C")
        bar(svg, axis, y, *span_of(run.clock, "global store"), GREEN, filled=TINT)
        if after:
            (since, until), (stored, over) = span_of(after, "global load"), span_of(after, "global store")
            bar(svg, axis, y, begin + since, begin + min(until, stored), PINK, filled=TINT)
            bar(svg, axis, y, begin + stored, begin + over, GREEN, filled=TINT)
            svg.line(axis(begin), top, axis(begin), y + ROW, dashes="3 2")
        y += ROW + 8
    y = axis.draw(svg, y, 2000) + 10
    parts = [("A, B", read, BLUE), ("C", written, GREEN)]
    for name, moved in (("fused", parts), ("separate", [*parts, ("C", again[0], PINK), ("C", again[1], GREEN)])):
        svg.lane(y, name)
        x, scale = LEFT, (RIGHT - LEFT) / (read + written + sum(again))
        for words, size, colour in moved:
            svg.box(x + 0.4, y + 1, size * scale - 0.8, ROW - 3, colour, filled=TINT, line=0.8)
            svg.text(x + size * scale / 2, y + ROW / 2, f"{words} {size // 1024}", anchor="middle")
            x += size * scale
        y += ROW + 2
    svg.text(LEFT, y + 8, "KB read and written")
    return svg.render(y + 18)


# --- 08: blocks that share a tile ---


SLICES_08 = 32  # of 128, in k = 4096


def products_of(run):
    """How many operations a block's mma do."""
    return sum(values[0] for warp in run.spans for _, values, *_ in run.of(warp, "mma"))


def draw_08(build):
    step, shape, tile, tiles_c = "08_split_k", "8x1024x4096", "16x32x128 warp 16x16 s8 g8 split", 32
    alone = record(build, step, shape, "--tile", f"{tile} 1")
    shared = {block: record(build, step, shape, "--tile", f"{tile} 4", block=block) for block in range(0, 4 * tiles_c, tiles_c)}
    axis = Axis(0, alone.clocks)
    over = max(run.clocks for run in shared.values())
    slices = dict.fromkeys(shared, 0)
    whole = products_of(alone)
    for block, run in shared.items():
        slices[block], rest = divmod(products_of(run) * SLICES_08, whole)
        if rest:
            raise ValueError(f"block {block} does not multiply whole slices")
    svg = Svg(
        "A tile of C by one block, and by four that share k, in step 08",
        f"One block alone takes {picture.number(alone.clocks)} clocks for a tile of 8 × 1024 × 4096, four that share it {picture.number(over)}. "
        + " ".join(f"Block {block} multiplies {slices[block]} of {SLICES_08} slices of k, until {picture.number(max(piece[2] for piece in run.products(0, 1)))}." for block, run in shared.items()),
    )
    y = svg.legend(4, (96, sample(svg, TINT, BLUE), "is copied"), (124, sample(svg, 1.0, ORANGE), "is multiplied"), (120, sample(svg, 1.0, GREEN), "sums are left"), (110, sample(svg, TINT, PINK), "are loaded"), (110, sample(svg, TINT, GREEN), "C is written"))
    y += 6
    for words, runs in ((f"1 block for a tile: {picture.number(alone.clocks)} clocks", {0: alone}), (f"4 blocks for a tile: {picture.number(over)} clocks", shared)):
        svg.text(4, y + 8, words, bold=True)
        y += 20
        for block, run in runs.items():
            svg.lane(y, f"block {block}")
            since, until = span_of(run.clock, "copy")
            bar(svg, axis, y, since, until, BLUE, f"{SLICES_08} slices of k" if run is alone else "", TINT)
            if run is not alone:
                svg.text(axis(until) + 6, y + ROW / 2, f"{slices[block]} of {SLICES_08} slices of k")
            y += ROW
            svg.lane(y, "products")
            for _, since, until in together([(0, *piece[1:]) for warp in run.spans for piece in run.products(warp, 1)]):
                bar(svg, axis, y, since, until, ORANGE)
            is_last = "shared store" in {kind for kind, *_ in run.spans[0]}
            if is_last and run.of(0, "global load"):
                since, until = span_of(run.clock, "global load")
                bar(svg, axis, y, since, until, PINK, filled=TINT)
                since = until
            else:
                since = span_of(run.clock, "global store")[0]
            bar(svg, axis, y, since, run.clocks, GREEN, filled=TINT if is_last else 1.0)
            y += ROW + 4
        y += 4
    return svg.render(axis.draw(svg, y, 2000))


# --- 14: launches, one behind the other ---


def every(step):
    """From one launch's beginning to the next one's, of what lesson 14 compares: (clocks, µs)."""
    result = share_figures.best_tiles("dependent-f16.json", step, share_figures.squares)[256][1]
    return share_figures.clocks_of(result), 1e6 * result["time"]["median"]


def between(svg, x, y, right):
    """What a launch takes, measured, and the model does not."""
    svg.box(x + 0.8, y + 1.5, right - x - 1.6, ROW - 4, PINK, line=1.2, stroke_dasharray="3 2")


def draw_14(build):
    count, shape, words = 3, "256x256x256", ("--tile", "64x64x64")
    steps = {step: (record(build, step, shape, *words), *every(step)) for step in ("13_ping_pong", "14_dependent_launch")}
    axis = Axis(0, max((count - 1) * period + run.clocks for run, period, _ in steps.values()))
    svg = Svg(
        "Launches one behind the other, in steps 13 and 14 at 256 × 256 × 256",
        " ".join(f"Step {step[:2]}: a launch takes {picture.number(run.clocks)} clocks, and the next one's copies begin {picture.number(period)} clocks after its own." for step, (run, period, _) in steps.items()),
    )
    y = svg.legend(4, (78, sample(svg, TINT, BLUE), "copies"), (98, sample(svg, 1.0, ORANGE), "multiplies"), (74, sample(svg, TINT, GREEN), "stores"))
    svg.text(256, y - ROW + 7, "by the model")
    y = svg.legend(y, (184, sample(svg, "mark", TEXT), "the next one may begin"), (160, sample(svg, "idle", TEXT), "it has begun, waits"))
    y = svg.legend(y, (320, lambda x, y: between(svg, x, y - 1, x + 20), "between launches: measured less the model")) + 6
    for step, (run, period, time) in steps.items():
        hints = [begin for warp in run.spans for *_, begin, _ in run.of(warp, "launch hint")]
        svg.text(4, y + 8, f"step {step[:2]}, measured: one every {time:.3g} µs, {picture.number(period)} clocks", bold=True)
        y += 32 if hints else 20
        for number in range(count):
            at = number * period
            svg.lane(y, f"launch {number + 1}")
            if hints and number:
                since = at - period + max(hints)
                svg.mark(axis(since), y - 2 * ROW, TEXT)  # above the bar of the launch before
                idle(svg, axis, y, since, at - period + run.clocks, "waits")
            if number:
                between(svg, axis(at - period + run.clocks), y, axis(at))
            copies, products, stores = span_of(run.clock, "bulk load"), span_of(run.clock, "wgmma"), span_of(run.clock, "bulk store")
            bar(svg, axis, y, at + copies[0], at + products[0], BLUE, filled=TINT)
            bar(svg, axis, y, at + products[0], at + products[1], ORANGE)
            bar(svg, axis, y, at + products[1], at + stores[1], GREEN, filled=TINT)
            if number + 1 < count:
                svg.line(axis(at + run.clocks), y, axis(at + run.clocks), y + 2 * ROW, dashes="3 2")
            y += ROW
        y += 8
    return svg.render(axis.draw(svg, y, 4000))


FIGURES = {
    **data_figures.FIGURES,
    **share_figures.FIGURES,
    **road_figure.FIGURES,
    **ranks_figure.FIGURES,
    "steps/04_pipelined_num_stages/stages.svg": ("04_pipelined_num_stages", draw_stages),
    "steps/06_autotune/waves.svg": ("06_autotune", draw_06),
    "steps/07_fused_leaky_relu/kernels.svg": ("07_fused_leaky_relu", draw_07),
    "steps/08_split_k/shares.svg": ("08_split_k", draw_08),
    "steps/09_tma/phases.svg": ("09_tma", draw_phases),
    "steps/10_wgmma/in_flight.svg": ("10_wgmma", draw_in_flight),
    "steps/11_warp_specialized/lanes.svg": ("11_warp_specialized", draw_11),
    "steps/12_persistent/lanes.svg": ("12_persistent", draw_12),
    "steps/13_ping_pong/lanes.svg": ("13_ping_pong", draw_13),
    "steps/14_dependent_launch/launches.svg": ("14_dependent_launch", draw_14),
    "steps/15_few_rows/cluster.svg": ("15_few_rows", draw_15),
    "steps/16_multicast/cluster.svg": ("16_multicast", draw_16),
    "steps/17_store_later/lanes.svg": ("17_store_later", draw_17),
    "steps/18_swap_ab/lanes.svg": ("18_swap_ab", draw_18),
    "steps/19_two_widths/waves.svg": ("19_two_widths", draw_19),
    "steps/20_fewer_requests/cluster.svg": ("20_fewer_requests", draw_20),
}


def main():
    parser = argparse.ArgumentParser(description="Draws the lessons' pictures of execution, and names each file that changed.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a file is not what the kernels do now")
    parser.add_argument("--build", default=os.path.join(cost.ROOT, "build/interpreter"), help="where bin/ has the steps' programs")
    given = parser.parse_args()
    code = 0
    for name, (step, draw) in FIGURES.items():
        if not os.path.exists(os.path.join(given.build, "bin", step)):
            parser.error(f"there is no {step} in {given.build}/bin: build it with 'tools/course build interpreter', or name the folder with --build.")
        try:
            path, content = os.path.join(cost.ROOT, name), draw(given.build)
        except subprocess.CalledProcessError:
            parser.error(f"{step} fails, so there is no picture of it: 'tools/course run {step} --on interpreter' says why.")
        if figures.current(path, content):
            continue
        if given.check:
            print(f"course: {name} is not what the kernel does now: run 'python3 -B tools/see/figures.py' and look at it.", file=sys.stderr)
            code = 1
            continue
        with open(path, "wb") as file:
            file.write(content)
        print(name)
    return code


if __name__ == "__main__":
    sys.exit(main())
