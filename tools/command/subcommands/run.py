"""course run: verifies steps, counts or measures what they do."""

import contextlib
import fcntl
import os
import signal
import sys

from .. import files
from ..building import folder
from ..cli import options, steps
from ..cli.arguments import Command
from ..cli.values import ELEMENT_BYTES, Shapes
from ..machine import memory, needs, processes
from ..machine.gpu import choose_backend
from ..machine.progress import Ticker
from ..messages import Refused, say
from ..places import BUILD, LOGS, PYTHON, ROOT, script
from . import debug
from .commit import export_commit

SIZES = {"gpu": "4096x4096x4096", "interpreter": "256x256x256"}


class Exit:
    """Of several codes, 1 comes before 2, and both before 0."""

    def __init__(self):
        self.worst = 0

    def fold(self, code):
        if code == 1 or self.worst == 0:
            self.worst = code


def end_if_over(code):
    """Ctrl-C, or nobody reads the output any more."""
    if processes.was_interrupted(code):
        raise KeyboardInterrupt
    if code == 128 + signal.SIGPIPE:
        sys.exit(code)


# --- arguments ---


def refuse_what_the_backend_lacks(given, backend):
    if backend == "gpu":
        if given.order:
            raise Refused("--order is about the interpreter: a GPU has an order of its own. Leave it out, or add --on interpreter.")
        if getattr(given, "as"):
            raise Refused("--as is about the interpreter: on a GPU one measures. Leave it out, or add --on interpreter.")
        if given.see is not None:
            raise Refused("--see is about the interpreter: it records what a kernel does. Leave it out, or add --on interpreter.")
        if given.debug:
            raise Refused("--debug is about the interpreter: there gdb stops in a kernel. Add --on interpreter.")
    elif given.mode:
        raise Refused("--mode is about the GPU: the interpreter counts, it does not time. Leave it out, or add --on gpu.")
    elif given.energy:
        raise Refused("--energy is about the GPU: the interpreter takes your computer's. Leave it out, or add --on gpu.")


def require_writable(out, option="--out"):
    """Makes the folder, and writes there as much as a long run does: results come when it is too late to ask."""
    probe = os.path.join(out, f".probe.{os.getpid()}")
    if os.path.exists(out) and not os.path.isdir(out):
        raise Refused(f"cannot write to {out}: it is a file. Name a folder with {option}.")
    try:
        os.makedirs(out, exist_ok=True)
        with open(probe, "wb") as file:
            file.write(b" " * 1000000)
    except OSError:
        raise Refused(
            f"cannot write to {out}: make the folder yours, make room on its disk, or name another one with {option}."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            os.remove(probe)


def lock_results(out):
    """Two runs at the same time would mix their results. Held until this command ends, whatever ends it."""
    lock = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Refused(
            f"another 'tools/course run' or 'profile' is writing to {out}: wait for its end, or give this one a folder of its own with --out."
        ) from None
    processes.held.append(lock)


# --- running ---


class Run:
    """One 'course run', its arguments checked."""

    def __init__(self, given):
        self.given = given
        self.steps = steps.select(given.everything)
        self.named = named = bool(self.steps)
        self.steps = self.steps or steps.all_steps()
        self.quiet = not named or given.json
        if given.activation or given.bias:
            self.steps = steps.choose_fused(self.steps, named)
        self.dtype, self.steps = steps.choose_dtype(self.steps, given.dtype, named)
        self.out = given.out or os.path.join(BUILD, "results")
        if given.debug:
            debug.check(given, self.steps)
        self.backend = choose_backend("interpreter" if given.debug and not given.on else given.on)
        refuse_what_the_backend_lacks(given, self.backend)
        self.steps, self.unavailable = needs.available("steps", self.steps, self.backend, named)
        self.shapes = given.shape or Shapes(SIZES[self.backend])
        memory.check(self.shapes, ELEMENT_BYTES[self.dtype], self.backend)
        if self.backend == "interpreter" and not given.force and not given.debug:
            steps.check_patience(self.steps, self.dtype, self.shapes)
        self.suffix = self.choose_programs(named)
        if given.see and len(self.steps) > 1:
            raise Refused("--see FILE.html is a page of one step: name it, or leave out the file, and each step has its own in build/see.")
        self.made, self.exit = [], Exit()

    def choose_programs(self, named):
        """What the names of the steps' programs end with. Whoever edits a kernel and runs it waits for its first tile, and for no more."""
        given = self.given
        everything = self.backend == "gpu" or not named or given.all_tiles or given.activation or given.bias
        return "" if everything else f"_first_{self.dtype}"

    def arguments(self):
        """For each step's program."""
        words = ["--shape", self.shapes.text, "--dtype", self.dtype, "--layout", self.given.layout or "nn"]
        handed_on = (options.MODE, options.ENERGY, options.ACTIVATION, options.AS, options.ORDER, options.BIAS, options.FORCE)
        words += self.given.to_pass(*handed_on)
        return words

    def program(self, step):
        return os.path.join(BUILD, self.backend, "bin", step + self.suffix)

    def execute(self):
        require_writable(self.out)
        if self.given.see is not None:
            see_module().path_of(self.given.see, self.steps[0])
        folder.prepare(self.backend, ["python3"], [step + self.suffix for step in self.steps])
        lock_results(self.out)
        export_commit()
        arguments = self.arguments()
        code = self.ask_for_memory(arguments)
        if code:
            return code
        if self.backend == "gpu":
            arguments += ["--ceilings", os.path.join(BUILD, "ceilings.json")]
        for step in self.steps:
            self.run_step(step, arguments)
        if self.made:
            self.show_results()
        return self.exit.worst

    def ask_for_memory(self, arguments):
        """Whether there is enough is the same for all steps: one is asked, so that the answer is given once. What can be known without
        it has been checked."""
        if any(memory.matrix_bytes(shape, ELEMENT_BYTES[self.dtype]) > memory.GIB for shape in self.shapes):
            code = processes.run([self.program(self.steps[0]), "--check-memory", *arguments])
            end_if_over(code)
            return code
        return 0

    def run_step(self, step, arguments):
        results = os.path.join(self.out, f"{step}.json")
        command = [self.program(step), *arguments, "--json", results]
        with self.page_of(step) as environment:
            if self.quiet:
                code = self.run_quietly(step, command, environment)
            else:
                code = processes.run(command, env=environment)
            end_if_over(code)
        if code == 0:
            self.made.append(results)
        elif code == 128 + signal.SIGKILL:
            say(f"{step} was killed, as the system does when memory runs out: take a smaller --shape, or close other programs.")
            code = 1
        elif code not in (1, 2):
            say(f"{step} ended with exit code {code}, which it never should.")
            code = 1
        self.exit.fold(code)

    @contextlib.contextmanager
    def page_of(self, step):
        """The environment of its program, which --see makes write what happens."""
        if self.given.see is None:
            yield None
            return
        see = see_module()
        facts = [f"M×N×K = {self.shapes.text.replace('x', '×')}, {self.dtype}."] if len(self.shapes.shapes) == 1 else []
        with see.page_of(see.path_of(self.given.see, step), step.replace("_", " "), facts) as events:
            yield {**os.environ, "COURSE_EVENTS": events}

    def run_quietly(self, step, command, environment):
        log = os.path.join(LOGS, f"run-{step}.log")
        say(f"{step}: running ...")
        with open(log, "wb") as output:
            # On a terminal, the steps show themselves how far they are.
            ticker = None if sys.stderr.isatty() else Ticker(f"{step}: running")
            code = processes.wait(processes.start(command, stdout=output, env=environment), ticker and ticker.tick)
        if code:
            sys.stderr.write(files.text(log))
            sys.stderr.flush()
        return code

    # --- what came out ---

    def show_results(self):
        # A part of the steps does not replace what a run of all of them has found.
        ladder = os.path.join(self.out, "part.json" if self.named else "ladder.json")
        arguments = [*self.made, *self.given.to_pass(options.JSON)]
        if self.named or self.given.all_tiles:
            arguments.append(options.ALL_TILES.name)
        for step, reason in self.unavailable.items():
            arguments += ["--unavailable", f"{step}={reason}"]
        # A ladder in which steps are missing that can run does not replace a complete one.
        if not self.exit.worst:
            arguments += ["--out", ladder]
        code = processes.run([*script("report"), "ladder", *arguments], preexec_fn=processes.hold_ctrl_c)
        end_if_over(code)
        self.exit.fold(code)
        if self.exit.worst:
            say(f"not every step has results: {shown(ladder)} was not written.")
        else:
            say(f"results: {shown(ladder)}")
            self.draw_plots(ladder)

    def draw_plots(self, ladder):
        """Of times, measured or projected; counters have no plots. The steps are verified whether or not it works."""
        if self.backend != "gpu" and not getattr(self.given, "as"):
            return
        has_venv = os.path.isdir(os.path.join(BUILD, "plot-venv"))
        if not has_venv and not processes.succeeds([PYTHON, "-c", "import sys; del sys.path[0]; import matplotlib"]):
            say(f"for plots of them: tools/plot {shown(ladder)}")
            return
        plots, log = os.path.join(self.out, "plots", *(["part"] if self.named else [])), os.path.join(LOGS, "plots.log")
        with open(log, "wb") as drawn:
            code = processes.run([os.path.join(ROOT, "tools/plot"), ladder, "--out", plots], stdout=drawn)
        if code == 0:
            say(f"plot: {shown(files.lines(log)[0])}")


def see_module():
    """Loaded where it is asked for: it needs this one."""
    from . import see

    return see


def shown(path):
    """As short as it can be typed here, for lines of 80 characters."""
    with contextlib.suppress(OSError):  # the folder where this was typed may be gone
        here = os.path.join(os.getcwd(), "")
        if here != "/" and path.startswith(here):
            return path[len(here) :]
    return path


def run(given):
    named = list(dict.fromkeys(map(steps.any_named, given.everything)))
    if set(named).intersection(steps.of_several_gpus()):
        from .. import ranks  # it needs this module

        return ranks.execute(given, named)
    if given.ranks:
        raise Refused(f"--ranks is about {' or '.join(steps.of_several_gpus())}: name it, or leave --ranks out.")
    this = Run(given)
    if given.debug:
        return debug.execute(this.steps[0], this.suffix, this.arguments())
    return this.execute()


COMMAND = Command(
    name="run",
    usage="[STEP...] [OPTION...]",
    intro="""
    Builds the steps, runs each on random matrices, verifies C = A * B, and measures it against cuBLAS (on a GPU) or counts what it
    does (on the interpreter). Without STEP, runs all of them and shows the ladder; with STEP, shows the details too. STEP is a number
    (1 or 01) or a word of a folder's name below steps/ (naive).

    tensor_parallel is a step without a number, a feed-forward block on several GPUs or on threads of the interpreter. It runs alone,
    when it is named, and takes --ranks, --shape TOKENSxMODELxHIDDEN, --dtype f16 or bf16, --on, --force and --out. On a GPU its
    results are in build/results/tensor_parallel.json.
    """,
    options=(
        options.SHAPE,
        options.RANKS,
        options.DTYPE,
        options.LAYOUT,
        options.ON,
        options.MODE,
        options.ENERGY,
        options.ACTIVATION,
        options.BIAS,
        options.ALL_TILES,
        options.AS,
        options.ORDER,
        options.FORCE,
        options.DEBUG,
        options.SEE,
        options.OUT,
        options.JSON,
    ),
    outro="""
    Exit code: 0 verified, 1 a wrong result, a failed check or a failed build, 2 refused input, 130 interrupted. A failed step does
    not stop the ones after it, but ladder.json or part.json then stays as it was; of several codes, 1 comes before 2. A step that
    needs another GPU is refused if it was named; otherwise the ladder says so in its place, and is complete without it.
    """,
    run=run,
)
