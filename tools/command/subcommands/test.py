"""course test: everything that can be tested here."""

import os
import re
import sys

from ..build import folder
from ..cli import options, steps
from ..cli.arguments import Command
from ..machine import needs, processes
from ..machine.gpu import choose_backend
from ..machine.progress import Ticker
from ..messages import Refused, say
from ..places import BUILD


def preset_of(given):
    if given.positional:
        raise Refused(
            f"'{given.positional[0]}': arguments for ctest come after --, for example: tools/course test -- -R {given.positional[0]}"
        )
    if given.compiler == "clang":
        if given.on == "gpu":
            raise Refused("--compiler clang is for the interpreter: leave out --on gpu.")
        return "interpreter-clang"
    return choose_backend(given.on)


class Ctest:
    """What ctest says goes to stdout as it comes; where it says nothing for a while, a line tells that the tests go on."""

    def __init__(self):
        self.ticker = Ticker("testing")
        self.done = ""

    def hear(self, piece):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        self.ticker.heard()
        for line in piece.decode(errors="replace").splitlines():
            ended = re.match(r" *(\d+/\d+) Test +#\d+: (\S+)", line)
            if ended:
                self.done = f" {ended[1]} have ended, the last was {ended[2]}"

    def run(self, command):
        return processes.listen(command, self.hear, lambda: self.ticker.tick(self.done))


def run(given):
    preset = preset_of(given)
    # One test is about gdb in a kernel on the interpreter; where gdb cannot be had, that test is skipped.
    if preset != "gpu":
        folder.want_commands(["gdb"])
    if preset == "gpu":
        for step in steps.all_steps():
            reason = needs.reason_against("steps", step)
            if reason:
                say(f"{step} is unavailable, its test is skipped: {reason}.")
    tools = folder.prepare(preset, ["python3"])
    command = [tools.ctest, "--test-dir", os.path.join(BUILD, preset), "--output-on-failure", "--no-tests=error"]
    code = Ctest().run([*command, f"-j{len(os.sched_getaffinity(0))}", *given.after_dashes])
    return code if code == 0 or code > 128 else 1


COMMAND = Command(
    name="test",
    usage="[OPTION...] [-- CTEST_ARGUMENT...]",
    intro="Builds everything and runs all tests with ctest.",
    options=(options.ON, options.COMPILER),
    outro="""
    For one test: tools/course test -- -R NAME

    Exit code: 0 all passed, 1 a failed test or build, 2 refused input, 130 interrupted.
    """,
    run=run,
)
