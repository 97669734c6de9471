"""Whether an answer is right: a file is compiled, linked with the exercise's test and run, within limits."""

import contextlib
import dataclasses
import fcntl
import glob
import os
import re
import resource
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence

from ..building import errors, folder
from ..machine import processes
from ..machine.causes import FULL, disk_is_full, ran_out_of_memory
from ..messages import Failed, Refused
from ..places import BUILD, ROOT

SECONDS = 60  # of a program that judges; the problems are small
COMPILER_SECONDS = 120
BYTES = 4 << 30  # of memory
FILE_BYTES = 64 << 20  # of what it prints, and of each file that it writes
MOST_LINES = 40  # of what is shown
MOST_SEED = 999999
PASSED, NOT_YET, NO_PROGRAM, STOPPED, MISSING = "passed", "not yet", "does not compile", "stopped", "missing"
UNDEFINED = re.compile(r"undefined reference to `(exercise::.*?)'$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Verdict:
    kind: str  # one of the five above
    text: str  # what a learner is told
    seconds: float

    @property
    def passed(self):
        return self.kind == PASSED


@dataclasses.dataclass(frozen=True)
class Built:
    path: str  # of the program
    refused: str  # by the compiler or the linker, in a learner's words; empty where there is a program
    warnings: Sequence[str] = ()


class Workshop:
    """Judges files for exercises that it has prepared; from several threads, if wanted."""

    def __init__(self, backend, seed=None):
        """SEED: of what tests draw at random, 1 to MOST_SEED; without one, each judgement has its own."""
        self.preset, self.seed = backend, seed
        self.folder = os.path.join(BUILD, backend)
        self.commands, self.lock = {}, None
        self.alone = threading.Lock() if backend == "gpu" else contextlib.nullcontext()  # who measures has the GPU alone

    def prepare(self, exercises):
        """Builds what the learner's file is linked with."""
        if self.preset == "gpu":  # there, the solution is timed beside it
            shared, parts = ["coach"], ["judge", "beside"]
        else:
            shared, parts = ["coach", "answers"], ["judge"]
        targets = [*shared, *(f"{part}_{each.name}" for each in exercises for part in parts)]
        folder.prepare(self.preset, targets=targets)
        self.lock = cleared(self.folder)
        for each in exercises:
            self.commands[each.name] = self.commands_of(each)

    def commands_of(self, exercise):
        """(compiling, linking), as word lists: those of the solution's program."""
        code, text = processes.ask(["ninja", "-C", self.folder, "-t", "commands", f"bin/solution_{exercise.name}"])
        lines = [line for line in text.splitlines() if f"solution_{exercise.name}" in line]
        if code or len(lines) < 2:
            raise Failed(f"the build does not know how to link exercise {exercise.name}: remove {self.folder}, and try again.")
        compiling = next(line for line in lines if "COURSE_EXERCISE" in line)
        return shlex.split(compiling), [word for word in shlex.split(lines[-1]) if word not in (":", "&&")]

    def judge(self, exercise, file):
        """A Verdict on FILE."""
        begin = time.monotonic()
        file = existing(exercise, file)
        with self.program(exercise, file) as built:
            kind, text = self.outcome(built, file)
        return Verdict(kind, text.replace(ROOT + os.sep, ""), time.monotonic() - begin)

    def outcome(self, built, file):
        if built.refused:
            return NO_PROGRAM, built.refused
        word = secrets.token_hex(8)  # what a file cannot print by itself
        with self.alone:
            seed = self.seed or 1 + secrets.randbelow(MOST_SEED)
            kind, text = verdict_of(limited([built.path, file, word, "", "", str(seed)], ROOT, SECONDS), word)
        if kind != PASSED and built.warnings:
            text += "\n\nThe compiler has a question, too:\n" + "\n".join(built.warnings)
        return kind, text

    def profile(self, exercise, file, path):
        """Runs the test as judge() does; the file PATH says afterwards what was counted, whether or not the answer is right. Returns why
        there is no program, or ''."""
        file = existing(exercise, file)
        with self.program(exercise, file) as built:
            if not built.refused:
                limited([built.path, file, "word", path], ROOT, SECONDS)
        return built.refused

    @contextlib.contextmanager
    def program(self, exercise, file):
        """FILE linked with the exercise's test."""
        with tempfile.TemporaryDirectory(prefix="exercise-", dir=with_room(self.folder)) as scratch:
            yield self.built(exercise, file, scratch)

    def built(self, exercise, file, scratch):
        compiling, linking = self.commands[exercise.name]
        compiled, program = os.path.join(scratch, "answer.o"), os.path.join(scratch, "judge")
        theirs = compiling[compiling.index("-o") + 1]
        compiling = [compiled if word == theirs else word for word in compiling]
        compiling = [f'-DCOURSE_EXERCISE="{file}"' if word.startswith("-DCOURSE_EXERCISE=") else word for word in compiling]
        if "-MF" in compiling:  # what it includes is not for the build to know
            compiling[compiling.index("-MF") + 1] = os.path.join(scratch, "answer.d")
        done = limited(compiling, self.folder, COMPILER_SECONDS)
        if done.reason or done.code:
            return Built("", done.reason and f"The compiler was stopped: {done.reason}" or compiler_says(done.output, file))
        warnings = errors.warnings_of(done.output.splitlines(), own=file)
        linking = [compiled if word == theirs else word for word in linking]
        linking[linking.index("-o") + 1] = program
        done = limited(linking, self.folder, COMPILER_SECONDS)
        if done.reason or done.code:
            return Built("", done.reason or linker_says(done.output, exercise))
        return Built(program, "", warnings)


def cleared(folder_of_build):
    """Removes what killed commands have left there, unless another one judges. While what this returns is open, nobody else does so."""
    lock = os.open(folder_of_build, os.O_RDONLY)
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in glob.glob(os.path.join(glob.escape(folder_of_build), "exercise-*")):
            shutil.rmtree(left, ignore_errors=True)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def with_room(folder_of_build):
    """FOLDER_OF_BUILD; where its disk is full, another one in which a program may lie, and where temporary files go, too."""
    if not disk_is_full(folder_of_build):
        return folder_of_build
    for place in (os.environ.get("TMPDIR", "/tmp"), "/dev/shm"):
        if os.access(place, os.W_OK) and not disk_is_full(place) and not os.statvfs(place).f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"] = tempfile.tempdir = place
            return place
    raise Refused(FULL)


def existing(exercise, file):
    """The absolute path of FILE."""
    file = os.path.abspath(file)
    if not os.path.isfile(file):
        raise Refused(f"there is no {os.path.relpath(file, ROOT)}; 'tools/course reset {exercise.name}' makes it anew.")
    return file


# --- what is told ---


def compiler_says(output, file):
    lines = output.splitlines()
    if "No space left on device" in output and disk_is_full(BUILD):
        raise Refused(FULL)
    if ran_out_of_memory(lines[-200:]):
        return "The compiler was killed: memory ran out. Close other programs, then try again."
    first, others = errors.first_error(lines, own=file)
    more = [f"({others} more errors, which may follow from it.)"] if others else []
    return "\n".join([*(first or lines[-25:]), *more])


def linker_says(output, exercise):
    if "No space left on device" in output and disk_is_full(BUILD):
        raise Refused(FULL)
    missing = UNDEFINED.search(output)
    if missing:
        function = missing[1].replace("gemm::Matrix", "Matrix").replace("exercise::", "")
        return (
            f"The test calls this function, which {exercise.shown_file} does not define:\n  {function}\n"
            "Keep the name and the parameters that the file came with, in namespace exercise."
        )
    if "multiple definition of `main'" in output:
        return f"{exercise.shown_file} defines main(). The test has one already, and calls the function that the file came with: take it out."
    return "\n".join(output.splitlines()[-10:])


def verdict_of(done, word):
    # What is no error is nothing to think about while something else is.
    lines = [line for line in done.output.rstrip().splitlines() if not line.startswith("interpreter: note:")]
    if done.code == 2 and lines and lines[-1].startswith("interpreter: needs "):
        raise Refused(lines[-1])  # address space: nothing that the file could change
    if done.reason:
        return STOPPED, "\n".join([*lines[-5:], done.reason])
    if done.code == 0 and lines and lines[-1] == f"passed {word}":
        return PASSED, "\n".join(lines[:-1])
    if done.code == 1 and lines:
        left_out = [f"({len(lines) - MOST_LINES} lines before these)"] if len(lines) > MOST_LINES else []
        return NOT_YET, "\n".join([*left_out, *lines[-MOST_LINES:]])
    if done.code > 128:
        name = signal.Signals(done.code - 128).name
        end = f"The program was ended by {name}, outside of a kernel: look at what the host code does."
    else:
        end = f"The program ended with exit code {done.code} before its check was over: nothing in this file may end the program."
    return STOPPED, "\n".join([*lines[-5:], end])


# --- limits ---


@dataclasses.dataclass(frozen=True)
class Done:
    code: int
    output: str
    reason: str  # why it was stopped; empty if it was not


def limited(command, where, seconds):
    """Runs COMMAND in WHERE, within SECONDS and BYTES. Nothing that it started outlives this."""
    with tempfile.TemporaryFile() as output:
        child = processes.start(
            command,
            cwd=where,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            is_alone=True,
            env=processes.plain(),
            preexec_fn=limit_files,
        )
        try:
            reason = watch(child, seconds)
        finally:
            processes.kill(child)
            code = processes.wait(child)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if code == 128 + signal.SIGXFSZ:
        reason = f"It printed more than {FILE_BYTES >> 20} MB, and was stopped."
    return Done(code, text, reason)


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))  # object files are below that, too
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def watch(child, seconds):
    """Waits for CHILD. Returns why it has to be stopped, or ''."""
    begin, pause = time.monotonic(), 0.01
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=pause)
            return ""
        pause = min(0.1, pause * 1.5)
        if time.monotonic() - begin > seconds:
            return f"It had not ended after {seconds} s, and was stopped: is there a loop that never ends?"
        if memory_of(child.pid) > BYTES:
            return f"It used more than {BYTES >> 30} GB of memory, and was stopped: what does the host code allocate?"


def memory_of(pid):
    """Bytes of a process that are in memory."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0
