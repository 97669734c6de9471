"""The benchmark: what 'tools/course bench' runs, in which parts, and what is made of them.

A part is one call of a program: some shapes of one suite, in one layout, type and mode. Its results become a file as
soon as it has ended, with what they were made from; a later run keeps the parts that are made from the same, so that an
interruption costs one part. Results of one type and mode are a kind, and become one result file when all of its parts
are there.
"""

import dataclasses
import fcntl
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

from . import files
from .cli import steps
from .machine import processes
from .messages import Refused, Stop, say
from .places import BUILD, ROOT

# places.py says where these are.
from report import results, shapes
from report.ladder import of_baseline
from report.terminal import NOTHING, Style, align, percent, wants_colours, width

KEPT_OF_LOG = 8  # lines, shown of a part that failed
# How long the rounds of one measurement last: some 50 of them, in place of 101. What is slow, or has many sets, takes longer.
SECONDS = "0.2"


# --- what is measured ---


def squares(m):
    return (m, m, m)


def rows(m):
    return (m, 4096, 4096)


SWEEP = range(256, 4097, 128)
# From each suite to its (layout, shapes).
SUITES = {
    "squares": [("nn", [squares(m) for m in SWEEP])],
    "rows": [("nn", [rows(m) for m in SWEEP])],
    "transformer": [
        (layout, [key[:3] for key in keys])
        for layout, keys in results.grouped(shapes.NAMED, lambda key: key[3]).items()
    ],
}
DTYPES, MODES = ("f16", "bf16"), ("hot", "cold")  # unless others are asked for
SHAPES_OF_A_PART = 16  # a step takes less than half a minute for them, and a second to start


def text_of(shape):
    return "x".join(map(str, shape))


@dataclasses.dataclass(frozen=True)
class Part:
    program: str
    suite: str
    layout: str
    dtype: str
    mode: str
    shapes: tuple

    @property
    def kind(self):
        return self.dtype, self.mode

    @property
    def extent(self):
        """'256..2176': which of the suite's shapes; by what differs between them."""
        short = {"squares": 0, "rows": 0}.get(self.suite)
        ends = dict.fromkeys((self.shapes[0], self.shapes[-1]))
        return "..".join(text_of(shape) if short is None else str(shape[short]) for shape in ends)

    @property
    def file(self):
        return "-".join((self.program, self.dtype, self.mode, self.layout, self.suite, self.extent)) + ".json"

    def __str__(self):
        layout = "" if self.layout == "nn" else f" {self.layout}"
        return f"{self.program} {self.suite} {self.extent}{layout} {self.dtype} {self.mode}"

    def arguments(self):
        setting = ["--dtype", self.dtype, "--layout", self.layout, "--mode", self.mode]
        return ["--shape", ",".join(map(text_of, self.shapes)), *setting, "--first", "--seconds", SECONDS]


def has_type(program, dtype):
    """What peers are compared for are tensor cores."""
    return dtype != "f32" if program in results.PEERS else steps.has_type(program, dtype)


def plan(programs, suites, dtypes, modes):
    """All parts, kind after kind. A shape that is in two suites is measured once."""
    parts = []
    for dtype in dtypes:
        for mode in modes:
            for program in programs:
                if not has_type(program, dtype):
                    continue
                seen, count = set(), SHAPES_OF_A_PART
                for suite in suites:
                    for layout, of_layout in SUITES[suite]:
                        new = [shape for shape in of_layout if (layout, shape) not in seen]
                        seen.update((layout, shape) for shape in new)
                        for begin in range(0, len(new), count):
                            parts.append(Part(program, suite, layout, dtype, mode, tuple(new[begin : begin + count])))
    return parts


# --- how long it takes ---


def expected_seconds(parts, tuned=()):
    """For each part, seconds that an H200 takes. Only the relations matter as soon as something has been measured.

    TUNED: steps that look for the best tile of each problem once.
    """
    known, seconds = set(), []
    for part in parts:
        rate = {"01_naive": 6e12, "02_tiled": 35e12}.get(part.program, 300e12)
        total = 15 if part.program == "peer_triton" else 1  # to start
        for m, n, k in part.shapes:
            flops, elements = 2 * m * n * k, m * k + k * n + m * n
            # Rounds and cublasLt's candidates; random numbers and comparisons; the reference; at least 11 rounds, two launches
            # each, or on each of the sets that 1 GiB holds two rounds.
            rounds = max(11, 2 * min(32, 2**29 // elements) if part.mode == "hot" else 0)
            total += 0.4 + 1.4e-8 * elements + 1e-12 * flops + 2 * rounds * flops / rate
            problem = (part.program, part.layout, part.dtype, m, n, k)
            # Looking for the best tile; what it was is kept, but not by Triton's program.
            if part.program in results.PEERS or part.program in tuned:
                if problem not in known or part.program == "peer_triton":
                    total += 0.8 + 1e-8 * elements
                known.add(problem)
        seconds.append(total)
    return seconds


def duration(seconds):
    """'40 s', '3 min', '1 h 5 min'."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def usual_duration():
    """Of all steps in what is measured if nobody says more."""
    parts = plan(steps.all_steps(), SUITES, DTYPES, MODES)
    return duration(sum(expected_seconds(parts, steps.tuned_steps())))


class Pace:
    """How long what is left will take, from how long what is done took. In the beginning nobody knows: so what an H200
    takes counts like some seconds of experience."""

    PRIOR = 10

    def __init__(self, expected):
        self.left, self.done, self.elapsed = sum(expected), self.PRIOR, self.PRIOR

    def add(self, expected, elapsed):
        self.left -= expected
        self.done += expected
        self.elapsed += elapsed

    def seconds_left(self):
        return max(0.0, self.left) * self.elapsed / self.done


# --- programs ---


def fingerprint(paths):
    """Of the contents of all files below PATHS."""
    found = []
    for path in paths:
        if os.path.isfile(path):
            found.append(path)
        for folder, folders, names in os.walk(path):
            folders.sort()
            found += [os.path.join(folder, name) for name in sorted(names) if not name.endswith((".md", ".pyc"))]
    total = hashlib.sha256()
    for file in found:
        total.update(os.path.basename(file).encode() + b"\0")
        with open(file, "rb") as content:
            total.update(hashlib.sha256(content.read()).digest())
    return total.hexdigest()[:16]


class Programs:
    """The programs that can run here: how to call them, and what they are made of."""

    def __init__(self, root=ROOT, build=BUILD):
        self.root, self.build = root, build
        self.python = sys.executable
        self.versions = {}

    def command(self, program):
        if program == "peer_triton":
            return [self.python, os.path.join(self.root, "tools", "peers", "triton_matmul.py")]
        return [os.path.join(self.build, "gpu", "bin", program)]

    def measuring(self, program, arguments, file):
        """The command line whose results become FILE."""
        return [*self.command(program), *arguments, "--json", file, "--ceilings", os.path.join(self.build, "ceilings.json")]

    def reason_against(self, peer):
        """Why a peer cannot run here, or None."""
        command = self.command(peer)
        if peer == "peer_cutlass":
            return None if os.access(command[-1], os.X_OK) else "it was not built; it needs CUTLASS's headers"
        if not os.path.isfile(command[-1]):
            return "this checkout does not have it"
        reason = ""
        for python in (os.path.join(self.build, "peers", "bin", "python"), sys.executable):
            if not os.access(python, os.X_OK):
                continue
            self.python = python
            usable, said = run_quickly([*self.command(peer), "--probe"])
            if usable:
                self.versions[peer] = said
                return None
            reason = reason or (said.splitlines() or [""])[-1].removeprefix(f"{peer}: ")
        return reason or "it needs PyTorch and Triton that can use this GPU"

    def made_of(self, program):
        """Changes with the program: with its sources, for each build calls the same thing by other names."""
        root = self.root
        folders = ["common/device", "common/gemm", "common/harness", "tools/cmake"]
        folders += ["tools/peers"] if program in results.PEERS else [f"steps/{program}"]
        made_of = fingerprint([os.path.join(root, *folder.split("/")) for folder in folders])
        return " ".join([made_of, *self.versions.get(program, "").split()])


def run_quickly(command):
    """(whether it ended with 0, what it said)."""
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            text=True,
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    return process.returncode == 0, process.stdout.strip()


# --- running them ---


class Failed(Stop):
    """A part without results; `code` is what the benchmark's exit code becomes."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


def execute(command, log):
    """The exit code of COMMAND, whose output goes to the file LOG. It does not outlive this."""
    with open(log, "wb") as output:
        code = processes.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    if processes.was_interrupted(code):
        raise KeyboardInterrupt
    return code


def tail(log):
    return [f"  | {line}" for line in files.lines(log)[-KEPT_OF_LOG:]]


class Bench:
    """A benchmark in the folder OUT, on the GPU that is described by a result file's HEADER."""

    def __init__(self, programs, parts, tuned, out, header, run=execute):
        self.programs, self.parts, self.out, self.header, self.run = programs, parts, out, header, run
        self.folder = os.path.join(out, "parts")
        self.unfinished = os.path.join(self.folder, "unfinished.json")
        self.expected = dict(zip(parts, expected_seconds(parts, tuned)))
        made_of = {part.program: programs.made_of(part.program) for part in parts}
        self.made_from = {
            part: {
                **{name: header.get(name) for name in ("commit", "cuda", "cublas")},
                "gpu": header["gpu"].get("uuid") or header["gpu"]["name"],
                "driver": header["gpu"].get("driver"),
                "program": made_of[part.program],
                "arguments": part.arguments(),
            }
            for part in parts
        }
        self.failed, self.code = [], 0

    def path(self, part):
        return os.path.join(self.folder, part.file)

    def is_kept(self, part):
        """Whether there are results that this run would make again."""
        try:
            return results.load(self.path(part)).get("made_from") == self.made_from[part]
        except results.BadFile:
            return False

    def check(self, part, document):
        """Raises Failed if these are not the results of PART. @return the shapes that a peer could not run."""
        if document["gpu"]["name"] != self.header["gpu"]["name"]:
            raise Failed(f"it ran on {document['gpu']['name']}, not on {self.header['gpu']['name']}")
        wanted = {(part.program, *shape, part.dtype, part.layout, part.mode) for shape in part.shapes}
        names = ("step", "m", "n", "k", "in", "layout", "mode")
        missing = wanted - {tuple(each[name] for name in names) for each in document["results"] if each["first"]}
        missing = [shape for _, *shape, _, _, _ in sorted(missing)]
        if missing and part.program not in results.PEERS:
            raise Failed(f"it wrote no result of {text_of(missing[0])}")
        return missing

    def measure(self, part):
        """Makes the part's file. Returns a remark about it. Raises Failed."""
        log = os.path.join(self.programs.build, "logs", f"bench-{part.file.removesuffix('.json')}.log")
        command = self.programs.measuring(part.program, part.arguments(), self.unfinished)
        files.forget(self.unfinished)
        try:
            code = self.run(command, log)
            if code not in (0, 1, 2):
                raise Failed(f"it ended with exit code {code}, which it never should")
            # A peer that can run none of these; any other refusal, such as too little memory today, is not kept.
            if code == 2 and part.program in results.PEERS and "nothing of this can be run" in "".join(tail(log)[-1:]):
                document = {**self.header, "results": []}
            elif code:
                raise Failed("a wrong result" if code == 1 else "it refused", code)
            else:
                document = self.load(self.unfinished)
            missing = self.check(part, document)
        except Failed as failure:
            raise Failed(
                "\n".join([f"{failure}.", *tail(log), f"course: the whole log: {log}"]), failure.code
            ) from None
        results.write(self.path(part), {**document, "made_from": self.made_from[part]})
        files.forget(self.unfinished)
        if missing:
            reason = "".join(tail(log)[-1:]).removeprefix("  | ") if code == 2 else log
            return f"; it cannot run {len(missing)} of them, such as {text_of(missing[0])}: {reason}"
        files.forget(log)
        return ""

    @staticmethod
    def load(path):
        try:
            return results.load(path)
        except results.BadFile as error:
            raise Failed(str(error).removesuffix(".")) from None

    def measure_all(self):
        """Measures what is missing, and writes the file of each kind that is complete. Raises KeyboardInterrupt."""
        missing = [part for part in self.parts if not self.is_kept(part)]
        count, todo = len(self.parts), set(missing)
        if len(missing) < count:
            say(f"{count - len(missing)} of {count} parts are kept from an earlier run; --fresh measures them again.")
        pace = Pace([self.expected[part] for part in missing])
        for index, part in enumerate(self.parts):
            if part in todo:
                begin = time.monotonic()
                print(f"course: [{index + 1:{len(str(count))}}/{count}] {part} ...", end="", file=sys.stderr, flush=True)
                try:
                    remark, error = self.measure(part), ""
                except Failed as failure:
                    self.failed.append(part)
                    self.code = failure.code if self.code != 1 else 1
                    error = str(failure)
                except BaseException:
                    print(file=sys.stderr)
                    raise
                elapsed = time.monotonic() - begin
                pace.add(self.expected[part], elapsed)
                todo.discard(part)
                left = f", about {duration(pace.seconds_left())} left" if todo else ""
                print(f" FAILED: {error}" if error else f" {elapsed:.1f} s{left}{remark}", file=sys.stderr, flush=True)
            if index + 1 == count or self.parts[index + 1].kind != part.kind:
                self.finish(part.kind)

    def done(self):
        return sum(os.path.exists(self.path(part)) and self.is_kept(part) for part in self.parts)

    # --- what is made of them ---

    def file_of(self, kind):
        return os.path.join(self.out, f"bench-{'-'.join(kind)}.json")

    def results_of(self, kind):
        """(the newest part's date, results in the plan's order): of what there is."""
        documents = [
            results.load(self.path(part)) for part in self.parts if part.kind == kind and part not in self.failed
        ]
        created = max((each["created"] for each in documents), default=self.header["created"])
        every = [each for document in documents for each in document["results"]]
        # They would be half of the file: the times of all candidates, which are in the parts, and notes.
        return created, [{k: v for k, v in each.items() if k not in ("tuning", "note")} for each in every]

    def finish(self, kind):
        if any(part.kind == kind for part in self.failed):
            say(f"not every part of {' '.join(kind)} has results: {self.file_of(kind)} was not written.")
            return
        created, measured = self.results_of(kind)
        # A peer's file may name another cuBLAS, PyTorch's: the header is the steps'.
        results.write_text(self.file_of(kind), results.dump({**self.header, "created": created, "results": measured}))
        say(f"results: {self.file_of(kind)}")

    def summary(self, style):
        lines = []
        for kind in dict.fromkeys(part.kind for part in self.parts):
            lines += summary(kind, self.parts, self.results_of(kind)[1], style)
        return "\n".join([*lines, *map(style.dim, LEGEND)]) + "\n"


LEGEND = (
    "% of cuBLAS: geometric means over a suite's shapes, and the worst and the best one; against cublasGemmEx. Lt:",
    "against the fastest of cublasLt's algorithms. A step that fuses an activation computes more than they do.",
)


def geometric_mean(values):
    """None if one is missing: the others would be a mean of something else."""
    if not values or any(not value for value in values):
        return None
    return statistics.geometric_mean(values)


def summary_cells(found):
    """From a dictionary of (layout, m, n, k) to its result."""
    ratios = {shape: of_baseline(each, "cublasGemmEx") for shape, each in found.items()}
    lt = percent(geometric_mean([of_baseline(each, "cublasLt") for each in found.values()]))
    if not ratios or not all(ratios.values()):
        return [NOTHING] * 5 + [lt]
    worst, best = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
    mean = percent(geometric_mean(list(ratios.values())))
    return [mean, percent(ratios[worst]), text_of(worst[1:]), percent(ratios[best]), text_of(best[1:]), lt]


def summary(kind, parts, measured, style):
    """Lines: for each suite and program, how it compares with cuBLAS."""
    dtype, mode = kind
    parts = [part for part in parts if part.kind == kind]
    by_program = results.grouped([each for each in measured if each["first"]], lambda each: each["step"])
    header = ["", "% of\ncuBLAS", "worst", "at", "best", "at", "% of\nLt"]
    titles, body = {}, []
    for suite in dict.fromkeys(part.suite for part in parts):
        wanted = {(layout, *shape) for layout, of_layout in SUITES[suite] for shape in of_layout}
        titles[len(body)] = f"{suite}, {len(wanted)} shapes"
        for program in dict.fromkeys(part.program for part in parts):
            found = {(each["layout"], each["m"], each["n"], each["k"]): each for each in by_program.get(program, [])}
            found = {shape: each for shape, each in found.items() if shape in wanted}
            name = f"  {program}" + f", {len(found)} of them" * (len(found) < len(wanted))
            body.append([name, *summary_cells(found)])
    head, body = align(header, body, width())
    lines = [style.bold(f"{dtype}, {mode}"), *head]
    for index, row in enumerate(body):
        if index in titles:
            lines.append(style.bold(titles[index]))
        lines.append(row)
    return [*lines, ""]


# --- the command ---


def forget_all(folder):
    """Removes what earlier runs measured, and nothing that somebody else may have put there."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith("unfinished.json"):
            files.forget(path)
        elif name.endswith(".json"):
            try:
                with open(path, encoding="utf-8") as file:
                    ours = "made_from" in json.load(file)
            except (OSError, ValueError, TypeError):
                continue
            if ours:
                files.forget(path)


def lock(folder):
    """Two benchmarks at the same time would measure each other. Released when this process ends."""
    file = open(os.path.join(folder, "lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        where = os.path.dirname(folder)
        raise Refused(f"another benchmark is running in {where}: wait for its end, then try again.") from None
    return file


def header_of_this_machine(programs, step, dtype, folder, run=execute):
    """What a result file says of machine and course. Measures the GPU's ceilings if nobody has. Raises Failed."""
    file, log = os.path.join(folder, "unfinished.json"), os.path.join(programs.build, "logs", "bench-machine.log")
    code = run(programs.measuring(step, ["--shape", "0x0x0", "--dtype", dtype, "--first"], file), log)
    if code != 0:
        raise Failed("\n".join([f"{step} does not run here.", *tail(log)]), code if code in (1, 2) else 1)
    document = results.load(file)
    files.forget(file)
    return {**document, "results": []}


def plan_text(parts, expected, left_out, out):
    lines = ["What 'tools/course bench' would run. The times are those of an H200, roughly; other GPUs need others.", ""]
    by_program = results.grouped(list(zip(parts, expected)), lambda pair: pair[0].program)
    cells = []
    for program, pairs in by_program.items():
        count = sum(len(part.shapes) for part, _ in pairs)
        cells.append([program, f"{len(pairs):,}", f"{count:,}", duration(sum(seconds for _, seconds in pairs))])
    total = sum(len(part.shapes) for part in parts)
    cells.append(["all", f"{len(parts):,}", f"{total:,}", duration(sum(expected))])
    head, body = align(["", "parts", "measurements", "time"], cells, width())
    lines += [*head, *body, ""]
    for suite, of_suite in results.grouped(parts, lambda part: part.suite).items():
        found = [
            shape
            for part in of_suite
            if part.program == of_suite[0].program and part.kind == of_suite[0].kind
            for shape in part.shapes
        ]
        lines.append(f"{suite}: {len(found)} shapes, {text_of(found[0])} to {text_of(found[-1])}")
    lines.append("kinds: " + ", ".join(dict.fromkeys(" ".join(part.kind) for part in parts)))
    lines += [f"{peer} is left out: {reason}" for peer, reason in left_out.items()]
    there = sum(os.path.exists(os.path.join(out, "parts", part.file)) for part in parts)
    if there:
        lines.append(f"{there} of the parts lie in {out}: those that this course measured on this GPU are kept.")
    return "\n".join(lines) + "\n"


def refuse_types(names, dtypes, are_named):
    for dtype in dtypes:
        for step in names:
            if not steps.has_type(step, dtype):
                steps.leave_out(f"{step} has no kernels for {dtype}", are_named, "leave one of them out")


def remove_unfinished(folder):
    """Of a run that was killed."""
    for name in os.listdir(folder):
        if name.startswith("unfinished.json"):
            files.forget(os.path.join(folder, name))


def measure(programs, parts, tuned, out, is_fresh):
    """Measures what is missing of PARTS, and shows how all of them compare. Returns the exit code."""
    folder = os.path.join(out, "parts")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(os.path.join(programs.build, "logs"), exist_ok=True)
    with lock(folder):
        remove_unfinished(folder)
        if is_fresh:
            forget_all(folder)
        bench = None
        try:
            say("looking at the GPU ...")
            first = next(part for part in parts if part.program not in results.PEERS)
            header = header_of_this_machine(programs, first.program, first.dtype, folder)
            bench = Bench(programs, parts, tuned, out, header)
            bench.measure_all()
        except KeyboardInterrupt:
            if bench:
                say(f"interrupted: {bench.done()} of {len(parts)} parts are there; the same command goes on from there.")
            raise
        finally:
            files.forget(os.path.join(folder, "unfinished.json"))
    sys.stdout.write(bench.summary(Style(wants_colours(sys.stdout))))
    return bench.code


def run(names, suites, dtypes, modes, tuned, out, with_peers, is_fresh, is_plan):
    """Of the steps NAMES and, if wanted, the peers. Returns the exit code."""
    programs, left_out = Programs(), {}
    if with_peers:
        left_out = {peer: programs.reason_against(peer) for peer in results.PEERS}
        left_out = {peer: reason for peer, reason in left_out.items() if reason}
        names = names + [peer for peer in results.PEERS if peer not in left_out]
    parts = plan(names, suites, dtypes, modes)
    if not parts:
        raise Refused("there is nothing to measure: no step has kernels for these types.")
    if is_plan:
        sys.stdout.write(plan_text(parts, expected_seconds(parts, tuned), left_out, out))
        return 0
    for peer, reason in left_out.items():
        say(f"{peer} is left out: {reason}.")
    try:
        return measure(programs, parts, tuned, out, is_fresh)
    except results.BadFile as error:
        raise Refused(str(error)) from None
