"""tools/plot: draws result files. Installs matplotlib where there is none."""

import os
import shutil
import sys

from ..building import folder
from ..cli.arguments import wants_help
from ..machine import packages, processes, toolchain
from ..messages import Failed, Refused, Stop, say
from ..places import BUILD, PYCACHE, PYTHON, ROOT

DEBIAN_PYTHON = "/usr/bin/python3"
NEEDS_MATPLOTLIB = 69  # as in tools/report/plots.py
VENV = os.path.join(BUILD, "plot-venv")

HELP = """\
Usage: tools/plot [FILE...] [--out FOLDER] [--only PLOT,... [--step NUMBER,...]]

Draws result files, what 'tools/course run' writes, as SVG and PNG, and prints the path of every file that it wrote:

  ladder     a bar per step and tile beside cuBLAS, with 20-80 % quantiles; or as projected, if nothing was measured
  roofline   the steps below the GPU's bandwidth and peak, with three ways to count their bytes
  sizes      TFLOP/s against size, from files with several square sizes
  rows       TFLOP/s against m, from files with four m or more for the same n and k
  ratios     a heat map of the ratio to cublasGemmEx: the other shapes, of all layouts, by steps and peers
  tuning     a heat map of what a search found: tiles by shapes, with % above the best tile's time, and why some have none

One of each per type, layout and mode: ladder-f32-hot.svg (layout nn), ladder-f32-tn-hot.svg, ...; of ratios, per type and
mode. The shape of ladder and roofline is the one that most steps ran, and of those the largest. If several FILEs give the
same plot, the first one's is kept. Peers, such as Triton, stand beside the steps if a FILE has them.

  FILE            result files                                [build/results/ladder.json]
  --out FOLDER    where the plots go; made if missing         [plots/ beside each FILE]
  --only PLOT,... only these: --only sizes,rows               [all]
  --step NUMBER,... with --only roofline: one for each of these steps, 03 for example, in which the others are pale
  --help          show this

Exit code: 0 drawn, 1 matplotlib could not be installed, 2 refused input, 130 interrupted.
"""


def draw(words):
    """The exit code of plots.py in the first Python that has matplotlib, or None if there is none. It looks at its arguments and files
    before it looks for matplotlib: nothing is installed for bad ones."""
    # Nothing is written outside of build/ and the plots' folder.
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=PYCACHE, MPLCONFIGDIR=os.path.join(BUILD, "matplotlib"))
    for python in (PYTHON, DEBIAN_PYTHON, os.path.join(VENV, "bin/python")):
        if os.access(python, os.X_OK):
            code = processes.run([python, f"{ROOT}/tools/report", "plots", *words], env=environment, preexec_fn=processes.hold_ctrl_c)
            if code != NEEDS_MATPLOTLIB:
                return code
    return None


def install_matplotlib():
    if shutil.which("apt-get") and packages.as_root() is not None:
        try:
            packages.install(["python3-matplotlib"])
            return
        except Stop as stop:  # pip may still reach a mirror that apt-get does not
            say(stop)
    line = packages.line_to_type(["python3-matplotlib"])
    if not toolchain.can_make_venv():
        raise Refused(f"missing: matplotlib. Install it with this line, then try again:\n  {line}")
    folder.install_wheels(VENV, "plots", "matplotlib", f"install Debian's: {line}")


def main(words):
    if wants_help(words):
        sys.stdout.write(HELP)
        return 0
    code = draw(words)
    if code is None:
        with folder.locked():
            install_matplotlib()
        code = draw(words)
    if code is None:
        raise Failed(f"matplotlib is installed, but no Python here can import it. Try: {DEBIAN_PYTHON} -c 'import matplotlib'")
    return code
