"""Whether a problem can fit into this machine, as far as that is known before anything is built."""

import re

from .. import files
from ..messages import Refused
from ..places import MACHINE
from . import gpu

LARGEST = 2**63 - 1  # of a 64-bit integer: no machine has more, and no message needs more digits
GIB, MIB = 1 << 30, 1 << 20

# The interpreter keeps shadow memory beside each matrix: who wrote what, and was it ever written.
INTERPRETER_BYTES_PER_BYTE = 12


def matrix_bytes(shape, element_bytes):
    """Of A, B and C together."""
    m, n, k = shape
    return min(LARGEST, (m * k + k * n + m * n) * element_bytes)


def host_memory():
    line = re.search(r"^MemAvailable: *(\d+)", files.text(f"{MACHINE}/proc/meminfo"), re.MULTILINE)
    available = int(line[1]) * 1024 if line else LARGEST
    # A container's own limit, which /proc/meminfo does not know.
    limit = files.text(f"{MACHINE}/sys/fs/cgroup/memory.max").strip()
    return min(available, int(limit)) if re.fullmatch(r"[0-9]{1,18}", limit) else available


def readable(size):
    return f"{size // GIB} GiB" if size >= 10 * GIB else f"{size // MIB} MiB"


def require(size, available, what, where):
    if size > available:
        raise Refused(
            f"the shape needs {readable(size)} for {what}; {where} has {readable(available)}: take a smaller --shape."
        )


def check(shapes, element_bytes, backend):
    for shape in shapes:
        size = matrix_bytes(shape, element_bytes)
        if backend == "interpreter":
            with_shadow = min(LARGEST, size * INTERPRETER_BYTES_PER_BYTE)
            require(with_shadow, host_memory(), "A, B, C and the interpreter's shadow memory", "this machine")
            continue
        require(size, host_memory(), "A, B and C", "this machine")
        # nvidia-smi may take a second: every GPU has room for this much.
        if size > GIB:
            require(size, gpu.memory() or LARGEST, "A, B and C", "the GPU")
