"""Whether an answer is right: a file is compiled, linked with the exercise's test and run, within limits."""

import contextlib
import dataclasses
import fcntl
import functools
import glob
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Sequence

from ..building import errors, folder
from ..machine import processes
from ..machine.causes import FULL, disk_is_full, ran_out_of_memory
from ..messages import Failed, Refused
from ..places import BUILD, PYTHON, ROOT
from . import symbols

SECONDS = 60  # of a program that judges; the problems are small
COMPILER_SECONDS = 120
BYTES = 4 << 30  # of memory
FILE_BYTES = 64 << 20  # of what it prints, and of each file that it writes
HEAD, TAIL = 4 << 20, 1 << 20  # bytes of it that are looked at
MOST_PROCESSES = 64
SOURCE_BYTES = 256 << 10  # of an answer
MOST_LINES, MOST_COLUMNS = 40, 600  # of what is shown
MOST_SEED = 999999
MOST_ERRORS = 500
PASSED, NOT_YET, NO_PROGRAM, STOPPED, MISSING = "passed", "not yet", "does not compile", "stopped", "missing"
REASONS = {
    "seconds": "It had not ended after {seconds} s, and was stopped: is there a loop that never ends?",
    "bytes": "It used more than {gb} GB of memory, and was stopped: what does the host code allocate?",
    "file_bytes": "It printed more than {mb} MB, and was stopped.",
    "processes": "It had more than {processes} processes, and was stopped: an answer starts none.",
}
SUPERVISE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervise.py")
# What a compiler and the interpreter look at. No more of this shell's reaches what somebody handed in.
VARIABLES = re.compile(r"PATH|TZ|TMPDIR|LD_LIBRARY_PATH|LIBRARY_PATH|COMPILER_PATH|GCC_\w+|C(PLUS_INCLUDE_)?PATH|(CUDA|NVCC|NVIDIA|COURSE)_\w+")
PRIVATE = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/mnt", "/media", "/srv")  # folders that a judged program has no need of
UNDEFINED = re.compile(r"undefined reference to `(exercise::.*?)'$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Verdict:
    kind: str  # one of the five above
    text: str  # what a learner is told
    seconds: float
    right: bool = False  # the result is; the way to it may not be

    @property
    def passed(self):
        return self.kind == PASSED


@dataclasses.dataclass(frozen=True)
class Built:
    path: str  # of the program
    refused: str  # by the compiler or the linker, in a learner's words; empty where there is a program
    warnings: Sequence[str] = ()
    kind: str = NO_PROGRAM  # of the verdict, where it is refused


class Workshop:
    """Judges files for exercises that it has prepared; from several threads, if wanted."""

    def __init__(self, backend, seed=None, hidden=(), is_own=False):
        """SEED: of what tests draw at random, 1 to MOST_SEED; without one, each judgement has its own. HIDDEN: folders of which an
        answer sees its own part alone. IS_OWN: answers are the course's own, so a compiler cache may know them."""
        self.preset, self.seed, self.hidden, self.is_own = backend, seed, hidden, is_own
        self.folder = os.path.join(BUILD, backend)
        self.commands, self.others, self.lock = {}, {}, None
        self.alone = threading.Lock() if backend == "gpu" else contextlib.nullcontext()  # who measures has the GPU alone

    def prepare(self, exercises):
        """Builds what the learner's file is linked with."""
        if self.preset == "gpu":  # there, the solution is timed beside it
            shared, parts = ["coach"], ["judge", "beside"]
        else:
            shared, parts = ["coach", "answers"], ["referee"]
        targets = [*shared, *(f"{part}_{each.name}" for each in exercises for part in parts)]
        folder.prepare(self.preset, targets=targets)
        self.lock = cleared(self.folder)
        for each in exercises:
            compiling, linking = self.commands[each.name] = self.commands_of(each)
            theirs = compiling[compiling.index("-o") + 1]
            if self.preset != "gpu":  # nvcc's object files call what nobody has declared
                objects = [word for word in linking if word.endswith((".o", ".a")) and word != theirs]
                self.others[each.name] = symbols.Others([os.path.join(self.folder, path) for path in objects])

    def commands_of(self, exercise):
        """(compiling, linking), as word lists: those of the solution's program."""
        code, text = processes.ask(["ninja", "-C", self.folder, "-t", "commands", f"bin/solution_{exercise.name}"])
        lines = [line for line in text.splitlines() if f"solution_{exercise.name}" in line]
        if code or len(lines) < 2:
            raise Failed(f"the build does not know how to link exercise {exercise.name}: remove {self.folder}, and try again.")
        compiling = next(line for line in lines if "COURSE_EXERCISE" in line)
        return shlex.split(compiling), [word for word in shlex.split(lines[-1]) if word not in (":", "&&")]

    def judge(self, exercise, file, events=""):
        """A Verdict on FILE; the file EVENTS, if it is named, says afterwards what happened in its launches."""
        begin = time.monotonic()
        file = existing(exercise, file)
        with self.program(exercise, file) as built:
            kind, text, right = self.outcome(exercise, built, file, events)
        return Verdict(kind, printable(text.replace(ROOT + os.sep, "")), time.monotonic() - begin, right)

    def outcome(self, exercise, built, file, events=""):
        if built.refused:
            return built.kind, built.refused, False
        word = secrets.token_hex(8)  # what a file cannot print by itself: it lies in a pipe until the check is over
        with self.alone:
            seed = self.seed or 1 + secrets.randbelow(MOST_SEED)
            command = [built.path, file, "-", "", "", str(seed)]
            if self.preset != "gpu":  # the word is in another process than FILE
                command = [os.path.join(self.folder, "bin", f"referee_{exercise.name}"), *command[1:], built.path]
            command, also = recording(command, events), os.path.dirname(events)
            kind, text, right = verdict_of(self.run(command, file, built, word, also), word)
        if kind != PASSED and built.warnings:
            text += "\n\nThe compiler has a question, too:\n" + "\n".join(built.warnings)
        return kind, text, right

    def profile(self, exercise, file, path):
        """Runs the test as judge() does; the file PATH says afterwards what was counted, whether or not the answer is right. Returns why
        there is no program, or ''."""
        file = existing(exercise, file)
        with self.program(exercise, file) as built:
            if not built.refused:
                self.run([built.path, file, "", path], file, built, also=os.path.dirname(os.path.abspath(path)))
        return built.refused

    def see(self, exercise, file, events):
        """Runs the test as profile() does; the file EVENTS says afterwards what happened in its launches. Returns why there is no program,
        or ''."""
        file = existing(exercise, file)
        with self.program(exercise, file) as built:
            if not built.refused:
                command = recording([built.path, file, "", f"{events}.profile"], events)
                self.run(command, file, built, also=os.path.dirname(os.path.abspath(events)))
        return built.refused

    @contextlib.contextmanager
    def program(self, exercise, file):
        """FILE linked with the exercise's test."""
        with tempfile.TemporaryDirectory(prefix="exercise-", dir=with_room(self.folder)) as scratch:
            yield self.built(exercise, file, scratch)

    def run(self, command, file, built, text="", also=""):
        """COMMAND, which runs what was BUILT of FILE and gets the line TEXT. It writes to the folder ALSO, if that is named."""
        scratch = os.path.dirname(built.path)
        command = self.behind_wall(command, [os.path.dirname(file), scratch], [also] if also else [])
        return limited(command, ROOT, SECONDS, text, scratch)

    def compile(self, command, file, program):
        """COMMAND, which makes PROGRAM of FILE, or something beside it."""
        scratch = os.path.dirname(program)
        if not self.is_own:
            command = self.behind_wall(command, [os.path.dirname(file)], [scratch])
        return limited(command, self.folder, COMPILER_SECONDS, remove=scratch, is_own=self.is_own)

    def behind_wall(self, command, shown, writable):
        return command if self.preset == "gpu" else behind_wall(command, shown, writable, self.hidden)

    def built(self, exercise, file, scratch):
        if no_source := is_no_source(file):
            return Built("", no_source)
        compiling, linking = self.commands[exercise.name]
        compiled, program = os.path.join(scratch, "answer.o"), os.path.join(scratch, "judge")
        theirs = compiling[compiling.index("-o") + 1]
        compiling = [compiled if word == theirs else word for word in compiling]
        compiling = [f'-DCOURSE_EXERCISE="{file}"' if word.startswith("-DCOURSE_EXERCISE=") else word for word in compiling]
        if "-MF" in compiling:  # what it includes is not for the build to know
            compiling[compiling.index("-MF") + 1] = os.path.join(scratch, "answer.d")
        if self.preset != "gpu":  # g++ takes half a minute for 80,000 of them
            compiling.append(f"-fmax-errors={MOST_ERRORS}")
        done = self.compile(compiling, file, program)
        if done.reason or done.code:
            why = done.reason.partition(", and was stopped")[0]  # what follows is about a program
            return Built("", f"The compiler was stopped: {why}." if why else compiler_says(done.output, file))
        if exercise.name in self.others:
            refused = symbols.refused(compiled, self.others[exercise.name], file)
            if refused:
                return Built("", refused, kind=NOT_YET)
        warnings = errors.warnings_of(done.output.splitlines(), own=file)
        linking = [compiled if word == theirs else word for word in linking]
        linking[linking.index("-o") + 1] = program
        done = self.compile(linking, file, program)
        if done.reason or done.code:
            return Built("", done.reason or linker_says(done.output, exercise))
        return Built(program, "", warnings)


def recording(command, events):
    """COMMAND, so that it writes to EVENTS what happens in launches, if that is named."""
    return ["env", f"COURSE_EVENTS={events}", *command] if events else command


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
    """The path of FILE without links, which may lie where a wall is in front."""
    file = os.path.realpath(file)
    if not os.path.isfile(file):
        raise Refused(f"there is no {os.path.relpath(file, ROOT)}; 'tools/course reset {exercise.name}' makes it anew.")
    return file


def is_no_source(file):
    """Why FILE is nothing to give to a compiler; or ''."""
    size = os.path.getsize(file)
    if size > SOURCE_BYTES:
        return f"{file} has {size:,} bytes, and an answer at most {SOURCE_BYTES:,}: is it the right file?"
    if re.search(r'["\n]', file):
        return f"{file} cannot be named in an #include: rename the folder, so that it has no quote and no line break."
    with open(file, "rb") as source:
        return f"{file} is no text: it has bytes that are 0." if b"\0" in source.read() else ""


# --- what is told ---

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text):
    """A terminal obeys what an answer prints, if that has escape sequences: they are shown as ?."""
    lines = UNPRINTABLE.sub("?", text).splitlines()
    return "\n".join(line if len(line) <= MOST_COLUMNS else f"{line[:MOST_COLUMNS]} ..." for line in lines)



def compiler_says(output, file):
    lines = output.splitlines()
    if "No space left on device" in output and disk_is_full(BUILD):
        raise Refused(FULL)
    if ran_out_of_memory(lines[-200:]):
        return "The compiler was killed: memory ran out. Close other programs, then try again."
    if "File size limit exceeded" in output:
        return f"The compiler was stopped: what it writes is limited to {FILE_BYTES >> 20} MB. Is there a huge array that has values?"
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
    """A Verdict's kind, its text, and whether the result is right."""
    # What is no error is nothing to think about while something else is.
    lines = [line for line in done.output.rstrip().splitlines() if not line.startswith("interpreter: note:")]
    if done.code == 2 and lines and lines[-1].startswith("interpreter: needs "):
        raise Refused(lines[-1])  # address space: nothing that the file could change
    if done.reason:
        return STOPPED, "\n".join([*lines[-5:], done.reason]), False
    if done.left:
        return STOPPED, f"When it had ended, processes that it had started still ran ({done.left}), and were ended. An answer starts none.", False
    if done.code == 0 and lines and lines[-1] == f"passed {word}":
        return PASSED, last_of(lines[:-1]), True
    if done.code == 1 and lines:
        right = lines[-1] == f"right {word}"
        return NOT_YET, last_of(lines[:-1] if right else lines), right
    if done.code > 128:
        name = signal.Signals(done.code - 128).name
        end = f"The program was ended by {name}, outside of a kernel: look at what the host code does."
    else:
        end = "The program ended before its check was over: nothing in this file may end the program."
    return STOPPED, "\n".join([*lines[-5:], end]), False


def last_of(lines):
    left_out = [f"({len(lines) - MOST_LINES} lines before these)"] if len(lines) > MOST_LINES else []
    return "\n".join([*left_out, *lines[-MOST_LINES:]])


# --- limits ---


@dataclasses.dataclass(frozen=True)
class Done:
    code: int
    output: str
    reason: str  # why it was stopped; empty if it was not
    left: int = 0  # processes that it had started and that still ran when it had ended


def limited(command, where, seconds, text="", remove="", is_own=False):
    """Runs COMMAND in WHERE, with the line TEXT on stdin, within SECONDS and BYTES. Nothing that it starts outlives this. If this
    command is killed meanwhile, so is that one, and the folder REMOVE goes."""
    limits = {"seconds": seconds, "bytes": BYTES, "file_bytes": FILE_BYTES, "processes": MOST_PROCESSES}
    task = json.dumps({**limits, "command": command, "folder": where, "parent": os.getpid(), "remove": remove})
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said, pipe_with(text) as given:
        child = processes.start(
            [PYTHON, "-I", "-S", SUPERVISE, task], stdin=given, stdout=output, stderr=said, is_alone=True, env=environment(is_own)
        )
        try:
            child.wait()
        finally:
            processes.kill(child)
            processes.wait(child)
        printed = both_ends(output)
        said.seek(0)
        end = said.read()
    try:
        end = json.loads(end)
    except ValueError:
        return Done(1, printed, "It ended the program that watches over it.")
    reason = "file_bytes" if end["code"] == 128 + signal.SIGXFSZ else end["reason"]
    shown = {**limits, "gb": BYTES >> 30, "mb": FILE_BYTES >> 20}
    left = 0 if command[0] == "bwrap" else end["left"]  # who is behind a wall ends with it
    return Done(end["code"] or 0, printed, reason and REASONS[reason].format(**shown), left)


def both_ends(file):
    """What it says; of very much the beginning, which has a compiler's first error, and the end, which has a verdict."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= HEAD + TAIL:
        return file.read().decode(errors="replace")
    head = file.read(HEAD)
    file.seek(-TAIL, os.SEEK_END)
    return f"{head.decode(errors='replace')}\n(...)\n{file.read().decode(errors='replace')}"


def pipe_with(line):
    """Its end to read from."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        file.write(f"{line}\n")
    return os.fdopen(reading)


def environment(is_own=False):
    fixed = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    if is_own:
        return {**processes.plain(), **fixed}
    kept = {name: value for name, value in processes.plain().items() if VARIABLES.fullmatch(name)}
    return {**kept, **fixed, "CCACHE_DISABLE": "1"}


# --- a wall, where there is bubblewrap ---


@functools.cache
def can_build_walls():
    """Whether the kernel lets bubblewrap do it; inside of a container it does not, as a rule."""
    return bool(shutil.which("bwrap")) and processes.succeeds([*wall([], []), "true"])


def behind_wall(command, shown, writable, hidden=()):
    """COMMAND as it is where there can be no wall; else it sees, of people's folders and of those that are HIDDEN, the course and SHOWN."""
    if not can_build_walls():
        return command
    tools = [os.path.dirname(os.path.dirname(word)) for word in command[:1] if os.path.isabs(word)]
    tools += [word for word in command if os.path.isabs(word) and os.path.isdir(word)]
    return [*wall([os.path.expanduser("~"), *PRIVATE, *hidden], [ROOT, BUILD, *tools, *shown], writable), *command]


def wall(hidden, shown, writable=()):
    """What stands before a command that sees no other processes, no network and nothing of the folders HIDDEN, but for SHOWN. It can
    write to the folders WRITABLE alone; who has some has a /tmp, too. Without that, files in memory would be a way around limits."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    ways = {os.path.realpath(path): way for way, paths in (("--tmpfs", hidden), ("--ro-bind", shown), ("--bind", writable)) for path in paths}
    for path in sorted(ways, key=lambda each: each.count(os.sep)):  # what lies inside of another one comes later
        if os.path.isdir(path) and path != os.sep:
            words += [ways[path], path] if ways[path] == "--tmpfs" else [ways[path], path, path]
    for path in [] if writable else ["/dev", *(path for path in ways if ways[path] == "--tmpfs" and path != os.sep and os.path.isdir(path))]:
        words += ["--remount-ro", path]
    return [*words, "--"]
