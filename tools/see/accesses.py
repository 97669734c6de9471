"""Which banks of shared memory a warp's access asks for, and which sectors of global memory: as ncu counts them.

The passes are those of common/interpreter/count/counters.cpp, which an H200 has confirmed; a test compares the figures.
"""

SHARED = {"shared load", "shared store", "shared atomic", "ldmatrix", "stmatrix"}
GLOBAL = {"global load", "global store", "global atomic", "copy"}
BANKS, WORD, SECTOR, LINE = 32, 4, 32, 128
MOST = 60  # that a page shows


def lanes_in(mask):
    return [lane for lane in range(32) if mask >> lane & 1]


def neighbours_agree(address, bit):
    """Whether lanes that differ in one low bit of their number ask for the same address, wherever both take part."""
    return all(address[lane] == address[lane ^ bit] for lane in address if lane ^ bit in address)


def passes_of(kind, size, address):
    """Of {lane: address}, the passes: of each, by bank, {word: lanes}. A pass takes as many wavefronts as its busiest bank has words."""
    lanes = 32 if size <= 4 else 16 if size == 8 else 8
    if size > 4 and kind not in ("ldmatrix", "stmatrix") and (neighbours_agree(address, 1) or neighbours_agree(address, 2)):
        lanes *= 2
    passes = []
    for first in range(0, 32, lanes):
        banks = [{} for _ in range(BANKS)]
        for lane in range(first, first + lanes):
            for word in range(address[lane] // WORD, (address[lane] + size - 1) // WORD + 1) if lane in address else ():
                banks[word % BANKS].setdefault(word, []).append(lane)
        if any(banks):
            passes.append(banks)
    return passes


def wavefronts(passes):
    return sum(max(map(len, banks)) for banks in passes)


def lines_of(size, address):
    """{line of 128 bytes: {sector: lanes}}."""
    lines = {}
    for lane, begin in address.items():
        for sector in range(begin // SECTOR, (begin + size - 1) // SECTOR + 1):
            lines.setdefault(sector * SECTOR // LINE, {}).setdefault(sector, []).append(lane)
    return lines


def named(lanes):
    """0–3 of [0, 1, 2, 3], as short as it can be."""
    lanes = sorted(set(lanes))
    if len(lanes) == 1:
        return str(lanes[0])
    is_row = lanes[-1] - lanes[0] == len(lanes) - 1
    return f"{lanes[0]}–{lanes[-1]}" if is_row else f"{lanes[0]}, …"


class Access:
    """One that was recorded with its addresses."""

    def __init__(self, launch, index, mask, addresses):
        warp, kind, self.place, _, *values = launch.events[index]
        self.index, self.warp, self.kind, self.values = index, warp % launch.warps, launch.kinds[kind], values
        self.is_shared = self.kind in SHARED
        lanes = lanes_in(mask)  # who reads, of copies
        self.size = values[3] // max(len(lanes), 1) if self.kind == "copy" else values[0]
        base = 0
        if self.is_shared and addresses:  # where instructions find it
            base = values[2] - min(addresses)
        self.address = {lane: base + at for lane, at in zip(lanes, addresses)}
        if self.is_shared:
            self.passes = passes_of(self.kind, self.size, self.address)
            self.pattern = tuple(tuple((bank, *map(tuple, words.values())) for bank, words in enumerate(banks) if words) for banks in self.passes)
        else:
            self.lines = lines_of(self.size, self.address)
            first = min(self.lines, default=0)
            self.pattern = tuple((line - first, *((s % 4, *lanes) for s, lanes in sectors.items())) for line, sectors in sorted(self.lines.items()))

    def document(self):
        """What the page draws: of each pass 32 stacks, or of each line 4 sectors; and the sentence."""
        asked = f"{len(self.address)} lanes, {self.size} bytes each"
        if self.is_shared:
            took, ideal = wavefronts(self.passes), len(self.passes)
            verdict = "no bank is asked for two words at once" if took == ideal else f"{took - ideal} of them because lanes want different words of one bank"
            text = f"{self.kind} of warp {self.warp}: {asked}; {took} wavefront{'' if took == 1 else 's'}, {verdict}."
            stacks = [[[named(lanes) for lanes in words.values()] for words in banks] for banks in self.passes]
            return {"t": text, "banks": stacks, "bad": took > ideal}
        sectors = sum(map(len, self.lines.values()))
        used = len({at + i for at in self.address.values() for i in range(self.size)})
        what = "cp.async" if self.kind == "copy" else self.kind
        text = (
            f"{what} of warp {self.warp}: {asked}; {sectors} sector{'' if sectors == 1 else 's'} in {len(self.lines)} line{'' if len(self.lines) == 1 else 's'}"
            f" of {LINE} bytes. Of the {sectors * SECTOR:,} bytes that move, {used:,} are asked for."
        )
        rows = [[named(sectors[s]) if (s := 4 * line + i) in sectors else "" for i in range(4)] for line, sectors in sorted(self.lines.items())]
        return {"t": text, "sectors": rows, "bad": used < sectors * SECTOR}


def distinct(launch):
    """Those of the launch, each pattern of a line once, by the first warp that has it."""
    found = {}
    for index, mask, addresses in sorted(launch.addresses, key=lambda each: (launch.events[each[0]][0], each[0])):
        access = Access(launch, index, mask, addresses)
        if access.address and (access.is_shared or access.kind in GLOBAL):
            found.setdefault((access.place, access.kind, access.pattern), access)
    return list(found.values())[:MOST]
