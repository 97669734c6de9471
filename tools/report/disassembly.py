"""Kernels as the GPU runs them: reads what cuobjdump prints, and finds the loops in it."""

import collections
import dataclasses
import functools
import os
import re
import subprocess

from .results import BadFile

# --- one instruction ---

# Accesses that name their width only where it is not 32 bits.
ACCESSES = ("LD", "ST", "LDG", "STG", "LDS", "STS", "LDL", "STL", "LDGSTS")
WIDTHS = {"U8", "S8", "U16", "S16", "32", "64", "128", "256"}
NEVER = "@!PT"  # the guard of padding that the compiler puts between some instructions
RESERVED_SHARED = 1024  # bytes of every block that the system takes; cuobjdump counts them from sm_90 on


@dataclasses.dataclass(frozen=True)
class Instruction:
    address: int
    guard: str  # "@!P0", or nothing
    opcode: str  # "LDG.E.128.CONSTANT"
    operands: str

    def __str__(self):
        return f"{self.guard:>6} {self.opcode:<28} {self.operands}".rstrip()


@functools.cache
def matches(opcode, pattern):
    """Whether OPCODE is the instruction that PATTERN names and has its modifiers, in their order, among others.

    LDG.128 matches LDG.E.128.CONSTANT. An access without a width is one of 32 bits: LDG.32 matches LDG.E.
    """
    name, *modifiers = opcode.split(".")
    if name in ACCESSES and not WIDTHS & set(modifiers):
        modifiers.append("32")
    wanted = pattern.split(".")
    rest = iter(modifiers)
    return name == wanted[0] and all(modifier in rest for modifier in wanted[1:])


def arithmetic(opcode):
    """About how much of a matrix product an instruction is."""
    name = opcode.split(".")[0]
    return 64 if name.endswith("MMA") else 1 if name in ("FFMA", "FFMA2", "DFMA") else 0


# --- the flow of control ---


TARGET = re.compile(r"\b0x[0-9a-f]+$")


def successors(code):
    """Of each instruction, by index: those that may come after it."""
    index = {instruction.address: i for i, instruction in enumerate(code)}
    joins = collections.defaultdict(list)  # by barrier register: where the threads that BSSY separates meet again
    for instruction in code:
        if instruction.opcode.startswith("BSSY"):
            barrier, target = instruction.operands.rsplit(",", 1)
            joins[barrier].append(index.get(int(target, 16)))

    def after(i, instruction):
        name, following = instruction.opcode.split(".")[0], [i + 1] if i + 1 < len(code) else []
        if name in ("EXIT", "RET", "BRX", "JMX"):
            return following if instruction.guard else []
        if name == "BSYNC":
            return following if i + 1 in joins[instruction.operands] else joins[instruction.operands]
        if name in ("BRA", "JMP", "CALL") and (found := TARGET.search(instruction.operands)):
            targets, condition = [index.get(int(found[0], 16))], found.start() > 0
            # CALL.REL.NOINC is a call that comes back, or a jump far away: out of a loop, say.
            return targets + following if instruction.guard or condition or name == "CALL" else targets
        return following

    return [[each for each in after(i, instruction) if each is not None] for i, instruction in enumerate(code)]


def loops(code):
    """The sets of indices that the loops consist of. A jump back is one to an instruction on the way to it."""
    following = successors(code)
    preceding = [[] for _ in code]
    for i, each in enumerate(following):
        for j in each:
            preceding[j].append(i)

    jumps_back = collections.defaultdict(list)  # head: where it is jumped to from
    on_the_way, seen = {0}, {0}
    way = [(0, iter(following[0]))] if code else []
    while way:
        i, rest = way[-1]
        j = next(rest, None)
        if j is None:
            way.pop()
            on_the_way.discard(i)
        elif j in on_the_way:
            jumps_back[j].append(i)
        elif j not in seen:
            seen.add(j)
            on_the_way.add(j)
            way.append((j, iter(following[j])))

    found = []
    for head, tails in jumps_back.items():
        body, rest = {head}, list(tails)
        while rest:
            i = rest.pop()
            if i not in body:
                body.add(i)
                rest += [j for j in preceding[i] if j in seen]
        found.append(body)
    return found


# --- one kernel ---


@dataclasses.dataclass
class Kernel:
    name: str  # without namespaces and parameters
    code: list
    registers: int = 0
    shared: int = 0  # bytes, static
    stack: int = 0  # bytes

    @functools.cached_property
    def main_loop(self):
        """The instructions of the loop that does most of the arithmetic, not counting what loops inside it do."""
        found = sorted(loops(self.code), key=len)
        work = [0] * len(found)
        for i, instruction in enumerate(self.code):
            amount = arithmetic(instruction.opcode)
            innermost = next((n for n, body in enumerate(found) if amount and i in body), None)
            if innermost is not None:
                work[innermost] += amount
        if not any(work):
            return []
        return [self.code[i] for i in sorted(found[work.index(max(work))])]

    def count(self, pattern, in_loop):
        code = self.main_loop if in_loop else self.code
        return sum(matches(each.opcode, pattern) for each in code if each.guard != NEVER)


def short_name(name):
    """gemm_kernel<Tile<128, 8>, Kind:1, float>, of step_x::gemm_kernel<step_x::Tile<128, 8>, (step_x::Kind)1, float>(...)"""
    name = re.sub(r"^void |\b\w+::", "", name)
    if name.endswith(")"):  # the parameters, whose types may have parentheses too
        depth = 0
        for i in range(len(name) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(name[i], 0)
            if depth == 0:
                name = name[:i]
                break
    return re.sub(r"\((\w+)\)(\d+)", r"\1:\2", name)


def demangle(names):
    try:
        run = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise BadFile("c++filt is missing, which comes with g++: apt-get install binutils.") from None
    return dict(zip(names, run.stdout.split("\n")))


# --- what cuobjdump prints ---

FUNCTION = re.compile(r"\s*Function : (\S+)")
LINE = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z]\w*(?:\.\w+)*)\s*([^;]*);")
USAGE = re.compile(r"Function ([^\s:]+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


def read_code(sass):
    """{mangled name: instructions} of 'cuobjdump -sass'."""
    functions, code = {}, None
    for line in sass.splitlines():
        if found := LINE.match(line):
            if code is not None:
                code.append(Instruction(int(found[1], 16), found[2] or "", found[3], found[4].strip()))
        elif found := FUNCTION.match(line):
            code = functions[found[1]] = []
    return functions


def read_kernels(sass, usage, architecture):
    """Kernels by their short names, of what 'cuobjdump -sass' and 'cuobjdump -res-usage' print of one architecture."""
    functions = read_code(sass)
    resources = {name: tuple(map(int, numbers)) for name, *numbers in USAGE.findall(usage)}
    names = demangle(list(functions))
    kernels = {}
    for mangled, code in functions.items():
        if mangled not in resources:
            raise BadFile(f"cuobjdump says nothing of the registers of {mangled} for {architecture}.")
        registers, stack, shared, local = resources[mangled]
        if shared and int(re.search(r"\d+", architecture)[0]) >= 90:
            shared -= RESERVED_SHARED
        name = short_name(names[mangled])
        kernels[name] = Kernel(name, code, registers, shared, stack + local)
    return dict(sorted(kernels.items()))


class Cuobjdump:
    """The program in FOLDER, where nvdisasm lies too."""

    def __init__(self, folder):
        self.program = os.path.join(folder, "cuobjdump")

    def run(self, *arguments):
        run = subprocess.run([self.program, *arguments], capture_output=True, text=True, errors="replace", check=False)
        if run.returncode:
            raise BadFile(f"{' '.join([self.program, *arguments])} failed: {(run.stderr or run.stdout).strip()}")
        return run.stdout

    def architectures(self, file):
        return sorted(set(re.findall(r"\.(sm_\w+)\.cubin", self.run("-lelf", file))))

    def kernels(self, file, architecture):
        sass, usage = (self.run(what, "-arch", architecture, file) for what in ("-sass", "-res-usage"))
        return read_kernels(sass, usage, architecture)
