"""The table of 'course profile': one launch as predicted, as the interpreter counts it, as ncu measures it; and why these differ.

A document is what tools/command/profiling/ makes.
"""

import dataclasses
import json
import re
import textwrap
from typing import Callable

from . import results, tables
from .prediction import ELEMENT_BYTES, Problem, predict, tile_named
from .terminal import NOTHING, align, count, rounded, size, width

COLUMNS = ("predicted", "interpreted", "measured")

# ncu's names, besides those of results.py.
STORE_WAVEFRONTS = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
COPY_WAVEFRONTS = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
CONFLICTS = (
    results.SHARED_LOAD_CONFLICTS,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
)
# Of the copy engine; the profiles on a GPU were recorded without it.
BULK_SECTORS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
BULK_STORE_SECTORS = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum"
WGMMA_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"
L2_READS = "lts__t_sectors_srcunit_tex_op_read.sum"
L2_HITS = "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"
L2_MISSES = "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"
STALLS = {
    **tables.STALLS,
    "lg_throttle": "the queue of global memory",
    "mio_throttle": "the queue of shared memory",
    "not_selected": "their turn",
    "no_instruction": "instructions",
}
MOST_STALLS = 3


def scaled(value, factor):
    return None if value is None else factor * value


def figures(counters):
    """What the rows show, from counters by ncu's names; None for what was not counted."""
    of = counters.get
    conflicts = [of(name) for name in CONFLICTS]
    # ncu may count hits in one pass and reads in another one, which differ a little; hits and misses belong together.
    loaded = (of(results.GLOBAL_LOAD_SECTORS) or 0) + (of(BULK_SECTORS) or 0)
    looked_up = of(L2_READS) if of(L2_MISSES) is None else of(L2_MISSES) + of(L2_HITS, 0)
    return {
        "load_sectors": results.quotient(of(results.GLOBAL_LOAD_SECTORS), of(results.GLOBAL_LOAD_REQUESTS)),
        "store_sectors": results.quotient(of(results.GLOBAL_STORE_SECTORS), of(results.GLOBAL_STORE_REQUESTS)),
        "asked": scaled(loaded or None, results.BYTES_PER_SECTOR),
        "shared_loads": of(results.SHARED_LOAD_WAVEFRONTS),
        "shared_stores": of(STORE_WAVEFRONTS),
        "copies": None if of(BULK_SECTORS) else of(COPY_WAVEFRONTS),
        "conflicts": None if conflicts[0] is None else sum(each or 0 for each in conflicts),
        "bulk_stored": scaled(of(BULK_STORE_SECTORS), results.BYTES_PER_SECTOR),
        "wgmma": of(WGMMA_WAVEFRONTS),
        "mma": of("sm__inst_executed_pipe_tensor_op_hmma.sum"),
        "tensor_busy": of("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"),
        "hit_rate": scaled(results.quotient(of(L2_HITS), looked_up), 100),
        "dram_read": of("dram__bytes_read.sum"),
        "dram_written": of("dram__bytes_write.sum"),
        "registers": of("launch__registers_per_thread"),
        "waves": of("launch__waves_per_multiprocessor"),
        "possible_warps": of("sm__maximum_warps_per_active_cycle_pct"),
        "warps": of("sm__warps_active.avg.pct_of_peak_sustained_active"),
        "seconds": scaled(of("gpu__time_duration.sum"), 1e-9),
    }


def without_others(predicted, *counted):
    """PREDICTED without what kernels like the COUNTED one do another way: each has its counters by ncu's names."""
    left_out = set()
    if any(of.get(BULK_SECTORS) for of in counted):  # its threads copy nothing themselves
        left_out |= {"copies", "load_sectors"}
    # The engine stores C, or threads load it from shared memory and store it.
    left_out |= {"store_sectors", "shared_loads"} if any(of.get(BULK_STORE_SECTORS) for of in counted) else {"bulk_stored"}
    return {key: value for key, value in predicted.items() if key not in left_out}


# --- why columns differ: a sentence, or what makes one from a Profile and a row's three values ---


def differ(a, b, tolerance):
    return a is not None and b is not None and abs(a - b) > tolerance * max(abs(a), abs(b))


def found(predicted, interpreted, measured):
    """What was counted instead of what was predicted: by the interpreter, unless it says what was predicted, or nothing."""
    return measured if interpreted is None or interpreted == predicted else interpreted


def whole_sectors(_, *values):
    if found(*values) > values[0]:
        return "The lanes of a warp want parts of sectors, and a sector comes whole, 32 bytes."
    return "Some lanes want the same bytes, or lie beyond the edge of a matrix and ask for nothing."


def asked(profile, *values):
    if found(*values) < values[0] and profile.tile and profile.tile.mapping:
        return "A warp asks once for what several of its lanes want, not once for each lane."
    return whole_sectors(profile, *values)


def shared_loads(profile, *values):
    if values[0] is None or found(*values) < values[0]:
        return "ncu counts loads that found their banks busy once more."
    conflicts = max(each or 0 for each in profile.values("conflicts"))
    if conflicts > (found(*values) - values[0]) / 2:
        return "Bank conflicts come on top: see their row."
    if re.search(r" s\d", profile.document["tile"]):
        return "After its last tile the loop loads fragments for nothing: a branch around that would cost more (lesson 04)."
    return "ncu counts loads that found their banks busy once more."


def conflicts(profile, *_):
    if profile.has("conflicts", "interpreted"):
        return "Lanes of a warp want different words of one bank, and wait for each other."
    return "Accesses of different warps meet now and then, and the hardware counts that too; no warp has a conflict of its own."


def dram_read(profile, *values):
    least, l2 = profile.problem.input_bytes + profile.problem.output_bytes, profile.document["gpu"]["l2_bytes"]
    if not any(differ(values[0], each, profile.tolerance("dram_read")) for each in values[1:]):
        return "The L2 model is a model: docs/interpreter.md says how well it fits."
    if found(*values) < values[0]:
        return "Some of A and B is still in L2 when the next wave of blocks needs it, or is not read at all."
    if least > l2 / 2:
        sizes = f"A, B and C have {size(least)}, L2 {size(l2)}"
        return f"{sizes}: blocks that share tiles drift apart, and what L2 drops is read again."
    return "The kernel's instructions and what the driver needs come from DRAM too; that counts where the matrices are small."


def dram_written(_, *values):
    if found(*values) < values[0]:
        return "What of C is in L2 when the kernel ends is written later, and not counted."
    return "Sectors of C leave L2 before all of their elements are there, and are written more than once."


def seconds(profile, predicted, interpreted, measured):
    if measured is None:
        return "Predicted is the roofline; the projection adds up arithmetic and what moves data, for problems that fill the GPU."
    blocks, sms = profile.blocks(), profile.document["gpu"]["multiprocessors"]
    if blocks and blocks < sms:
        return f"Predicted is the roofline of all {sms} SMs, and there are only {count(blocks)} blocks to run on them."
    if measured < min(each for each in (predicted, interpreted) if each is not None):
        return "The GPU that was measured is faster than the one that the prediction is for."
    return "Predicted is the roofline, when nothing waits. Warps do wait: the stall reasons say for what."


LESS_ROOM = "The interpreter does not know registers: an SM has room for fewer blocks than threads and shared memory say."
# By the keys of the rows.
WHY = {
    "load_sectors": whole_sectors,
    "asked": asked,
    "store_sectors": whole_sectors,
    "shared_loads": shared_loads,
    "shared_stores": "Bank conflicts come on top, or the edges of the matrices: see the row of the conflicts, and the shape.",
    "copies": "Copies that begin past the end of k fill their stage with zeros: the pipeline is longer than what is left of k.",
    "conflicts": conflicts,
    "bulk_stored": "Sectors are written whole, also where a panel begins or ends within one, or ends beyond the matrix.",
    "wgmma": "The prediction multiplies whole tiles, with zeros beyond the edges.",
    "mma": "The prediction multiplies whole tiles, with zeros beyond the edges; the kernel leaves some of that out.",
    "hit_rate": (
        "By the prediction all that DRAM does not deliver is a hit. On this GPU reads of neighbouring SMs are merged before"
        " they reach L2, so fewer hits are left, and what one half of L2 fetches from the other counts as a miss."
    ),
    "dram_read": dram_read,
    "dram_written": dram_written,
    "registers": "Predicted are the sums alone; operands, addresses and indices need registers too.",
    "waves": LESS_ROOM,
    "possible_warps": LESS_ROOM,
    "seconds": seconds,
}
# Nobody predicts how many tiles there are where some of them are narrow.
OF_TILES = ("asked", "shared_stores", "wgmma")
NARROW = "Some tiles are narrow: there are more of them, and each copies and stores whole panels (lesson 19)."


# --- the rows ---


def percent(value):
    return NOTHING if value is None else f"{rounded(value)} %"


def duration(value):
    if value is None:
        return NOTHING
    return f"{rounded(value * 1e6)} µs" if value < 1e-3 else f"{rounded(value * 1e3)} ms"


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    label: str
    show: Callable
    tolerance: float = 0.01  # relative; columns that differ by more are explained
    is_optional: bool = False  # left out where all columns are zero: the kernel has no such instruction


ROWS = (
    Row("load_sectors", "global loads: sectors per request", rounded),
    Row("asked", "global loads: asked of L1", size),
    Row("store_sectors", "global stores: sectors per request", rounded),
    Row("shared_loads", "shared loads: wavefronts", count, is_optional=True),
    Row("shared_stores", "shared stores: wavefronts", count, is_optional=True),
    Row("copies", "cp.async: wavefronts", count, is_optional=True),
    Row("conflicts", "bank conflicts", count, 0),
    Row("bulk_stored", "bulk stores: written", size, is_optional=True),
    Row("wgmma", "wgmma: wavefronts", count, is_optional=True),
    Row("mma", "tensor cores: mma instructions", count, is_optional=True),
    Row("tensor_busy", "tensor cores: busy", percent, is_optional=True),
    Row("hit_rate", "L2: hit rate", percent, 0.05),
    Row("dram_read", "DRAM: read", size, 0.1),
    Row("dram_written", "DRAM: written", size, 0.1),
    Row("registers", "registers of a thread", count),
    Row("waves", "waves of blocks", rounded),
    Row("possible_warps", "occupancy: possible", percent),
    Row("warps", "occupancy: reached", percent),
    Row("seconds", "duration", duration, 0.1),
)


class Profile:
    """A document, and the figures of its columns by the keys of the rows."""

    def __init__(self, document):
        self.document = document
        of = document["problem"]
        element = (ELEMENT_BYTES[of["in"]], ELEMENT_BYTES[of["out"]])
        self.problem = Problem(of["m"], of["n"], of["k"], *element, of["heads"])
        self.tile = tile_named(document["tile"])
        self.columns = {}
        if document["gpu"]:  # else what is measured is all there is
            waves, l2 = self.blocks_per_wave(), document["gpu"]["l2_bytes"]
            predicted = predict(self.problem, self.tile, document["ceilings"], of["in"], waves, l2)
            predicted.update(document["allowed"])
            self.columns["predicted"] = without_others(predicted, *(of["counters"] for of in self.counted()))
        if document["interpreted"]:
            of = document["interpreted"]
            rate = of["flops_per_second"]
            self.columns["interpreted"] = {**figures(of["counters"]), "seconds": rate and self.problem.flops / rate}
        if document["measured"]:
            self.columns["measured"] = figures(document["measured"]["counters"])

    def values(self, key):
        return [self.columns.get(column, {}).get(key) for column in COLUMNS]

    def has(self, key, *columns):
        return any(self.columns.get(column, {}).get(key) for column in columns or ("interpreted", "measured"))

    @staticmethod
    def tolerance(key):
        return next(row.tolerance for row in ROWS if row.key == key)

    def blocks(self):
        return next((of["counters"]["launch__grid_size"] for of in self.counted() if "launch__grid_size" in of["counters"]), None)

    def blocks_per_wave(self):
        """As the GPU has room for them, if that is known: the interpreter knows no registers."""
        of = (self.document["measured"] or {}).get("counters", {})
        measured = results.quotient(of.get("launch__grid_size"), of.get("launch__waves_per_multiprocessor"))
        return measured or self.document["blocks_per_wave"]

    def counted(self):
        return [self.document[column] for column in COLUMNS[1:] if self.document[column]]

    def rows(self):
        """Those in which something was counted."""
        for row in ROWS:
            values = self.values(row.key)
            is_counted = any(each is not None for each in values[1:])
            if is_counted and not (row.is_optional and self.lacks(row, *values)):
                yield row, values

    def lacks(self, row, predicted, interpreted, measured):
        """Whether the kernel has no such instruction. The hardware counts some that are not mma.sync on its tensor cores."""
        if row.key in ("mma", "tensor_busy"):
            return not any(self.values("mma")[:2] if "predicted" in self.columns else self.values(row.key))
        return not (predicted or interpreted or measured)

    def why(self, row, values):
        """A sentence, or ''."""
        predicted, interpreted, measured = values
        pairs = ((predicted, interpreted), (predicted, measured), (interpreted, measured))
        why = WHY.get(row.key)
        if not why or not any(differ(*pair, row.tolerance) for pair in pairs):
            return ""
        if row.key not in self.document["allowed"]:
            if row.key in OF_TILES and " narrow " in (self.document["tile"] or ""):
                return NARROW
            return why if isinstance(why, str) else why(self, *values)
        return "The exercise's test allows less: 'tools/course check' names the line." if found(*values) > predicted else ""

    def stalls(self):
        """What the launch's warps waited for most: (words, warps for each instruction that was issued)."""
        counters = (self.document["measured"] or {}).get("counters", {})
        waiting = [(words, counters.get(tables.STALL.format(name))) for name, words in STALLS.items()]
        waiting = [each for each in waiting if each[1]]
        return sorted(waiting, key=lambda each: -each[1])[:MOST_STALLS]


# --- the page ---


def heading(document):
    of = document["problem"]
    shape = f"{of['heads']} x " * (of["heads"] > 1) + f"{of['m']}x{of['n']}x{of['k']}"
    dtype = of["in"] if of["in"] == of["out"] else f"{of['in']} to {of['out']}"
    return ", ".join(filter(None, (document["title"], document["tile"], shape, dtype)))


def sources(profile):
    """What each column is."""
    document, model = profile.document, (profile.document["gpu"] or {}).get("name")
    if not model:
        lines = []
    elif not document["tile"]:
        lines = ["predicted: arithmetic on the shape, and the most that the exercise's test allows."]
    elif not profile.tile:
        lines = ["predicted: arithmetic on the shape."]
        if "fallback" in document["tile"]:
            lines[0] += " Rows are not aligned, so the kernel ran that all steps share, fallback."
    else:
        lines = [f"predicted: arithmetic on the shape and the tile; the duration is the roofline of {model}, by its datasheet."]
    if document["interpreted"]:
        lines.append(f"interpreted: counted on the CPU; L2, DRAM and duration by models of {model}.")
    if document["measured"]:
        of = document["measured"]
        lines.append(f"measured: by ncu, {of['gpu']}, {'recorded' if of['is_recorded'] else 'now'}: {', '.join(of['files'])}.")
    return lines


def page(profile, style):
    shown = [column for column in COLUMNS if column in profile.columns]
    rows, reasons = [], []
    for row, values in profile.rows():
        rows.append([row.label, *(row.show(each) for column, each in zip(COLUMNS, values) if column in shown)])
        if why := profile.why(row, values):
            reasons.append(f"{row.label}: {why}")
    for words, warps in profile.stalls():
        blank = [NOTHING] * (len(shown) - 1)
        rows.append([f"warps waiting for {words}", *blank, rounded(warps)])
    head, body = align(["", *shown], rows, width())
    lines = [style.bold(heading(profile.document)), "", *head, *body]
    if reasons:
        lines += ["", style.bold("Why they differ")]
    for reason in reasons:
        lines += textwrap.wrap(reason, width(), initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    lines.append("")
    for line in sources(profile):
        wrapped = textwrap.wrap(line, width(), subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        lines += map(style.dim, wrapped)
    return "\n".join(lines) + "\n"


def as_json(profile):
    document = profile.document
    rows = [
        {"name": row.label, **dict(zip(COLUMNS, values)), "why": profile.why(row, values) or None} for row, values in profile.rows()
    ]
    stalls = [{"waiting_for": words, "warps": warps} for words, warps in profile.stalls()]
    of = document["measured"]
    measured = of and {name: of[name] for name in ("gpu", "is_recorded", "files", "kernel")}
    fields = {name: document[name] for name in ("name", "title", "tile", "problem")}
    return json.dumps({**fields, "measured": measured, "rows": rows, "stalls": stalls}, indent=1, ensure_ascii=False) + "\n"
