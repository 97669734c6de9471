"""What a peer's program shares with those of the steps, and needs no GPU for: the command line, the roofline, the result file.

The C++ side of each is in common/harness: arguments.cpp, roofline.cpp, results.cpp. The file's format: docs/results/README.md."""

import argparse
import dataclasses
import datetime
import json
import math
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from report import results

VERIFIED, WRONG, BAD_INPUT = 0, 1, 2
BYTES = 2  # of an element: f16 and bf16


class BadInput(Exception):
    """What a user can repair. The message says how."""


# --- the command line ---


@dataclasses.dataclass(frozen=True)
class Spec:
    """A multiplication: A is m x k, B is k x n, C is m x n and row-major; all have elements of one type."""

    m: int
    n: int
    k: int
    dtype: str
    layout: str = "nn"

    @property
    def shape(self):
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k

    @property
    def matrix_bytes(self):
        return BYTES * (self.m * self.k + self.k * self.n + self.m * self.n)


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; --help lists the arguments")


def parse_shape(text):
    if not re.fullmatch(r"[0-9]{1,10}(x[0-9]{1,10}x[0-9]{1,10})?", text):
        raise BadInput(
            f"--shape {text}: expected MxNxK with three numbers of at most 10 digits, for example 256x512x128, or one for all three"
        )
    extents = [int(extent) for extent in text.split("x")]
    return tuple(extents * 3 if len(extents) == 1 else extents)


def parse(arguments, name, description):
    """The command line of a step's program, as far as it makes sense for a peer. Raises BadInput."""
    parser = Arguments(prog=name, description=description, allow_abbrev=False)
    parser.add_argument(
        "--shape",
        default="256x256x256",
        help="MxNxK: C is M x N, K is the common dimension; N is NxNxN; several with commas between [256x256x256]",
    )
    parser.add_argument("--dtype", default="f16", help="element type of A, B and C: f16 or bf16 [f16]")
    parser.add_argument("--layout", default="nn", help="nn, nt, tn or tt: n is row-major, t column-major; A first [nn]")
    parser.add_argument(
        "--mode",
        default="hot",
        help="hot: with what fits in the L2 cache; cold: sets in turn, more than 3 times the L2 cache; single: cold,"
        " one launch at a time [hot]",
    )
    parser.add_argument("--first", action="store_true", help="only the best tile; a peer measures no other anyway")
    parser.add_argument("--seconds", type=float, default=1.0, help="the rounds end after that long [1]")
    parser.add_argument("--json", default="", help="write the results to this file, as docs/results/README.md describes")
    parser.add_argument(
        "--ceilings",
        default=str(ROOT / "build/ceilings.json"),
        help="file with the GPU's ceilings, which the steps' programs measure [build/ceilings.json]",
    )
    parser.add_argument("--probe", action="store_true", help="say whether this machine can run the peer, and end")
    typed = parser.parse_args(arguments)
    if typed.probe:
        return typed
    dtypes = {"f16": "f16", "fp16": "f16", "float16": "f16", "half": "f16", "bf16": "bf16", "bfloat16": "bf16"}
    if typed.dtype in ("f32", "fp32", "float32"):
        raise BadInput("this peer has no kernel for f32; choose another --dtype")
    if typed.dtype not in dtypes:
        raise BadInput(f"--dtype {typed.dtype}: expected f16 or bf16")
    if typed.layout not in ("nn", "nt", "tn", "tt"):
        raise BadInput(f"--layout {typed.layout}: expected nn, nt, tn or tt")
    if typed.mode not in ("hot", "cold", "single"):
        raise BadInput(f"--mode {typed.mode}: expected hot, cold or single")
    if not 0.01 <= typed.seconds <= 60:  # false if it is no number
        raise BadInput(f"--seconds {typed.seconds:g}: expected a number from 0.01 to 60")
    typed.specs = [
        Spec(*parse_shape(shape), dtypes[typed.dtype], typed.layout) for shape in typed.shape.split(",")
    ]
    return typed


# --- statistics ---


def quantile(values, q):
    """Interpolated between neighbours, as common/harness/results/statistics.cpp does."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def quantiles(values):
    return {"median": quantile(values, 0.5), "q20": quantile(values, 0.2), "q80": quantile(values, 0.8)}


def comparable(seconds):
    """From each contestant's rounds to what it takes beside the first one, as common/harness/results/statistics.cpp does."""
    first = seconds[0]
    compared = []
    for each in seconds:
        to_first = ratio(first, each)
        compared.append(quantile(first, 0.5) * to_first["median"] if to_first else quantile(each, 0.5))
    return compared


def sample(seconds, launches, graph):
    """Of one contestant's rounds, seconds per launch each."""
    return {**quantiles(seconds), "rounds": len(seconds), "launches": launches, "graph": graph}


def ratio(ours, other):
    """Time of the other one / our time, round by round; None if no clock resolves our time."""
    ratios = [theirs / mine for mine, theirs in zip(ours, other) if mine > 0]
    return quantiles(ratios) if ratios else None


# --- the roofline ---


def read_ceilings(path, gpu, driver):
    """What the steps' programs keep in PATH for this GPU. Raises BadInput if there is nothing that fits."""
    wanted = ("copy_bytes_per_second", "fma_f32_flops", "mma_f16_flops", "mma_bf16_flops")
    advice = "measure them first, with any step on this GPU: tools/course run 3 --on gpu --dtype f16"
    try:
        kept = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        if (kept["version"], kept["gpu"], kept["driver"]) != (1, gpu, driver or ""):
            raise BadInput(f"{path} has the ceilings of another GPU or driver; {advice}")
        ceilings = {"source": "measured", **{name: float(kept["ceilings"][name]) for name in wanted}}
        if all(0 < ceilings[name] < math.inf for name in wanted):
            return ceilings
    except OSError as error:
        raise BadInput(f"cannot read the GPU's ceilings from {path}: {error.strerror}; {advice}") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise BadInput(f"{path} holds no ceilings; {advice}")


def roofline(spec, tile_m, tile_n, ceilings):
    """The fields of a result that follow from its shape and tile."""
    m, n, k = spec.m, spec.n, spec.k
    peak, bandwidth = ceilings[f"mma_{spec.dtype}_flops"], ceilings["copy_bytes_per_second"]
    count = {
        "no_reuse": BYTES * 2 * m * n * k,
        "tile_reuse": BYTES * (m * k * math.ceil(n / tile_n) + k * n * math.ceil(m / tile_m)),
        "compulsory": spec.matrix_bytes,
    }
    intensity = {name: spec.flops / each if each else None for name, each in count.items()}
    bound = {name: None if each is None else min(peak, each * bandwidth) for name, each in intensity.items()}
    return {
        "flops": spec.flops,
        "bytes": count,
        "intensity": intensity,
        "bound": bound,
        "peak": peak,
        "ridge": peak / bandwidth,
    }


# --- the result file ---


def result(step, spec, mode, tile, tile_m, tile_n, ceilings, timings, baseline, tuning, conditions, launch, versions):
    """One problem's entry.

    TIMINGS: (seconds of each round, launches per round, whether they were a graph) of ours and of cuBLAS.
    BASELINE: what cuBLAS's function is called. TUNING: what the tile was chosen from. VERSIONS: of the peer and what it brings.
    """
    roof = roofline(spec, tile_m, tile_n, ceilings)
    ours, other = timings
    time = sample(*ours)
    rate = spec.flops / time["median"] if time["median"] >= 1e-9 else None
    missing = dict.fromkeys(results.BASELINES)
    return {
        "step": step,
        "tile": tile,
        "first": True,
        "m": spec.m,
        "n": spec.n,
        "k": spec.k,
        "in": spec.dtype,
        "out": spec.dtype,
        "layout": spec.layout,
        "mode": mode,
        "verified": True,
        **roof,
        "note": None,
        "tuning": tuning,
        "time": time,
        "tflops": rate and rate * 1e-12,
        "roofline": rate and rate / roof["bound"]["compulsory"],
        "baselines": {**missing, baseline: sample(*other)},
        "ratio": {**missing, baseline: ratio(ours[0], other[0])},
        "conditions": conditions,
        "launch": launch,
        "peer": versions,
    }


def host():
    system = os.uname()
    cpu = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            cpu = next((line.split(": ", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    except (OSError, IndexError):
        pass
    return {"cpu": cpu, "cores": os.cpu_count() or 0, "os": f"{system.sysname} {system.release.split('-')[0]}"}


def document(gpu, cuda, cublas, ceilings, all_results):
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "schema": results.SCHEMA,
        "version": results.VERSION,
        "created": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": os.environ.get("COURSE_COMMIT") or None,
        "backend": "gpu",
        "host": host(),
        "gpu": gpu,
        "cuda": cuda,
        "cublas": cublas,
        "ceilings": ceilings,
        "results": all_results,
    }


def check_writable(path):
    """Raises BadInput now rather than after minutes of measuring."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadInput(f"cannot write {path}: it is not a regular file; name another one")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise BadInput(f"cannot create {path}; name a file in a folder that you can write to")


def write(path, content):
    """Whole or not at all, and only what the readers take."""
    results.document(content, "")
    try:
        results.write(path, content)
    except results.BadFile as error:
        raise BadInput(str(error)) from None


# --- words ---


def digits(value):
    """Three significant digits, without an exponent."""
    value = float(f"{value:.3g}")
    decimals = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{decimals}f}"


def with_prefix(value):
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * scale:
            return f"{digits(value / scale)} {prefix}"
    return f"{digits(value)} "


def describe(entry):
    """A result for people, as the steps' programs put it."""
    time = entry["time"]
    rounds = f"{time['rounds']} rounds" + (f" of {time['launches']} launches" if time["launches"] > 1 else "")
    noise = 50 * (time["q80"] - time["q20"]) / time["median"] if time["median"] else 0
    text = f"{entry['tile']}: verified; {1e3 * time['median']:.4g} ms +- {noise:.1f} % ({entry['mode']}, {rounds})"
    if entry["tflops"]:
        text += f", {with_prefix(1e12 * entry['tflops'])}FLOP/s"
    for name, other in entry["baselines"].items():
        if other and entry["ratio"][name]:
            text += f"\n  {name}: {1e3 * other['median']:.4g} ms; this is {100 * entry['ratio'][name]['median']:.2f} % of it"
    return text
