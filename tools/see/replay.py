"""A clock for what the interpreter recorded: each warp runs its events in order, under a cost model.

The interpreter orders a warp's events, not those of two warps. Barriers, mbarriers and groups do; here they do it again, with times: an
mbarrier counts arrivals and bytes, and who waits for its phase goes on when it is over. So the picture is what the kernel's own waits make
of the costs, and nothing is drawn by hand.
"""

import heapq
import json
from collections import defaultdict

from .cost import QUARTERS

WARP = 32


class Unable(Exception):
    """There is no picture of this; the message says why."""


class Launch:
    """A line of the events' file."""

    def __init__(self, document):
        self.kernel, self.grid, self.block = document["kernel"], document["grid"], document["block"]
        self.cluster, self.shared_bytes = document["cluster"], document["shared_bytes"]
        self.is_whole, self.diagnosis = document["whole"], document.get("diagnosis")
        self.kinds, self.places = document["kinds"], document["places"]
        self.names = {int(address): name for address, name in document["names"].items()}
        self.events, self.addresses = document["events"], document["addresses"]
        self.warps = (self.block[0] * self.block[1] * self.block[2] + WARP - 1) // WARP
        self.blocks = self.grid[0] * self.grid[1] * self.grid[2]

    def programs(self):
        """By warp, [(its number in events, kind, lanes, a, b, c, d, e)]. A warp whose lanes come to a barrier or to the end of a wait one
        after the other has come when the last one has."""
        programs = [[] for _ in range(self.warps)]
        for number, (warp, kind, _, lanes, *values) in enumerate(self.events):
            programs[warp].append([number, self.kinds[kind], lanes, *values])
        return [together(program) for program in programs]


# Who comes there has used what it has loaded from shared memory: others may overwrite it then.
AFTER_LOADS = {"barrier", "named barrier", "mbarrier arrive"}
# An event of these is the whole warp's.
OF_WARP = {"barrier", "mbarrier wait", "copy wait", "copy commit", "named barrier", "bulk wait"}


def together(program):
    """Of parts of a warp that do the same, the last one stays, and stands for all. Never two of one lane."""
    kept, last = [], {}
    for op in program:
        kind, lanes = op[1], op[2]
        if kind in OF_WARP and lanes != 0xFFFFFFFF:
            key = (kind, *op[3:])
            before = last.get(key)
            if before and not before[2] & lanes:
                kept.remove(before)
                op[2] |= before[2]
            last[key] = op
        kept.append(op)
    return kept


def lanes_of(op):
    return bin(op[2]).count("1")


def read(path):
    with open(path, encoding="utf-8") as file:
        return [Launch(json.loads(line)) for line in file]


class Mbarrier:
    def __init__(self):
        self.arrivals = self.pending = 1
        self.bytes = 0
        self.phase, self.begun = 0, 0.0
        self.waiters = []
        self.arrived, self.landed, self.expected = [], [], 0
        self.phases = []  # that are over


class Warp:
    def __init__(self, block, number, program):
        self.block, self.number, self.program = block, number, program
        self.at = 0  # of the program
        self.loads = self.shared = 0.0  # when what was asked for is in registers
        self.registers = {}  # depth: when ldmatrix has filled them
        self.copies, self.groups = 0.0, []  # landed: what no group has yet; each group
        self.products, self.product_groups = 0.0, []
        self.stores, self.store_groups = (0.0, 0.0), []  # (read, written)


class Block:
    def __init__(self, number, launch, programs):
        self.number, self.live = number, launch.warps
        self.warps = [Warp(self, w, program) for w, program in enumerate(programs)]
        self.at_barrier = []
        self.mbarriers = defaultdict(Mbarrier)
        self.named = defaultdict(list)  # number: [(lanes, warp or None)]
        self.ended = 0.0


class Replay:
    """Of a launch's first block on an SM with RESIDENT - 1 others that do the same. `spans` has what block 0 did:
    (event, warp, begin, end), begin when it could issue, end when it was done; `waits` what its warps waited for, the same; `stalls` how long
    an event waited for the warp's own loads."""

    def __init__(self, launch, costs, resident=1):
        if launch.cluster != [1, 1, 1]:
            raise Unable("its blocks work together in clusters, and what one sees of the others is not drawn yet")
        self.launch, self.costs, self.resident = launch, costs, resident
        self.quarter_issue = [0.0] * QUARTERS
        self.tensor = [0.0] * QUARTERS  # when each is free
        self.tensor_busy = 0.0  # block 0's, all together
        self.shared_port = self.inward = self.outward = 0.0
        self.spans, self.waits, self.stalls = [], [], []
        self.queue, self.order = [], 0
        programs = launch.programs()
        self.blocks = [Block(b, launch, programs) for b in range(resident)]
        self.run()
        self.clocks = max([self.blocks[0].ended, *(span[3] for span in self.spans)])
        self.draw_out_waits()
        self.all_clocks = max(block.ended for block in self.blocks)

    # --- time ---

    def at(self, time, what, *arguments):
        self.order += 1
        heapq.heappush(self.queue, (time, self.order, what, arguments))

    def run(self):
        for block in self.blocks:
            for warp in block.warps:
                self.at(0.0, self.step, warp)
        while self.queue:
            time, _, what, arguments = heapq.heappop(self.queue)
            what(time, *arguments)
        if any(block.live for block in self.blocks):
            if not self.launch.diagnosis and self.launch.is_whole:
                raise Unable("warps wait for ever under the cost model, as they have not on the interpreter. Who is faster may decide; with --order random:2 a check may say why")

    def draw_out_waits(self):
        """Who waits in vain does so to the end."""
        block = self.blocks[0]
        come = [*block.at_barrier, *(each for barrier in block.mbarriers.values() for each in barrier.waiters)]
        come += [each for waiting in block.named.values() for each in waiting if each[2][5]]
        for since, warp, op in come:
            self.span(warp, op, since, self.clocks)
            self.waits.append((op[0], warp.number, since, self.clocks))

    def step(self, time, warp):
        """The warp's next event, which may begin at TIME."""
        if warp.at == len(warp.program):
            return self.end(time, warp)
        op = warp.program[warp.at]
        method = self.KINDS[op[1]]
        quarter = warp.number % QUARTERS
        issued = max(time, self.quarter_issue[quarter])
        self.quarter_issue[quarter] = issued + 1
        if issued > time and len(self.queue) and self.queue[0][0] < issued:  # others come first
            self.quarter_issue[quarter] = issued
            return self.at(issued, self.step, warp)
        if op[1] in AFTER_LOADS and warp.shared > issued:  # arithmetic, which is no event, has used them
            done, warp.shared = self.stall(warp, op, issued, warp.shared), 0.0
            return self.go_on(done, warp)
        warp.at += 1
        method(self, issued, warp, op)

    def go_on(self, time, warp):
        self.at(time, self.step, warp)

    def end(self, time, warp):
        block = warp.block
        block.live -= 1
        block.ended = max(block.ended, time, warp.loads, warp.copies)
        if block.live and len(block.at_barrier) == block.live:
            self.release(time, block)

    def span(self, warp, op, begin, end):
        if warp.block.number == 0:
            self.spans.append((op[0], warp.number, begin, end))

    def wait(self, warp, op, begin, end):
        """The warp goes on at END."""
        self.span(warp, op, begin, end)
        if end > begin and warp.block.number == 0:
            self.waits.append((op[0], warp.number, begin, end))
        self.go_on(max(begin, end) + 1, warp)

    def stall(self, warp, op, time, begin):
        """@return BEGIN, or TIME if that is later: when what the warp has loaded is there"""
        if begin > time and warp.block.number == 0:
            self.stalls.append((op[0], warp.number, time, begin))
        return max(time, begin)

    # --- memory ---

    def fetch(self, time, size):
        """@return when the last of SIZE bytes has come to the SM"""
        self.inward = max(self.inward, time) + size / self.costs.l2
        return self.inward + self.costs.dram_latency

    def send(self, time, size):
        self.outward = max(self.outward, time) + size / self.costs.l2
        return self.outward

    def through_shared(self, time, wavefronts):
        self.shared_port = max(self.shared_port, time) + wavefronts
        return self.shared_port + self.costs.shared_latency

    def needed(self, warp):
        """When the registers are there that the warp has loaded so far."""
        return max(warp.loads, warp.shared)

    def global_load(self, time, warp, op):
        landed = self.fetch(time, op[4] * 32)
        warp.loads = max(warp.loads, landed)
        self.span(warp, op, time, landed)
        self.go_on(time + 1, warp)

    def global_store(self, time, warp, op):
        begin = self.stall(warp, op, time, self.needed(warp))
        self.span(warp, op, begin, self.send(begin, op[4] * 32) + self.costs.l2_latency)
        self.go_on(begin + 1, warp)

    def shared_load(self, time, warp, op):
        ready = self.through_shared(time, op[4])
        warp.shared = max(warp.shared, ready)
        self.span(warp, op, time, ready)
        self.go_on(time + 1, warp)

    def shared_store(self, time, warp, op):
        begin = self.stall(warp, op, time, warp.loads)
        self.span(warp, op, begin, self.through_shared(begin, op[4]))
        self.go_on(begin + 1, warp)

    def shared_atomic(self, time, warp, op):
        begin = self.stall(warp, op, time, self.needed(warp))
        warp.shared = max(warp.shared, self.through_shared(begin, op[4]))
        self.span(warp, op, begin, warp.shared)
        self.go_on(begin + 1, warp)

    def matrix_load(self, time, warp, op):
        ready = self.through_shared(time, op[4])
        warp.registers[op[7] & ~1] = ready
        self.span(warp, op, time, ready)
        self.go_on(time + 1, warp)

    # --- copies ---

    def copy(self, time, warp, op):
        landed = self.fetch(time, op[6])
        warp.copies = max(warp.copies, landed)
        self.span(warp, op, time, landed)
        self.go_on(time + 1, warp)

    def copy_commit(self, time, warp, op):
        warp.groups.append(warp.copies)
        warp.copies = 0.0
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def copy_wait(self, time, warp, op):
        over = warp.groups[: len(warp.groups) - op[3]]
        self.wait(warp, op, time, max([time, *over]))

    def bulk_load(self, time, warp, op):
        landed = self.fetch(time, op[3])
        self.span(warp, op, time, landed)
        self.at(landed, self.land, warp.block, op[4], op[3])
        self.go_on(time + 1, warp)

    def bulk_store(self, time, warp, op):
        read = self.send(time, op[3])
        written = read + self.costs.l2_latency
        warp.stores = (max(warp.stores[0], read), max(warp.stores[1], written))
        self.span(warp, op, time, written)
        self.go_on(time + 1, warp)

    def bulk_commit(self, time, warp, op):
        warp.store_groups.append(warp.stores)
        warp.stores = (0.0, 0.0)
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def bulk_wait(self, time, warp, op):
        over = warp.store_groups[: len(warp.store_groups) - op[3]]
        self.wait(warp, op, time, max([time, *(group[0 if op[4] else 1] for group in over)]))

    # --- mbarriers ---

    def mbarrier_init(self, time, warp, op):
        barrier = warp.block.mbarriers[op[3]] = Mbarrier()
        barrier.arrivals = barrier.pending = op[4]
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def mbarrier_arrive(self, time, warp, op):
        barrier = warp.block.mbarriers[op[3]]
        count = op[4] * lanes_of(op)
        self.expect(time, barrier, op[5] * lanes_of(op))
        barrier.pending -= count
        barrier.arrived.append((time, warp.number, count, op[0]))
        self.span(warp, op, time, time)
        self.advance(time, warp.block, op[3])
        self.go_on(time + 1, warp)

    def mbarrier_expect(self, time, warp, op):
        self.expect(time, warp.block.mbarriers[op[3]], op[5] * lanes_of(op))
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def expect(self, _, barrier, size):
        barrier.bytes += size
        barrier.expected += size

    def copy_arrive(self, time, warp, op):
        """The phase ends after the copies that the warp has begun so far: an arrival more, when they have landed."""
        warp.block.mbarriers[op[3]].pending += 1
        self.span(warp, op, time, time)
        self.at(max([time, warp.copies, *warp.groups]), self.landed_own, warp.block, op[3])
        self.go_on(time + 1, warp)

    def landed_own(self, time, block, address):
        block.mbarriers[address].pending -= 1
        self.advance(time, block, address)

    def land(self, time, block, address, size):
        barrier = block.mbarriers[address]
        barrier.bytes -= size
        barrier.landed.append((time, size))
        self.advance(time, block, address)

    def advance(self, time, block, address):
        barrier = block.mbarriers[address]
        if barrier.pending or barrier.bytes:
            return
        barrier.phases.append((barrier.phase, barrier.begun, time, barrier.arrived, barrier.landed, barrier.expected))
        barrier.phase += 1
        barrier.begun = time
        barrier.pending, barrier.arrived, barrier.landed, barrier.expected = barrier.arrivals, [], [], 0
        waiters, barrier.waiters = barrier.waiters, []
        for since, warp, op in waiters:
            self.wait(warp, op, since, time)

    def mbarrier_wait(self, time, warp, op):
        barrier = warp.block.mbarriers[op[3]]
        if barrier.phase & 1 != op[4]:
            self.wait(warp, op, time, time)
        else:
            barrier.waiters.append((time, warp, op))

    # --- products ---

    def mma(self, time, warp, op):
        filled = warp.registers.get(op[4])
        if filled is None:  # from elsewhere
            filled = max(warp.registers.values(), default=0.0)
        begin = self.stall(warp, op, time, max(self.needed(warp), filled))
        quarter = warp.number % QUARTERS
        if begin > time and self.queue and self.queue[0][0] < begin:  # the tensor core is another warp's until then
            warp.at -= 1
            return self.go_on(begin, warp)
        begin = max(begin, self.tensor[quarter])
        self.tensor[quarter] = begin + self.costs.mma * op[3] / 4096
        self.note_product(warp, op, begin, self.tensor[quarter])
        self.go_on(max(begin, time) + 1, warp)

    def wgmma(self, time, warp, op):
        quarter = warp.number % QUARTERS
        begin = max(time, self.tensor[quarter])
        self.tensor[quarter] = begin + op[3] / self.costs.wgmma
        warp.products = max(warp.products, self.tensor[quarter])
        self.note_product(warp, op, begin, self.tensor[quarter])
        self.go_on(time + 1, warp)

    def note_product(self, warp, op, begin, end):
        self.span(warp, op, begin, end)
        if warp.block.number == 0:
            self.tensor_busy += end - begin

    def wgmma_commit(self, time, warp, op):
        warp.product_groups.append(warp.products)
        warp.products = 0.0
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def wgmma_wait(self, time, warp, op):
        over = warp.product_groups[: len(warp.product_groups) - op[3]]
        self.wait(warp, op, time, max([time, *over]))

    # --- barriers ---

    def barrier(self, time, warp, op):
        warp.block.at_barrier.append((time, warp, op))
        if len(warp.block.at_barrier) == warp.block.live:
            self.release(time, warp.block)

    def release(self, time, block):
        come, block.at_barrier = block.at_barrier, []
        for since, warp, op in come:
            self.wait(warp, op, since, time)

    def named_barrier(self, time, warp, op):
        here = warp.block.named[op[3]]
        here.append((time, warp, op))
        if not op[5]:
            self.span(warp, op, time, time)
            self.go_on(time + 1, warp)
        if len(here) * WARP < op[4]:
            return
        warp.block.named[op[3]] = []
        for since, other, theirs in here:
            if theirs[5]:
                self.wait(other, theirs, since, time)

    def nothing(self, time, warp, op):
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    KINDS = {
        "global load": global_load, "global store": global_store, "global atomic": global_load,
        "shared load": shared_load, "shared store": shared_store, "shared atomic": shared_atomic,
        "ldmatrix": matrix_load, "stmatrix": shared_store,
        "copy": copy, "copy commit": copy_commit, "copy wait": copy_wait,
        "bulk load": bulk_load, "bulk store": bulk_store, "bulk commit": bulk_commit, "bulk wait": bulk_wait,
        "mbarrier init": mbarrier_init, "mbarrier arrive": mbarrier_arrive, "mbarrier expect": mbarrier_expect,
        "mbarrier wait": mbarrier_wait, "copy arrive": copy_arrive,
        "mma": mma, "wgmma": wgmma, "wgmma fence": nothing, "wgmma commit": wgmma_commit, "wgmma wait": wgmma_wait,
        "barrier": barrier, "named barrier": named_barrier,
    }  # fmt: skip
