"""What things cost on an H200: the constants of the cost model, each with where it is from. None is fitted to what the model predicts."""

import csv
import dataclasses
import json
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "docs/results/h200")
CLOCK = 1.98e9  # the highest, at which docs/hardware.md has the rates of L1 and L2
QUARTERS = 4  # of an SM: each has a scheduler and a tensor core


@dataclasses.dataclass(frozen=True)
class Constant:
    name: str
    value: float
    unit: str
    source: str


def ladder():
    with open(os.path.join(RESULTS, "ladder-f16.json"), encoding="utf-8") as file:
        return json.load(file)


COUNTED = "{}/03_tensor_core-4096x4096x4096-f16.csv"  # by ncu, of the last step before 04: 04 is what the model is compared with


def counted(folder):
    """{ncu's metric: its value} of step 03 at 4096 x 4096 x 4096."""
    with open(os.path.join(RESULTS, COUNTED.format(folder)), encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    return {name: float(value) for name, value in row.items() if name not in ("ID", "Kernel Name")}


def clocks_of_mma(multiprocessors):
    """For how long a tensor core is busy with one, whatever the GPU's clock is."""
    found, products = counted("ncu-limits"), 4096**3 / (16 * 8 * 16)
    busy = found["sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"] / 100 * found["sm__cycles_active.avg"]
    return busy * multiprocessors * QUARTERS / products


def from_dram():
    """Where all SMs are busy, for which share of its tiles along k a block waits for DRAM: A's part or B's is not in L2 yet, and what is asked
    for first comes whole."""
    hits, misses = (counted("profile")[f"lts__t_sectors_srcunit_tex_op_read_lookup_{what}.sum"] for what in ("hit", "miss"))
    return 1 - (hits / (hits + misses)) ** 2


@dataclasses.dataclass(frozen=True)
class Costs:
    """In clocks, and in bytes a clock of one SM."""

    gpu: str
    multiprocessors: int
    mma: float  # of 16 x 8 x 16: 4096 operations
    wgmma: float  # operations a clock and tensor core
    l2: float  # bytes a clock that come to an SM, and as many that leave it
    dram_latency: float
    l2_latency: float
    shared_latency: float
    cluster_latency: float
    constants: tuple


def h200(all_busy=False):
    """@param all_busy whether other SMs copy the same tiles: then some are in L2 already"""
    hardware, multiprocessors = "docs/hardware.md", ladder()["gpu"]["multiprocessors"]
    dram, l2 = 690, 281
    latency = Constant("a copy or load, until its first byte is there", dram, "clocks", f"{hardware}: DRAM; nobody has asked for it before")
    if all_busy:
        share = from_dram()
        why = f"{hardware}: L2 {l2}, DRAM {dram}; for {100 * share:.0f} % of the tiles a block waits for DRAM, by what ncu says of step 03 (docs/results/h200/{COUNTED.format('profile')})"
        latency = Constant(latency.name, round(l2 + share * (dram - l2)), "clocks", why)
    constants = {
        "mma": Constant("mma.sync of 16 × 8 × 16, on one of the SM's 4 tensor cores", round(clocks_of_mma(multiprocessors), 2), "clocks", f"docs/results/h200/{COUNTED.format('ncu-limits')}: how long ncu sees the tensor cores busy in step 03; nvcc lets as many clocks pass before a warp's next one"),
        "wgmma": Constant("wgmma, on one tensor core", 1024, "operations a clock", f"{hardware}: 2,048 multiply-adds a clock and SM"),
        "l2": Constant("from L2 to an SM, and back", 64, "bytes a clock", f"{hardware}: “Rates of L1 and L2”"),
        "dram_latency": latency,
        "l2_latency": Constant("a store, until it is written", l2, "clocks", f"{hardware}: L2"),
        "shared_latency": Constant("a load from shared memory, until it is in registers", 40, "clocks", f"{hardware}: L1; 128 bytes a clock besides, a wavefront"),
        "cluster_latency": Constant("to or from another block's shared memory: a load, a store, an arrival; the cluster's barrier, after the last one", 180, "clocks", f"{hardware}: “of another block”; bytes leave and come as those of L2 do"),
    }  # fmt: skip
    values = {key: each.value for key, each in constants.items()}
    return Costs(gpu="NVIDIA H200", multiprocessors=multiprocessors, constants=tuple(constants.values()), **values)


# Of step 04 at 4096 x 4096 x 4096, the time by stages, in times of that with three: what the model says. test_see.py computes it again.
STAGES_OF = "04_pipelined_num_stages"
PREDICTED = {"s1": 1.13, "s2": 1.01, "s3": 1, "s4": 1.04, "s6": 1.04}


def measured_stages():
    """The same as an H200 has taken it."""
    times = {each["tile"].split()[-1]: each["time"]["median"] for each in ladder()["results"] if each["step"] == STAGES_OF}
    return {stages: times[stages] / times["s3"] for stages in PREDICTED}


def how_good():
    """A sentence: what was predicted, and what was measured."""
    predicted, measured = (" : ".join(f"{value:.3g}" for value in each.values()) for each in (PREDICTED, measured_stages()))
    return (
        f"How good is that? Step 04 at 4096³ with 1, 2, 3, 4 and 6 stages, in times of that with 3, if all SMs are busy: the model says {predicted}, an H200 took {measured}."
        " With a full ring the model keeps the tensor cores busy nearly always; a GPU does not, for instructions wait for those before them."
        " So the model's clocks are too few: docs/see.md."
    )


# What the model leaves out: stated on each page.
LEFT_OUT = (
    "instructions that are neither accesses nor copies, products or waits (addresses, loops); each event costs its warp one clock",
    "what a barrier, an arrival or the end of a wait itself costs",
    "how long after its issue a product's sums can be used by the next one",
    "other SMs: the L2 cache gives this one its full rate whatever they do. So a multicast, which L2 answers once for all blocks, saves no time here",
)
