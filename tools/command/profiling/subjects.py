"""Whose launch is profiled: a step's, or that of an exercise's test by a learner's file or by the solution.

A subject counts on the interpreter, and says what ncu has to run. Both fill a document, which tools/report/profile_table.py shows.
"""

import contextlib
import json
import os
import re
import sys
import tempfile

from ..building import folder
from ..cli import options, steps
from ..cli.values import ELEMENT_BYTES
from ..exercises import exercise as exercises
from ..exercises.judging import Workshop, existing
from ..machine import memory, processes
from ..machine.progress import Ticker, tail
from ..messages import Failed, Refused, say, show
from ..places import BUILD, LOGS, ROOT
from ..subcommands.run import end_if_over

SMALL = "256x256x256"
USUAL = {"01_naive": SMALL, "02_tiled": SMALL}  # their loops do little at a time: the interpreter needs longer
LARGE = "1024x1024x1024"
MODELLED = "h200"
SLOWER = 1.5  # with the L2 model


def chosen(given):
    """What the command line means."""
    if len(given.everything) != 1:
        raise Refused("profile needs one step, exercise or solution, for example: tools/course profile 3")
    word = given.everything[0]
    if given.shape and len(given.shape.shapes) > 1:
        raise Refused("profile shows one launch: name one --shape.")
    if given.shape and 0 in given.shape.shapes[0]:
        raise Refused(f"--shape {given.shape.text} has nothing to multiply: take extents from 1 on.")
    found = re.match(r"(?:.*/)?(exercises|solutions)/", word)
    if not found:
        return Step(given, steps.named(word))
    for option in (options.DTYPE, options.TILE):
        if getattr(given, option.key):
            raise Refused(f"{option.name} is for steps: an exercise's test says what its function is called with. Leave it out.")
    exercise = exercises.named(word)
    return Answer(given, exercise, is_solution=found[1] == "solutions")


class Step:
    def __init__(self, given, step):
        self.step, self.tile = step, given.tile
        steps.check_tile(step, given.tile)
        self.declared = "steps", step  # where what it needs of a GPU is found
        self.dtype, _ = steps.choose_dtype([step], given.dtype, True)
        self.shape = "x".join(map(str, given.shape.shapes[0])) if given.shape else USUAL.get(step, LARGE)
        self.extents = tuple(map(int, self.shape.split("x")))
        self.title = step.replace("_", " ")
        self.seconds = SLOWER * (steps.expected_seconds(step, self.dtype, [self.extents], first=True) or 0)
        memory.check([self.extents], ELEMENT_BYTES[self.dtype], "interpreter" if self.is_short() else "gpu")

    def is_short(self):
        """Whether the interpreter can count it while somebody waits."""
        return self.seconds <= steps.PATIENCE

    @property
    def name(self):
        """Of files."""
        of_tile = "-" + re.sub(r"[^a-z0-9]+", "-", self.tile.lower()).strip("-") if self.tile else ""
        return f"{self.step}-{self.shape}-{self.dtype}{of_tile}"

    def recorded_in(self, folders):
        """(folder, name) of tables that may have its launch."""
        plain = f"{self.step}-{self.shape}-{self.dtype}"
        if not steps.fuses(self.step):
            return [(each, plain) for each in folders]
        return [("ncu-fused", f"{plain}-leaky_relu"), ("ncu-fused", f"caches-{self.shape}-{self.dtype}-leaky_relu")]

    def is_launch(self, kernel):
        """Whether a recorded KERNEL is what is profiled: others were recorded beside fused ones."""
        return "activation_kernel<" not in kernel and ("Identity>(" in kernel) != steps.fuses(self.step)

    def of_tile(self):
        return ["--tile", self.tile] if self.tile else ["--first"]

    def interpret(self):
        """The document, but for what is measured."""
        target = self.step if self.tile else f"{self.step}_first_{self.dtype}"
        is_short = self.is_short()
        if not is_short:
            say(f"the interpreter would take about {round(self.seconds / 60)} minutes for {self.shape}: its column is left out.")
        folder.prepare("interpreter", ["python3"], [target])
        # The small problem says what is known without counting: the tile, and the GPU.
        shape = self.shape if is_short else SMALL
        words = ["--shape", shape, "--dtype", self.dtype, "--as", MODELLED, *self.of_tile(), "--profile", "--force"]
        found = self.run_program(os.path.join(BUILD, "interpreter", "bin", target), words)
        result, (m, n, k) = found["results"][0], self.extents
        rate = (result.get("projection") or {}).get("flops_per_second")
        return {
            "name": self.name,
            "title": self.title,
            "tile": result["tile"],
            "problem": {"m": m, "n": n, "k": k, "heads": 1, "in": result["in"], "out": result["out"]},
            "allowed": {},
            "gpu": found["gpu"],
            "ceilings": found["ceilings"],
            "blocks_per_wave": blocks_per_wave(result["counters"]),
            "interpreted": {"counters": result["counters"], "flops_per_second": rate} if is_short else None,
        }

    def alone(self, _=""):
        """The document of what is measured alone: without the interpreter nothing is known of the tile and the GPU."""
        return document_alone(self, self.tile, dict(zip("mnk", self.extents)), self.dtype)

    def run_program(self, program, words):
        log = os.path.join(LOGS, f"profile-{self.step}.log")
        with tempfile.TemporaryDirectory() as scratch:
            results = os.path.join(scratch, "results.json")
            title = f"{self.step}: counting on the interpreter"
            say(f"{title} ...")
            with open(log, "wb") as output:
                ticker = None if sys.stderr.isatty() else Ticker(title)  # on a terminal, the step shows how far it is
                code = processes.wait(processes.start([program, *words, "--json", results], stdout=output), ticker and ticker.tick)
            end_if_over(code)
            if code == 2:
                raise SystemExit(code)  # it has said why
            if code:
                show(tail(log))
                more = f"'tools/course run {self.step[:2]}' says more"
                raise Failed(f"{self.step} is not right, so its counters mean nothing: {more}.")
            with open(results, encoding="utf-8") as file:
                return json.load(file)

    @contextlib.contextmanager
    def on_gpu(self):
        """(what the kernel's name matches, the program's command line) for ncu."""
        folder.prepare("gpu", ["python3"], [self.step])
        program = os.path.join(BUILD, "gpu", "bin", self.step)
        yield "(gemm|fallback)_kernel", [program, "--once", *self.of_tile(), "--shape", self.shape, "--dtype", self.dtype]


class Answer:
    """A learner's file, or a solution. Its test has problems of its own; the largest is profiled, or that of --shape."""

    def __init__(self, given, exercise, is_solution):
        self.exercise, self.wanted = exercise, given.shape
        self.declared = "exercises", exercise.name
        self.file = existing(exercise, exercise.solution if is_solution else exercise.current)
        self.kind = "solution" if is_solution else "exercise"
        self.title = f"{self.kind} {exercise.title}"
        self.problem = None

    @property
    def shape(self):
        return shape_of(self.problem)

    @property
    def name(self):
        which = f"{self.shape}-{self.problem['in']}" if self.problem else "largest"
        return f"{self.kind}_{self.exercise.name}-{which}"

    def recorded_in(self, _):
        return []

    def is_launch(self, _):
        return True

    def interpret(self):
        workshop = Workshop("interpreter")
        workshop.prepare([self.exercise])
        found = {"problems": []}
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "profile.json")
            solved = []
            say(f"{self.title}: counting on the interpreter ...")
            refused = workshop.profile(self.exercise, self.file, path)
            with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                found = json.load(file)
                solved = [each for each in found["problems"] if each["launches"]]
                self.problem = self.select([each for each in solved if each["m"]])
        if solved and not self.problem:
            check = f"'tools/course check {self.exercise.name[:2]}' counts what its bounds are about"
            raise Failed(f"{self.title} is no product of matrices, so there is no shape to predict from: {check}.")
        if not self.problem:
            why = "does not compile" if refused else "solves none of its test's problems yet"
            check = f"'tools/course check {self.exercise.name[:2]}' says more"
            raise Failed(f"{os.path.relpath(self.file, ROOT)} {why}, so there is no launch to profile: {check}.")
        return {
            "name": self.name,
            "title": self.title,
            "tile": None,
            "problem": {name: self.problem[name] for name in ("m", "n", "k", "heads", "in", "out")},
            "allowed": self.problem["allowed"],
            "gpu": found["gpu"],
            "ceilings": found["ceilings"],
            "blocks_per_wave": blocks_per_wave(self.launch()["counters"]),
            "interpreted": {"counters": self.launch()["counters"], "flops_per_second": None},
        }

    def alone(self, said):
        """As Step.alone(); the program has SAID which problem it was."""
        found = re.search(r"^profiled: (\d+)x(\d+)x(\d+)-(\w+)$", said, re.MULTILINE)
        if not found:
            raise Failed(f"the test of {self.title} does not say what was profiled: 'tools/course check' says more.")
        m, n, k, dtype = found.groups()
        return document_alone(self, None, {"m": int(m), "n": int(n), "k": int(k)}, dtype)

    def select(self, problems):
        """The one that --shape names, else the one with most to do; of several the last, whose counters are judged as a rule."""
        if not problems:
            return None
        if self.wanted:
            named = [each for each in problems if shape_of(each) == "x".join(map(str, self.wanted.shapes[0]))]
            if not named:
                shapes = " ".join(dict.fromkeys(map(shape_of, problems)))
                raise Refused(f"--shape {self.wanted.text}: the exercise's test has no such problem; it has {shapes}.")
            return named[-1]
        return max(reversed(problems), key=lambda each: each["heads"] * each["m"] * each["n"] * each["k"])

    def launch(self):
        """Of the call's launches, the first of the kernel that loads most."""
        return max(self.problem["launches"], key=lambda each: each["counters"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"])

    @contextlib.contextmanager
    def on_gpu(self):
        workshop = Workshop("gpu")
        workshop.prepare([self.exercise])
        kernel, words = "", "largest"
        if self.problem:
            kernel, words = re.sub(r"[<(].*", "", self.launch()["kernel"]).split("::")[-1].split()[-1], self.problem["words"]
        with workshop.program(self.exercise, self.file) as built:
            if built.refused:
                raise Failed(f"{os.path.relpath(self.file, ROOT)} does not compile for the GPU:\n{built.refused}")
            yield kernel and f"^{kernel}$", [built.path, os.path.abspath(self.file), "word", words]


def document_alone(subject, tile, extents, dtype):
    nothing = dict.fromkeys(("gpu", "ceilings", "blocks_per_wave", "interpreted"))
    problem = {**extents, "heads": 1, "in": dtype, "out": dtype}
    return {"name": subject.name, "title": subject.title, "tile": tile, "problem": problem, "allowed": {}, **nothing}


def blocks_per_wave(counters):
    """How many blocks the GPU has room for, of any shape."""
    blocks, waves = (counters.get(f"launch__{name}") for name in ("grid_size", "waves_per_multiprocessor"))
    return blocks / waves if waves else None


def shape_of(problem):
    return "x".join(str(problem[extent]) for extent in "mnk")
