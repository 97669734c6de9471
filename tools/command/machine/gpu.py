"""Where to run: on a GPU, or on the interpreter."""

import functools
import glob
import re

from ..messages import Refused, say
from ..places import MACHINE
from . import processes
from .toolchain import find_nvcc, find_toolkit_headers


OLDEST = 75  # of what nvcc 13 compiles for, and what any step needs
NONE = "this machine has no NVIDIA GPU that can be used"


def has_gpu():
    return bool(glob.glob(f"{glob.escape(MACHINE)}/dev/nvidia[0-9]*")) or processes.succeeds(["nvidia-smi", "-L"])


def reason_against():
    """Why nothing can be measured here; '' if it can."""
    if not has_gpu():
        return NONE
    nvcc = find_nvcc()
    if not nvcc:
        return "there is a GPU but no nvcc: install the CUDA toolkit, 12.8 or newer, or set CUDA_HOME"
    if not find_toolkit_headers():
        return f"there is a GPU but {nvcc} is older than CUDA 12.8: install a newer toolkit, or set CUDA_HOME"
    found = capabilities()
    if found and all(capability < OLDEST for _, capability in found):
        return f"this machine's GPU, {found[0][0]}, is too old: the course needs compute capability 7.5 or higher"
    return ""


def choose_backend(wanted=None):
    """'gpu' or 'interpreter'; if nobody wants one, the GPU if it can be used."""
    if wanted == "interpreter" or (wanted is None and not has_gpu()):
        return "interpreter"
    reason = reason_against()
    if not reason:
        return "gpu"
    if wanted == "gpu":
        raise Refused(f"--on gpu: {reason}. Or run with --on interpreter.")
    say(f"{reason}; using the interpreter.")
    return "interpreter"


def query(fields, more=""):
    """What nvidia-smi says of the GPUs, a line for each."""
    return processes.ask(["nvidia-smi", f"--query-gpu={fields}", f"--format=csv,noheader{more}"])[1]


def name():
    return query("name").split("\n")[0] or "a GPU"


@functools.cache
def capabilities():
    """[(name, compute capability)] of the GPUs: 80 is 8.0. [] where nobody says."""
    found = re.findall(r"^(.+), (\d+)\.(\d)$", query("name,compute_cap"), re.MULTILINE)
    return [(name, 10 * int(major) + int(minor)) for name, major, minor in found]


def memory():
    """Bytes that the largest GPU has, or None where nobody says; the program itself asks the one that it uses."""
    said = query("memory.total", ",nounits").split()
    return max((int(line) << 20 for line in said if line.isdigit()), default=0) or None
