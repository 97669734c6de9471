"""Every option of every subcommand, each described once. Where two of one name differ, it is in what the command says of its default.

What a step's program is given has the same name there; test_options.py compares with the program's --help.
"""

import dataclasses
from typing import Callable, Optional

from . import values


@dataclasses.dataclass(frozen=True)
class Option:
    """One without a metavar is a flag."""

    name: str
    help: str  # {choices} stands for those that the check has
    metavar: str = ""
    check: Optional[Callable] = None
    default: str = ""  # in words
    repeats: bool = False
    ending: str = ""  # of a value that may be left out: a word that ends otherwise is none

    @property
    def key(self):
        return self.name.lstrip("-").replace("-", "_")

    def description(self):
        text = self.help
        if "{choices}" in text:
            text = text.replace("{choices}", "{} or {}".format(", ".join(self.check.choices[:-1]), self.check.choices[-1]))
        return text + (f" [{self.default}]" if self.default else "")

    def takes(self, words):
        """Whether the first of the WORDS behind it is its value."""
        return bool(self.metavar) and (not self.ending or bool(words) and words[0].endswith(self.ending))

    def but(self, **changes):
        return dataclasses.replace(self, **changes)


SHAPE = Option(
    "--shape",
    "MxNxK: A is MxK, B is KxN, C is MxN; 4096 is 4096x4096x4096; zeros are allowed; several with commas between",
    "LIST",
    values.shapes,
    "256x256x256 on the interpreter, 4096x4096x4096 on a GPU",
)
DTYPE = Option(
    "--dtype",
    "f32, f16 or bf16; also spelt fp32, float32, fp16, float16, half, bfloat16",
    "TYPE",
    values.dtype,
    "f32 if all the steps have it, else f16",
)
LAYOUT = Option(
    "--layout", "nn, nt, tn or tt: A, then B, as it is or transposed", "LAYOUT", values.one_of(*values.LAYOUTS), "nn"
)
ON = Option(
    "--on",
    "gpu or interpreter",
    "WHERE",
    values.one_of(*values.BACKENDS),
    "gpu if there is one and nvcc, else interpreter",
)
MODE = Option(
    "--mode",
    "on a GPU: hot, with what fits in the L2 cache; cold, sets of matrices in turn, together more than 3 times the L2 cache;"
    " single, cold and one launch at a time, without CUDA graphs",
    "MODE",
    values.one_of(*values.MODES),
    "hot",
)
ENERGY = Option(
    "--energy",
    "on a GPU: measure energy too; for SECONDS each, 0.5 to 60, the step and what it is compared with run alone",
    "SECONDS",
    values.energy_seconds,
)
ACTIVATION = Option(
    "--activation",
    "fused into the epilogue, by steps that do so: {choices}",
    "NAME",
    values.activation,
    "what the step is about",
)
BIAS = Option("--bias", "fused too: one number for each column of C, added before the activation")
ALL_TILES = Option(
    "--all-tiles",
    "without STEP: a row for each tile in the table, which else has each step's best. With STEP on the interpreter: all of its tiles"
    " instead of the first, which takes longer to build; on a GPU, and with --activation or --bias, all run anyway",
)
AS = Option(
    "--as",
    "on the interpreter: project the counters to an h200, a100, h100 or 4090",
    "GPU",
    values.one_of(*values.GPUS),
)
ORDER = Option(
    "--order",
    "the order in which the interpreter runs threads and blocks: forward, reverse, random or random:SEED",
    "ORDER",
    values.order,
    "forward",
)
FORCE = Option("--force", "run even if the interpreter will take minutes")
DEBUG = Option(
    "--debug", "one step on the interpreter in gdb, compiled for it: breakpoints, threadIdx, the kernel's variables"
)
OUT = Option(
    "--out",
    "for the results: ladder.json of the last run without STEP, part.json of the last one with STEP, NN_name.json of each step; plots",
    "FOLDER",
    values.folder,
    "build/results",
)
JSON = Option("--json", "print the results as JSON instead of a table; docs/results/README.md describes them")

RANKS = Option(
    "--ranks",
    "of tensor_parallel: how many GPUs share the work, 1 to 64; without a GPU, threads of the interpreter",
    "NUMBER",
    values.number(1, 64),
    "all GPUs, or 2",
)

TILE = Option(
    "--tile",
    "another of the step's tiles: its name, or words of it that no other tile has, such as g8 or swapped",
    "TILE",
    values.text,
    "the step's first",
)
VERBOSE = Option("--verbose", "say of each tile how fast it was, or why it was not timed")
SHOW = Option("--show", "show what has been found so far")
CLEAR = Option("--clear", "forget what has been found so far")
CACHE = Option(
    "--cache", "where times are kept", "FOLDER", values.folder, "COURSE_TUNING_CACHE, else build/tuning"
)

SUITE = Option(
    "--suite",
    "squares: M = N = K from 256 to 4096 in steps of 128; rows: M likewise, N = K = 4096; transformer: of a transformer's layers",
    "LIST",
    values.several(values.one_of(*values.SUITES)),
    "squares,rows,transformer",
)
NO_PEERS = Option("--no-peers", "the steps alone")
FRESH = Option("--fresh", "measure everything, even what an earlier run has")
PLAN = Option("--plan", "say what would run and about how long it takes, and run nothing; needs no GPU")

FAIL_BEYOND = Option(
    "--fail-beyond", "exit with 1 if something changed beyond the noise and by more than that", "PERCENT", values.percent
)
COMPILER = Option(
    "--compiler",
    "gcc or clang; clang is for the interpreter only",
    "NAME",
    values.one_of(*values.COMPILERS),
    "gcc",
)

NEAR = Option(
    "--near",
    "the tests that answer soonest whether a change of FILE is right; repeat it for several",
    "FILE",
    values.text,
    repeats=True,
)

WITH = Option(
    "--with",
    "commands that must be there, too, gdb,clangd for example",
    "LIST",
    values.commands,
)

COUNT = Option("--count", "print ncu's counters of each kernel when the program has ended")
KEEP_GOING = Option("--keep-going", "go on after a report where that is possible, so that the second error shows, too")
KEEP = Option(
    "--keep",
    "keep what is compiled there: the C++ that the compiler is given, and the program",
    "FOLDER",
    values.folder,
)
INCLUDE = Option("-I", "look there for the program's headers, too", "FOLDER", values.text, repeats=True)
DEFINE = Option("-D", "define a macro", "NAME[=VALUE]", values.macro, repeats=True)

BLOCKS = Option(
    "--blocks",
    "how many blocks the SM runs at a time: the others do the same, and are not shown",
    "NUMBER",
    values.number(1, 999),
    "1",
)
SHOW_BLOCK = Option("--show-block", "which block, or the cluster of which: its number in the grid, x first", "NUMBER", values.number(0, 2**31 - 1), "0")
GRID = Option("--grid", "all SMs and all blocks of the step's launch, in place of one block")
LAUNCH = Option("--launch", "which launch, 1 is the first", "NUMBER", values.number(1, 999), "the first that a check has ended, else the one in which most happens")
SEE = Option(
    "--see",
    "on the interpreter: write what the first block did as a page, as 'see' does; it opens where a check has ended the kernel",
    "[FILE.html]",
    values.page,
    "a file in build/see",
    ending=".html",
)
PERFETTO = Option(
    "--perfetto", "write the timeline there, too, in the format that Perfetto and chrome://tracing open", "FILE", values.text
)

ALL = Option("--all", "every exercise")
EXERCISES_ON = ON.but(help="gpu or interpreter; only the interpreter checks memory, races and counters", default="interpreter")
EXERCISES_JSON = Option("--json", "print the verdicts as JSON, for a program that grades")
OF = Option(
    "--of", "check what was handed in: a folder with NN_name/gemm.cuh in it; your own progress stays as it is", "FOLDER", values.text
)
SEED = Option(
    "--seed",
    "draw the random shapes, strides and values of an earlier check again: the number that its message names, 1 to 999999",
    "NUMBER",
    values.number(1, 999999),
    "another one each time",
)
LIMITED = Option("--limited", "for a program that somebody else wrote: in the limits of an exercise's answer, which has no input")
JOBS = Option("--jobs", "how many answers are judged at the same time, 1 to 64", "NUMBER", values.number(1, 64), "one per core")
WEIGHTS = Option(
    "--weights", "what exercises count, where that is not 1: 06=2,15=3; 14=0 leaves one out of the percentage", "LIST", values.weights
)
GRADES_OUT = Option("--out", "for grades.csv and grades.html", "FOLDER", values.folder, "build/grades")
GIVE_UP = Option("--give-up", "even if the exercise has not passed")
SAMPLE = Option("--sample", "one wrong and one right answer of each exercise instead of all")
