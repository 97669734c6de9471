"""The ladder: a table of what each step does, from the result files of one run."""

import os
import re
import sys
import textwrap

from . import results
from .terminal import NOTHING, Arguments, Style, align, breadth, percent, plus_minus, rounded, run_command, size, tera, times
from .terminal import wants_colours, width

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# --- steps ---


def title(step, root=ROOT):
    """('01 naive', 'one thread, one element'), from the first line of the step's lesson; ('Triton', '–') for a peer."""
    if step in results.PEERS:
        return results.PEERS[step], NOTHING
    try:
        with open(os.path.join(root, "steps", step, "README.md"), encoding="utf-8") as lesson:
            match = re.fullmatch(r"# ([^:]+): (.+)", lesson.readline().strip())
    except OSError:
        match = None
    return match.groups() if match else (step.replace("_", " ", 1), NOTHING)


# What the course teaches in which order, and which of its steps.
PARTS = {
    "I": ("CUDA cores", ("01", "02")),
    "II": ("tensor cores", ("03", "04", "05", "06", "07")),
    "III": ("Hopper's machines", ("09", "10", "11", "12", "13")),
    "IV": ("choose by shape", ("08", "14", "15", "16", "20")),
    "appendix": ("the last per cents", ("17", "18", "19")),
}


def part(step):
    """'II'; '' for what is no step, or a step that somebody has added."""
    return next((name for name, (_, numbers) in PARTS.items() if step[:2] in numbers and step not in results.PEERS), "")


def built_on(step, root=ROOT):
    """The step whose kernel STEP's changes, as its kernel says; '' for the first one."""
    try:
        with open(os.path.join(root, "steps", step, "gemm.cuh"), encoding="utf-8") as kernel:
            since = re.search(r"^/// Changes since (\d\d):", kernel.read(), re.M)
    except OSError:
        since = None
    found = [each for each in sorted(os.listdir(os.path.join(root, "steps"))) if each.startswith(f"{since[1]}_")] if since else []
    return found[0] if found else ""


def by_step(group):
    """The tiles of each step, in the ladder's order, the first tile first."""
    steps = results.grouped(sorted(group, key=lambda each: each["step"]), lambda each: each["step"])
    return {step: sorted(tiles, key=lambda each: not each["first"]) for step, tiles in steps.items()}


def best(steps):
    """Of each step the tile that stands for it; where there are projections, that of which they expect most: what tuning found is the
    best for this problem, and projections are for problems that fill the GPU."""
    return {step: [max(tiles, key=lambda each: projected(each) or 0)] for step, tiles in steps.items()}


def speed_ups(steps):
    """For each step, how many times faster its first tile is than that of the step before; None for peers, which have none."""
    medians = [(tiles[0].get("time") or {}).get("median") for tiles in steps.values()]
    ratios = [results.quotient(old, new) if old else None for old, new in zip(medians, medians[1:])]
    return {step: None if step in results.PEERS else each for step, each in zip(steps, [None, *ratios])}


# --- what the counters say ---


def sectors_per_request(result, operation="load"):
    if operation == "load" and results.counter(result, "sectors_per_request") is not None:
        return results.counter(result, "sectors_per_request") or None  # of all reads, 0 if there are none
    names = {
        "load": (results.GLOBAL_LOAD_SECTORS, results.GLOBAL_LOAD_REQUESTS),
        "store": (results.GLOBAL_STORE_SECTORS, results.GLOBAL_STORE_REQUESTS),
    }
    return results.quotient(*(results.counter(result, name) for name in names[operation]))


def wavefronts_of_ideal(result):
    """1 if no read of shared memory waits for another; None if there is none."""
    wavefronts, ideal = results.counter(result, "wavefronts"), results.counter(result, "ideal_wavefronts")
    if ideal is None:
        wavefronts = results.counter(result, results.SHARED_LOAD_WAVEFRONTS)
        conflicts = results.counter(result, results.SHARED_LOAD_CONFLICTS)
        ideal = None if wavefronts is None or conflicts is None else wavefronts - conflicts
    return None if ideal is None else results.quotient(wavefronts, ideal)


def projected(result):
    return (result.get("projection") or {}).get("flops_per_second")


# --- columns: a header, and from a result to its cell ---


def of_baseline(result, name):
    return (results.ratio(result, name) or {}).get("median")


def lt_is_faster(result):
    lt, ex = of_baseline(result, "cublasLt"), of_baseline(result, "cublasGemmEx")
    return lt is not None and (ex is None or lt < ex)


TILE_BYTES = ("bytes,\nper\ntile", lambda each: size(each["bytes"]["tile_reuse"]))
TILE_INTENSITY = ("FLOP/\nbyte,\nper tile", lambda each: rounded(each["intensity"].get("tile_reuse")))
TILE_BOUND = ("bound,\nTFLOP/s,\nper tile", lambda each: tera(each["bound"].get("tile_reuse")))
TILE = ("tile", results.title)


def gpu_columns(group, speed_up):
    columns = [
        TILE_BYTES,
        TILE_INTENSITY,
        TILE_BOUND,
        ("TFLOP/s", lambda each: rounded(each.get("tflops"))),
        ("noise", lambda each: plus_minus(results.noise(each.get("time")))),
        ("% of\ncuBLAS", lambda each: percent(of_baseline(each, "cublasGemmEx"))),
    ]
    if any(map(lt_is_faster, group)):
        columns.append(
            ("% of\nLt", lambda each: percent(of_baseline(each, "cublasLt")) if lt_is_faster(each) else NOTHING)
        )
    return columns + [
        ("% of\nroof-\nline", lambda each: percent(each.get("roofline"))),
        ("speed\n-up", lambda each: times(speed_up[each["step"]]) if each["first"] else ""),
    ]


def interpreter_columns(group, _):
    columns = [
        TILE_BYTES,
        TILE_INTENSITY,
        TILE_BOUND,
        ("bytes\n\ncounted", lambda each: size(results.counter(each, "bytes"))),
        (
            "FLOP/\nbyte,\ncounted",
            lambda each: rounded(results.quotient(each["flops"], results.counter(each, "bytes"))),
        ),
        ("sectors\nper\nrequest", lambda each: rounded(sectors_per_request(each))),
        ("wave-\nfronts\n/ ideal", lambda each: rounded(wavefronts_of_ideal(each))),
    ]
    gpus = sorted({each["projection"]["gpu"] for each in group if each.get("projection")})
    if gpus:
        gpu = ", ".join(gpus).replace("NVIDIA ", "")
        columns.append((f"projected\nTFLOP/s,\n{gpu}", lambda each: tera(projected(each))))
    return columns


# What a terminal shows if it is wide enough, first what would be missed most.
DISPENSABLE = [TILE_BOUND, TILE, TILE_INTENSITY, TILE_BYTES]


# --- the table ---

TILE_LEGEND = (
    "per tile (where the terminal is wide enough): predicted, if each operand is read once per tile of C; bound: what memory and the"
    " peak of the type allow then."
)
GPU_LEGEND = (
    f"{TILE_LEGEND} noise: half of the 20-80 % band. cuBLAS: cublasGemmEx; Lt: cublasLt's fastest algorithm, where it is"
    " faster. roofline: with bytes moved once, and the measured peak of the type. speed-up: over the step before."
)
INTERPRETER_LEGEND = (
    f"{TILE_LEGEND} counted: what ncu would count. wavefronts / ideal: of shared memory, 1.00 without bank conflicts."
)
PROJECTION_LEGEND = (
    " projected: an estimate from the counters for problems that fill the GPU, no measurement. It knows nothing of waiting for memory:"
    " so it cannot show what 04's stages and 05's order of blocks win, only what they cost."
)


def heading(document):
    if document["backend"] == "gpu":
        parts = machine(document)
    else:
        parts = ["counted by the interpreter", f"bounds of {document['gpu']['name']} ({document['ceilings']['source']})"]
        parts.append(f"CUDA {document.get('cuda') or NOTHING}")
    return ", ".join([*parts, f"commit {document.get('commit') or NOTHING}", document["created"]])


def machine(document):
    """What was measured on, in words."""
    words = [("driver", document["gpu"].get("driver")), ("CUDA", document.get("cuda")), ("cuBLAS", document.get("cublas"))]
    return [document["gpu"]["name"], *(f"{name} {value or NOTHING}" for name, value in words)]


def wrapped(label, prose):
    return textwrap.wrap(label + prose, width(), subsequent_indent="  ", break_on_hyphens=False)


def predicted(result):
    """What is known of a problem before a step is chosen, in a sentence."""

    def bytes_and_bound(model):
        bound = result["bound"].get(model)
        return size(result["bytes"][model]) + ("" if bound is None else f": at most {tera(bound)} TFLOP/s")

    return f"If all is moved once, {bytes_and_bound('compulsory')}. If nothing is reused, {bytes_and_bound('no_reuse')}."


def cells(tiles, columns, all_tiles):
    """The header and the rows of a table."""
    header = ["step, tile" if all_tiles else "step", *(name for name, _ in columns)]
    begin = (lambda each: "  " + results.title(each)) if all_tiles else (lambda each: each["step"])
    return header, [[begin(each), *(cell(each) for _, cell in columns)] for each in tiles]


def table(document, setting, group, style, root=ROOT, all_tiles=True, unavailable=None):
    """Lines: a row for each step, or the tiles of each step under its idea. UNAVAILABLE: from steps that cannot run here to the
    reasons, which stand in their places."""
    unavailable = unavailable or {}
    everything = by_step(group)
    steps = everything if all_tiles else best(everything)
    choose = gpu_columns if document["backend"] == "gpu" else interpreter_columns
    columns = [*([] if all_tiles else [TILE]), *choose(group, speed_ups(everything))]
    tiles = [each for of_step in steps.values() for each in of_step]
    shown = [each for each in columns if each not in DISPENSABLE]
    for column in DISPENSABLE:
        wider = [each for each in columns if each in shown or each is column]
        if breadth(*cells(tiles, wider, all_tiles)) <= width():
            shown = wider
    head, body = align(*cells(tiles, shown, all_tiles), width())

    about = predicted(group[0])
    if len(tiles) < len(group):
        about += f" Each step's best tile of {len(group)} in all: --all-tiles shows them."
    lines = [style.bold(", ".join(results.describe(setting))), *wrapped("", about), *head]
    row = iter(body)
    for step in sorted({*steps, *unavailable}):
        if step not in steps:
            lines += [style.bold(f"{step}: {title(step, root)[1]}"), *wrapped("  unavailable: ", unavailable[step])]
            continue
        if all_tiles:
            lines.append(style.bold(f"{step}: {title(step, root)[1]}"))
        for index, _ in enumerate(steps[step]):
            lines.append(style.dim(next(row)) if index else next(row))
    return lines


def report(document, style, root=ROOT, all_tiles=True, unavailable=None):
    legend = GPU_LEGEND if document["backend"] == "gpu" else INTERPRETER_LEGEND
    if any(each.get("projection") for each in document["results"]):
        legend += PROJECTION_LEGEND
    # The table last: that is what a terminal still shows.
    lines = [*wrapped("", heading(document)), "", *map(style.dim, wrapped("", legend))]
    for setting, group in results.grouped(document["results"], results.setting).items():
        lines += ["", *table(document, setting, group, style, root, all_tiles, unavailable)]
    return "\n".join(lines) + "\n"


def main():
    arguments = Arguments(prog="tools/report ladder", description=__doc__)
    arguments.add_argument("files", metavar="FILE", nargs="+", help="result files of one run")
    arguments.add_argument("--out", metavar="FILE", help="also write all results into this one file")
    arguments.add_argument("--json", action="store_true", help="print the merged document instead of the table")
    arguments.add_argument("--all-tiles", action="store_true", help="all tiles instead of each step's best")
    arguments.add_argument(
        "--unavailable", metavar="STEP=REASON", action="append", default=[], help="a step that cannot run here: said in its place"
    )
    given = arguments.parse_args()
    document = results.merge([results.load(file) for file in given.files])
    if not document["results"]:
        raise results.BadFile(f"no results in {' '.join(given.files)}: make some with 'tools/course run'.")
    # The table first: a disk that is full must not cost what was measured.
    unavailable = dict(each.split("=", 1) for each in given.unavailable)
    if given.json:
        sys.stdout.write(results.dump(document))
    else:
        sys.stdout.write(report(document, Style(wants_colours(sys.stdout)), all_tiles=given.all_tiles, unavailable=unavailable))
    sys.stdout.flush()
    if given.out:
        results.write(given.out, document)
    return 0


if __name__ == "__main__":
    run_command(main)
