"""course compare: what changed between two result files. How that is decided: tools/report/compare.py."""

from ..cli import options
from ..cli.arguments import Command, require_file
from ..machine.processes import become, hold_ctrl_c
from ..messages import Refused
from ..places import script


def run(given):
    files = given.everything
    if len(files) != 2:
        raise Refused("compare needs two result files; see 'tools/course compare --help'.")
    for file in files:
        require_file(file, "name a result file, such as build/results/ladder.json.")
    hold_ctrl_c()
    become([*script("report"), "compare", *given.to_pass(options.FAIL_BEYOND), "--", *files])


COMMAND = Command(
    name="compare",
    usage="OLD NEW [OPTION...]",
    intro="""
    Says what changed between two result files (build/results/ladder.json of 'tools/course run', docs/results/*/*.json), and whether that
    is beyond the noise. Compares what both files have: same step, tile, shape, types, layout and mode.

    On a GPU that is the ratio to cuBLAS (cublasGemmEx, else cublasLt) if both files have one, else the time. The noise of a sample is
    half of its 20-80 % band over its median; that of a change is the sum of both, and at least 1 %. The interpreter's counters have no
    noise: they must be equal. Where tuning found another tile, the two that stand for the step are compared.

    Without a GPU: what did your change to 02's kernel change of what it counts?

      tools/course run 2 --out build/before
      (edit steps/02_tiled/gemm.cuh)
      tools/course run 2
      tools/course compare build/before/ladder.json build/results/ladder.json
    """,
    options=(options.FAIL_BEYOND,),
    outro="Exit code: 0 compared, 1 see --fail-beyond, 2 refused input or a file that cannot be used, 130 interrupted.",
    run=run,
)
