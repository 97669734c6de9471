"""course test: everything that can be tested here, some tests, or those that are near a file."""

import glob
import os
import re
import sys

from .. import files, near
from ..building import folder
from ..cli import options, steps
from ..cli.arguments import Command
from ..machine import needs, processes
from ..machine.gpu import choose_backend
from ..machine.progress import Ticker
from ..messages import Refused, say
from ..places import BUILD


def preset_of(given):
    if given.compiler == "clang":
        if given.on == "gpu":
            raise Refused("--compiler clang is for the interpreter: leave out --on gpu.")
        return "interpreter-clang"
    if not given.on and (given.positional or given.near):
        return "dev"
    return choose_backend(given.on)


# --- some of the tests ---


def known_tests(preset):
    """Their commands by their names, as CMake has written them: ctest itself does not tell those of what is not built."""
    found = {}
    for path in glob.glob(os.path.join(glob.escape(os.path.join(BUILD, preset)), "**", "CTestTestfile.cmake"), recursive=True):
        for name, command in re.findall(r"^add_test\(\W*([\w.+-]+?)(?:\]=*\])? (.*)\)$", files.text(path), re.MULTILINE):
            found[name] = re.findall(r'"((?:[^"\\]|\\.)*)"', command)
    return found


def targets_of(preset, commands):
    """What a test's program and its arguments are, of what is built."""
    build = os.path.join(BUILD, preset, "")
    return list(dict.fromkeys(word[len(build) :] for command in commands for word in command if word.startswith(build)))


def selected(known, names):
    """The test that is called so, else those with the word in their names."""
    found = {}
    for name in names:
        fitting = [name] if name in known else [test for test in known if name and name in test]
        if not fitting:
            raise Refused(f"no test is called '{name}', or has it in its name. There are: {' '.join(sorted(known))}.")
        found.update(dict.fromkeys(fitting))
    return list(found)


class Selection:
    """The tests that were named, or are near a file; which there are is known when the preset is configured."""

    def __init__(self, given, preset):
        self.preset, self.names, self.later = preset, list(given.positional), []
        if given.near:
            nearest, self.later = near.tests(given.near)
            self.names += nearest
        self.tests = []

    def targets(self, _):
        known = known_tests(self.preset)
        if self.preset != "dev":  # where a step's first tile is no test of its own
            self.names = [re.sub("^first_", "test_", name) for name in self.names]
        self.tests = selected(known, self.names)
        say(f"running {' '.join(self.tests)}")
        return targets_of(self.preset, [known[test] for test in self.tests])

    def pattern(self):
        return f"^({'|'.join(map(re.escape, self.tests))})$"


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
    some = Selection(given, preset) if given.positional or given.near else None
    # One test is about gdb in a kernel on the interpreter; where gdb cannot be had, that test is skipped.
    if preset != "gpu" and not some:
        folder.want_commands(["gdb"])
    if preset == "gpu" and not some:
        for step in steps.all_steps():
            reason = needs.reason_against("steps", step)
            if reason:
                say(f"{step} is unavailable, its test is skipped: {reason}.")
    tools = folder.prepare(preset, ["python3"], some.targets if some else ())
    command = [tools.ctest, "--test-dir", os.path.join(BUILD, preset), "--output-on-failure", "--no-tests=error"]
    command += [f"-j{len(os.sched_getaffinity(0))}", *(["-R", some.pattern()] if some else []), *given.after_dashes]
    code = Ctest().run(command)
    if code == 0 and some and some.later:
        say(f"what takes minutes: tools/course test {' '.join(some.later)}; all: tools/course test")
    return code if code == 0 or code > 128 else 1


COMMAND = Command(
    name="test",
    usage="[NAME...] [OPTION...] [-- CTEST_ARGUMENT...]",
    intro="""
    Builds everything and runs all tests with ctest. With NAMEs, builds and runs those tests alone: a NAME is a test's, or a word of
    several. With --near FILE, those that are about the file, and says which: in half a minute for most files, once what they need is
    built. Those tests are built in build/dev, where an edit compiles as little as it can; --on interpreter takes build/interpreter.
    """,
    options=(options.NEAR, options.ON, options.COMPILER),
    outro="""
    Exit code: 0 all passed, 1 a failed test or build, 2 refused input, 130 interrupted.
    """,
    run=run,
)
