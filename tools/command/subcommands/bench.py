"""course bench: the steps and their peers in many shapes, on a GPU. What is measured how: benchmark.py."""

import os

from .. import benchmark
from ..building import folder
from ..cli import options, steps
from ..cli.arguments import Command
from ..machine import gpu, needs, processes
from ..messages import Refused
from ..places import BUILD
from .commit import export_commit
from .run import require_writable


def peers(cmake):
    """Those that the build knows."""
    said = processes.ask([cmake, "--build", os.path.join(BUILD, "gpu"), "--target", "help"])[1]
    names = [line[: -len(": phony")] for line in said.splitlines() if line.endswith(": phony")]
    return [name for name in names if name.startswith("peer_")]


def run(given):
    named = steps.select(given.everything)
    out = given.out or os.path.join(BUILD, "results", "bench")
    if not given.plan:
        reason = gpu.reason_against()
        if reason:
            raise Refused(f"bench measures on a GPU: {reason}. Here, 'tools/course bench --plan' says what it would do.")
        require_writable(out)
    programs = named or steps.all_steps()
    if gpu.has_gpu():
        programs, _ = needs.available("steps", programs, "gpu", bool(named))
    suites, dtypes, modes = (
        list(dict.fromkeys(values))  # each once
        for values in (given.suite or options.values.SUITES, given.dtype or benchmark.DTYPES, given.mode or benchmark.MODES)
    )
    if not given.plan:
        tools = folder.prepare("gpu", ["python3"], programs)
        found = [] if given.no_peers else peers(tools.cmake)
        if found:
            folder.prepare("gpu", targets=found)
        export_commit()
    benchmark.refuse_types(programs, dtypes, bool(named))
    with_peers, tuned = not given.no_peers, steps.tuned_steps()
    return benchmark.run(programs, suites, dtypes, modes, tuned, out, with_peers, given.fresh, given.plan)


COMMAND = Command(
    name="bench",
    usage="[STEP...] [OPTION...]",
    intro=f"""
    Measures the tile that stands for each step in many shapes on this machine's GPU, cuBLAS beside it in every run, and the peers
    that can run here: CUTLASS where its headers are, Triton where PyTorch and Triton are. Takes about {benchmark.usual_duration()} on
    an H200, and longer with peers; --plan says what is measured, and how long that takes. After an interruption the same command goes
    on: parts that this course measured on this GPU are kept. STEP is a number (1 or 01) or a word of a folder's name below steps/
    (naive); without one, all of them.
    """,
    options=(
        options.SUITE,
        options.DTYPE.but(metavar="LIST", default="f16,bf16", check=options.values.several(options.values.dtype)),
        options.MODE.but(
            help="hot, cold, single; see 'tools/course run --help'",
            metavar="LIST",
            default="hot,cold",
            check=options.values.several(options.values.one_of(*options.values.MODES)),
        ),
        options.NO_PEERS,
        options.FRESH,
        options.PLAN,
        options.OUT.but(
            help="for the results: bench-DTYPE-MODE.json of what this command asked for, and the parts, from which the next one"
            " goes on",
            default="build/results/bench",
        ),
    ),
    outro="""
    Compare two runs with 'tools/course compare', draw one with 'tools/plot'.

    Exit code: 0 verified, 1 a wrong result, a failed check or a failed build, 2 refused input, 130 interrupted. A failed part does
    not stop the ones after it, but the file of its type and mode then stays as it was; of several codes, 1 comes before 2.
    """,
    run=run,
)
