"""Rewrites the tables and figures in the README, the lessons and the pages from result files.

A table stands between two lines of their own:

    <!-- table KIND FILE [OPTION=VALUE...] -->
    <!-- end of table -->

KIND   road: the best tile of each step, with its part and what it is built on; elsewhere=STEP,...: those shown at the file's other shape
       tiles: the tiles of step=NAME, from a GPU's file
       conditions: under which they were timed, and the GPU's ceilings, from a GPU's file
       counts: the counters of step=NAME, from an interpreter's file
       fragments: the counters of step=NAME's cp.async, ldmatrix and mma, from an interpreter's file
       epilogues: what each fused epilogue of step=NAME moves, and what a separate kernel would, from an interpreter's file
       fused: step=NAME against separate kernels and cublasLt's epilogues, in all shapes, from a GPU's file
       passes: what ncu saw step=NAME unfused, the separate kernel and step=NAME fused read and write, in all shapes of a GPU's
               file that ncu-fused/ beside it has
       traffic: L2 hit rate and DRAM bytes of the tiles of step=NAME as ncu counted them, from a GPU's file and l2/ beside it
       registers: what tools/registers counted; takes no options
       plans, link: of a block on several GPUs, and what goes between them; take no options
       solutions: those of the transformer exercises beside cuBLAS; takes no options
       latency: µs of each step's fastest tile for each shape, the last step's, and its ratio to cuBLAS, from a GPU's file
       each: for each shape the fastest tile of step=NAME, or of those with tile=NAME, beside all that it was timed with, from a GPU's file
       ratios: of cublasGemmEx's time to ours, for all that a GPU's file has
       candidates: what the search timed of step=NAME for one shape, from a GPU's file
       tuning: the best tile of step=NAME for each shape, beside the step's first tile and the model's choice, from a GPU's file
       caches: where ncu saw the reads of step=NAME answered, from a GPU's file and ncu-caches/ beside it
       limits: how busy ncu saw the units of step=NAME, and what its warps waited for, from a GPU's file and ncu-limits/ beside it
       shapes: TFLOP/s of transformers' multiplications, of cuBLAS and of steps=NAME,NAME... (also peers; without it, all)
       squares: the same of m = n = k
       tile_squares: of m = n = k, the ratio to cublasGemmEx of each tile of step=NAME, from a GPU's file
       energy: of m = n = k, pJ/FLOP and power of each step's tiles and of cuBLAS, from a GPU's file that was measured with --energy
       peers: cuBLAS, the best step without an activation, and peers, for each square or for sizes=256,1024...; in the last
              lines geometric means over all squares: the step's ratio to cublasGemmEx over the peer's, each measured beside it
FILE   a result file, from the repository's root
OPTION step, dtype, layout, mode, shape (4096x4096x4096): where the file has results of several kinds, which ones
       columns=NAME,NAME...: only these, in this order; a name is that of the header with _ for all that is no letter or digit,
               or its beginning (TFLOP_s); the first column is always there
       rows=NAME,NAME...: only rows whose first cell begins so, with _ likewise (128x128x64_warp_64x64_s3_g8)
       merge=yes: neighbouring rows that differ only in the first cell become one

Figures in prose are those of a file, too, if this stands in lines of its own above the paragraph or list:

    <!-- figures FILE [OPTION=VALUE...] NAME=FIGURE... -->

NAME is a column of the table 'tiles' or 'conditions', FIGURE what the file says there, and what the text says. It is of the step's first tile, or of tile=NAME,
its name or a part of it, with _ likewise. Both are rewritten where the file says something else. With table=KIND it is a column of
that table, in row=NAME; of a FILE that ends in .csv, which ncu wrote, a counter, in row=, a part of the kernel's name.

With as=HANDLE, markers further down the page compute with these columns, unrounded; without row=, each has a number for each row:

    <!-- figures docs/results/h200/x.json step=09_tma as=old -->
    <!-- figures docs/results/h200/x.json step=10_wgmma as=new -->
    <!-- computed new.TFLOP_s/old.TFLOP_s=1.6 100*(1-new.µs/old.µs)=36 2*128*64=16384 -->

FIGURE has the text's decimals. A column whose name begins with a digit has _ in front. expressions.py says what else may be computed.

The alternative text of a roofline, or of road.svg, is what the picture says, and is rewritten likewise. So is the line below <!-- place --> in a
lesson: its part, what it is built on, which lesson is next.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import glob
import html
import json
import math
import os
import re
import statistics
import sys
from typing import Callable, Optional

from . import expressions, ladder, results, shapes
from .terminal import NOTHING, Arguments, all_digits, count, percent, plus_minus, rounded, run_command, size, tera, times

END = "<!-- end of table -->"
BEGIN = re.compile(r"<!-- table (\S+) (\S+)((?: \S+=\S+)*) -->")
ANY_MARKER = re.compile(r"<!--\s*(table|end of table)\b")
FIGURES = re.compile(r"<!-- figures (\S+)((?: \S+=\S+)+) -->")
COMPUTED = re.compile(r"<!-- computed((?: \S+=\S+)+) -->")
BROKEN = re.compile("^.*<!-- (?:figures|computed).*$", re.M)  # where no marker can stand
FIGURE_MARKER = re.compile(f"{FIGURES.pattern}|{COMPUTED.pattern}")
PLACE = "<!-- place -->"
ROOFLINE = re.compile(r"!\[[^\]]*\]\((\S*/roofline-\S+-(\d\d)\.svg|\S*road\.svg)\)")


class BadTable(Exception):
    """A marker that cannot be followed; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Context:
    """What a table is made from: RESULTS of one shape, type, layout and mode, in DOCUMENT, which FILE holds."""

    root: str
    folder: str  # of the file with the table
    file: str
    document: dict
    results: list
    lists: dict  # from the names of a kind's lists that the marker has to their values

    def step(self, step):
        """Its name, linked to its lesson; a peer has none, nor has what chooses among the steps."""
        name, _ = ladder.title(step, self.root)
        lesson = os.path.join(self.root, "steps", step, "README.md")
        return f"[{name}]({os.path.relpath(lesson, self.folder)})" if os.path.exists(lesson) else name


# --- kinds ---


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def option_name(words):
    """As an option's value names a header or a row: 'sectors per request' is sectors_per_request."""
    return re.sub(r"\W+", "_", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)).strip("_")


def place(name, names, what):
    """Where NAME, or the only one that begins with it, is in NAMES."""
    exact = [index for index, each in enumerate(names) if each == name]
    found = exact or [index for index, each in enumerate(names) if name and each.startswith(name)]
    if len(found) != 1:
        raise BadTable(f"{'no' if not found else 'more than one'} {what} {name!r}; there are: {', '.join(names)}")
    return found[0]


def merged(rows):
    """Neighbours that differ only in the first cell as one: 'a b s1', 'a b s2' become 'a b s1, s2'."""
    made = []
    for row in rows:
        if made and made[-1][1:] == row[1:]:
            made[-1][0].append(row[0])
        else:
            made.append([[row[0]], *row[1:]])
    for row in made:
        words = [cell.split(" ") for cell in row[0]]
        alike = 0
        while len(words) > 1 and all(len(each) > alike + 1 and each[alike] == words[0][alike] for each in words):
            alike += 1
        row[0] = " ".join([*words[0][:alike], ", ".join(" ".join(each[alike:]) for each in words)])
    return made


def selected(header, rows, options):
    """What the options columns, rows and merge leave."""
    if "rows" in options:
        names = [option_name(row[0]) for row in rows]
        rows = [rows[place(name, names, "row")] for name in options["rows"].split(",")]
    if "columns" in options:
        names = [option_name(each) for each in header]
        wanted = [place(name, names, "column") for name in options["columns"].split(",")]
        wanted = [0, *(index for index in wanted if index)]
        header, rows = [header[index] for index in wanted], [[row[index] for index in wanted] for row in rows]
    if options.get("merge", "yes") != "yes":
        raise BadTable(f"merge={options['merge']}: only merge=yes has a meaning")
    return header, merged(rows) if "merge" in options else rows


def table(group, columns):
    """A row for each result of GROUP. COLUMNS: (header, from a result to its cell)."""
    return [header for header, _ in columns], [[cell(each) for _, cell in columns] for each in group]


@dataclasses.dataclass(frozen=True)
class Kind:
    make: Callable  # from a Context to the header and the rows
    is_of_one_step: bool = True
    backend: Optional[str] = "gpu"  # that its file must be of; None: any
    across: tuple[str, ...] = ()  # what of a setting may differ between its results
    part: Callable = bool  # whether it is about a result
    lists: tuple[str, ...] = ()  # options that choose rows or columns


KINDS = {}
SETTING = ("m", "n", "k", "in", "out", "layout", "mode")
SHAPE = SETTING[:3]


def kind(name, **fields):
    """The function below it makes the tables NAME."""

    def register(make):
        KINDS[name] = Kind(make, **fields)
        return make

    return register


def shape_of(result):
    return results.describe(results.setting(result))[0]


def counted(name):
    return lambda each: count(results.counter(each, name))


def microseconds(result):
    return rounded(result["time"]["median"] * 1e6) if result.get("time") else NOTHING


def noise(result):
    return plus_minus(results.noise(result.get("time")))


def of_cublas(result):
    return percent(ladder.of_baseline(result, "cublasGemmEx"))


TILE = ("tile", lambda each: each["tile"])
TFLOPS = ("TFLOP/s", lambda each: rounded(each.get("tflops")))
NOISE = ("noise", noise)
OF_CUBLAS = ("% of cuBLAS", of_cublas)
OF_ROOFLINE = ("% of roofline", lambda each: percent(each.get("roofline")))
SHOWN_SHAPE = ("shape", shapes.dimensions)
THEN = {results.GEMM_EX_THEN: "cuBLAS then a kernel", results.LT_FUSED: "cublasLt fused", results.UNFUSED_THEN: "unfused then a kernel", results.UNFUSED: "unfused"}
EPILOGUE = ("epilogue", lambda each: results.epilogue(each) or "none")
SECTORS_PER_REQUEST = ("sectors per request", lambda each: rounded(ladder.sectors_per_request(each)))
BYTES = ("bytes", lambda each: size(results.counter(each, "bytes")))
OF_TILE_BYTES = (
    "of bytes per tile",
    lambda each: rounded(results.quotient(results.counter(each, "bytes"), each["bytes"]["tile_reuse"])),
)


@kind("road", is_of_one_step=False, across=(*SHAPE, "mode"), lists=("elsewhere",))
def road_table(context):
    """The best tile of each step, at the shape of most; a step of the list ELSEWHERE at the other one, which is for it."""
    groups = sorted(results.grouped(context.results, results.setting).values(), key=lambda group: -len(ladder.by_step(group)))
    elsewhere = context.lists.get("elsewhere", [])

    def best_of(step):
        of_shape = groups[1] if step in elsewhere else groups[0]
        return max((each for each in of_shape if each["step"] == step), key=lambda each: ladder.of_baseline(each, "cublasGemmEx") or 0)

    def at(each):
        return f"{shapes.dimensions(each)}, {each['mode']}" if each["step"] in elsewhere else results.epilogue(each) or NOTHING

    def base(each):
        found = ladder.built_on(each["step"], context.root)
        return found[:2] if found else NOTHING

    columns = [
        ("part", lambda each: ladder.part(each["step"])),
        ("step", lambda each: context.step(each["step"])),
        ("idea", lambda each: ladder.title(each["step"], context.root)[1]),
        ("built on", base),
        TFLOPS,
        OF_CUBLAS,
        ("another problem", at),
    ]
    return table([best_of(step) for step in ladder.by_step(groups[0])], columns)


@kind("tiles")
def tiles_table(context):
    def of_launch(name):
        return lambda each: f"{each['launch'][name]:,}" if each.get("launch") else NOTHING

    columns = [
        TILE,
        ("ms", lambda each: rounded(each["time"]["median"] * 1e3) if each.get("time") else NOTHING),
        ("TFLOP/s", lambda each: f"{rounded(each.get('tflops'))} {noise(each)}"),
        OF_CUBLAS,
        OF_ROOFLINE,
    ]
    if any(each.get("launch") for each in context.results):
        columns += [
            ("registers", of_launch("registers")),
            ("shared bytes", of_launch("shared_bytes")),
            ("blocks an SM", of_launch("blocks_per_sm")),
        ]
    return table(context.results, columns)


@kind("conditions")
def conditions_table(context):
    ceilings = context.document["ceilings"]

    def of_ceiling(name):
        return lambda each: tera(ceilings.get(name))

    def of_condition(name, scale):
        return lambda each: f"{each['conditions'][name] / scale:,.0f}" if each.get("conditions", {}).get(name) else NOTHING

    columns = [
        TILE,
        ("µs", microseconds),
        ("clock, MHz", of_condition("sm_hz", 1e6)),
        ("power, W", of_condition("power", 1)),
        ("copy, TB/s", of_ceiling("copy_bytes_per_second")),
        ("FMA, TFLOP/s", of_ceiling("fma_f32_flops")),
        ("mma.sync, TFLOP/s", of_ceiling("mma_f16_flops")),
    ]
    if ceilings.get("wgmma_f16_flops"):
        columns += [
            ("wgmma, TFLOP/s", of_ceiling("wgmma_f16_flops")),
            ("A in registers", of_ceiling("wgmma_registers_f16_flops")),
        ]
    return table(context.results, columns)


@kind("counts", backend="interpreter")
def counts_table(context):
    def wavefronts(each):
        number, of_ideal = counted(results.SHARED_LOAD_WAVEFRONTS)(each), ladder.wavefronts_of_ideal(each)
        return number if of_ideal is None else f"{number}, {rounded(of_ideal)}"

    columns = [
        TILE,
        ("global load requests", counted(results.GLOBAL_LOAD_REQUESTS)),
        ("sectors", counted(results.GLOBAL_LOAD_SECTORS)),
        SECTORS_PER_REQUEST,
        ("store sectors per request", lambda each: rounded(ladder.sectors_per_request(each, "store"))),
        ("shared load requests", counted(results.SHARED_LOAD_REQUESTS)),
        ("wavefronts, of ideal", wavefronts),
        BYTES,
        OF_TILE_BYTES,
    ]
    return table(context.results, columns)


@kind("fragments", backend="interpreter")
def fragments_table(context):
    columns = [
        TILE,
        ("cp.async", counted("smsp__inst_executed_op_ldgsts.sum")),
        SECTORS_PER_REQUEST,
        ("ldmatrix", counted("smsp__inst_executed_op_ldsm.sum")),
        ("its wavefronts", counted("sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum")),
        ("wavefronts, of ideal", lambda each: rounded(ladder.wavefronts_of_ideal(each))),
        ("mma", counted("sm__inst_executed_pipe_tensor_op_hmma.sum")),
        BYTES,
        OF_TILE_BYTES,
    ]
    return table(context.results, columns)


def fastest(group, step):
    """Its result with the shortest time; without times, the tile that stands for it."""
    of_step = [each for each in group if each["step"] == step]
    return min(of_step, key=lambda each: each["time"]["median"] if each.get("time") else math.inf)


@kind("latency", is_of_one_step=False, across=SHAPE)
def latency_table(context):
    steps = list(dict.fromkeys(each["step"] for each in context.results))
    rows = []
    for shape, group in results.grouped(context.results, shape_of).items():
        found = {step: fastest(group, step) for step in first_tiles(group)}
        if list(found) != steps:
            raise BadTable(f"{context.file}: {shape} was measured with {', '.join(found)}, not with {', '.join(steps)}")
        last = found[steps[-1]]
        ratios = [times(ladder.of_baseline(last, name)) for name in results.BASELINES]
        rows.append([shapes.dimensions(last), *map(microseconds, found.values()), last["tile"], *ratios])
    return ["shape", *(f"{step[:2]}, µs" for step in steps), f"tile of {steps[-1][:2]}", *results.BASELINES], rows


@kind("each", across=SHAPE, lists=("tile",))
def each_table(context):
    def against(name):
        return lambda each: rounded(ladder.of_baseline(each, name))

    def per_operation(energy, each):
        return rounded(1e12 * energy["joules"] / each["flops"]) if energy else NOTHING

    def watts(energy):
        return rounded(energy["joules"] / energy["seconds"]) if energy else NOTHING

    def of_baseline(each, name):
        return ((each.get("baselines") or {}).get(name) or {}).get("energy")

    def is_wanted(result):
        return all(f"_{name}_" in f"_{option_name(result['tile'])}_" for name in context.lists.get("tile", []))

    columns = [
        SHOWN_SHAPE,
        ("µs", microseconds),
        TFLOPS,
        OF_CUBLAS,
        ("% of cublasLt", lambda each: percent(ladder.of_baseline(each, "cublasLt"))),
        *((f"{words}, times as long", against(name)) for name, words in THEN.items()),
        ("pJ/FLOP", lambda each: per_operation(each.get("energy"), each)),
        ("power, W", lambda each: watts(each.get("energy"))),
        *((f"{name}, pJ/FLOP", lambda each, name=name: per_operation(of_baseline(each, name), each)) for name in results.BASELINES),
        *((f"{name}, W", lambda each, name=name: watts(of_baseline(each, name))) for name in results.BASELINES),
    ]
    chosen = [each for each in context.results if is_wanted(each)]
    if not chosen:
        raise BadTable(f"no tile {','.join(context.lists['tile'])!r}")
    step = chosen[0]["step"]
    return table([fastest(group, step) for group in results.grouped(chosen, shape_of).values()], columns)


@kind("ratios", is_of_one_step=False, across=SETTING)
def ratios_table(context):
    rows = [
        [f"{each['step']} {each['tile']} {shape_of(each)}", rounded(ladder.of_baseline(each, "cublasGemmEx"))]
        for each in sorted(context.results, key=lambda each: (each["step"], each["tile"], shapes.key(each)))
    ]
    return ["step, tile, shape", "cublasGemmEx, times as long"], rows


FIRST_TILE = "128x128x64 warp 64x64 s3 g8"  # of the steps before


@kind("candidates", part=lambda each: each.get("tuning"))
def candidates_table(context):
    (result,) = context.results
    return ["tile", "µs", "TFLOP/s"], [
        [each["tile"], rounded(each["seconds"] * 1e6), rounded(result["flops"] / each["seconds"] * 1e-12)]
        for each in result["tuning"]
        if each["seconds"]
    ]


@kind("tuning", across=SETTING, part=lambda each: each.get("tuning"))  # all shapes that were tuned
def tuning_table(context):
    rows = []
    for each in context.results:
        timed = {tile["tile"]: tile for tile in each["tuning"] if tile["seconds"]}
        if not timed:
            raise BadTable(f"{context.file}: nothing was timed for {shape_of(each)}")
        best = min(timed.values(), key=lambda tile: tile["seconds"])
        expected = min(timed.values(), key=lambda tile: tile["model"])
        rows.append(
            [
                shapes.dimensions(each),
                best["tile"],
                rounded(best["seconds"] * 1e6),
                rounded(each["flops"] / best["seconds"] * 1e-12),
                percent(best["seconds"] / timed[FIRST_TILE]["seconds"]) if FIRST_TILE in timed else NOTHING,
                f"{expected['tile']}, {percent(best['seconds'] / expected['seconds'])} %",
            ]
        )
    header = ["shape", "best tile", "µs", "TFLOP/s", f"{FIRST_TILE}, % of the best", "expected by the model, % of the best"]
    return header, rows


# --- what ncu recorded beside a result file ---


@contextlib.contextmanager
def launches_in(context, folder, what, gpu_checks, name=None):
    """The launches in FOLDER/NAME. BadTable if they are not WHAT the table is made from."""
    first = context.results[0]
    name = name or f"{first['step']}-{shape_of(first)}-{first['in']}.csv"
    path = os.path.join(os.path.dirname(context.file), folder, name)
    try:
        with open(os.path.join(context.root, path), encoding="utf-8", newline="") as file:
            yield list(csv.DictReader(file))
    except (OSError, KeyError, ValueError, ZeroDivisionError) as error:
        raise BadTable(f"{path} does not hold {what}: {error}; record it with tools/{gpu_checks}") from None


def paired(these, those):
    """As zip() does, but none may be left over. (Python 3.9 has no zip() that says so.)"""
    these, those = list(these), list(those)
    if len(these) != len(those):
        raise ValueError(f"{len(those)} where {len(these)} are expected")
    return zip(these, those)


def sector_bytes(number):
    return None if number is None else results.BYTES_PER_SECTOR * float(number)


@kind("caches")
def caches_table(context):
    rows = []
    with launches_in(context, "ncu-caches", "one launch for each tile", "gpu-checks") as launches:
        for each, launch in paired(context.results, launches):  # the tiles in their order, one launch each
            names = (results.GLOBAL_LOAD_SECTORS, "lts__t_sectors_srcunit_tex_op_read.sum")
            of_caches = [size(sector_bytes(launch[name])) for name in names]
            rows.append([each["tile"], size(each["bytes"]["no_reuse"]), *of_caches, size(float(launch["dram__bytes_read.sum"]))])
    return ["tile", "bytes without reuse", "asked of L1", "read from L2", "read from DRAM"], rows


STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# What warps wait for, in words: the tensor cores are busy; the instruction before takes as long; copies; shared memory; others.
STALLS = {
    "math_pipe_throttle": "the pipe",
    "wait": "the instruction before",
    "long_scoreboard": "global memory",
    "short_scoreboard": "shared memory",
    "barrier": "other warps",
}


@kind("limits")
def limits_table(context):
    def of(name):
        return lambda launch: float(launch[name])

    busy = of("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active")
    active, elapsed = of("sm__cycles_active.avg"), of("sm__cycles_elapsed.max")
    columns = [
        ("tensor pipe busy, %", busy),
        ("SMs busy, %", lambda launch: 100 * (active(launch) / elapsed(launch))),
        ("shared memory busy, %", of("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed")),
        ("issue slots busy, %", of("smsp__issue_active.avg.pct_of_peak_sustained_active")),
        *((f"warps waiting for {words}", of(STALL.format(name))) for name, words in STALLS.items()),
    ]
    with launches_in(context, "ncu-limits", "ncu's launches", "gpu-checks limits") as launches:
        if not launches:
            raise ValueError("it is empty")
        launches.sort(key=lambda launch: -busy(launch))
        rows = [
            [tile_of_kernel(launch["Kernel Name"]), *(rounded(number(launch)) for _, number in columns)] for launch in launches
        ]
    return ["tile", *(header for header, _ in columns)], rows


def tile_of_kernel(name):
    """From 'void gemm_kernel<Tile<128, 128, 64, 64, 64, 3, 8, 1>, ...' to '128x128x64 warp 64x64 s3 g8'."""
    found = re.search(r"Tile<([0-9, ]+)>", name)
    numbers = found.group(1).split(", ") if found else []
    if len(numbers) < 5:
        raise ValueError(f"{name} has no tile in its name")
    text = "x".join(numbers[:3]) + " warp " + "x".join(numbers[3:5])
    return text + "".join(f" {letter}{number}" for letter, number in zip("sg", numbers[5:]))


@kind("epilogues", backend="interpreter")
def epilogues_table(context):
    columns = [
        EPILOGUE,
        ("bytes read", BYTES[1]),
        ("bytes written", lambda each: size(sector_bytes(results.counter(each, results.GLOBAL_STORE_SECTORS)))),
        ("a separate kernel would move, predicted", lambda each: size(each.get("saved_bytes"))),
        ("counted", lambda each: size(results.counter(each, "separate_pass_bytes"))),
    ]
    return table(context.results, columns)


@kind("fused", across=SHAPE)
def fused_table(context):
    def against(name):
        return lambda each: times(ladder.of_baseline(each, name))

    columns = [
        SHOWN_SHAPE,
        EPILOGUE,
        ("µs", microseconds),
        NOISE,
        # The time of each over the step's.
        ("cuBLAS, then a kernel", against(results.GEMM_EX_THEN)),
        ("cublasLt, fused", against(results.LT_FUSED)),
        ("unfused, then a kernel", against(results.UNFUSED_THEN)),
        ("unfused, without it", against(results.UNFUSED)),
        ("bytes saved", lambda each: size(each.get("saved_bytes"))),
    ]
    return table(context.results, columns)


@kind("passes", across=SHAPE)
def passes_table(context):
    rows = []
    for each in context.results:
        name = f"caches-{shape_of(each)}-{each['in']}-{results.epilogue(each).replace(' + ', '-')}.csv"
        if not os.path.exists(os.path.join(context.root, os.path.dirname(context.file), "ncu-fused", name)):
            continue
        with launches_in(context, "ncu-fused", "three launches", "gpu-checks fused", name) as launches:
            for kernel, launch in paired(("unfused", "separate kernel", "fused"), launches):
                dram = (size(float(launch[f"dram__bytes_{way}.sum"])) for way in ("read", "write"))
                predicted = size(each["saved_bytes"]) if kernel == "separate kernel" else NOTHING
                asked = size(sector_bytes(launch[results.GLOBAL_LOAD_SECTORS]))
                rows.append([shapes.dimensions(each), kernel, predicted, asked, *dram])
    if not rows:
        raise BadTable(f"there is nothing for {context.file} in ncu-fused/ beside it; record it with tools/gpu-checks fused")
    header = ["shape", "kernel", "reads and writes, predicted", "asked of L1", "read from DRAM", "written to DRAM"]
    return header, rows


@kind("traffic")
def traffic_table(context):
    def mean(launches, name):
        return statistics.fmean(float(launch[f"{name}.sum"]) for launch in launches)

    reads, rows = "lts__t_sectors_srcunit_tex_op_read", []
    with launches_in(context, "l2", "the launches of each tile", "gpu-checks l2") as launches:
        by_tile = results.grouped(launches, lambda launch: launch["Kernel Name"]).values()
        for each, repeated in paired(context.results, by_tile):  # the tiles in their order
            hits, misses = mean(repeated, f"{reads}_lookup_hit"), mean(repeated, f"{reads}_lookup_miss")
            dram = [size(mean(repeated, f"dram__bytes_{way}")) for way in ("read", "write")]
            read = size(sector_bytes(mean(repeated, reads)))
            rows.append([each["tile"], percent(hits / (hits + misses)), read, *dram, rounded(each.get("tflops"))])
    return ["tile", "L2 hit rate, %", "read from L2", "read from DRAM", "written to DRAM", "TFLOP/s"], rows


# --- many shapes ---


def first_tiles(group):
    """From each step to its results, one for each shape and layout: the tile that stands for it."""
    found = {}
    for step, all_tiles in ladder.by_step(results.latest(group)).items():
        found[step] = {key: tiles[0] for key, tiles in results.grouped(all_tiles, shapes.key).items()}
    return found


def geometric_mean(ratios, expected, show):
    """Of those that are there; how many these are if it is not what was EXPECTED."""
    there = [ratio for ratio in ratios if ratio]
    words = show(statistics.geometric_mean(there) if there else None)
    return words if len(there) in (0, expected) else f"{words} ({len(there)} of {expected})"


def baseline_flops(group, name):
    """The FLOP/s of a baseline of one shape. Every result brings one of its own, measured in turn with it: their median."""
    samples = [(each["flops"], (each.get("baselines") or {}).get(name)) for each in group]
    each = [results.quotient(flops, sample["median"]) for flops, sample in samples if sample]
    return statistics.median(filter(None, each)) if any(each) else None


def step_of(context, tiles):
    """The step that TILES are of, and what they compute besides, which cublasGemmEx does not."""
    fused = " or ".join(dict.fromkeys(filter(None, map(results.epilogue, tiles))))
    return context.step(tiles[0]["step"]) + (f", with {fused}" if fused else "")


@kind(
    "shapes",
    is_of_one_step=False,
    across=(*SHAPE, "layout"),
    part=lambda each: shapes.key(each) in shapes.NAMED,
    lists=("steps",),
)
def shapes_table(context):
    groups = shapes.others(context.results).values()
    return rates(context, "a transformer's shapes", {shapes.name(group[0]): group for group in groups})


@kind("squares", is_of_one_step=False, across=SHAPE, part=shapes.is_square, lists=("steps",))
def squares_table(context):
    return rates(context, "squares", {f"{size}³": group for size, group in shapes.squares(context.results).items()})


def rates(context, what, groups):
    """A row for each of GROUPS, results of one shape each, by their names."""
    steps = first_tiles(context.results)
    wanted = context.lists.get("steps", list(steps))
    for step in wanted:
        if step not in steps:
            raise BadTable(f"no results of step {step!r} for {what}; there are: {', '.join(steps)}")
    rows = []
    for name, group in groups.items():
        key = shapes.key(group[0])
        row = [name, tera(baseline_flops(group, "cublasGemmEx"))]
        for step in wanted:
            each = steps[step].get(key, {})
            row.append(NOTHING if each.get("tflops") is None else f"{rounded(each['tflops'])}, {of_cublas(each)} %")
        rows.append(row)
    return ["TFLOP/s, % of cuBLAS", "cuBLAS", *(step_of(context, [*steps[step].values()]) for step in wanted)], rows


@kind("tile_squares", across=SHAPE, part=shapes.is_square)
def tile_squares_table(context):
    tiles = list(dict.fromkeys(each["tile"] for each in context.results))
    rows = []
    for extent, group in shapes.squares(results.latest(context.results)).items():
        ratios = {each["tile"]: of_cublas(each) for each in group}
        rows.append([f"{extent}³", *(ratios.get(tile, NOTHING) for tile in tiles)])
    return ["% of cuBLAS", *tiles], rows


@kind("energy", is_of_one_step=False, across=SHAPE, part=shapes.is_square)
def energy_table(context):
    """Of the baselines, as the first of the tiles has them: each result measures them anew."""

    def name_of(each):  # the call chooses its tile
        return context.step(each["step"]) if each["tile"] == "chosen" else f"{each['step'][:2]}: {each['tile']}"

    columns, rows = {}, []
    for extent, group in shapes.squares(results.latest(context.results)).items():
        measured = [each for each in group if each.get("energy")]
        if not measured:
            raise BadTable(f"{context.file} has no energy for {extent}³: measure with --energy")
        row = {name_of(each): each["energy"] for each in measured}
        row.update({name: (measured[0]["baselines"].get(name) or {}).get("energy") for name in results.BASELINES})
        columns.update(dict.fromkeys(row))
        rows.append((extent, row, measured[0]["flops"]))

    def cell(energy, flops):
        return f"{rounded(1e12 * energy['joules'] / flops)}, {energy['joules'] / energy['seconds']:.0f} W" if energy else NOTHING

    return ["pJ/FLOP, power", *columns], [
        [f"{size}³", *(cell(row.get(name), flops) for name in columns)] for size, row, flops in rows
    ]


@kind("peers", is_of_one_step=False, across=SHAPE, part=shapes.is_square, lists=("sizes",))
def peers_table(context):
    of_sizes, ours, peers = shapes.squares(results.latest(context.results)), {}, {}
    for extent, group in of_sizes.items():
        first = {step: tiles[0] for step, tiles in ladder.by_step(group).items()}
        # An activation is another problem than the peers'.
        steps = [each for step, each in first.items() if step not in results.PEERS and not results.epilogue(each)]
        ours[extent] = max(steps, key=lambda each: ladder.of_baseline(each, "cublasGemmEx") or 0, default={})
        peers[extent] = {peer: first.get(peer, {}) for peer in results.PEERS}
    names = [peer for peer in results.PEERS if any(of_size[peer] for of_size in peers.values())]
    if not names:
        raise BadTable(f"{context.file} has no peers: none of its steps is {' or '.join(results.PEERS)}")

    def row(size):
        best = ours[size]
        of_best = f"{rounded(best['tflops'])} ({best['step'].split('_')[0]})" if best.get("tflops") else NOTHING
        of_baselines = [tera(baseline_flops(of_sizes[size], name)) for name in results.BASELINES]
        return [str(size), *of_baselines, of_best, *(rounded(peers[size][peer].get("tflops")) for peer in names)]

    def means(words, sizes):
        def against(peer):
            pairs = ((ours[size], peers[size][peer]) for size in sizes)
            ratios = (tuple(ladder.of_baseline(each, "cublasGemmEx") for each in pair) for pair in pairs)
            return geometric_mean([results.quotient(*pair) for pair in ratios], len(sizes), times)

        of_baselines = ([ladder.of_baseline(ours[size], name) for size in sizes] for name in results.BASELINES)
        return [words, *(geometric_mean(ratios, len(sizes), times) for ratios in of_baselines), "", *map(against, names)]

    wanted = context.lists.get("sizes", list(map(str, of_sizes)))
    missing = [size for size in wanted if size not in map(str, of_sizes)]
    if missing:
        raise BadTable(f"no results of size {missing[0]!r}; there are: {', '.join(map(str, of_sizes))}")
    rows = [row(int(size)) for size in wanted]
    small = [size for size in of_sizes if size <= shapes.SMALL]
    words = "best step / this, geometric mean of"
    rows.append(means(f"{words} {len(of_sizes)} sizes", list(of_sizes)))
    if small and len(small) < len(of_sizes):
        rows.append(means(f"{words} {len(small)} sizes up to {shapes.SMALL}", small))
    header = ["TFLOP/s at m = n = k", "cuBLAS", "cublasLt", "best step (which)", *(results.PEERS[peer] for peer in names)]
    return header, rows


# --- files that hold nothing to choose from: from what one holds to the header, the rows, and what made it ---


def registers_table(content):
    versions = content["registers"]
    layouts = list(next(iter(versions.values())))
    rows = [[version, *(str(by_layout[layout]) for layout in layouts)] for version, by_layout in versions.items()]
    return ["the epilogue's indices", *layouts], rows, f"nvcc {content['nvcc']}, {content['architecture']}"


FIRST_OF_TRANSFORMERS = "15"  # the exercises before are about kernels, not shapes


def solutions_table(content):
    """The solutions of the transformers' exercises beside cuBLAS. An exercise may have several shapes."""
    solutions = [each for each in content["solutions"] if each["name"] >= FIRST_OF_TRANSFORMERS]
    rows = []
    for solution in solutions:
        for of in solution["problems"]:
            modes = (of["hot"], of["cold"])
            times = [f"{rounded(1e6 * mode['time']['median'])} µs, {percent(mode['ratio']['median'])} %" for mode in modes]
            rows.append([solution["name"][:2], of["words"].split(", where")[0].replace(" (m, n, k)", ""), *times])
    last = solutions[-1]
    made_by = f"{last['gpu']['name']}, driver {last['gpu']['driver']}, {last['created'][:10]}, commit {last['commit']}"
    return ["solution", "problem", "hot, % of cuBLAS", "cold, % of cuBLAS"], rows, made_by


def plans_table(content):
    """The plans of a block on several GPUs, by tokens."""
    rows = []
    for result in content["results"]:
        for each in result["times"]:
            name, seconds = f"{result['tokens']} {each['name']}", each["seconds"]["median"]
            rows.append([name, rounded(1e6 * seconds), rounded(each["efficiency"]), percent(each["hidden"])])
    return ["tokens, plan", "µs", "efficiency", "hidden, %"], rows, "tensor_parallel"


def link_table(content):
    """What goes between GPUs, by who moves it, the call and the bytes."""
    rows = [
        [f"{each['movers']} {each['call']} {each['bytes']}", rounded(1e6 * each["seconds"]), rounded(1e-9 * each["bytes"] / each["seconds"])]
        for each in content["link"]
    ]
    return ["movers, call, bytes", "µs", "GB/s"], rows, "tensor_parallel"


OF_WHOLE_FILES = {
    "plans": (plans_table, "build/gpu/bin/tensor_parallel"),
    "link": (link_table, "build/gpu/bin/tensor_parallel"),
    "registers": (registers_table, "tools/registers"),
    "solutions": (solutions_table, "tools/gpu-checks solutions"),
}


# --- from a marker to its table ---

VIEW = ("columns", "rows", "merge")  # what is shown of a table
OPTIONS = {
    "step": lambda each: each["step"],
    "dtype": lambda each: each["in"],
    "layout": lambda each: each["layout"],
    "mode": lambda each: each["mode"],
    "shape": shape_of,
}


def source(context):
    """What stands below a table: where its numbers are from."""
    document = context.document
    gpu = document["gpu"]
    parts = [gpu["name"], f"driver {gpu.get('driver') or NOTHING}"]
    if document["backend"] == "interpreter":
        parts = [f"counted by the interpreter, as {gpu['name']}"]
    parts += [document["created"][:10], f"commit {document.get('commit') or NOTHING}"]
    dtype = results.describe(results.setting(context.results[0]))[1]
    mode = " and ".join(dict.fromkeys(each["mode"] for each in context.results))
    different = set(map(shapes.of, context.results))
    shape = f"{len(different)} shapes" if len(different) > 1 else shapes.dimensions(context.results[0])
    layout = " and ".join(dict.fromkeys(each["layout"] for each in context.results))
    return ", ".join([*parts, shape, dtype, layout, mode])


def table_of_whole_file(root, name, file, options):
    if options.strip():
        raise BadTable(f"{name} takes no options")
    make, command = OF_WHOLE_FILES[name]
    try:
        with open(os.path.join(root, file), encoding="utf-8") as opened:
            return make(json.load(opened))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration) as error:
        raise BadTable(f"cannot be read: {error!r}; make it with {command}") from None


@functools.cache
def loaded(path):
    return results.load(path)


def table_of_results(root, folder, name, file, options):
    of_kind = KINDS[name]
    wanted = dict(option.split("=", 1) for option in options.split())
    view = {option: wanted.pop(option) for option in VIEW if option in wanted}
    lists = {option: wanted.pop(option).split(",") for option in of_kind.lists if option in wanted}
    unknown = [option for option in wanted if option not in OPTIONS]
    if unknown:
        raise BadTable(f"no such option as {unknown[0]}; there are: {', '.join([*OPTIONS, *VIEW, *of_kind.lists])}")
    if of_kind.is_of_one_step != ("step" in wanted):
        raise BadTable("add step=NAME" if of_kind.is_of_one_step else "it is about all steps: leave out step=")
    document = loaded(os.path.join(root, file))
    if of_kind.backend not in (None, document["backend"]):
        raise BadTable(f"needs a file whose backend is {of_kind.backend}; this one's is {document['backend']}")
    chosen = [each for each in document["results"] if all(OPTIONS[option](each) == wanted[option] for option in wanted)]
    chosen = [each for each in chosen if of_kind.part(each)]
    alike = [field for field in SETTING if field not in of_kind.across]
    if len({tuple(each[field] for field in alike) for each in chosen}) != 1:
        found = "; ".join(dict.fromkeys(", ".join(results.describe(results.setting(each))) for each in chosen)) or "none"
        raise BadTable(f"needs results of one shape, dtype, layout and mode; found: {found}")
    context = Context(root, folder, file, document, chosen, lists)
    return (*selected(*of_kind.make(context), view), source(context))


def make_table(root, folder, name, file, options):
    """The lines between the markers."""
    if name in OF_WHOLE_FILES:
        header, rows, made_by = table_of_whole_file(root, name, file, options)
    elif name in KINDS:
        header, rows, made_by = table_of_results(root, folder, name, file, options)
    else:
        raise BadTable(f"no such kind of table; there are: {', '.join([*KINDS, *OF_WHOLE_FILES])}")
    link = os.path.relpath(os.path.join(root, file), folder)
    return ["", *markdown(header, rows), "", f"{made_by}: [{os.path.basename(file)}]({link})", ""]


# --- figures in prose ---


def columns_of(root, file, options):
    """The names of the columns that a marker of figures is about, and the rows: one, or, with table= or of ncu, any number."""
    options = dict(options)
    kind_of_table, row = options.pop("table", ""), options.pop("row", "")
    tile = "" if kind_of_table else options.pop("tile", "")
    if file.endswith(".csv"):
        try:
            with open(os.path.join(root, file), encoding="utf-8", newline="") as opened:
                header, *rows = csv.reader(opened)
        except (OSError, ValueError) as error:
            raise BadTable(f"cannot be read: {error!r}") from None
        names = [option_name(each[header.index("Kernel Name")]) for each in rows]
    else:
        words = "".join(f" {name}={value}" for name, value in options.items())
        if kind_of_table in OF_WHOLE_FILES:
            header, rows, _ = table_of_whole_file(root, kind_of_table, file, words)
        else:
            header, rows, _ = table_of_results(root, "", kind_of_table or "tiles", file, words)
        if not kind_of_table:
            more, cells, _ = table_of_results(root, "", "conditions", file, words)
            header, rows = header + more[1:], [each + others[1:] for each, others in zip(rows, cells)]
        names = [option_name(each[0]) for each in rows]
    if kind_of_table and row:
        rows = [rows[place(row, names, "row")]]
    elif row or tile:
        rows = [each for each, name in zip(rows, names) if (f"_{tile}_" in f"_{name}_" if tile else row in name)]
        if len(rows) != 1:
            what = f"tile {tile!r}" if tile else f"row {row!r}"
            raise BadTable(f"{'more than one' if rows else 'no'} {what}; there are: {', '.join(names)}")
    elif not kind_of_table and not file.endswith(".csv"):
        rows = rows[:1]
    return [option_name(each) for each in header], rows


def number_in(cell):
    """Of '1.62 GB' 1.62e9, of '645, 101 %' 645."""
    found = re.match(r"±?(-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)(?!\w)(?:\S* ([kMGTPE])B\b)?", cell)
    if not found:
        raise BadTable(f"{cell!r} is no number")
    return float(found[1].rstrip(",").replace(",", "")) * 1000 ** " kMGTPE".index(found[2] or " ")


def figures(root, file, words, handles):
    """From the names in WORDS to the figure in the file; and to that in the marker. A handle of theirs goes to HANDLES."""
    given = dict(word.split("=", 1) for word in words.split())
    lists = KINDS[given["table"]].lists if given.get("table") in KINDS else ()
    options = {name: given.pop(name) for name in (*OPTIONS, *VIEW, *lists, "table", "row", "tile") if name in given}
    handle = given.pop("as", None)
    if not given and not handle:
        raise BadTable("names no figure: add NAME=FIGURE or as=HANDLE")
    columns, rows = columns_of(root, file, options)
    if handle:
        handles[handle] = (file, options)
    if given and len(rows) != 1:
        raise BadTable(f"{len(rows)} rows: add row=NAME")
    now = {name: rows[0][place(name, columns, "column")].split(" ")[0] for name in given}
    missing = [name for name, number in now.items() if number == NOTHING]
    if missing:
        raise BadTable(f"the file has no {missing[0]}")
    return now, given


def computed(root, words, handles):
    """The same for expressions."""

    def look_up(handle, column):
        if handle not in handles:
            raise BadTable(f"no figures above are as={handle}")
        with all_digits():
            columns, rows = columns_of(root, *handles[handle])
        at = place(column.removeprefix("_"), columns, "column")
        numbers = [number_in(each[at]) for each in rows]
        return numbers if len(numbers) != 1 else numbers[0]

    given = dict(word.rsplit("=", 1) for word in words.split())
    try:
        return {text: expressions.shown_as(expressions.value(text, look_up), number) for text, number in given.items()}, given
    except expressions.BadExpression as error:
        raise BadTable(str(error)) from None


def figure(number):
    """Where NUMBER stands by itself in a text."""
    return rf"(?<![\w.,]){re.escape(number)}(?![\w]|[.,]\d)"


def with_figures(root, name, lines, handles):
    """LINES, a paragraph and the markers above it, as they should be; what is wrong; and which markers were different."""
    markers = [line for line in lines if FIGURE_MARKER.fullmatch(line)]
    text = "\n".join(lines[len(markers) :])
    errors, drifted, new, changed = [f"{name}: {line}: broken marker" for line in BROKEN.findall(text)], [], {}, []
    for marker in markers:
        of_file = FIGURES.fullmatch(marker)
        try:
            now, said = figures(root, *of_file.groups(), handles) if of_file else computed(root, COMPUTED.fullmatch(marker)[1], handles)
            was = marker
            for each, number in said.items():
                if not re.search(figure(number), text):
                    raise BadTable(f"the text below does not say {number}")
                if new.setdefault(number, now[each]) != now[each]:
                    raise BadTable(f"{number} would be two figures now, {new[number]} and {now[each]}: mend the text by hand")
                marker = marker.replace(f" {each}={number} ", f" {each}={now[each]} ")
            if now != said:
                drifted.append(f"{name}: {was}")
        except (BadTable, results.BadFile) as error:
            errors.append(f"{name}: {marker}: {error}")
        changed.append(marker)
    if drifted and not errors:
        text = re.sub("|".join(map(figure, sorted(new, key=len, reverse=True))), lambda match: new[match[0]], text)
    return [*changed, *text.split("\n")], errors, drifted


def described(root, path, link, step):
    """The alternative text of a roofline from the words of the plot; where no step is named, of the front page's ladder what it says of itself."""
    plot = os.path.normpath(os.path.join(os.path.dirname(path), link))
    try:
        with open(plot, encoding="utf-8") as file:
            text = file.read()
        if not step:
            return html.unescape(re.search(r"<desc[^>]*>([^<]+)</desc>", text)[1])
        words = [html.unescape(each) for each in re.findall(r">([^<>]+)</text>", text)]
        setting = next(each for each in words if each.startswith("Roofline")).split(": ", 1)[1].split(", ")
        shape, dtype, _, mode = setting
        dimensions = shape.split("x")
        shape = f"{dimensions[0]}³" if len(set(dimensions)) == 1 else "×".join(dimensions)
        where = f"at {shape}, {dtype}, {mode}"
        rate = {each.split(" ")[0]: each.split(" ")[-1] for each in words if "  " in each}
        memory, arithmetic = re.search(r"copy: ([\d.]+ TB/s); .*: ([\d.]+ TFLOP/s)", "\n".join(words)).groups()
        return f"Roofline {where}: step {step} at {rate[step]} TFLOP/s, cuBLAS at {rate['cublasGemmEx']}; the roof: {memory}, {arithmetic}"
    except (OSError, StopIteration, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadTable(f"{os.path.relpath(plot, root)} is no such plot{f' with step {step}' if step else ''}: {error!r}") from None


def with_descriptions(root, path, name, text):
    errors, drifted = [], []

    def rewritten(match):
        try:
            new = f"![{described(root, path, *match.groups())}]({match[1]})"
        except BadTable as error:
            errors.append(f"{name}: {error}")
            return match[0]
        if new != match[0]:
            drifted.append(f"{name}: {match[0]}")
        return new

    return ROOFLINE.sub(rewritten, text), errors, drifted


# --- a lesson's place ---


def place_of(root, step):
    """Its part, what it is built on, and which lesson is next."""
    steps = sorted(name for name in os.listdir(os.path.join(root, "steps")) if re.match(r"\d\d_", name))

    def linked(other):
        return f"[{ladder.title(other, root)[0]}](../{other}/README.md)"

    part, base, later = ladder.part(step), ladder.built_on(step, root), [name for name in steps if name > step]
    title = ladder.PARTS[part][0] if part else ""
    words = [f"{part if part == 'appendix' else f'part {part}'}: {title}"] if part else []
    if base:
        words.append(f"built on {linked(base)}: `diff steps/{{{base},{step}}}/gemm.cuh`")
    if later:
        words.append(f"next is {linked(later[0])}")
    line = " · ".join(words)
    return line[:1].upper() + line[1:]


# --- files ---


def remake(root, path):
    """The file's text as it should be, what is wrong with its markers, and which tables and figures were different."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    name = os.path.relpath(path, root)
    made, errors, drifted, handles = [], [], [], {}
    at = 0
    while at < len(lines):
        line = lines[at]
        if line == PLACE:
            now = place_of(root, os.path.basename(os.path.dirname(path)))
            drifted += [f"{name}: {PLACE}"] if now != lines[at + 1] else []
            made, at = made + [line, now], at + 2
            continue
        if FIGURE_MARKER.fullmatch(line):
            end = next((i for i in range(at, len(lines)) if not lines[i]), len(lines))
            text, wrong, different = with_figures(root, name, lines[at:end], handles)
            made, errors, drifted, at = made + text, errors + wrong, drifted + different, end
            continue
        made.append(line)
        at += 1
        if BROKEN.match(line):
            usage = "<!-- figures FILE [OPTION=VALUE...] NAME=FIGURE... --> or <!-- computed EXPRESSION=FIGURE... -->"
            errors.append(f"{name}:{at}: {line.strip()}: broken marker; write {usage}")
        if not ANY_MARKER.search(line):
            continue
        where = f"{name}:{at}: {line.strip()}"
        begin = BEGIN.fullmatch(line)
        if not begin:
            errors.append(f"{where}: broken marker; write <!-- table KIND FILE [OPTION=VALUE...] --> and {END}")
            continue
        end = next((i for i in range(at, len(lines)) if ANY_MARKER.search(lines[i])), None)
        if end is None or lines[end] != END:
            errors.append(f"{where}: has no {END}")
            continue
        table = lines[at:end]
        try:
            table = make_table(root, os.path.dirname(path), *begin.groups())
        except (BadTable, results.BadFile) as error:
            errors.append(f"{where}: {error}")
        if table != lines[at:end]:
            drifted.append(where)
        made += [*table, END]
        at = end + 1
    text, wrong, different = with_descriptions(root, path, name, "\n".join(made))
    return text, errors + wrong, drifted + different


def all_files(root):
    patterns = ("README.md", "steps/*/README.md", "docs/*.md", "docs/results/*.md")
    return sorted(path for pattern in patterns for path in glob.glob(os.path.join(root, pattern)))


def run(root, check):
    """Rewrites every table below ROOT, or none of them if a marker is wrong; or only checks. Returns the exit code."""
    loaded.cache_clear()
    remade = {path: remake(root, path) for path in all_files(root)}
    errors = [error for _, errors, _ in remade.values() for error in errors]
    for error in errors:
        print(error, file=sys.stderr)
    drifted = {path: (text, tables) for path, (text, _, tables) in remade.items() if tables}
    if check:
        for _, tables in drifted.values():
            for table in tables:
                print(f"{table}: is not what its file says: run 'python3 tools/report tables'", file=sys.stderr)
        return int(bool(errors or drifted))
    if errors:
        return 2
    for path, (text, tables) in drifted.items():
        results.write_text(path, text)
        print("\n".join(tables))
    return 0


def main():
    arguments = Arguments(
        prog="tools/report tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a table has drifted")
    return run(ladder.ROOT, arguments.parse_args().check)


if __name__ == "__main__":
    run_command(main)
