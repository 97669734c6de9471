"""What a program did, and when: what pictures of execution have in common, and how they draw a time axis."""

from report import figures
from report.figures import TEXT

from . import cost, picture
from .data_figures import launch_of
from .replay import Replay
from .svg import IDLE, LEFT, RIGHT, ROW, WIDTH

STEP_K = 64  # of all kernels here: a tile's extent along k
STORES = ("shared store", "stmatrix", "shared load", "global store", "bulk store")


class Axis:
    """Of the clocks FROM to TO, or of another unit."""

    def __init__(self, first, last):
        self.first, self.last = first, last

    def __call__(self, clock):
        inside = min(max(clock, self.first), self.last)
        return LEFT + (RIGHT - LEFT) * (inside - self.first) / (self.last - self.first)

    def draw(self, svg, y, every, unit="clocks"):
        svg.line(LEFT, y, RIGHT, y)
        for clock in range(-(-int(self.first) // every) * every, int(self.last) + 1, every):
            svg.line(self(clock), y, self(clock), y + 4)
            x = self(clock)
            svg.text(x, y + 12, picture.number(clock), anchor="start" if x < LEFT + 9 else "end" if x > WIDTH - 20 else "middle")
        svg.text(LEFT - 6, y + 12, unit, anchor="end")
        return y + 24


class Recorded:
    """What a program did, and when."""

    def __init__(self, launch, title, k, costs=None):
        self.launch, self.clock = launch, Replay(launch, costs or cost.h200())
        self.drawn = picture.Picture(launch, self.clock, title)
        self.clocks, self.tiles_k = self.clock.clocks, k // STEP_K
        self.spans = {}  # by warp: [(kind, values, begin, end)] in the order of its program
        for event, warp, begin, end in sorted(self.clock.spans):
            kind = self.launch.kinds[self.launch.events[event][1]]
            self.spans.setdefault(warp, []).append((kind, self.launch.events[event][4:], begin, end))
        self.waits = [(w, self.launch.kinds[self.launch.events[e][1]], self.launch.events[e][4:], a, b) for e, w, a, b in self.clock.waits]

    def of(self, warp, *kinds):
        return [span for span in self.spans[warp] if span[0] in kinds]

    def copies(self, tiles):
        """By tile along k, of TILES that the block copies: (begin, landed, stage)."""
        found = [None] * tiles
        for warp in self.spans:
            mine = self.of(warp, "copy", "bulk load")
            for i, (_, values, begin, end) in enumerate(mine):
                tile = i * tiles // len(mine)
                first, last, stage = found[tile] or (begin, end, self.drawn.stages.at(values[2]))
                found[tile] = (min(first, begin), max(last, end), stage)
        return found

    def products(self, warp, tiles):
        """By tile, of TILES that WARP multiplies: [(tile, begin, end)], a piece for each time without a gap."""
        mine, pieces = self.of(warp, "mma", "wgmma"), []
        for i, (*_, begin, end) in enumerate(mine):
            tile = i * tiles // len(mine)
            if pieces and pieces[-1][0] == tile and begin - pieces[-1][2] < picture.SHORTEST_STALL:
                pieces[-1][2] = end
            else:
                pieces.append([tile, begin, end])
        return pieces

    def share(self):
        return f"{100 * self.drawn.tensor_share():.0f} %"


def record(build, step, shape, *words, block=0, costs=None):
    return Recorded(launch_of(build, step, shape, *words, block=block), step, int(shape.split("x")[2]), costs)


def gaps(pieces, first, last):
    """Between PIECES (begin, end), from FIRST to LAST."""
    found, at = [], first
    for begin, end in [*sorted(pieces), (last, last)]:
        if begin - at >= picture.SHORTEST_STALL:
            found.append((at, begin))
        at = max(at, end)
    return found


def bar(svg, axis, y, begin, end, colour, words="", filled=1.0):
    if end <= axis.first or begin >= axis.last:
        return
    x, right = axis(begin), axis(end)
    svg.box(x + 0.4, y + 1, max(right - x - 0.8, 0.4), ROW - 3, colour, filled=filled, line=0 if filled == 1 else 0.8)
    if words and right - x >= 8 * len(words) + 2:
        svg.text((x + right) / 2, y + ROW / 2, words, anchor="middle", bold=filled == 1, colour=figures.ON_COLOUR if filled == 1 else None)


def idle(svg, axis, y, begin, end, words="idle"):
    if end <= axis.first or begin >= axis.last:
        return
    x, right = axis(begin), axis(end)
    has_words = right - x >= 7 * len(words)
    svg.add("rect", x=x, y=y + 1, width=right - x, height=ROW - 3, fill=TEXT, fill_opacity=IDLE / 2 if has_words else IDLE)
    if has_words:
        svg.text((x + right) / 2, y + ROW / 2, words, anchor="middle")


def together(pieces):
    """PIECES (tile, begin, end) of several warps: those of one tile are one, where nothing lies between."""
    merged = []
    for tile, begin, end in sorted(pieces, key=lambda piece: piece[1:]):
        if merged and merged[-1][0] == tile and begin - merged[-1][2] < picture.SHORTEST_STALL:
            merged[-1][2] = max(end, merged[-1][2])
        else:
            merged.append([tile, begin, end])
    return merged
