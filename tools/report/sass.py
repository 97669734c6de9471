"""Gates on the machine code of the steps' kernels. 'tools/sass --help' says more; steps/*/sass.ini says what is demanded."""

import collections
import configparser
import dataclasses
import os
import re
import sys

from . import disassembly
from .ladder import ROOT
from .results import BadFile
from .terminal import NOTHING, Arguments, Style, align, wants_colours

CHECKED = ("sm_80", "sm_89", "sm_90a")

# --- what an SM has (CUDA C++ Programming Guide, "Compute Capabilities") ---

THREADS = {"sm_80": 2048, "sm_86": 1536, "sm_89": 1536, "sm_90a": 2048, "sm_120": 1536}
SHARED_KIB = {"sm_80": 164, "sm_86": 100, "sm_89": 100, "sm_90a": 228, "sm_120": 100}
REGISTERS, MOST_REGISTERS = 65536, 255  # an SM's, a thread's
REGISTER_UNIT = 256  # registers are given to a warp in such portions


def blocks_that_fit(architecture, threads, blocks):
    """BLOCKS, or less where already their threads are too many for an SM."""
    return min(blocks, THREADS[architecture] // threads)


def register_budget(architecture, threads, blocks):
    """What a thread may use if that many blocks are to run on an SM at a time."""
    warps = blocks_that_fit(architecture, threads, blocks) * (-(-threads // 32))
    return min(REGISTERS // warps // REGISTER_UNIT * REGISTER_UNIT // 32, MOST_REGISTERS)


def shared_budget(architecture, threads, blocks):
    """Likewise a block, in bytes."""
    each = SHARED_KIB[architecture] * 1024 // blocks_that_fit(architecture, threads, blocks)
    return each - disassembly.RESERVED_SHARED


# --- steps/*/sass.ini ---

DEMAND = re.compile(r"([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_x]+)*)(?:\s*(==|>=|<=)\s*(\d+))?(\s+in loop)?")
COMPARE = {"==": int.__eq__, ">=": int.__ge__, "<=": int.__le__}
NUMBERS = ("threads", "blocks", "registers", "shared", "dynamic_shared", "stack")


@dataclasses.dataclass(frozen=True)
class Demand:
    """On how often an instruction stands in a kernel, or in its main loop."""

    pattern: str
    compare: str
    number: int
    in_loop: bool

    def __str__(self):
        often = "" if (self.compare, self.number) == (">=", 1) else f" {self.compare} {self.number}"
        return f"{self.pattern}{often}{' in loop' if self.in_loop else ''}"

    def holds(self, count):
        return COMPARE[self.compare](count, self.number)


def parse_demand(text):
    found = DEMAND.fullmatch(text)
    if not found:
        raise ValueError(f"'{text}' is no demand on an instruction; for example LDS.128 >= 32 in loop")
    return Demand(found[1], found[2] or ">=", int(found[3] or 1), bool(found[4]))


@dataclasses.dataclass
class Gate:
    name: str
    kernels: re.Pattern
    architectures: tuple
    demands: list
    threads: int = None
    blocks: int = None
    registers: int = None
    shared: int = None
    dynamic_shared: int = 0
    stack: int = None

    def register_limit(self, architecture):
        """None if the gate does not limit them; likewise below."""
        return self.lower(self.registers, register_budget, architecture)

    def shared_limit(self, architecture):
        return self.lower(self.shared, shared_budget, architecture)

    def lower(self, stated, budget, architecture):
        limits = [] if stated is None else [stated]
        if self.blocks:
            limits.append(budget(architecture, self.threads, self.blocks))
        return min(limits, default=None)

    def why(self, architecture):
        if not self.blocks:
            return ""
        return f", {blocks_that_fit(architecture, self.threads, self.blocks)} blocks of {self.threads} threads to an SM"


def parse_gate(name, section):
    known = {"kernels", "architectures", "instructions", *NUMBERS}
    unknown = sorted(set(section) - known)
    if unknown:
        raise ValueError(f"'{unknown[0]}' is not known; known are {', '.join(sorted(known))}")
    if not section.get("kernels"):
        raise ValueError("'kernels' is missing, a regular expression for names as 'tools/sass --show' prints them")
    try:
        kernels = re.compile(section["kernels"])
    except re.error as error:
        raise ValueError(f"'kernels' is no regular expression: {error}") from None
    numbers = {}
    for key in set(NUMBERS) & set(section):
        if not re.fullmatch(r"[0-9]{1,9}", section[key]):
            raise ValueError(f"'{key}' is not a whole number: '{section[key]}'")
        numbers[key] = int(section[key])
    if ("blocks" in numbers) != ("threads" in numbers):
        raise ValueError("'threads' of a block and 'blocks' per SM make a budget together: give both or none")
    if "blocks" in numbers and not (0 < numbers["blocks"] <= 32 and 0 < numbers["threads"] <= 1024):
        raise ValueError("'blocks' is not 1 to 32, or 'threads' not 1 to 1024")
    architectures = tuple(section.get("architectures", "").split()) or tuple(THREADS)
    if not set(architectures) <= set(THREADS):
        raise ValueError(f"'architectures' are some of: {' '.join(THREADS)}")
    demands = [parse_demand(line.strip()) for line in section.get("instructions", "").splitlines() if line.strip()]
    return Gate(name, kernels, architectures, demands, **numbers)


def load_gates(path):
    """The gates of a file, in its order."""
    parser = configparser.ConfigParser(
        interpolation=None, delimiters=("=",), comment_prefixes=("#",), inline_comment_prefixes=("#",), default_section=""
    )
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except FileNotFoundError:
        raise BadFile(f"{path} is missing: each step says there what its machine code must be; take another step's as an example.") from None
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise BadFile(f"cannot use {path}: {error}") from None
    gates = []
    for name in parser.sections():
        try:
            gates.append(parse_gate(name, parser[name]))
        except ValueError as error:
            raise BadFile(f"{path}, [{name}]: {error}.") from None
    if not gates:
        raise BadFile(f"{path} has no gate, that is no [section].")
    return gates


# --- checking ---

LOCAL_MEMORY = ("LDL", "STL")
HINTS = {
    "registers": "keep less alive (indices computed again where they are needed, fewer elements a thread), or state fewer blocks",
    "shared": "make the tiles or the number of stages smaller, or state fewer blocks",
    "stack": "an array whose index is unknown to the compiler (unroll the loop over it), or too few registers for what is alive",
    "instruction": "the source asks for something else, or the compiler could not know the alignment or unroll the loop",
}


def check_local_memory(gates, kernel):
    """None is allowed if none of the kernel's gates says otherwise."""
    allowed = max((gate.stack for gate in gates if gate.stack is not None), default=0)
    accesses = sum(kernel.count(each, False) for each in LOCAL_MEMORY)
    if kernel.stack > allowed or (allowed == 0 and accesses):
        demanded = f"at most {allowed} bytes of local memory a thread" if allowed else "no local memory"
        yield "stack", demanded, f"{kernel.stack} bytes, {accesses} accesses"


def check_kernel(gate, kernel, architecture):
    """(kind, what was demanded, what was found) of each demand that does not hold."""
    registers, shared = gate.register_limit(architecture), gate.shared_limit(architecture)
    if registers is not None and kernel.registers > registers:
        yield "registers", f"at most {registers} registers a thread{gate.why(architecture)}", f"{kernel.registers}"
    if shared is not None and kernel.shared + gate.dynamic_shared > shared:
        found = f"{kernel.shared} static and {gate.dynamic_shared} dynamic"
        yield "shared", f"at most {shared} bytes of shared memory a block{gate.why(architecture)}", found
    for demand in gate.demands:
        count = kernel.count(demand.pattern, demand.in_loop)
        if not demand.holds(count):
            none = "; it has no loop with arithmetic" if demand.in_loop and not kernel.main_loop else ""
            yield "instruction", str(demand), f"{count}{none}"


def match(gates, kernels, architecture):
    """[(gate, its kernels)] of the gates that hold for the architecture."""
    return [
        (gate, [kernel for name, kernel in kernels.items() if gate.kernels.search(name)])
        for gate in gates
        if architecture in gate.architectures
    ]


def gates_and_kernels(path, gates, kernels, architecture):
    """The same, for checking: a gate without kernels and a kernel without a gate are mistakes of the file."""
    pairs = match(gates, kernels, architecture)
    for gate, found in pairs:
        if not found:
            example = f"There is {next(iter(kernels))}, for example" if kernels else "There are no kernels at all"
            raise BadFile(f"{path}, [{gate.name}]: no kernel for {architecture} matches '{gate.kernels.pattern}'. {example}.")
    for name in kernels:
        if not any(gate.kernels.search(name) for gate, _ in pairs):
            raise BadFile(f"{path}: no gate for {architecture} matches {name}. Add one, or widen one's 'kernels'.")
    return pairs


def span(numbers):
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def with_limit(numbers, limit):
    return span(numbers) if limit is None else f"{span(numbers)} / {limit}"


def shared_bytes(gate, kernels, architecture):
    """Not of a gate that does not limit them: it need not know of the dynamic ones."""
    limit = gate.shared_limit(architecture)
    return NOTHING if limit is None else with_limit([kernel.shared + gate.dynamic_shared for kernel in kernels], limit)


def counted(gate, kernels):
    """FFMA 512, LDS.128 32 | LDG.128 2: in the main loops | anywhere."""
    texts = {True: [], False: []}
    for pattern, in_loop in dict.fromkeys((demand.pattern, demand.in_loop) for demand in gate.demands):
        texts[in_loop].append(f"{pattern} {span([kernel.count(pattern, in_loop) for kernel in kernels])}")
    return [", ".join(texts[where]) or NOTHING for where in (True, False)]


HEADER = ["gate", "kernels", "registers\n/ allowed", "shared bytes\n/ allowed", "stack", "in the main loop", "anywhere"]


def table(pairs, architecture):
    rows = []
    for gate, kernels in pairs:
        rows.append(
            [
                gate.name,
                str(len(kernels)),
                with_limit([kernel.registers for kernel in kernels], gate.register_limit(architecture)),
                shared_bytes(gate, kernels, architecture),
                span([kernel.stack for kernel in kernels]),
                *counted(gate, kernels),
            ]
        )
    # The last two are words: to the left.
    for column in (5, 6):
        width = max(len(row[column]) for row in [*rows, HEADER])
        for row in rows:
            row[column] = row[column].ljust(width)
    header = [*HEADER[:5], *(each.ljust(max(len(row[i]) for row in rows)) for i, each in enumerate(HEADER) if i > 4)]
    return align(header, rows, 1000)


def as_pattern(name):
    return re.sub(r"[][.*+?(){}|^$\\]", r"\\\g<0>", name)


def check_step(step, pairs, architecture):
    """Lines about what does not hold; kernels with the same fault share them."""
    faults, gates_of, by_name = collections.defaultdict(list), collections.defaultdict(list), {}
    for gate, kernels in pairs:
        for kernel in kernels:
            gates_of[kernel.name].append(gate)
            by_name[kernel.name] = kernel
            for fault in check_kernel(gate, kernel, architecture):
                faults[(gate.name, *fault)].append(kernel.name)
    for name, gates in gates_of.items():
        for fault in check_local_memory(gates, by_name[name]):
            faults[(gates[0].name, *fault)].append(name)
    for (gate, kind, demanded, found), names in faults.items():
        more = f"\n  and {len(names) - 1} more" if len(names) > 1 else ""
        yield (
            f"{step}, {architecture}, [{gate}]: {names[0]}{more}\n  demanded: {demanded}\n  found: {found}\n"
            f"  {HINTS[kind]}.\n  See tools/sass --show {step} --arch {architecture} --kernel '{as_pattern(names[0])}';"
            f" if the demand is out of date, change steps/{step}/sass.ini."
        )


# --- steps and what was built of them ---


def all_steps(root):
    folder = os.path.join(root, "steps")
    return sorted(name for name in os.listdir(folder) if re.match(r"\d", name) and os.path.isdir(os.path.join(folder, name)))


def find_step(text, steps):
    wanted = re.sub(r"^steps/|/$", "", text)
    if re.fullmatch(r"[0-9]+", wanted):
        found = [step for step in steps if int(re.match(r"\d+", step)[0]) == int(wanted)]
    else:
        found = [step for step in steps if wanted and f"_{wanted}" in f"_{step}"]
    if len(found) != 1:
        raise BadFile(f"'{text}' names no step, or several. Give a number or a word of a name: {', '.join(steps)}.")
    return found[0]


def built(root, build, step):
    """The library with the step's kernels."""
    how = "cmake --preset gpu && cmake --build --preset gpu"
    library = os.path.join(build, "steps", f"libstep_{step}.a")
    if not os.path.exists(library):
        raise BadFile(f"there is no {library}: build it with nvcc, which needs no GPU: {how}")
    source = os.path.join(root, "steps", step, "gemm.cuh")
    if os.path.exists(source) and os.path.getmtime(source) > os.path.getmtime(library):
        raise BadFile(f"{library} is older than {source}: build it again: cmake --build --preset gpu --target {step}")
    return library


def require(architectures, library, cuobjdump):
    available = cuobjdump.architectures(library)
    missing = [each for each in architectures if each not in available]
    if missing:
        wanted = ";".join(f"{each[3:]}-real" for each in architectures)
        raise BadFile(
            f"{library} is built for {', '.join(available) or 'no GPU'}, not for {', '.join(missing)}. Build it for all:"
            f" cmake --preset gpu -DCOURSE_GPU_ARCHITECTURES='{wanted}' && cmake --build --preset gpu;"
            f" or check what there is with --arch{' ' + ','.join(available) if available else ''}."
        )


# --- the main loop as text ---


def show_kernel(kernel):
    """Lines: what the kernel uses, what its main loop consists of, and the loop."""
    loop = kernel.main_loop
    yield kernel.name
    yield f"{kernel.registers} registers, {kernel.shared} bytes of static shared memory, {kernel.stack} bytes of local memory"
    if not loop:
        yield "No loop of it does arithmetic."
        return
    names = collections.Counter(each.opcode for each in loop)
    counts = ", ".join(f"{n} {name}" for name, n in names.most_common())
    yield f"Main loop: {len(loop)} of {len(kernel.code)} instructions: {counts}"
    yield ""
    targets = {int(found[0], 16) for each in loop if (found := disassembly.TARGET.search(each.operands))}
    step = min((b.address - a.address for a, b in zip(kernel.code, kernel.code[1:])), default=16)
    before = None
    for instruction in loop:
        if before is not None and instruction.address != before + step:
            yield "         ..."  # code between that is not in the loop
        mark = ">" if instruction.address in targets else " "
        yield f"{mark} {instruction.address:#06x} {instruction}"
        before = instruction.address


def choose_kernel(kernels, pattern):
    try:
        chosen = [kernel for name, kernel in kernels.items() if re.search(pattern, name)]
    except re.error as error:
        raise BadFile(f"--kernel '{pattern}' is no regular expression: {error}.") from None
    if not chosen:
        raise BadFile(f"no kernel matches --kernel '{pattern}'. There are:\n  " + "\n  ".join(kernels))
    return chosen


# --- the command ---


def print_table(title, pairs, architecture, style):
    head, rows = table(pairs, architecture)
    print(style.bold(title), *(style.dim(line) for line in head), *rows, sep="\n")
    print()


def main(words, find_disassembler):
    """FIND_DISASSEMBLER: gives the folder that has one, or installs it; called when arguments and files have been looked at."""
    arguments = Arguments(prog="tools/sass", add_help=False, allow_abbrev=False)
    arguments.add_argument("steps", metavar="STEP", nargs="*")
    arguments.add_argument("--show", metavar="STEP")
    arguments.add_argument("--kernel", metavar="REGEX")
    arguments.add_argument("--arch", metavar="LIST")
    arguments.add_argument("--build", metavar="FOLDER", default=os.path.join(ROOT, "build", "gpu"))
    given = arguments.parse_intermixed_args(words)
    if given.show is not None and given.steps:
        arguments.error("--show is about one step, and checks none")
    if given.kernel is not None and given.show is None:
        arguments.error("--kernel chooses what --show shows")
    architectures = given.arch.split(",") if given.arch is not None else list(CHECKED)
    for each in architectures:
        if each not in THREADS:
            arguments.error(f"--arch '{each}' is none of: {' '.join(THREADS)}")
    if given.show is not None and given.arch is not None and len(architectures) != 1:
        arguments.error("--show shows one architecture")

    known = all_steps(ROOT)
    steps = [find_step(each, known) for each in ([given.show] if given.show is not None else given.steps)] or known
    paths = {step: os.path.join(ROOT, "steps", step, "sass.ini") for step in steps}
    if given.show is not None and not os.path.exists(paths[steps[0]]):
        gates = {steps[0]: [Gate("every kernel", re.compile(""), tuple(THREADS), [])]}  # while the step is being written
    else:
        gates = {step: load_gates(path) for step, path in paths.items()}
    libraries = {step: built(ROOT, given.build, step) for step in steps}
    cuobjdump = disassembly.Cuobjdump(find_disassembler())
    style = Style(wants_colours(sys.stdout))

    if given.show is not None:
        step, library = steps[0], libraries[steps[0]]
        if given.arch is None:
            available = [each for each in cuobjdump.architectures(library) if each in THREADS]
            architectures = ["sm_90a" if "sm_90a" in available or not available else available[-1]]
        require(architectures, library, cuobjdump)
        kernels = cuobjdump.kernels(library, architectures[0])
        chosen = choose_kernel(kernels, given.kernel or "")
        pairs = [pair for pair in match(gates[step], kernels, architectures[0]) if pair[1]]
        print_table(f"{step}, {architectures[0]}", pairs, architectures[0], style)
        print(*show_kernel(chosen[0]), sep="\n")
        if len(chosen) > 1:
            print(f"\nThe first of {len(chosen)} kernels that match; --kernel REGEX chooses by the name above.")
        return 0

    # A step that is compiled for fewer has no gate for the others.
    of_step = {step: [each for each in architectures if any(each in gate.architectures for gate in gates[step])] for step in steps}
    for step in steps:
        require(of_step[step], libraries[step], cuobjdump)
    faults = []
    for step in steps:
        for architecture in of_step[step]:
            kernels = cuobjdump.kernels(libraries[step], architecture)
            pairs = gates_and_kernels(paths[step], gates[step], kernels, architecture)
            print_table(f"{step}, {architecture}", pairs, architecture, style)
            faults += check_step(step, pairs, architecture)
    sys.stdout.flush()
    for fault in faults:
        print(f"course: {fault}", file=sys.stderr)
    print(f"Demands that do not hold: {len(faults)}." if faults else "Every demand holds.")
    return 1 if faults else 0
