"""The page of a grid: SMs from above, time to the right."""

from collections import defaultdict

from . import page, picture
from .cost import CLOCK

MOST_PIECES = 9000  # more of them are drawn wave by wave, not block by block


def percent(share):
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def facts(grid, launch, measured, missed=None, in_l2=0):
    """Sentences for the heading. @param missed (l2.misses() of its pieces, what each asks for) @param in_l2 bytes for which it has room"""
    plan, threads = grid.plan, launch.block[0] * launch.block[1] * launch.block[2]
    units = "clusters" if plan.cluster > 1 else "blocks"
    each = f"{picture.several(plan.units, 'cluster')} of {plan.cluster} blocks ({threads} threads each)" if plan.cluster > 1 else f"{plan.blocks:,} blocks of {threads} threads"
    count, room = grid.last_wave()
    if plan.stays:
        tiles = f"{plan.tiles:,} tiles" + (f" of clusters, {plan.cluster} blocks wide" if plan.wide > 1 else f" of clusters, {plan.cluster} blocks high" if plan.high > 1 else "")
        if plan.narrow:
            tiles += f", {plan.tiles - plan.wide_tiles:,} of them narrow"
        first = f"{each} stay, for {tiles}: {grid.waves():.2f} waves. In the last one {count} of {room} {units} have a tile."
    else:
        beside = "one of them at a time" if grid.resident == 1 else f"{grid.resident} of them at a time"
        an_sm = f"{plan.sms} SMs have room for {picture.several(plan.room * grid.resident, 'cluster')} at a time, as a cluster lies within a GPC" if plan.cluster > 1 else f"an SM has room for {beside}"
        first = f"{each}; {an_sm}: {grid.waves():.2f} waves. The last one has {count} {units}, where there is room for {room}."
    found = [first, f"The clock below counts {picture.number(grid.clocks)}; at its end, SMs have nothing more to do in {percent(grid.idle())} of all their time."]
    if measured:
        took = measured[1]["time"]["median"]
        clock = measured[1].get("conditions", {}).get("sm_hz", CLOCK)
        found.append(f"An H200 took {1e6 * took:,.0f} µs, {picture.number(took * clock)} clocks at {clock / 1e9:.2f} GHz ({measured[0]}).")
    else:
        found.append("There is no time of an H200 for it.")
    found += [alone_and_beside(grid)] if alone_and_beside(grid) else []
    if plan.cluster > 1:
        found.append("What blocks of a cluster share is asked for once, for which this clock gives no credit.")
    if not missed:
        found.append("What is not in L2 is not counted for this step.")
    else:
        misses, asked = sum(missed[0]), missed[1] * len(missed[0])
        found.append(f"Blocks ask for {asked / 1e6:,.0f} MB of A and B; {misses / 1e6:,.0f} MB of these, {percent(misses / asked)}, are not in L2, which has room for {in_l2 / 1e6:.0f} MB that all SMs ask for.")
    return [found[0], *found[2:], found[1]]


def alone_and_beside(grid):
    """How long a block takes, if that depends on how many an SM has of them."""
    by_count, at = {}, defaultdict(list)
    for piece in grid.pieces:
        at[piece.sm, piece.begin].append(piece.end - piece.begin)
    for lengths in at.values():
        by_count[len(lengths)] = max(lengths)
    if len(by_count) < 2 or grid.plan.stays:
        return ""
    times = ", ".join(f"{picture.number(by_count[count])} {'alone on an SM' if count == 1 else f'beside {count - 1} more'}" for count in sorted(by_count))
    return f"A block takes so many clocks: {times}. Those on one SM share its tensor cores and its way to L2."


def shares_missed(grid, shown, missed):
    """Of each piece that is SHOWN, or of those that it stands for, the percentage of what is asked for that is not in L2."""
    of = defaultdict(list)
    for piece, misses in zip(grid.pieces, missed[0]):
        of[piece.sm, piece.begin, piece.place if len(shown) == len(grid.pieces) else 0].append(misses)
    return [round(100 * sum(mine) / len(mine) / missed[1], 1) for piece in shown for mine in [of[piece.sm, piece.begin, piece.place]]]


def merged(pieces):
    """Of too many blocks, those side by side on an SM are one."""
    if len(pieces) <= MOST_PIECES:
        return pieces
    return [piece for piece in pieces if piece.place == 0]


def document(grid, title, missed=None):
    plan, shown = grid.plan, sorted(merged(grid.pieces), key=lambda p: (p.begin, p.block))
    return {
        "title": title,
        "sms": plan.sms,
        "resident": grid.resident if len(shown) == len(grid.pieces) else 1,
        "together": grid.resident if len(shown) < len(grid.pieces) else 1,
        "stays": plan.stays,
        "units": plan.units,
        "cluster": plan.cluster,
        "unfit": plan.room * plan.cluster if plan.cluster > 1 else plan.sms,  # from this SM on, no cluster finds room
        "clocks": round(grid.clocks, 1),
        "ends": [round(end, 1) for end in grid.ends],
        "pieces": [[p.sm, p.place, round(p.begin, 1), round(p.end, 1), p.block, p.tile, int(p.narrow)] for p in shown],
        "missed": shares_missed(grid, shown, missed) if missed else [],
    }


def page_of(grid, title, sentences, costs, missed=None):
    return page.filled("grid.html", title, sentences, costs, document(grid, title, missed))
