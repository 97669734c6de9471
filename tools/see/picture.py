"""From a replay to what is drawn: lanes, and on each the segments that a page steps through and a trace lists.

A segment is a run of a warp's events that belong together: copies to one stage, products from one stage, a wait. What the copy engine and the
tensor cores do in the background has lanes of its own.
"""

import bisect
import math
import os
import re
from collections import Counter, defaultdict

from . import accesses, operands
from .cost import QUARTERS, ROOT

COPIES = {"copy", "bulk load", "st.async"}  # what may fill a stage
VISITS = {"cluster load", "cluster store", "cluster atomic"}
PRODUCTS = {"mma", "ldmatrix"}
BACKGROUND = {"wgmma", "wgmma fence", "wgmma commit"}
WAITS = {
    "barrier": "barrier",
    "named barrier": "barrier",
    "mbarrier wait": "mbarrier",
    "copy wait": "copies",
    "bulk wait": "stores",
    "wgmma wait": "products",
    "cluster wait": "cluster",
    "launch wait": "launch",
}
ARRIVALS = {"mbarrier arrive", "mbarrier expect", "copy arrive", "mbarrier init", "cluster arrive", "launch hint"}
QUIET = {"copy commit", "bulk commit"}  # belongs to what stands before it
MOST_STAGES = 16
SHORTEST_STALL = 32  # clocks; shorter ones belong to what waits


def source_of(file):
    """The file's lines; it may lie elsewhere than where it was compiled."""
    for path in (file, os.path.join(ROOT, *file.split("/")[-3:])):
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as text:
                return text.read().splitlines()
    return []


def shortened(file):
    return os.path.relpath(file, ROOT) if file.startswith(ROOT + os.sep) else os.path.join(*file.split("/")[-3:]) if "/" in file else file


def number(value):
    return f"{round(value):,}"


def several(count, one, more=""):
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def listed(numbers):
    """0–3, 8 of [0, 1, 2, 3, 8]."""
    parts, numbers = [], sorted(numbers)
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in parts)


class Stages:
    """The parts of shared memory that copies fill again and again. What one group of copies fills, or what completes on one mbarrier, is one
    stage; so are two of these that begin at the same places."""

    def __init__(self, launch):
        places, stage_of = {}, {}  # where a copy begins: its bytes; its stage, as a list that stages share once they are one
        fills, commits = {}, defaultdict(int)
        self.sent = set()  # where st.async begin
        for warp, kind, _, lanes, a, b, c, *_ in launch.events:
            name = launch.kinds[kind]
            if name == "st.async":
                a *= bin(lanes).count("1")
                self.sent.add(c)
            if name == "copy commit":
                commits[warp] += 1
            elif name in COPIES:
                places[c] = max(places.get(c, 0), a)
                fills.setdefault(("group", commits[warp]) if name == "copy" else ("mbarrier", b), set()).add(c)
        for fill in fills.values():
            together = set(fill)
            for place in fill:
                together |= stage_of.get(place, set())
            for place in together:
                stage_of[place] = together
        stages = sorted({id(stage): sorted(stage) for stage in stage_of.values()}.values())
        self.places, self.numbers, self.ranges = [], {}, []
        if len(stages) > MOST_STAGES:
            return
        self.places = sorted(places)
        self.bytes = places
        for number, stage in enumerate(stages):
            self.numbers.update(dict.fromkeys(stage, number))
            self.ranges.append([stage[0], max(place + places[place] for place in stage)])

    def at(self, address):
        """-1: no stage's."""
        found = bisect.bisect_right(self.places, address) - 1
        if found < 0 or address >= self.places[found] + 2 * self.bytes[self.places[found]]:  # rows may be padded
            return -1
        return self.numbers[self.places[found]]

    def named(self, stage):
        first, last = self.ranges[stage]
        is_alone = all(i == stage or end <= first or begin >= last for i, (begin, end) in enumerate(self.ranges))
        return f"Stage {stage} (bytes {first:,} to {last - 1:,})" if is_alone else f"Stage {stage} (from byte {first:,} on, in parts)"


class Picture:
    def __init__(self, launch, replay, title):
        self.launch, self.replay, self.title = launch, replay, title
        self.stages = Stages(launch)
        self.lanes, self.segments, self.links = [], [], []  # links: (segment, what of which block it goes to, when it is there)
        self.lane_there = {}  # (rank, "stage" or "mbarrier", its number): its lane
        self.operands = operands.Operands(launch)
        self.file, self.source = self.choose_source()
        self.names = self.name_mbarriers()
        self.spans = defaultdict(list)  # by warp, in the order of its program
        for event, warp, begin, end in sorted(replay.spans):
            self.spans[warp].append((event, begin, end))
        self.stalled = {(event, warp): (begin, end) for event, warp, begin, end in replay.stalls if end - begin >= SHORTEST_STALL}
        self.waited = {(event, warp): (begin, end) for event, warp, begin, end in replay.waits}
        self.landed_last = self.last_to_come()
        self.here, self.stopped_at = [], None  # what the clock adds to a report; when a check has struck
        self.lane_of = {}  # warp: of its doings
        for rank in range(launch.cluster_size):
            self.rank = rank
            self.draw_ring()
            self.draw_tensor_cores()
            self.draw_warps()
            self.draw_mbarriers()
        self.draw_where_it_ended()
        self.draw_links()
        self.segments.sort(key=lambda s: (s["a"], s["l"]))
        self.end_where_the_next_begins()

    # --- the source ---

    def choose_source(self):
        counts = Counter()
        for event in self.launch.events:
            counts[self.launch.places[event[2]][0]] += 1
        files = [file for file, _ in counts.most_common() if file]
        if not files and self.launch.diagnosis:  # it has done nothing before
            files = [self.launch.diagnosis["file"]]
        file = files[0] if files else ""
        return file, source_of(file) if file else []

    def lines_of(self, event):
        """Of the shown file, the line at which the event stands, and that which calls this, in a function."""
        file, line, called_file, called_line = self.launch.places[self.launch.events[event][2]]
        return [n for path, n in ((file, line), (called_file, called_line)) if path == self.file and n]

    def name_mbarriers(self):
        """As the source says it at mbarrier.init: full[0], full[1], ... of mbarrier_init(&full[i], 1)."""
        names, seen, at_line = {}, Counter(), Counter()
        for event in self.launch.events:
            if self.launch.kinds[event[1]] != "mbarrier init" or event[4] in names:
                continue
            file, line, *_ = self.launch.places[event[2]]
            text = self.source[line - 1] if file == self.file and 0 < line <= len(self.source) else ""
            found = re.findall(r"init\w*\s*\(\s*&?\s*(\w+)\s*(\[|\+)?", text)
            name, is_element = found[at_line[line] % len(found)] if found else (self.as_variable(event[4]), "")  # several in a line take turns
            at_line[line] += 1
            names[event[4]] = f"{name}[{seen[name]}]" if is_element else name
            seen[name] += 1
        return names

    def end_where_the_next_begins(self):
        """Of a warp's own doings: its last product is still under way when it goes on."""
        lanes = {i for i, lane in enumerate(self.lanes) if lane["g"] == "warps"}
        before = {}
        for segment in self.segments:
            if segment["l"] in lanes:
                last = before.get(segment["l"])
                if last:
                    last["b"] = max(last["a"], min(last["b"], segment["a"]))
                before[segment["l"]] = segment

    def as_variable(self, address):
        """bars[1] of 'bars (byte 8 of 16)'."""
        found = re.match(r"(\w+) \(byte (\d+) of (\d+)\)", self.launch.names.get(address, ""))
        if not found:
            return f"mbarrier at {address:,}"
        return found[1] if found[3] == "8" else f"{found[1]}[{int(found[2]) // 8}]"

    # --- blocks and warps of a cluster ---

    def warps_of(self, rank):
        return range(rank * self.launch.warps, (rank + 1) * self.launch.warps)

    def who(self, warps):
        """Their numbers in their block; which block, unless all know which."""
        warps, parts = sorted(warps), []
        for rank in sorted({warp // self.launch.warps for warp in warps}):
            mine = [warp % self.launch.warps for warp in warps if warp // self.launch.warps == rank]
            of_block = f" of block {rank}" if self.launch.cluster_size > 1 else ""
            parts.append(f"warp{'s' if len(mine) > 1 else ''} {listed(mine)}{of_block}")
        return " and ".join(parts)

    def targets(self, event):
        """Ranks of the blocks whose shared memory or mbarrier it changes."""
        kind, _, v = self.event(event)
        if kind == "bulk load":
            return [rank for rank in range(self.launch.cluster_size) if v[3] >> rank & 1]
        if kind in ("st.async", "mbarrier arrive", "mbarrier expect", *VISITS):
            return [v[3]]
        return [self.launch.events[event][0] // self.launch.warps]

    def of_others(self, ranks, own):
        """' of block 1', of blocks other than the OWN one; ' of blocks 0–1' with it."""
        if ranks == [own]:
            return ""
        return f" of block{'s' if len(ranks) > 1 else ''} {listed(ranks)}"

    def size_of(self, event):
        """Bytes that a copy brings to each block that gets them."""
        kind, lanes, v = self.event(event)
        return v[0] * bin(lanes).count("1") if kind == "st.async" else v[0]

    def link(self, event, what, number):
        """From the last segment to other blocks."""
        own = self.launch.events[event][0] // self.launch.warps
        for rank in self.targets(event):
            if rank != own and (event, rank) in self.replay.landed:
                self.links.append((self.segments[-1], (rank, what, number), self.replay.landed[event, rank]))

    def draw_links(self):
        for segment, (rank, what, number), time in self.links:
            first = next(i for i, lane in enumerate(self.lanes) if lane.get("b") == rank)
            lane, links = self.lane_there.get((rank, what, number), first), segment.setdefault("to", [])
            links[:] = [*(each for each in links if each[0] != lane), [lane, round(time, 1)]]  # the last one of those that go to one place

    # --- building ---

    def lane(self, group, name, height=18):
        self.lanes.append({"g": group, "n": name, "h": height})
        if self.launch.cluster_size > 1:
            self.lanes[-1]["b"] = self.rank
        return len(self.lanes) - 1

    def segment(self, lane, begin, end, kind, text, events=(), stage=-1, label=""):
        lines = sorted({line for event in events for line in self.lines_of(event)})
        segment = {"l": lane, "a": round(begin, 1), "b": round(end, 1), "k": kind, "t": text}
        if stage >= 0:
            segment["s"] = stage
        if lines:
            segment["i"] = lines
        if label:
            segment["c"] = label
        if shown := self.operands.of(events):
            segment["h"] = shown
        self.segments.append(segment)

    def event(self, index):
        warp, kind, place, lanes, *values = self.launch.events[index]
        return self.launch.kinds[kind], lanes, values

    def stage_of(self, index, registers):
        """Of what the event writes or reads in shared memory, -1: no stage."""
        kind, _, v = self.event(index)
        if kind in COPIES or kind == "ldmatrix" or kind == "shared load":
            stage = self.stages.at(v[2])
            if kind == "ldmatrix":
                registers[v[4] & ~1] = stage
            return stage
        if kind == "mma":
            return registers.get(v[1], -1)
        if kind == "wgmma":
            return self.stages.at(v[2])
        return -1

    # --- the ring ---

    def draw_ring(self):
        if not self.stages.ranges:
            return
        fills, reads = defaultdict(list), defaultdict(list)
        kinds = {self.event(event)[0] for event, *_ in self.replay.spans}
        readers = kinds & {"ldmatrix", "wgmma"} or {"shared load"}  # with products, other loads are the epilogue's
        for warp, spans in self.spans.items():
            is_own = warp // self.launch.warps == self.rank
            registers = {}
            for event, begin, end in spans:
                kind, _, v = self.event(event)
                stage = self.stage_of(event, registers)
                if stage < 0:
                    continue
                if kind in COPIES:
                    if self.rank in self.targets(event):
                        fills[stage].append((begin, self.replay.landed.get((event, self.rank), end), self.size_of(event), event, warp))
                elif is_own and (kind in readers or kind == "shared load" and v[2] in self.stages.sent):
                    reads[stage].append((begin, end, event, warp))
        for stage in range(len(self.stages.ranges)):
            lane = self.lane_there[self.rank, "stage", stage] = self.lane("ring", f"stage {stage}", 16)
            name = self.stages.named(stage)
            rounds = self.rounds_of(fills[stage], reads[stage])
            for copied, read in rounds:
                begin, landed = min(c[0] for c in copied), max(c[1] for c in copied)
                size = sum(c[2] for c in copied)
                events = [c[3] for c in copied]
                what = f"{several(len(copied), 'copy', 'copies')}, {size:,} bytes, by {self.who({c[4] for c in copied})}"
                self.segment(lane, begin, landed, "fill", f"{name} is filled: {what}. The last byte lands at {number(landed)}.", events, stage)
                if read:
                    since, until = min(r[0] for r in read), max(r[1] for r in read)
                    readers, warps = [r[2] for r in read], {r[3] for r in read}
                    who_reads = self.who(warps)
                    if since > landed:
                        self.segment(lane, landed, since, "full", f"{name} is full, and nobody has read of it yet.", (), stage)
                    if since < landed:
                        self.segments[-1]["b"] = round(since, 1)
                        text = f"{name} is read from {number(since)} on, before it is full: the last byte lands at {number(landed)}."
                        self.segment(lane, since, landed, "early", text, readers, stage)
                    if until > landed:
                        self.segment(lane, max(since, landed), until, "read", f"{name} is read by {several(len(read), 'instruction')} of {who_reads}.", readers, stage)

    @staticmethod
    def rounds_of(fills, reads):
        """[(copies, reads)]: a new round begins with the first copy after a read."""
        rounds = []
        for _, what, item in sorted([(f[0], 0, f) for f in fills] + [(r[0], 1, r) for r in reads]):
            if what == 0 and (not rounds or rounds[-1][1]):
                rounds.append(([], []))
            if rounds:
                rounds[-1][what].append(item)
        return [each for each in rounds if each[0]]

    # --- tensor cores ---

    def draw_tensor_cores(self):
        products = defaultdict(list)
        for warp in self.warps_of(self.rank):
            registers = {}
            for event, begin, end in self.spans[warp]:
                kind, *_ = self.event(event)
                stage = self.stage_of(event, registers)
                if kind in ("mma", "wgmma"):
                    products[warp % self.launch.warps % QUARTERS].append((begin, end, stage, warp, event))
        if not products:
            return
        for quarter in sorted(products):
            lane = self.lane("tensor", f"cores 0–{QUARTERS - 1}" if quarter == min(products) else "", 10)
            run = []
            for each in [*sorted(products[quarter]), None]:
                if run and (not each or each[2:4] != run[-1][2:4] or each[0] > run[-1][1] + 24):
                    self.segment(lane, run[0][0], run[-1][1], "product", f"Tensor core {quarter}: {several(len(run), 'product')} of {self.who([run[0][3]])}" + (f", from stage {run[0][2]}" if run[0][2] >= 0 else "") + ".", [r[4] for r in run], run[0][2])
                    run = []
                if each:
                    run.append(each)

    # --- warps ---

    def classes(self, rank):
        """Warps of a block that do the same events at the same lines, side by side in a warpgroup, are one lane."""
        if self.launch.warps <= 4:
            return [[warp] for warp in self.warps_of(rank)]
        classes = []
        for number, warp in enumerate(self.warps_of(rank)):
            does = [(self.event(e)[0], self.lines_of(e)) for e, *_ in self.spans[warp]]
            if classes and classes[-1][1] == (number // 4, does):
                classes[-1][0].append(warp)
            else:
                classes.append(([warp], (number // 4, does)))
        return [warps for warps, _ in classes]

    def draw_warps(self):
        for warps in self.classes(self.rank):
            has_background = any(self.event(e)[0] == "wgmma" for e, *_ in self.spans[warps[0]])
            numbers = [warp % self.launch.warps for warp in warps]
            lane = self.lane("warps", f"warp{'s' if len(warps) > 1 else ''} {listed(numbers)}")
            self.lane_of.update(dict.fromkeys(warps, lane))
            under_way = self.lane("warps", "  products", 8) if has_background else -1
            who = self.who(warps[:1]).capitalize()
            self.draw_warp(warps[0], lane, under_way, who if len(warps) == 1 else f"{who} (as {listed(numbers[1:])})")

    def draw_warp(self, warp, lane, under_way, who):
        registers = {}
        run, run_kind = [], None

        def flush():
            nonlocal run, run_kind
            if run:
                self.draw_run(lane, under_way, who, run_kind, run)
            run, run_kind = [], None

        for event, begin, end in self.spans[warp]:
            kind, *_ = self.event(event)
            stage = self.stage_of(event, registers)
            if (event, warp) in self.stalled:
                flush()
                since, until = self.stalled[event, warp]
                self.segment(lane, since, until, "wait-loads", f"{who} waits {number(until - since)} clocks for what it has loaded.", (event,), label="loads")
            if kind in WAITS:
                flush()
                self.draw_wait(lane, who, event, warp, begin, end)
                continue
            if kind in ARRIVALS:
                flush()
                self.draw_arrival(lane, who, event, begin)
                continue
            wanted = "copies" if kind in COPIES else "products" if kind in PRODUCTS else "background" if kind in BACKGROUND else "quiet" if kind in QUIET else "visits" if kind in VISITS else "accesses"
            if wanted == "quiet":
                if run:
                    run.append((event, begin, end, stage))
                continue
            stages = [r[3] for r in run if r[3] >= 0]
            is_other_stage = wanted not in ("accesses", "visits") and kind != "ldmatrix" and stages and stage >= 0 and stage != self.stage_of_run(run)
            is_elsewhere = run and wanted in ("copies", "visits") and self.targets(event) != self.targets(run[0][0]) and kind != "bulk load"
            if run and (wanted != run_kind or is_other_stage or is_elsewhere):
                flush()
            run.append((event, begin, end, stage))
            run_kind = wanted
        flush()

    def stage_of_run(self, run):
        """Of its products, or its copies."""
        stages = [s for e, _, _, s in run if s >= 0 and self.event(e)[0] != "ldmatrix"] or [s for *_, s in run if s >= 0]
        return stages[-1] if stages else -1

    def draw_run(self, lane, under_way, who, kind, run):
        events = [r[0] for r in run]
        counts = Counter(self.event(e)[0] for e in events)
        stage = self.stage_of_run(run)
        begin = run[0][1]
        issued = max(r[1] for r in run) + 1
        of_stage = f" of stage {stage}" if stage >= 0 else ""
        if kind == "copies":
            copies = [r for r in run if self.event(r[0])[0] in COPIES]
            size, landed = sum(self.size_of(r[0]) for r in copies), max(r[2] for r in copies)
            is_bulk = counts["bulk load"] > 0
            what = several(len(copies), "box", "boxes") if is_bulk else f"{len(copies):,} {'st.async' if counts['st.async'] else 'cp.async'}"
            own = self.launch.events[events[0]][0] // self.launch.warps
            shared = [r for r in copies if len(self.targets(r[0])) > 1]
            to = f" to stage {stage}" if stage >= 0 else ""
            if shared:
                ranks = sorted({rank for r in shared for rank in self.targets(r[0])})
                what += f", {len(shared)} of them multicast" + self.of_others(ranks, own).replace(" of", " to")
            elif self.targets(copies[0][0]) != [own]:
                to = to or " to shared memory"
                to += self.of_others(self.targets(copies[0][0]), own)
            where = ""
            if is_bulk:
                barriers = sorted({self.names.get(self.event(r[0])[2][1], "an mbarrier") for r in copies})
                where = f" They complete on {', '.join(barriers)}."
            self.segment(lane, begin, issued, "copy", f"{who} issues {what}{to}: {size:,} bytes.{where} The last byte lands at {number(landed)}, {number(landed - begin)} clocks later.", events, stage)
            for event in events:
                kind_of, _, v = self.event(event)
                if kind_of in COPIES:
                    self.link(event, *(("stage", stage) if stage >= 0 else ("mbarrier", v[1])))
        elif kind == "visits":
            of = self.of_others(self.targets(events[0]), -1)
            self.segment(lane, begin, issued, "access", f"{who}: {', '.join(f'{n:,} × {k}' for k, n in counts.items())}, shared memory{of}. The last one is over at {number(max(r[2] for r in run))}.", events)
            for event in events:
                self.link(event, "stage", self.stages.at(self.event(event)[2][2]))
        elif kind == "products":
            end = max([r[2] for r in run if self.event(r[0])[0] == "mma"] or [issued])
            if counts["mma"]:
                text = f"{who} multiplies{of_stage}: {counts['mma']:,} mma.sync"
                text += f", {counts['ldmatrix']:,} ldmatrix." if counts["ldmatrix"] else "."
                self.segment(lane, begin, end, "product", text, events, stage)
            else:
                self.segment(lane, begin, issued, "access", f"{who} loads fragments{of_stage}: {counts['ldmatrix']:,} ldmatrix.", events, stage)
        elif kind == "background":
            products = [r for r in run if self.event(r[0])[0] == "wgmma"]
            if not products:
                return
            end = max(r[2] for r in products)
            since = min(r[1] for r in products)
            text = f"{who} issues {len(products):,} wgmma{of_stage}. They are under way until {number(end)}."
            self.segment(lane, begin, issued, "issue", text, events, stage)
            self.segment(under_way, since, end, "product", f"{who}: {len(products):,} wgmma{of_stage} are under way, for {number(end - since)} clocks.", events, stage)
        else:
            end = max(r[1] for r in run) + 1
            what = ", ".join(f"{n:,} × {k}" for k, n in counts.items() if k not in QUIET)
            if what:
                self.segment(lane, begin, end, "access", f"{who}: {what}.", events, stage)

    def draw_wait(self, lane, who, event, warp, begin, end):
        kind, _, v = self.event(event)
        begin, end = self.waited.get((event, warp), (begin, begin))
        length = end - begin
        how_long = f"waits {number(length)} clocks" if length else "need not wait"
        if kind == "barrier":
            text = f"{who} {how_long} at __syncthreads{self.who_was_last(event, end)}." if length else f"{who} is the last to come to __syncthreads."
            label = "barrier"
        elif kind == "named barrier":
            if not v[2]:
                self.segment(lane, begin, begin, "mark", f"{who} arrives at barrier {v[0]}, and goes on.", (event,))
                return
            text = f"{who} {how_long} at barrier {v[0]}, for {v[1]} threads."
            label = f"barrier {v[0]}"
        elif kind == "mbarrier wait":
            name = self.names.get(v[0], f"mbarrier {v[0]}")
            seen = v[2] if v[2] < 1 << 63 else -1  # by the interpreter, which may have let other warps run ahead
            phase = self.phase_waited_for(warp, v[0], v[1], end, seen)
            which = f"phase {phase}, parity {v[1]}" if phase >= 0 else f"parity {v[1]}, which counts as over before the first phase"
            text = f"{who} {how_long} for {name}, {which}" + self.landed_last.get((warp // self.launch.warps, v[0], phase), "") + "."
            if phase != seen:
                text += f" In the interpreter's order phase {seen} was over already, which has this parity, too." if seen > phase else f" In the interpreter's order it was {f'phase {seen}' if seen >= 0 else 'before the first phase'}, which has this parity, too."
            label = name
        elif kind == "cluster wait":
            text = f"{who} {how_long} at the cluster's barrier."
            label = "cluster"
        elif kind == "launch wait":
            text = f"{who} waits until the launches before this one are over." if length else f"{who} would wait for the launches before this one: none is under way."
            label = "launch"
        elif kind == "copy wait":
            text = f"{who} {how_long} until at most {several(v[0], 'group')} of its copies {'is' if v[0] == 1 else 'are'} under way."
            label = "copies"
        elif kind == "bulk wait":
            text = f"{who} {how_long} until at most {several(v[0], 'group')} of its stores {'is' if v[0] == 1 else 'are'} under way" + (", or read." if v[1] else ".")
            label = "stores"
        else:
            text = f"{who} {how_long} until at most {several(v[0], 'group')} of its products {'is' if v[0] == 1 else 'are'} under way."
            label = "products"
        self.segment(lane, begin, end, f"wait-{WAITS[kind]}" if length else "mark", text, (event,), label=label if length else "")
        if kind == "mbarrier wait":
            self.segments[-1]["p"] = 1  # the page says what a parity is

    def phase_waited_for(self, warp, address, parity, end, seen):
        """Of the mbarrier of the warp's block, the phase of that parity which is over when the wait is, at END; -1: that counts as over before the
        first one; SEEN, the interpreter's, if the wait does not end."""
        barrier = self.replay.blocks[warp // self.launch.warps].mbarriers.get(address)
        if not barrier:
            return seen
        over = [phase for phase, _, until, *_ in barrier.phases if until <= end]
        under_way = len(over)
        if under_way & 1 == parity:
            return seen
        return under_way - 1

    def who_was_last(self, event, end):
        """Of a barrier that is over at END."""
        mine = self.warps_of(self.rank)
        last = [warp for other, warp, begin, over in self.replay.spans if begin == over == end and warp in mine and self.event(other)[0] == "barrier"]
        return f", for {self.who(last)} to come" if last else ""

    def draw_arrival(self, lane, who, event, begin):
        kind, lanes, v = self.event(event)
        if kind == "launch hint":
            return self.segment(lane, begin, begin, "mark", f"{who} says that the next launch may begin, once all blocks have said so.", (event,))
        (rank,) = self.targets(event)
        name = self.names.get(v[0], f"mbarrier {v[0]}") + self.of_others([rank], self.launch.events[event][0] // self.launch.warps)
        if kind == "cluster arrive":
            text = f"{who} arrives at the cluster's barrier, and goes on."
        elif kind == "mbarrier arrive":
            count = v[1] * bin(lanes).count("1")
            lane_alone = f" by lane {lanes.bit_length() - 1} alone" if lanes & (lanes - 1) == 0 else ""
            text = f"{who} arrives at {name}, {several(count, 'arrival')}{lane_alone}" + (f", and says that {v[2]:,} bytes are to come." if v[2] else ".")
        elif kind == "mbarrier init":
            text = f"{who} initialises {name}, for {several(v[1], 'arrival')} in each phase."
        elif kind == "mbarrier expect":
            text = f"{who} says that {v[2]:,} bytes are to come at {name}."
        else:
            text = f"{who}: the phase of {name} waits for the copies that it has issued so far."
        self.segment(lane, begin, begin, "mark", text, (event,))
        self.link(event, "mbarrier", v[0])

    # --- mbarriers ---

    def last_to_come(self):
        """By (rank, mbarrier, phase), what it was that came last."""
        last = {}
        for block in self.replay.blocks:
            for address, barrier in block.mbarriers.items():
                for phase, _, end, arrived, landed, _ in barrier.phases:
                    if landed and landed[-1][0] == end:
                        last[block.rank, address, phase] = f": the last of its bytes lands at {number(end)}"
                    elif arrived:
                        last[block.rank, address, phase] = f": {self.who([arrived[-1][1]])} arrives last, at {number(arrived[-1][0])}"
        return last

    def draw_mbarriers(self):
        barriers = self.replay.blocks[self.rank].mbarriers
        for address in sorted(barriers):
            barrier, name = barriers[address], self.names.get(address, f"mbarrier {address}")
            lane = self.lane_there[self.rank, "mbarrier", address] = self.lane("mbarriers", name, 16)
            under_way = (barrier.phase, barrier.begun, self.replay.clocks, barrier.arrived, barrier.landed, barrier.expected)
            for phase, begin, end, arrived, landed, expected in [*barrier.phases, under_way]:
                which = f"phase {phase}, parity {phase & 1}"
                events = [event for *_, event in arrived]
                warps = {w for _, w, _, _ in arrived}
                come = sum(count for _, _, count, _ in arrived)
                text = f"{name}, {which}: {come} of {several(barrier.arrivals, 'arrival')}" + (f", {come - barrier.arrivals} too many" if come > barrier.arrivals else "")
                if warps:
                    text += f", of {self.who(warps)}"
                if phase == barrier.phase and warps and self.is_stuck():
                    text += self.not_of(address, warps)
                if expected or landed:
                    text += f"; {sum(size for _, size in landed):,} " + (f"of {expected:,} bytes" if expected else "bytes that nobody has announced")
                text += f". It is over at {number(end)}." if phase < barrier.phase else ". It is not over when the picture ends."
                self.segment(lane, begin, end, f"phase{phase & 1}", text, events, label=f"{phase}")
                come = 0
                for time, warp, count, event in arrived:
                    come += count
                    is_surplus = come > barrier.arrivals
                    too_many = ", more than the phase waits for" if is_surplus else ""
                    self.segment(lane, time, time, "surplus" if is_surplus else "arrival", f"{name}, {which}: arrival {come} of {barrier.arrivals}{too_many}, of {self.who([warp])}.", (event,))
                come = 0
                for time, size in landed:
                    come += size
                    of_all = f"so far {come:,} of {expected:,}" if expected else "though nobody has announced any in this phase"
                    self.segment(lane, time, time, "bytes", f"{name}, {which}: {size:,} bytes have landed, {of_all}.")

    def is_stuck(self):
        return bool(self.launch.diagnosis) and "deadlock" in self.launch.diagnosis["what"]

    def not_of(self, address, warps):
        """'; not of warp 3': who is missing, if that is known. Who arrives at an mbarrier does so at all of its name; or all warps of a block do."""
        barriers = self.replay.blocks[self.rank].mbarriers
        alike = [other for other in barriers if self.names.get(other, "").split("[")[0] == self.names.get(address, "").split("[")[0]]
        of_each = [(warp, count) for other in alike for phase in [(barriers[other].arrived), *(each[3] for each in barriers[other].phases)] for _, warp, count, _ in phase]
        everybody = {warp for warp, _ in of_each}
        if len(everybody) < barriers[address].arrivals == self.launch.warps and self.launch.cluster_size == 1:
            everybody = set(self.warps_of(self.rank))
        if len(everybody) != barriers[address].arrivals or any(count != 1 for _, count in of_each) or everybody <= warps:
            return ""
        return f"; not of {self.who(everybody - warps)}"

    # --- in numbers ---

    def shares(self):
        """[(lane's name, {what: share of the block's time})]."""
        clocks, rows = self.replay.clocks or 1, []
        for warps in (warps for rank in range(self.launch.cluster_size) for warps in self.classes(rank)):
            waits = Counter()
            for event, warp, begin, end in self.replay.waits:
                if warp == warps[0]:
                    waits[WAITS[self.event(event)[0]]] += end - begin
            waits["loads"] = sum(end - begin for (_, warp), (begin, end) in self.stalled.items() if warp == warps[0])
            rows.append((self.who(warps), {k: v / clocks for k, v in waits.items()}))
        return rows

    def tensor_share(self):
        return self.replay.tensor_busy / QUARTERS / self.launch.cluster_size / (self.replay.clocks or 1)

    def tensor_idle(self):
        """(before the first product, between products, after the last one), as shares of the block's time."""
        clocks = self.replay.clocks or 1
        products = [(begin, end) for event, _, begin, end in self.replay.spans if self.event(event)[0] in ("mma", "wgmma")]
        before, after = min(p[0] for p in products) / clocks, 1 - max(p[1] for p in products) / clocks
        return before, max(0.0, 1 - before - after - self.tensor_share()), after

    # --- what a check has ended ---

    def in_our_words(self, text):
        """Of a report: mbarriers by their names in the source, parts of shared memory by their stage, threads by their warps too."""

        def name(found):
            at = int(found[1])  # addresses of shared memory begin with what is dynamic
            stage = self.stages.at(at)
            return f"stage {stage} (byte {at:,})" if stage >= 0 and at < self.stages.ranges[stage][1] else found[0]

        def warp_of(found):
            linear = self.linear(*map(int, found.group(1, 2, 3)))
            return f"{found[0]} (warp {linear // 32}, lane {linear % 32})"

        text = re.sub(r"thread \((\d+),(\d+),(\d+)\)", warp_of, text)
        for address, described in self.launch.names.items():
            text = text.replace(described, self.names.get(address, described))
        text = re.sub(r"which lacks 0 bytes and (?=\d)", "which lacks ", text)
        return re.sub(r"dynamic shared memory \(byte (\d+) of \d+\)", name, text.replace(ROOT + os.sep, ""))

    def linear(self, x, y, z):
        wide, high, _ = self.launch.block
        return x + wide * (y + high * z)

    def lines_of_diagnosis(self):
        found = self.launch.diagnosis
        called_in = found.get("called_in") or found["file"]
        return [n for path, n in ((found["file"], found["line"]), (called_in, found.get("called_at", 0))) if path == self.file and n]

    def diagnosis(self):
        found = self.launch.diagnosis
        if not found:
            return None
        lines = self.lines_of_diagnosis()
        who = f"warp {found['warp']}, lane {found['lane']}" if found.get("warp", -1) >= 0 else ""
        if who and "this thread" in found["what"] + found["expected"]:
            who += " (this thread)"
        if who and self.launch.cluster_size > 1:
            who += f", of block {found['rank']}"
        at = f"line {lines[0]}" + (f", called at line {lines[1]}" if len(lines) > 1 else "") if lines else ""
        shown = "the first one, which is" if self.launch.cluster_size == 1 else "those of the first cluster, which are"
        block = "" if found["rank"] >= 0 else f"in another block than {shown} shown here"
        where = ", ".join(each for each in (who, at, block) if each)
        return {"check": found["check"], "where": where, **{key: self.in_our_words(found[key]) for key in ("what", "expected")}, "here": " ".join(self.here)}

    def ends_at(self, warp):
        """When the warp comes to what it has not done any more."""
        return max([(end if self.event(event)[0] in WAITS else begin) + 1 for event, begin, end in self.spans[warp]], default=0)

    def draw_where_it_ended(self):
        """In the lane of the warp that a check has stopped; a deadlock's warps wait to the end of the picture."""
        found = self.launch.diagnosis
        if not found or found["rank"] < 0:
            return
        warp = found.get("warp", -1)
        if warp >= 0:
            warp += found["rank"] * self.launch.warps
        stuck = self.stuck(found["what"])
        lanes = {self.lane_of[each]: each for each in reversed(stuck)}
        for lane, each in lanes.items():
            line, what = stuck[each]
            begin = self.ends_at(each)
            if begin > self.replay.clocks:  # at a barrier, it waits to the end already
                segment = [s for s in self.segments if s["l"] == lane][-1]
            else:
                self.segment(lane, begin, self.replay.clocks, "wait-ever", "", label="for ever")
                segment = self.segments[-1]
            segment["t"] = f"{self.who([each]).capitalize()} waits for ever, {what}{self.who_has_come(each, what)}"
            segment["i"] = [line] if line else []
            if lane == self.lane_of.get(warp):
                segment["stop"] = 1
        if warp in self.lane_of and warp not in stuck:
            begin = self.ends_at(warp)
            self.stopped_at = begin
            self.segment(self.lane_of[warp], begin, begin, "stop", f"Here {found['check']} has stopped lane {found['lane']} of {self.who([warp])}. The report says why.")
            self.segments[-1].update({"i": self.lines_of_diagnosis(), "stop": 1})
            self.draw_other_access(warp, self.segments[-1])

    def who_has_come(self, warp, what):
        """To the mbarrier for whose phase the warp waits for ever, and who has not."""
        found = re.search(r" for phase (\d+) of ([^,]+), which lacks", what)
        rank = warp // self.launch.warps
        for address, barrier in self.replay.blocks[rank].mbarriers.items():
            if found and self.names.get(address) == found[2] and barrier.phase == int(found[1]) and barrier.arrived:
                self.rank, warps = rank, {each for _, each, *_ in barrier.arrived}
                said = f" Arrived: {self.who(warps)}{self.not_of(address, warps).replace(' of warp', ' warp')}."
                self.here += [f"{found[2]}, phase {found[1]}.{said}"] if self.not_of(address, warps) and not self.here else []
                return said
        return ""

    def other_access(self, stop):
        """(event, (begin, end), how many it may be) of the access that a race's report names beside that of the thread which is stopped, None: it
        is not known. Of several copies of its line to its place, the first one that is not over at STOP, on the clock."""
        found = self.launch.diagnosis
        named = re.search(r"(?: thread \((\d+),(\d+),(\d+)\)| issued) at (.+?):(\d+)", found["what"])
        if not found["what"].startswith("race on ") or not named:
            return None
        is_copy, line, file = named[1] is None, int(named[5]), named[4]
        thread = -1 if is_copy else self.linear(*map(int, named.group(1, 2, 3)))
        of_stage = re.match(r"race on stage (\d+)\b", self.in_our_words(found["what"]))
        times = {event: (begin, end) for event, _, begin, end in self.replay.spans}
        possible = []
        for event, (warp, kind, place, lanes, *v) in enumerate(self.launch.events):
            kind, places = self.launch.kinds[kind], self.launch.places[place]
            is_there = any(n == line and path and (path.endswith(file) or file.endswith(path)) for path, n in (places[:2], places[2:4]))
            if not is_there or event not in times or is_copy != (kind in COPIES):
                continue
            if not is_copy and (warp != thread // 32 + found["rank"] * self.launch.warps or not lanes >> thread % 32 & 1):
                continue
            if of_stage and (is_copy or kind in ("ldmatrix", "shared load")) and self.stages.at(v[2]) != int(of_stage[1]):
                continue
            possible.append(event)
        if not possible:
            return None
        later = [event for event in possible if times[event][1] > stop] if is_copy else []
        chosen = later[0] if later else possible[-1]
        return chosen, times[chosen], len(possible)

    def draw_other_access(self, warp, stop):
        """That of the report which came first on the interpreter: framed, and linked with the cross."""
        other = self.other_access(stop["a"])
        if not other:
            return
        event, (begin, end), count = other
        whose, kind = self.launch.events[event][0], self.event(event)[0]
        lane = self.lane_of[whose]
        drawn = self.nearest(lane, begin)
        if not drawn:
            return
        what = "copy" if kind in COPIES else "access"
        thread = re.search(r" thread \((\d+),(\d+),(\d+)\) at ", self.launch.diagnosis["what"])
        its_lane = self.linear(*map(int, thread.group(1, 2, 3))) % 32 if thread else -1
        says = f"The report's first {what} {'is' if count == 1 else f'is one of {count} of its line, perhaps'} that of {f'lane {its_lane} of ' if its_lane >= 0 else ''}{self.who([whose])} at clock {number(begin)}, which has a red frame."
        if begin > stop["a"]:
            says += f" On the clock it comes {number(begin - stop['a'])} clocks after the cross. The interpreter let {self.who([whose])} run ahead, so in its order it came before. Nothing orders the two: either may be first."
        drawn["f"], stop["w"] = 1, [lane, drawn["a"]]
        stop["t"] = stop["t"].replace("The report says why.", says)
        drawn["t"] += f" A red frame: this {'is' if count == 1 else 'may be'} the {what} that the report names first; the cross is at {number(stop['a'])}, in the lane of {self.who([warp])}." + (f" In the interpreter's order this came before that; {self.who([whose])} ran ahead." if begin > stop["a"] else "")
        self.here.append(says)
        stage = self.stages.at(self.event(event)[2][2]) if kind in COPIES or kind in ("ldmatrix", "shared load") else -1
        for rank in self.targets(event) if kind in COPIES else [whose // self.launch.warps]:
            ring = self.nearest(self.lane_there.get((rank, "stage", stage), -1), begin, ("fill",) if kind in COPIES else ("read", "early"))
            if ring:
                ring["f"] = 1
        if its_lane >= 0 and whose == warp:
            self.draw_lane_that_is_not_spoken_for(event, warp, its_lane)

    def nearest(self, lane, time, kinds=()):
        """The last segment of the lane that has begun at TIME, with no end before it."""
        mine = [s for s in self.segments if s["l"] == lane and s["k"] != "stop" and (not kinds or s["k"] in kinds) and s["a"] <= round(time, 1) <= s["b"]]
        return max(mine, key=lambda s: s["a"]) if mine else None

    def draw_lane_that_is_not_spoken_for(self, event, warp, lane):
        """Of two lanes of a warp: after EVENT of one of them, the other one arrives without it."""
        stopped = self.launch.diagnosis["lane"]
        for later in range(event + 1, len(self.launch.events)):
            whose, kind, _, lanes, *v = self.launch.events[later]
            if whose != warp or self.launch.kinds[kind] != "mbarrier arrive" or lanes >> lane & 1 or not lanes >> stopped & 1:
                continue
            begin = next((begin for each, begin, _ in self.spans[warp] if each == later), None)
            arrival = self.nearest(self.lane_of[warp], begin, ("mark",)) if begin is not None else None
            if arrival:
                says = f"Lane {stopped} arrives for {self.who([warp])} at {self.names.get(v[0], 'an mbarrier')}, at clock {number(begin)}. Lane {lane} has not synchronised with it since its access, so this arrival does not speak for lane {lane}."
                arrival["f"] = 1
                arrival["t"] += f" Lane {lane} has not synchronised with lane {stopped} since the access that the report names: this arrival does not speak for it."
                self.here.append(says)
            return

    def stuck(self, text):
        """{warp: (line, what for)} of a report of a deadlock in the block, or in the cluster, that is shown. It names the first thread of each
        group that waits, and how many there are: others may have ended. So the groups' other warps are known only if all threads wait, in
        groups side by side."""
        if not text.startswith("deadlock: block "):
            return {}
        stuck, cluster = {}, self.launch.cluster
        for found in re.finditer(r"block \((\d+),(\d+),(\d+)\): (.*?)(?=; block \(|$)", text):
            at = [int(found[i]) - self.launch.first[i - 1] for i in (1, 2, 3)]
            if all(0 <= i < extent for i, extent in zip(at, cluster)):
                rank = at[0] + cluster[0] * (at[1] + cluster[1] * at[2])
                stuck.update({rank * self.launch.warps + warp: what for warp, what in self.stuck_in_block(found[4]).items()})
        return stuck

    def stuck_in_block(self, text):
        groups = []
        for found in re.finditer(r"(?:(\d+) threads \(the first: |thread )\((\d+),(\d+),(\d+)\)\)? waits? (in .*?) at ([^ ;]+):(\d+)([^;]*)", text):
            first = self.linear(*map(int, found.group(2, 3, 4)))
            line = int(found[7]) if found[6] == os.path.basename(self.file or "") else 0
            groups.append((first, int(found[1] or 1), (line, self.in_our_words(found[5] + found[8] + "."))))
        ends = [first + count for first, count, _ in groups]
        all_wait = [0, *ends] == [*(first for first, *_ in groups), math.prod(self.launch.block)]
        stuck = {}
        for first, count, what in groups:
            for warp in range(first // 32, (first + (count if all_wait else 1) - 1) // 32 + 1):
                stuck.setdefault(warp, what)
        return stuck

    def notes(self):
        """What the heading says of a launch that cannot show all that matters."""
        kinds = {self.launch.kinds[event[1]] for event in self.launch.events}
        if "launch wait" in kinds and not self.replay.launch_before:
            return ["No launch before this one is drawn, so griddepcontrol.wait waits for nothing here: what a dependent launch gains, between two launches, is not on this page."]
        return []

    def document(self):
        return {
            "title": self.title,
            "kernel": self.launch.kernel,
            "clocks": round(self.replay.clocks, 1),
            "lanes": self.lanes,
            "stages": len(self.stages.ranges),
            "segments": self.segments,
            "file": shortened(self.file) if self.file else "",
            "source": self.source,
            "accesses": [{**each.document(), "i": self.lines_of(each.index)} for each in accesses.distinct(self.launch)],
            "operands": self.operands.documents,
            "diagnosis": self.diagnosis(),
            "whole": self.launch.is_whole,
        }
