"""A clock for what the interpreter recorded: each warp runs its events in order, under a cost model.

The interpreter orders a warp's events, not those of two warps. Barriers, mbarriers and groups do; here they do it again, with times: an
mbarrier counts arrivals and bytes, and who waits for its phase goes on when it is over. So the picture is what the kernel's own waits make
of the costs, and nothing is drawn by hand.
"""

import heapq
import json
import math
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
        self.first = document.get("first", [0, 0, 0])  # block of the cluster that was recorded
        self.is_whole, self.diagnosis = document["whole"], document.get("diagnosis")
        self.kinds, self.places = document["kinds"], document["places"]
        self.names = {int(address): name for address, name in document["names"].items()}
        self.events, self.addresses = document["events"], document["addresses"]
        self.warps = (math.prod(self.block) + WARP - 1) // WARP  # of a block; the events number those of a cluster's blocks in a row
        self.blocks, self.cluster_size = math.prod(self.grid), math.prod(self.cluster)

    def programs(self):
        """By warp, [(its number in events, kind, lanes, a, b, c, d, e)]. A warp whose lanes come to a barrier or to the end of a wait one
        after the other has come when the last one has."""
        programs = [[] for _ in range(self.warps * self.cluster_size)]
        for number, (warp, kind, _, lanes, *values) in enumerate(self.events):
            programs[warp].append([number, self.kinds[kind], lanes, *values])
        return [together(program) for program in programs]


# Who comes there has used what it has loaded from shared memory: others may overwrite it then.
AFTER_LOADS = {"barrier", "named barrier", "mbarrier arrive", "cluster arrive"}
# An event of these is the whole warp's.
OF_WARP = {"barrier", "mbarrier wait", "copy wait", "copy commit", "named barrier", "bulk wait", "cluster arrive", "cluster wait", "launch wait"}


def together(program):
    """Of parts of a warp that do the same, the last one stays, and stands for all. Never two of one lane. What the lanes that came first have
    done since then comes after it."""
    kept, last = [], {}
    for op in program:
        kind, lanes = op[1], op[2]
        if kind in OF_WARP and lanes != 0xFFFFFFFF:
            key = (kind, *op[3:])
            before = last.get(key)
            last[key] = op
            if before and not before[2] & lanes:
                at = next(i for i in range(len(kept) - 1, -1, -1) if kept[i] is before)
                since, mine = kept[at + 1 :], before[2]
                kept[at:] = [each for each in since if each[2] & ~mine] + [op] + [each for each in since if not each[2] & ~mine]
                op[2] |= mine
                continue
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


class Groups:
    """Of what a warp has under way in the background: when it is done, and what a commit has made a group."""

    def __init__(self):
        self.last, self.committed = 0.0, []  # of what no group has yet; of each group

    def add(self, done):
        self.last = max(self.last, done)

    def commit(self):
        self.committed.append(self.last)
        self.last = 0.0

    def over(self, left):
        """When all groups but the LEFT latest ones are."""
        return max(self.committed[: len(self.committed) - left], default=0.0)


class Warp:
    def __init__(self, block, number, program):
        self.block, self.program = block, program
        self.number = block.rank * block.live + number  # in the cluster
        self.quarter = number % QUARTERS
        self.at = 0  # of the program
        self.loads = self.shared = 0.0  # when what was asked for is in registers
        self.registers = {}  # depth: when ldmatrix has filled them
        self.groups = defaultdict(Groups)  # by the first word of its events; of "bulk" the stores, and "bulk read"
        self.cluster_phase = 0  # of the cluster's barrier, at which it has arrived


class Multiprocessor:
    def __init__(self):
        self.quarter_issue = [0.0] * QUARTERS
        self.tensor = [0.0] * QUARTERS  # when each is free
        self.shared_port = self.inward = self.outward = 0.0


class Block:
    def __init__(self, cluster, rank, sm, programs):
        self.cluster, self.rank, self.sm, self.live = cluster, rank, sm, len(programs)
        self.warps = [Warp(self, w, program) for w, program in enumerate(programs)]
        self.at_barrier = []
        self.mbarriers = defaultdict(Mbarrier)
        self.named = defaultdict(list)  # number: [(lanes, warp or None)]
        self.ended = 0.0


class Cluster:
    """A block alone is one, too."""

    def __init__(self, launch, sms, programs, is_drawn):
        self.is_drawn = is_drawn
        self.blocks = [Block(self, rank, sm, programs[rank * launch.warps : (rank + 1) * launch.warps]) for rank, sm in enumerate(sms)]
        self.live = len(programs)
        self.arrived = self.phase = 0  # at its barrier
        self.waiters = []


class Replay:
    """Of a launch's block on an SM with RESIDENT - 1 others that do the same; or of its first cluster, each block on an SM, with as many
    more clusters. `spans` has what that block or cluster did: (event, warp, begin, end), begin when it could issue, end when it was done;
    `waits` what its warps waited for, the same; `stalls` how long an event waited for the warp's own loads; `landed` when what goes to several
    blocks, or to another one, was there, by event and rank. `blocks` are the cluster's."""

    def __init__(self, launch, costs, resident=1, launch_before=0.0):
        """@param launch_before when that is over, for which griddepcontrol.wait waits"""
        self.launch, self.costs, self.resident, self.launch_before = launch, costs, resident, launch_before
        self.tensor_busy = 0.0  # of all blocks that are drawn
        self.spans, self.waits, self.stalls, self.landed = [], [], [], {}
        self.queue, self.order = [], 0
        programs = launch.programs()
        sms = [Multiprocessor() for _ in range(launch.cluster_size)]
        self.clusters = [Cluster(launch, sms, programs, is_drawn=number == 0) for number in range(resident)]
        self.blocks = self.clusters[0].blocks
        self.run()
        self.clocks = max([*(block.ended for block in self.blocks), *(span[3] for span in self.spans)])
        self.draw_out_waits()
        self.all_clocks = max(block.ended for cluster in self.clusters for block in cluster.blocks)

    # --- time ---

    def at(self, time, what, *arguments):
        self.order += 1
        heapq.heappush(self.queue, (time, self.order, what, arguments))

    def run(self):
        for cluster in self.clusters:
            for block in cluster.blocks:
                for warp in block.warps:
                    self.at(0.0, self.step, warp)
        while self.queue:
            time, _, what, arguments = heapq.heappop(self.queue)
            what(time, *arguments)
        if any(cluster.live for cluster in self.clusters):
            if not self.launch.diagnosis and self.launch.is_whole:
                raise Unable("warps wait for ever under the cost model, as they have not on the interpreter. Who is faster may decide; with --order random:2 a check may say why")

    def draw_out_waits(self):
        """Who waits in vain does so to the end."""
        come = list(self.clusters[0].waiters)
        for block in self.blocks:
            come += [*block.at_barrier, *(each for barrier in block.mbarriers.values() for each in barrier.waiters)]
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
        issue, quarter = warp.block.sm.quarter_issue, warp.quarter
        issued = max(time, issue[quarter])
        issue[quarter] = issued + 1
        if issued > time and len(self.queue) and self.queue[0][0] < issued:  # others come first
            issue[quarter] = issued
            return self.at(issued, self.step, warp)
        if op[1] in AFTER_LOADS and warp.shared > issued:  # arithmetic, which is no event, has used them
            done, warp.shared = self.stall(warp, op, issued, warp.shared), 0.0
            return self.go_on(done, warp)
        warp.at += 1
        method(self, issued, warp, op)

    def go_on(self, time, warp):
        self.at(time, self.step, warp)

    def end(self, time, warp):
        block, cluster = warp.block, warp.block.cluster
        block.live -= 1
        cluster.live -= 1
        block.ended = max(block.ended, time, warp.loads, warp.groups["copy"].last)
        if block.live and len(block.at_barrier) == block.live:
            self.release(time, block)
        if cluster.arrived and cluster.arrived == cluster.live:
            self.end_cluster_phase(time, cluster)

    def span(self, warp, op, begin, end):
        if warp.block.cluster.is_drawn:
            self.spans.append((op[0], warp.number, begin, end))

    def wait(self, warp, op, begin, end):
        """The warp goes on at END."""
        self.span(warp, op, begin, end)
        if end > begin and warp.block.cluster.is_drawn:
            self.waits.append((op[0], warp.number, begin, end))
        self.go_on(max(begin, end) + 1, warp)

    def stall(self, warp, op, time, begin):
        """@return BEGIN, or TIME if that is later: when what the warp has loaded is there"""
        if begin > time and warp.block.cluster.is_drawn:
            self.stalls.append((op[0], warp.number, time, begin))
        return max(time, begin)

    # --- memory ---

    def come(self, time, size, sm):
        """@return when the last of SIZE bytes has come to the SM, but for the latency"""
        sm.inward = max(sm.inward, time) + size / self.costs.l2
        return sm.inward

    def fetch(self, time, size, sm):
        return self.come(time, size, sm) + self.costs.dram_latency

    def send(self, time, size, sm):
        sm.outward = max(sm.outward, time) + size / self.costs.l2
        return sm.outward

    def through_shared(self, time, wavefronts, sm):
        sm.shared_port = max(sm.shared_port, time) + wavefronts
        return sm.shared_port + self.costs.shared_latency

    def needed(self, warp):
        """When the registers are there that the warp has loaded so far."""
        return max(warp.loads, warp.shared)

    def global_load(self, time, warp, op):
        landed = self.fetch(time, op[4] * 32, warp.block.sm)
        warp.loads = max(warp.loads, landed)
        self.span(warp, op, time, landed)
        self.go_on(time + 1, warp)

    def global_store(self, time, warp, op):
        begin = self.stall(warp, op, time, self.needed(warp))
        self.span(warp, op, begin, self.send(begin, op[4] * 32, warp.block.sm) + self.costs.l2_latency)
        self.go_on(begin + 1, warp)

    def shared_load(self, time, warp, op):
        ready = self.through_shared(time, op[4], warp.block.sm)
        warp.shared = max(warp.shared, ready)
        self.span(warp, op, time, ready)
        self.go_on(time + 1, warp)

    def shared_store(self, time, warp, op):
        begin = self.stall(warp, op, time, warp.loads)
        self.span(warp, op, begin, self.through_shared(begin, op[4], warp.block.sm))
        self.go_on(begin + 1, warp)

    def shared_atomic(self, time, warp, op):
        begin = self.stall(warp, op, time, self.needed(warp))
        warp.shared = max(warp.shared, self.through_shared(begin, op[4], warp.block.sm))
        self.span(warp, op, begin, warp.shared)
        self.go_on(begin + 1, warp)

    def matrix_load(self, time, warp, op):
        ready = self.through_shared(time, op[4], warp.block.sm)
        warp.registers[op[7] & ~1] = ready
        self.span(warp, op, time, ready)
        self.go_on(time + 1, warp)

    # --- other blocks' shared memory ---

    def blocks_of(self, warp, mask):
        return [block for block in warp.block.cluster.blocks if mask >> block.rank & 1]

    def on_the_way(self, warp, home):
        """How long what WARP does takes to come to the block."""
        return 0 if home is warp.block else self.costs.cluster_latency

    def lands(self, warp, op, home, time):
        if warp.block.cluster.is_drawn:
            self.landed[op[0], home.rank] = time

    def cluster_load(self, time, warp, op):
        begin = time if op[1] == "cluster load" else self.stall(warp, op, time, self.needed(warp))
        ready = self.come(begin, op[3] * lanes_of(op), warp.block.sm) + self.costs.cluster_latency
        warp.loads = max(warp.loads, ready)
        self.lands(warp, op, warp.block.cluster.blocks[op[6]], ready)
        self.span(warp, op, begin, ready)
        self.go_on(begin + 1, warp)

    def cluster_store(self, time, warp, op):
        begin = self.stall(warp, op, time, self.needed(warp))
        there = self.send(begin, op[3] * lanes_of(op), warp.block.sm) + self.costs.cluster_latency
        self.lands(warp, op, warp.block.cluster.blocks[op[6]], there)
        self.span(warp, op, begin, there)
        self.go_on(begin + 1, warp)

    def store_async(self, time, warp, op):
        begin = self.stall(warp, op, time, self.needed(warp))
        size, home = op[3] * lanes_of(op), warp.block.cluster.blocks[op[6]]
        there = self.send(begin, size, warp.block.sm) + self.costs.cluster_latency
        self.lands(warp, op, home, there)
        self.span(warp, op, begin, there)
        self.at(there, self.land, home, op[4], size)
        self.go_on(begin + 1, warp)

    # --- copies ---

    def copy(self, time, warp, op):
        landed = self.fetch(time, op[6], warp.block.sm)
        warp.groups["copy"].add(landed)
        self.span(warp, op, time, landed)
        self.go_on(time + 1, warp)

    def bulk_load(self, time, warp, op):
        last = time
        for home in self.blocks_of(warp, op[6]):
            landed = self.fetch(time, op[3], home.sm)
            self.lands(warp, op, home, landed)
            self.at(landed, self.land, home, op[4], op[3])
            last = max(last, landed)
        self.span(warp, op, time, last)
        self.go_on(time + 1, warp)

    def bulk_store(self, time, warp, op):
        read = self.send(time, op[3], warp.block.sm)
        written = read + self.costs.l2_latency
        warp.groups["bulk read"].add(read)
        warp.groups["bulk"].add(written)
        self.span(warp, op, time, written)
        self.go_on(time + 1, warp)

    # --- groups: of copies, of stores, of products ---

    def commit(self, time, warp, op):
        of = op[1].split()[0]
        for name in ("bulk", "bulk read") if of == "bulk" else (of,):
            warp.groups[name].commit()
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def wait_for_groups(self, time, warp, op):
        of = op[1].split()[0]
        groups = warp.groups["bulk read" if of == "bulk" and op[4] else of]
        self.wait(warp, op, time, max(time, groups.over(op[3])))

    # --- mbarriers ---

    def mbarrier_init(self, time, warp, op):
        barrier = warp.block.mbarriers[op[3]] = Mbarrier()
        barrier.arrivals = barrier.pending = op[4]
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    def mbarrier_arrive(self, time, warp, op):
        self.span(warp, op, time, time)
        self.signal(time, warp, op, op[4] * lanes_of(op))
        self.go_on(time + 1, warp)

    def mbarrier_expect(self, time, warp, op):
        self.span(warp, op, time, time)
        self.signal(time, warp, op, 0)
        self.go_on(time + 1, warp)

    def signal(self, time, warp, op, count):
        """Arrivals and expected bytes go to an mbarrier, which may be another block's."""
        home = warp.block.cluster.blocks[op[6]]
        there = time + self.on_the_way(warp, home)
        self.lands(warp, op, home, there)
        if there > time:
            self.at(there, self.arrive, home, warp, op, count)
        else:
            self.arrive(time, home, warp, op, count)

    def arrive(self, time, home, warp, op, count):
        barrier, size = home.mbarriers[op[3]], op[5] * lanes_of(op)
        barrier.bytes += size
        barrier.expected += size
        if count:
            barrier.pending -= count
            barrier.arrived.append((time, warp.number, count, op[0]))
            self.advance(time, home, op[3])

    def copy_arrive(self, time, warp, op):
        """The phase ends after the copies that the warp has begun so far: an arrival more, when they have landed."""
        warp.block.mbarriers[op[3]].pending += 1
        self.span(warp, op, time, time)
        copies = warp.groups["copy"]
        self.at(max(time, copies.last, copies.over(0)), self.landed_own, warp.block, op[3])
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
        tensor, quarter = warp.block.sm.tensor, warp.quarter
        if begin > time and self.queue and self.queue[0][0] < begin:  # the tensor core is another warp's until then
            warp.at -= 1
            return self.go_on(begin, warp)
        begin = max(begin, tensor[quarter])
        tensor[quarter] = begin + self.costs.mma * op[3] / 4096
        self.note_product(warp, op, begin, tensor[quarter])
        self.go_on(max(begin, time) + 1, warp)

    def wgmma(self, time, warp, op):
        tensor, quarter = warp.block.sm.tensor, warp.quarter
        begin = max(time, tensor[quarter])
        tensor[quarter] = begin + op[3] / self.costs.wgmma
        warp.groups["wgmma"].add(tensor[quarter])
        self.note_product(warp, op, begin, tensor[quarter])
        self.go_on(time + 1, warp)

    def note_product(self, warp, op, begin, end):
        self.span(warp, op, begin, end)
        if warp.block.cluster.is_drawn:
            self.tensor_busy += end - begin

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

    def cluster_arrive(self, time, warp, op):
        cluster = warp.block.cluster
        warp.cluster_phase = cluster.phase
        cluster.arrived += 1
        self.span(warp, op, time, time)
        if cluster.arrived == cluster.live:
            self.end_cluster_phase(time, cluster)
        self.go_on(time + 1, warp)

    def end_cluster_phase(self, time, cluster):
        cluster.arrived = 0
        self.at(time + (self.costs.cluster_latency if len(cluster.blocks) > 1 else 0), self.release_cluster, cluster)

    def release_cluster(self, time, cluster):
        cluster.phase += 1
        come, cluster.waiters = cluster.waiters, []
        for since, warp, op in come:
            self.wait(warp, op, since, time)

    def cluster_wait(self, time, warp, op):
        if warp.block.cluster.phase > warp.cluster_phase:
            self.wait(warp, op, time, time)
        else:
            warp.block.cluster.waiters.append((time, warp, op))

    def launch_wait(self, time, warp, op):
        self.wait(warp, op, time, max(time, self.launch_before))

    def nothing(self, time, warp, op):
        self.span(warp, op, time, time)
        self.go_on(time + 1, warp)

    KINDS = {
        "global load": global_load, "global store": global_store, "global atomic": global_load,
        "shared load": shared_load, "shared store": shared_store, "shared atomic": shared_atomic,
        "ldmatrix": matrix_load, "stmatrix": shared_store,
        "copy": copy, "copy commit": commit, "copy wait": wait_for_groups,
        "bulk load": bulk_load, "bulk store": bulk_store, "bulk commit": commit, "bulk wait": wait_for_groups,
        "mbarrier init": mbarrier_init, "mbarrier arrive": mbarrier_arrive, "mbarrier expect": mbarrier_expect,
        "mbarrier wait": mbarrier_wait, "copy arrive": copy_arrive,
        "mma": mma, "wgmma": wgmma, "wgmma fence": nothing, "wgmma commit": commit, "wgmma wait": wait_for_groups,
        "barrier": barrier, "named barrier": named_barrier,
        "st.async": store_async, "cluster load": cluster_load, "cluster store": cluster_store, "cluster atomic": cluster_load,
        "cluster arrive": cluster_arrive, "cluster wait": cluster_wait, "launch wait": launch_wait, "launch hint": nothing,
    }  # fmt: skip
