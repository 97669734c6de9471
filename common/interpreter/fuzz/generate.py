"""Random kernels made of correct patterns, each with the same computation in serial code; and the same kernels with one mistake each.

A kernel is a row of phases. A phase passes values between the threads of a block, or adds them up, in one of the ways in which
kernels do that. Each thread has one number, x, which every phase changes; so a wrong value anywhere changes the result.

generate.source(seeds, mutated) is a C++ file for fuzz.h's driver. The same seed gives the same kernel, with the mistake or without it.
"""

import random
import textwrap

FAR = "(1 << 28)"  # words: beyond all that is allocated
RACE, INIT, MEM, SYNC = "racecheck", "initcheck", "memcheck", "synccheck"


# What is no mistake here: a mask that names a lane which ends without coming. CUDA does not wait for threads that have exited, and whether
# one has cannot be told from whether it will. A mistake in reading is found as a race, or as a read of what nobody has written, whichever comes first in an order.


class Phase:
    """A pattern with its numbers chosen. Its texts use t, lane, warp, b (the block), T (threads of a block), x.

    device(m): the kernel's lines, with the mistake that is named m, or None for none
    serial: lines of host code for a block; X is the vector of the block's numbers, and x in the kernel is X[t] here
    mistakes: name -> the checks of which one must report it
    """

    aux = 0  # words of global memory that the phase needs for itself, zero in the beginning
    source = 0  # words of global memory that it reads: input for all blocks
    of_copies = frozenset()  # mistakes in the address of a struct that is copied; see of_a_copy() in fuzz.h

    def __init__(self, rng, threads, blocks, number):
        self.rng, self.threads, self.blocks, self.s = rng, threads, blocks, f"s{number}"
        self.shift = rng.randrange(1, threads)
        self.turn = rng.randrange(1, 32)
        self.rounds = rng.randint(2, 4)
        self.victim = rng.randrange(threads)
        self.choose()

    def choose(self):
        pass

    def other(self, index="t"):
        return f"({index} + {self.shift}) % T"


def without(condition, line):
    return "" if condition else line


class Exchange(Phase):
    """Through shared memory, with a barrier before the values are read, and one before they are overwritten."""

    mistakes = {
        "no barrier before reading": {RACE, INIT},
        "no barrier before overwriting": {RACE},
        "one thread writes nothing": {INIT},
        "one thread beyond the end": {MEM},
        "a barrier that one thread does not meet": {SYNC, RACE, INIT},
    }

    def device(self, m):
        s = self.s
        store = f"{s}[t] = x;"
        if m == "one thread writes nothing":
            store = f"if (t != {self.victim}) {store}"
        index = self.other()
        if m == "one thread beyond the end":
            index = f"t == {self.victim} ? T + {self.rng.randrange(8)} : {index}"
        barrier = "__syncthreads();"
        if m == "a barrier that one thread does not meet":
            barrier = f"if (t != {self.victim}) __syncthreads();"
        return f"""
            __shared__ uint32_t {s}[T];
            for (int r = 0; r < {self.rounds}; ++r) {{
              {store}
              {without(m == "no barrier before reading", barrier)}
              x = x * 3 + {s}[{index}];
              {without(m == "no barrier before overwriting", "__syncthreads();")}
            }}"""

    serial = property(lambda self: f"""
            for (int r = 0; r < {self.rounds}; ++r) {{
              const Numbers old = X;
              for (unsigned t = 0; t < T; ++t) X[t] = old[t] * 3 + old[{self.other()}];
            }}""")


class TwoBuffers(Phase):
    """Two arrays in turn, so that one barrier a round is enough."""

    mistakes = {"one buffer": {RACE}, "no barrier": {RACE, INIT}}

    def device(self, m):
        s, rounds = self.s, self.rounds + 1
        which = "0" if m == "one buffer" else "r & 1"
        return f"""
            __shared__ uint32_t {s}[2][T];
            for (int r = 0; r < {rounds}; ++r) {{
              {s}[{which}][t] = x;
              {without(m == "no barrier", "__syncthreads();")}
              x = x * 5 + {s}[{which}][{self.other()}];
            }}"""

    serial = property(lambda self: f"""
            for (int r = 0; r < {self.rounds + 1}; ++r) {{
              const Numbers old = X;
              for (unsigned t = 0; t < T; ++t) X[t] = old[t] * 5 + old[{self.other()}];
            }}""")


class Tree(Phase):
    """The sum of a block, by halves."""

    mistakes = {"no barrier in the loop": {RACE, INIT}, "no barrier after the loop": {RACE}, "half of the threads": {SYNC, RACE}}
    power_of_two = True

    def device(self, m):
        s = self.s
        loop = "__syncthreads();"
        if m == "half of the threads":
            loop = "if (t < T / 2) __syncthreads();"
        return f"""
            __shared__ uint32_t {s}[T];
            {s}[t] = x;
            for (unsigned stride = T / 2; stride > 0; stride /= 2) {{
              {without(m == "no barrier in the loop", loop)}
              if (t < stride) {s}[t] += {s}[t + stride];
            }}
            {without(m == "no barrier after the loop", "__syncthreads();")}
            x ^= {s}[0];"""

    serial = """
            uint32_t sum = 0;
            for (unsigned t = 0; t < T; ++t) sum += X[t];
            for (unsigned t = 0; t < T; ++t) X[t] ^= sum;"""


class Histogram(Phase):
    """Counters in shared memory, by atomics."""

    mistakes = {
        "no atomic": {RACE},
        "not set to zero": {INIT},
        "no barrier after zeros": {RACE, INIT},
        "no barrier before reading": {RACE},
    }

    def choose(self):
        self.bins = self.rng.choice([1, 5, 8, 16, 31])

    def device(self, m):
        s, bins = self.s, self.bins
        add = f"atomicAdd(&{s}[x % {bins}], x | 1);"
        if m == "no atomic":
            add = f"{s}[x % {bins}] += x | 1;"
        return f"""
            __shared__ uint32_t {s}[{bins}];
            {without(m == "not set to zero", f"if (t < {bins}) {s}[t] = 0;")}
            {without(m == "no barrier after zeros", "__syncthreads();")}
            {add}
            {without(m == "no barrier before reading", "__syncthreads();")}
            x += {s}[t % {bins}];"""

    serial = property(lambda self: f"""
            Numbers bins({self.bins});
            for (unsigned t = 0; t < T; ++t) bins[X[t] % {self.bins}] += X[t] | 1;
            for (unsigned t = 0; t < T; ++t) X[t] += bins[t % {self.bins}];""")


class WarpExchange(Phase):
    """Through shared memory, within a warp."""

    mistakes = {"no __syncwarp before reading": {RACE, INIT}, "no __syncwarp before overwriting": {RACE}, "another warp's values": {RACE, INIT}}

    def device(self, m):
        s = self.s
        base = "t / 32 * 32"
        if m == "another warp's values":
            base = "(t / 32 + 1) % (T / 32) * 32"
        return f"""
            __shared__ uint32_t {s}[T];
            for (int r = 0; r < {self.rounds}; ++r) {{
              {s}[t] = x;
              {without(m == "no __syncwarp before reading", "__syncwarp();")}
              x = x * 7 + {s}[{base} + (lane + {self.turn}) % 32];
              {without(m == "no __syncwarp before overwriting", "__syncwarp();")}
            }}"""

    @property
    def possible(self):
        return {m for m in self.mistakes if m != "another warp's values" or self.threads > 32}

    serial = property(lambda self: f"""
            for (int r = 0; r < {self.rounds}; ++r) {{
              const Numbers old = X;
              for (unsigned t = 0; t < T; ++t) X[t] = old[t] * 7 + old[t / 32 * 32 + (t % 32 + {self.turn}) % 32];
            }}""")


class Shuffle(Phase):
    """From lane to lane."""

    mistakes = {"a lane is not in its own mask": {SYNC}, "a lane stays away": {SYNC}, "no such width": {SYNC}}

    def choose(self):
        self.kind = self.rng.choice(["xor", "up", "down", "idx"])
        self.width = self.rng.choice([4, 8, 16, 32])
        self.by = self.rng.randrange(1, self.width)

    @property
    def possible(self):
        # Who stays away, and is read by nobody, is missed by nobody once it has ended.
        at = self.victim % 32 % self.width
        is_read = {"up": at + self.by < self.width, "down": at >= self.by}.get(self.kind, True)
        return {m for m in self.mistakes if m != "a lane stays away" or is_read}

    def device(self, m):
        mask, width, guard = "0xffffffff", self.width, ""
        if m == "a lane is not in its own mask":
            mask = f"0xffffffff & ~(1u << {self.victim % 32})"
        if m == "a lane stays away":
            guard = f"if (lane != {self.victim % 32}) "
        if m == "no such width":
            width = self.width - 1 if self.width > 2 else 3
        source = f"lane + {self.by}" if self.kind == "idx" else self.by
        name = "__shfl_sync" if self.kind == "idx" else f"__shfl_{self.kind}_sync"
        return f"""
            {guard}x = x * 9 + {name}({mask}, x, {source}, {width});"""

    @property
    def serial(self):
        w, by = self.width, self.by
        source = {
            "xor": f"t ^ {by}",
            "up": f"t % {w} >= {by} ? t - {by} : t",
            "down": f"t % {w} + {by} < {w} ? t + {by} : t",
            "idx": f"t / {w} * {w} + (t % 32 + {by}) % {w}",
        }[self.kind]
        return f"""
            const Numbers old = X;
            for (unsigned t = 0; t < T; ++t) X[t] = old[t] * 9 + old[{source}];"""


class Halves(Phase):
    """The two halves of a warp go different ways and talk among themselves."""

    mistakes = {"the other half's lanes": {SYNC}}

    def choose(self):
        self.by = self.rng.randrange(1, 16)

    def device(self, m):
        by = self.by + (16 if m == "the other half's lanes" else 0)
        return f"""
            if (lane < 16)
              x += __shfl_xor_sync(0x0000ffff, x, {by});
            else
              x ^= __shfl_xor_sync(0xffff0000, x, {self.by});"""

    serial = property(lambda self: f"""
            const Numbers old = X;
            for (unsigned t = 0; t < T; ++t) X[t] = t % 32 < 16 ? old[t] + old[t ^ {self.by}] : old[t] ^ old[t ^ {self.by}];""")


class Vote(Phase):
    """What a warp has in common."""

    mistakes = {"a lane is not in its own mask": {SYNC}}

    def choose(self):
        self.kind = self.rng.choice(["ballot", "any", "all", "add", "min", "xor"])
        self.bit = self.rng.randrange(32)

    def device(self, m):
        mask = "0xffffffff"
        if m == "a lane is not in its own mask":
            mask = f"0xffffffff & ~(1u << {self.victim % 32})"
        call = {
            "ballot": f"__ballot_sync({mask}, x >> {self.bit} & 1)",
            "any": f"__any_sync({mask}, x >> {self.bit} & 1)",
            "all": f"__all_sync({mask}, x >> {self.bit} & 1)",
        }.get(self.kind, f"__reduce_{self.kind}_sync({mask}, x)")
        return f"""
            x = x * 11 + static_cast<uint32_t>({call});"""

    @property
    def serial(self):
        begin, step = {
            "ballot": ("0", f"v |= (X[w + l] >> {self.bit} & 1) << l"),
            "any": ("0", f"v |= X[w + l] >> {self.bit} & 1"),
            "all": ("1", f"v &= X[w + l] >> {self.bit} & 1"),
            "add": ("0", "v += X[w + l]"),
            "min": ("0xffffffff", "v = std::min(v, X[w + l])"),
            "xor": ("0", "v ^= X[w + l]"),
        }[self.kind]
        test = " != 0" if self.kind in ("any", "all") else ""
        return f"""
            for (unsigned w = 0; w < T; w += 32) {{
              uint32_t v = {begin};
              for (unsigned l = 0; l < 32; ++l) {step};
              for (unsigned l = 0; l < 32; ++l) X[w + l] = X[w + l] * 11 + static_cast<uint32_t>(v{test});
            }}"""


class Ring(Phase):
    """Tiles copied in the background, some stages ahead."""

    mistakes = {
        "waits for one group too few": {RACE, INIT},
        "no barrier": {RACE, INIT},
        "refills the stage that is read": {RACE, INIT},
        "one stage too few": {RACE, INIT},
        "no commit": {RACE, INIT},
        "copies beyond the end": {MEM},
    }

    def choose(self):
        self.stages, self.tiles = self.rng.randint(2, 4), self.rng.randint(4, 6)
        self.source = self.tiles * self.threads

    @property
    def possible(self):
        # With as many stages as tiles, each stage is filled once, before anybody reads it: the early copy is none of the mistakes.
        return {m for m in self.mistakes if m != "refills the stage that is read" or self.tiles > self.stages}

    def device(self, m):
        s, stages, ahead = self.s, self.stages, self.stages - 1
        wait = ahead - 1 + (m == "waits for one group too few")
        modulo = stages - 1 if m == "one stage too few" else stages
        early = m == "refills the stage that is read"
        guard, far = f"if (i < {self.tiles}) ", ""
        if m == "copies beyond the end":
            guard, far = "", f"(i < {self.tiles} ? 0 : {FAR}) + "
        return f"""
            alignas(16) __shared__ uint32_t {s}[{stages}][T];
            const auto copy = [&](int i) {{
              {guard}device::cp_async_ca_4(&{s}[i % {modulo}][t], &source[{far}i * T + t]);
              {without(m == "no commit", "device::cp_async_commit_group();")}
            }};
            for (int i = 0; i < {ahead}; ++i) copy(i);
            for (int i = 0; i < {self.tiles}; ++i) {{
              {without(not early, f"copy(i + {ahead});")}
              device::cp_async_wait_group<{wait + (1 if early else 0)}>();
              {without(m == "no barrier", "__syncthreads();")}
              {without(early, f"copy(i + {ahead});")}
              x = x * 13 + {s}[i % {modulo}][{self.other()}];
            }}
            device::cp_async_wait_all();"""

    serial = property(lambda self: f"""
            for (int i = 0; i < {self.tiles}; ++i)
              for (unsigned t = 0; t < T; ++t) X[t] = X[t] * 13 + source[i * T + {self.other()}];""")


class Handshake(Phase):
    """One warp gives 32 numbers to the next one, by a flag."""

    mistakes = {"does not wait": {RACE, INIT}, "no fence": {RACE}, "the flag is never set": {SYNC, "endless"}}
    warps = 2

    def choose(self):
        self.volatile = self.rng.random() < 0.5

    def device(self, m):
        s = self.s
        fence = without(m == "no fence", "__threadfence_block();")
        setter = f"if (lane == {32 if m == 'the flag is never set' else 0}) "
        if self.volatile:
            setter += f"*const_cast<volatile int*>(&{s}flag) = 1;"
            look = f"*const_cast<volatile int*>(&{s}flag) == 0"
        else:
            setter += f"atomicExch(&{s}flag, 1);"
            look = f"atomicAdd(&{s}flag, 0) == 0"
        wait = without(m == "does not wait", f"if (lane == 0) while ({look}) {{}}")
        # Without a fence on either side, the barrier of the warp alone is no order between warps.
        return f"""
            __shared__ uint32_t {s}[32];
            __shared__ int {s}flag;
            if (t == 0) {s}flag = 0;
            __syncthreads();
            if (warp == 0) {{
              {s}[lane] = x;
              {fence}
              __syncwarp();
              {setter}
            }} else if (warp == 1) {{
              {wait}
              {fence}
              __syncwarp();
              x += {s}[(lane + {self.turn}) % 32];
            }}"""

    serial = property(lambda self: f"""
            for (unsigned l = 0; l < 32; ++l) X[32 + l] += X[(l + {self.turn}) % 32];""")


class LastBlock(Phase):
    """Each block leaves a number; the last one adds them up."""

    mistakes = {"no fence": {RACE}, "every block adds up": {RACE, INIT}, "no atomic": {RACE}}
    many_blocks = True

    @property
    def aux(self):
        return self.blocks + 2  # numbers, the counter, the sum

    def device(self, m):
        s, blocks = self.s, self.blocks
        count = f"atomicAdd(&aux[{blocks}], 1)"
        if m == "no atomic":
            count = f"aux[{blocks}]++"
        last = f"{s} = {count} == {blocks - 1};"
        if m == "every block adds up":
            last = f"{count}; {s} = true;"
        fence = without(m == "no fence", "__threadfence();")
        return f"""
            __shared__ bool {s};
            if (t == 0) {{
              aux[b] = x;
              {fence}
              {last}
            }}
            __syncthreads();
            if ({s} && t == {self.victim}) {{
              {fence}
              uint32_t sum = 0;
              for (unsigned i = 0; i < {blocks}; ++i) sum += aux[i];
              aux[{blocks + 1}] = sum;
            }}"""

    serial = property(lambda self: f"""
            aux[b] = X[0], aux[{self.blocks}] += 1, aux[{self.blocks + 1}] += X[0];""")


class Tally(Phase):
    """Counters in global memory, of all blocks."""

    mistakes = {"no atomic": {RACE}, "beyond the end": {MEM}}

    def choose(self):
        self.aux = self.rng.choice([1, 3, 8])

    def device(self, m):
        index = f"x % {self.aux}"
        if m == "beyond the end":
            index = f"{index} + (b == 0 && t == {self.victim} ? {FAR} : 0)"
        return f"""
            {"aux[" + index + "] += 1;" if m == "no atomic" else "atomicAdd(&aux[" + index + "], 1);"}"""

    serial = property(lambda self: f"""
            for (unsigned t = 0; t < T; ++t) aux[X[t] % {self.aux}] += 1;""")


class Vectors(Phase):
    """Sixteen bytes at a time."""

    mistakes = {"no barrier": {RACE, INIT}, "misaligned": {MEM}}
    of_copies = {"misaligned"}

    def device(self, m):
        s = self.s
        at = f"&{s}[4 * ({self.other()})]"
        if m == "misaligned":
            at = f"&{s}[4 * ({self.other()} % (T - 1)) + 1]"
        return f"""
            alignas(16) __shared__ uint32_t {s}[4 * T];
            *reinterpret_cast<uint4*>(&{s}[4 * t]) = make_uint4(x, x + 1, x ^ 7, t);
            {without(m == "no barrier", "__syncthreads();")}
            const uint4 v = *reinterpret_cast<const uint4*>({at});
            x = v.x + 2 * v.y + 3 * v.z + 4 * v.w;"""

    serial = property(lambda self: f"""
            const Numbers old = X;
            for (unsigned t = 0; t < T; ++t) {{
              const unsigned o = {self.other()};
              X[t] = old[o] + 2 * (old[o] + 1) + 3 * (old[o] ^ 7) + 4 * o;
            }}""")


class Structs(Phase):
    """A struct at a time, by assignment, by a function or by memcpy."""

    mistakes = {"no barrier": {RACE, INIT}, "one member is not set": {INIT}}

    def choose(self):
        self.way = self.rng.choice(["assignment", "function", "memcpy", "memset"])

    def device(self, m):
        s = self.s
        member = without(m == "one member is not set", f"{s}[t].c = static_cast<uint16_t>(x);")
        filling = f"{s}[t].a[0] = x, {s}[t].a[1] = x + 1, {s}[t].a[2] = x ^ 3; {s}[t].b = static_cast<uint16_t>(t); {member}"
        if m != "one member is not set":
            made = "Record{{x, x + 1, x ^ 3}, static_cast<uint16_t>(t), static_cast<uint16_t>(x)}"
            filling = {
                "assignment": f"{s}[t] = {made};",
                "function": f"{s}[t] = made_record(x, t);",
                "memcpy": f"const Record made = {made}; memcpy(&{s}[t], &made, sizeof made);",
                "memset": f"memset(&{s}[t], 0, sizeof(Record)); {filling}",
            }[self.way]
        reading = f"const Record v = {s}[{self.other()}];"
        if self.way == "memcpy":
            reading = f"Record v; memcpy(&v, &{s}[{self.other()}], sizeof v);"
        return f"""
            __shared__ Record {s}[T];
            {filling}
            {without(m == "no barrier", "__syncthreads();")}
            {reading}
            x = v.a[0] + 2 * v.a[1] + 3 * v.a[2] + v.b * 5u + v.c * 7u;"""

    serial = property(lambda self: f"""
            const Numbers old = X;
            for (unsigned t = 0; t < T; ++t) {{
              const unsigned o = {self.other()};
              X[t] = old[o] + 2 * (old[o] + 1) + 3 * (old[o] ^ 3) + (o & 0xffff) * 5u + (old[o] & 0xffff) * 7u;
            }}""")


class GlobalExchange(Phase):
    """Through global memory, within a block."""

    mistakes = {"no barrier": {RACE, INIT}, "beyond the end": {MEM}, "another block's values": {RACE, INIT}}

    @property
    def aux(self):
        return self.blocks * self.threads

    def device(self, m):
        index = f"b * T + {self.other()}"
        if m == "beyond the end":
            index = f"t == {self.victim} && b == {self.blocks - 1} ? {FAR} + t : {index}"
        if m == "another block's values":
            index = f"(b + 1) % {self.blocks} * T + {self.other()}"
        return f"""
            aux[b * T + t] = x;
            {without(m == "no barrier", "__syncthreads();")}
            x += aux[{index}];"""

    @property
    def possible(self):
        return {m for m in self.mistakes if m != "another block's values" or self.blocks > 1}

    serial = property(lambda self: f"""
            const Numbers old = X;
            for (unsigned t = 0; t < T; ++t) aux[b * T + t] = old[t];
            for (unsigned t = 0; t < T; ++t) X[t] = old[t] + old[{self.other()}];""")


class LocalArray(Phase):
    """An array of the thread's own, by an index that is known when it runs."""

    mistakes = {"beyond the end": {MEM}}

    def choose(self):
        self.size = self.rng.choice([3, 6, 8])

    def device(self, m):
        index = f"x % {self.size}" + (f" + (t == {self.victim} ? {self.size} : 0)" if m else "")
        return f"""
            uint32_t own[{self.size}];
            for (int i = 0; i < {self.size}; ++i) own[i] = x * (i + 2) + i;
            x ^= own[{index}];"""

    serial = property(lambda self: f"""
            for (unsigned t = 0; t < T; ++t) X[t] ^= X[t] * (X[t] % {self.size} + 2) + X[t] % {self.size};""")


class Matrix(Phase):
    """An 8 x 8 matrix for each warp, by ldmatrix."""

    mistakes = {"no __syncwarp": {RACE, INIT}, "misaligned rows": {MEM}, "half of the warp": {SYNC}}

    def device(self, m):
        s = self.s
        row = "lane % 8 * 8" + (" + 1" if m == "misaligned rows" else "")
        guard = "if (lane < 16) " if m == "half of the warp" else ""
        return f"""
            alignas(16) __shared__ uint16_t {s}[T / 32][72];
            {s}[warp][2 * lane] = static_cast<uint16_t>(x), {s}[warp][2 * lane + 1] = static_cast<uint16_t>(x >> 16);
            {without(m == "no __syncwarp", "__syncwarp();")}
            uint32_t r[1] = {{}};
            {guard}device::ldmatrix_x1(r, &{s}[warp][{row}]);
            x = x * 17 + r[0];"""

    serial = """
            for (unsigned t = 0; t < T; ++t) X[t] = X[t] * 17 + X[t];"""


PHASES = [Exchange, TwoBuffers, Tree, Histogram, WarpExchange, Shuffle, Halves, Vote, Ring, Handshake, LastBlock, Tally, Vectors, Structs]
PHASES += [GlobalExchange, LocalArray, Matrix]


class Kernel:
    def __init__(self, seed):
        self.seed = seed
        rng = random.Random(seed)
        self.threads, self.blocks = rng.choice([32, 64, 96, 128, 160, 256]), rng.choice([1, 2, 3])
        fitting = [each for each in PHASES if self.fits(each)]
        self.phases = [rng.choice(fitting)(rng, self.threads, self.blocks, i) for i in range(rng.randint(1, 4))]
        # Mistakes are chosen after everything else, so that the kernel without one is the same.
        self.wrong = rng.randrange(len(self.phases))
        phase = self.phases[self.wrong]
        self.mistake = rng.choice(sorted(getattr(phase, "possible", phase.mistakes)))

    def fits(self, phase):
        if getattr(phase, "power_of_two", False) and self.threads & (self.threads - 1):
            return False
        return self.threads >= 32 * getattr(phase, "warps", 1) and (self.blocks > 1 or not getattr(phase, "many_blocks", False))

    @property
    def expected(self):
        return self.phases[self.wrong].mistakes[self.mistake]

    def title(self):
        return ", ".join(type(phase).__name__ for phase in self.phases)

    def text(self, mutated):
        device, serial, aux, source = "", "", 0, 0
        for number, phase in enumerate(self.phases):
            mistake = self.mistake if mutated and number == self.wrong else None
            views = []
            if phase.aux:
                views.append(("uint32_t* const aux", f"all_aux + {aux}"))
            if phase.source:
                views.append(("const uint32_t* const source", f"all_source + {source}"))
            note = f"// {type(phase).__name__}" + (f": {mistake}" if mistake else "")
            body = "".join(f"\n            {declared} = {value};" for declared, value in views)
            device += f"\n          {{  {note}{body}{phase.device(mistake)}\n          }}"
            body = body.replace("all_aux", "all_aux.data()").replace("all_source", "all_source.data()")
            serial += f"\n          {{{body}{phase.serial}\n          }}"
            aux, source = aux + phase.aux, source + phase.source
        name = f"kernel_{self.seed}"
        expected = "{" + (", ".join(f'"{check}"' for check in sorted(self.expected)) if mutated else "") + "}"
        if mutated and self.mistake in self.phases[self.wrong].of_copies:
            expected = f"of_a_copy({expected})"
        what = f"{self.title()}; {self.mistake}" if mutated else self.title()
        text = f"""
        __global__ void {name}([[maybe_unused]] const uint32_t* in, uint32_t* out, [[maybe_unused]] uint32_t* all_aux,
                               [[maybe_unused]] const uint32_t* all_source) {{
          [[maybe_unused]] constexpr unsigned T = {self.threads};
          const unsigned t = threadIdx.x, b = blockIdx.x;
          [[maybe_unused]] const unsigned lane = t % 32, warp = t / 32;
          uint32_t x = in[b * T + t];{device}
          out[b * T + t] = x;
        }}
        void serial_{self.seed}(Numbers& X, [[maybe_unused]] unsigned b, [[maybe_unused]] Numbers& all_aux,
                                [[maybe_unused]] const Numbers& all_source) {{
          [[maybe_unused]] constexpr unsigned T = {self.threads};{serial}
        }}
        const Registered {name}_is_known({{{self.seed}, "{what}", {self.threads}, {self.blocks}, {aux}, {source}, {name}, serial_{self.seed},
                                          {expected}}});
        """
        lines = (line for line in textwrap.dedent(text).split("\n") if line.strip())
        return "\n".join(lines) + "\n"


def source(seeds, mutated):
    """A C++ file with the kernels of these seeds."""
    head = "// Made by common/interpreter/fuzz/generate.py.\n" '#include "common/interpreter/fuzz/fuzz.h"\n\nnamespace fuzz {\nnamespace {\n'
    return head + "\n".join(Kernel(seed).text(mutated) for seed in seeds) + "\n}  // namespace\n}  // namespace fuzz\n"
