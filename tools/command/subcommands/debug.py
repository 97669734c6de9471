"""course run --debug: a step on the interpreter in gdb."""

import os

from ..building import folder
from ..machine.processes import become
from ..messages import Refused, say
from ..places import BUILD

PRESET = "interpreter-debug"


def check(given, steps):
    if len(steps) != 1:
        raise Refused("--debug runs one step in gdb: name it, for example: tools/course run 2 --debug")
    for option, value in (("--json", given.json), ("--out", given.out), ("--as", getattr(given, "as")), ("--see", given.see is not None)):
        if value:
            raise Refused(f"{option} has no meaning with --debug: leave it out.")


# Where a learner begins: at main(), with one block after the other, and with as much time to think as it takes.
BEGINNING = [
    "set debuginfod enabled off",
    "set breakpoint pending on",
    "handle SIGUSR2 nostop noprint pass",
    "tbreak main",
    "run",
    "set variable interpreter::options().workers = 1",
    "set variable interpreter::options().hang_seconds = 1e9",
]


def execute(step, suffix, arguments):
    """gdb takes this process's place; its exit code is gdb's."""
    folder.prepare(PRESET, ["gdb"], [step + suffix])
    say("gdb: 'break gemm_kernel if threadIdx.x == 5', 'continue', 'print threadIdx'; docs/interpreter.md, \"gdb\", says more.")
    program = os.path.join(BUILD, PRESET, "bin", step + suffix)
    words = [word for command in BEGINNING for word in ("-ex", command)]
    become(["gdb", "-q", *words, "--args", program, *arguments])
