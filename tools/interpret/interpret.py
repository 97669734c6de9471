#!/usr/bin/env python3
"""Compiles and runs a whole CUDA program on the CPU interpreter: what 'tools/course interpret' calls once its library is built.

usage: interpret.py --build FOLDER --cache FOLDER [OPTION...] FILE [ARGUMENT...]

--build is CMake's folder of the preset 'interpreter': interpret.json there says how kernels are compiled. The other options are those
of 'tools/course interpret --help'. Exit code: the program's; 1 it does not compile or a check failed; 2 it is refused; 130 interrupted.
"""

import signal
import sys

_ENDING = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT) if signal.getsignal(n) is not signal.SIG_IGN]


def end(number, _):
    """What is half-done is cleared away on the way out; a second Ctrl-C does not disturb that."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":  # before all else: to read the other modules takes its time
    for ending in _ENDING:
        signal.signal(ending, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

import argparse
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import own_names
import tokens
from program import NotRead, NotText, Program
from refusals import Refusal, told

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KEPT_PROGRAMS = 40  # compiled programs in the cache; the ones that were not used for longest go
DAY = 24 * 60 * 60  # in seconds
REFUSED = 2
OF_DEVICE = "course_device_"  # in front of the names of what the device's view defines
VIEWS = {"device": ["-DCOURSE_DEVICE_VIEW"]}  # options for one of program.Program.views
STANDARD = "gnu++20"  # what program.h is written in


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tools/course interpret", add_help=False, allow_abbrev=False)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--order")
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--as", dest="gpu")
    parser.add_argument("--keep")
    parser.add_argument("--std", default=STANDARD)
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("-D", dest="define", action="append", default=[])
    parser.add_argument("file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def fingerprint(build):
    """Of the interpreter: what the program is rewritten with, compiled with and linked to."""
    parts = [*build["options"], *build["link"]]
    for path in build["libraries"] + [build["compiler"]]:
        if os.path.isfile(path):
            status = os.stat(path)
            parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    for path, status in own_files():
        parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(parts)


def own_files():
    """(path, status) of the course's files that a program is made with."""
    for folder, _, names in sorted([*os.walk(os.path.join(ROOT, "common")), *os.walk(HERE)]):
        for name in sorted(names):
            if name.endswith((".h", ".cuh", ".py")) or "include" in folder:
                path = os.path.join(folder, name)
                yield path, os.stat(path)


def preludes(build):
    """What every program begins with: precompiled, unless a header has changed since, which g++ would not see."""
    with contextlib.suppress(OSError):
        made = os.stat(build["prelude"] + ".gch").st_mtime_ns
        if all(status.st_mtime_ns <= made for path, status in own_files() if not path.endswith(".py")):
            return [build["prelude"]]
    return [os.path.join(ROOT, "common/interpreter/cuda_runtime", header) for header in ("members.h", "program.h")]


def compile_command(build, options, source, result, view="program"):
    """Of g++; the course's own headers stand in front of CUDA's."""
    command = [build["compiler"], "-x", "c++", *build["options"], "-w", f"-std={options.std}", *VIEWS.get(view, ())]
    for define in options.define:
        command.append(f"-D{define}")
    command += ["-iquote", os.path.dirname(options.file) or "."]
    for folder in options.include:
        command.append(f"-I{folder}")
    command += [f"-I{ROOT}", "-isystem", os.path.join(ROOT, "common/interpreter/include"), "-isystem", os.path.join(HERE, "include")]
    for folder in build["cuda"]:
        command += ["-isystem", folder]
    command += ["-fdiagnostics-color=never"]
    for header in preludes(build):
        command += ["-include", header]
    return command + ["-c", source, "-o", result]


def expand(program, command, folder):
    """Of the command that compiles a program with asm statements that macros make: one that compiles it once they are known."""
    source, object_file = command[-3], command[-1]
    preprocessed = run_tool([*command[:-4], "-E", source, "-o", "-"], folder)
    if preprocessed.returncode:
        return command  # it tells what is wrong
    program.write_expanded(source + ".ii", preprocessed.stdout)
    includes = [i for i, word in enumerate(command) if word == "-include"]
    kept = [word for i, word in enumerate(command[:-4]) if i not in includes and i - 1 not in includes]
    return [*kept, "-fpreprocessed", "-c", source + ".ii", "-o", object_file]


def set_apart(device, folder):
    """Makes the device's view of a program an object that can be linked with the host's: what it defines gets names of its own, by which
    common/interpreter/debug_info/symbols.cpp finds the one's kernels and variables for the other's. Both have the managed variables."""
    listed = run_tool(["nm", "--format=sysv", "--defined-only", device], folder).stdout
    rows = [[column.strip() for column in line.split("|")] for line in listed.split("\n")]
    names = sorted({row[0] for row in rows if len(row) == 7 and row[2] not in ("a", "A") and row[6] != "gpu_managed"})
    renamed = os.path.join(folder, "names")
    with open(renamed, "w", encoding="utf-8") as stream:
        stream.writelines(f"{name} {OF_DEVICE}{name}\n" for name in names)
    # The host's view initialises what needs code for that.
    removed = [f"--remove-section={section}" for section in (".init_array", ".rela.init_array")]
    result = run_tool(["objcopy", f"--redefine-syms={renamed}", *removed, device], folder)
    os.remove(renamed)
    if result.returncode:
        raise OSError(errno.EIO, result.stderr.strip(), folder)


def link_command(build, objects, result):
    return [build["compiler"], *objects, "-o", result, *build["link"], *build["libraries"]]


def first_error(output):
    """The compiler's first error with the lines that belong to it; of those that nvcc would tell too, if there are any."""
    lines = output.split("\n")
    errors = [i for i, line in enumerate(lines) if re.search(r"(^|[ :])(fatal )?error: ", line)]
    if not errors:
        return output.strip()
    begin = min(errors, key=lambda i: (_REUSED_NAME in lines[i], i))
    end = begin + 1
    while end < len(lines) and not re.match(r"\S.*?(:\d+: |: (error|In|At)\b)|In file included from ", lines[end]):
        end += 1
    return _about_launch(lines[begin], lines[begin + 1 : end]) or "\n".join(lines[begin:end]).rstrip()


_REUSED_NAME = " changes meaning of "


def only_reuses_names(output):
    """Whether all errors are of classes that give a type's name to one of their own members, which nvcc takes. g++ does with -fpermissive,
    but that forgives too much where it is not needed."""
    errors = re.findall(r": (?:fatal )?error: (.*)", output)
    return bool(errors) and all(_REUSED_NAME in error for error in errors)


def _about_launch(error, quoted):
    """Of an error in what a launch has become, which is not the user's text: a line that makes sense without it. None for others."""
    match = re.match(r"(.*?:\d+):(\d+): error: (.*)", error)
    if not match:
        return None
    place, column, what = match[1], int(match[2]), match[3]
    if call := re.match(r"no matching function for call to .interpreter::cuda_runtime::Configuration::Configuration\((.*)\)", what):
        types = [t.text for t in tokens.tokens(re.sub(r"<.*?>", "", call[1]))]
        count = types.count(",") + 1 if types else 0
        wrong = "too few" if count < 2 else "too many" if count > 4 else "wrong"
        return f"{place}: error: {wrong} launch arguments: kernel<<<grid, block, bytes of shared memory, stream>>>(...), and the last two are optional"
    if call := re.match(r"no match for call to .\(interpreter::cuda_runtime::\w+Launcher<.*>\) \((.*)\).$", what):
        return f"{place}: error: the kernel does not take such arguments: ({call[1]})"
    if quoted and column > len(quoted[0].partition(" | ")[2]):
        return f"{place}: error: {what}"
    return None


def unresolved(output, path, linked_refusals=(), uses=()):
    """(exit code, lines) for names that the linker does not know; None if that is not what it says. `linked_refusals` are those of
    program.py, `uses` the program's refusals that count for names in the output."""
    names = set(re.findall(r"undefined reference to [`'‘]([^'’\n]+)", output))
    refused, others = [use for use in uses if use.word in names], []
    names = {use.word for use in refused}
    for match in re.finditer(r"(?:^(.+?:\d+): |[^\n]*)undefined reference to [`'‘]([^'’\n]+)", output, re.MULTILINE):
        place, name = match[1] or path, match[2]
        if name in names:
            continue
        if of_program := re.search(r"\bcourse_refusal_(\d+)\b", name):
            refused.append(linked_refusals[int(of_program[1])])
        elif "wmma_of_this_shape_and_type" in name:
            refused.append(Refusal(path, 1, "wmma of this shape and type", "docs/interpret.md lists what it has."))
        elif name == "main":
            others.append(f"{path}: error: there is no main() in it, where a program begins")
        # Functions of CUDA are C's, without parameters in their names.
        elif re.match(r"(cuda|cu[A-Z]|cublas|cufft|curand|cusparse|cusolver|cudnn|nccl|nvrtc|nvml|nvtx)\w*$|__", name):
            file, _, line = place.rpartition(":")
            refused.append(Refusal(file, int(line), name) if line.isdigit() else Refusal(place, 1, name))
        else:
            others.append(f"{place}: error: undefined reference to '{name}': if it stands in another file or library: a program is one file here")
    if refused:
        return REFUSED, list(told(refused))
    return (1, others[:1]) if others else None


def run_tools(commands, folder):
    """Runs all at once, and gives what each has said. `folder` is for what they need meanwhile. Nothing of them outlives this."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", LANGUAGE="", TMPDIR=os.path.abspath(folder))
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "errors": "replace"}
    with contextlib.ExitStack() as running:
        tools, results = [], []
        try:
            for command in commands:
                tools.append(running.enter_context(subprocess.Popen(command, env=environment, start_new_session=True, **pipes)))
            for tool in tools:
                output, errors = tool.communicate()
                results.append(subprocess.CompletedProcess(tool.args, tool.returncode, output, errors))
        except BaseException:
            for tool in tools:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(tool.pid, signal.SIGKILL)
            raise
    for result in results:
        if result.returncode:
            require_room(folder, result.stderr)
    return results


def run_tool(command, folder):
    return run_tools([command], folder)[0]


def require_room(folder, errors):
    """Raises OSError if a tool has failed for want of it."""
    signs = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)}
    # The linker maps its files: that ends by a signal.
    for sign, number in {**signs, "signal 7 [": errno.ENOSPC, "File size limit exceeded": errno.EFBIG}.items():
        if sign in errors:
            raise OSError(number, os.strerror(number), folder)


def require_writable(folder):
    """Raises OSError unless files can be written there. FOLDER is made for that if need be, and does not stay."""
    missing = [os.path.abspath(folder)]
    while not os.path.isdir(missing[-1]):
        missing.append(os.path.dirname(missing[-1]))
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    finally:
        for made in missing[:-1]:
            with contextlib.suppress(OSError):
                os.rmdir(made)


def say(text):
    print(f"course: {text}", file=sys.stderr)


def active_refusals(program, build, options, folder):
    """Those of the program's refusals whose lines the preprocessor keeps, and those that only the linker decides about."""
    found = program.refusals()
    if all(refusal.is_linked for refusal in found):
        return found
    kept = set()
    for view in program.views.values():
        source = program.write(folder, view)
        command = [w for w in compile_command(build, options, source, "-") if w != "-c"]
        command[command.index("-o") :] = ["-E", "-dD", "-o", "-"]  # macros' definitions too
        result = run_tool(command, folder)
        if result.returncode:
            return found
        name, line = "", 0
        for text in result.stdout.split("\n"):
            marker = re.match(r'# (\d+) "((?:[^"\\]|\\.)*)"', text)
            if marker:
                line, name = int(marker[1]), marker[2]
                continue
            if text.strip():
                kept.add((name, line))
            line += 1
    return [r for r in found if is_kept(r, kept, program)]


def is_kept(refusal, kept, program):
    """Whether the compiler sees the line. What stands between two directives, it sees as a whole; a macro's arguments may move to another
    line of that."""
    if refusal.macro and refusal.macro not in kept:
        return False
    file = next(file for file, shown in program.files.values() if shown == refusal.path)
    directives = [file.lines.line(t.start) for t in file.tokens if t.kind == "directive"]
    begin = max((line for line in directives if line < refusal.line), default=0) + 1
    end = min((line for line in directives if line > refusal.line), default=len(file.lines.begins) + 1)
    return any((refusal.path, line) in kept for line in range(begin, end))


class Cache:
    """Compiled programs by the hash of what they are made of."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        for left_over in os.listdir(folder):  # of processes that were killed: nobody holds its lock
            if left_over.startswith("new."):
                with contextlib.suppress(OSError):
                    descriptor = self.lock(left_over, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(self.path(left_over), ignore_errors=True)
                    os.close(descriptor)

    def lock(self, name, how):
        """An open file. Raises OSError where somebody else has the lock, or where the disk knows of none."""
        descriptor = os.open(self.path(name), os.O_RDONLY)
        try:
            fcntl.flock(descriptor, how)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextlib.contextmanager
    def new_folder(self):
        """One to work in, which is gone afterwards."""
        folder = ""
        while not os.path.isdir(folder):  # the next command may take it for left over before it is locked
            folder, descriptor = tempfile.mkdtemp(prefix="new.", dir=self.folder), None
            with contextlib.suppress(OSError):
                descriptor = self.lock(os.path.basename(folder), fcntl.LOCK_SH)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if descriptor is not None:
                os.close(descriptor)

    def path(self, key):
        return os.path.join(self.folder, key)

    def find(self, key):
        program = os.path.join(self.path(key), "program")
        if not os.access(program, os.X_OK):
            return None
        with contextlib.suppress(OSError):  # somebody else's, or on a disk that nobody may write to
            os.utime(self.path(key))
        return program

    def recall(self, question):
        """The program that was made for `question`, what a user asks for, if all that it was made of is as it was. Else None: to read and
        rewrite a library's headers takes long."""
        try:
            with open(self.path(f"{question}.json"), encoding="utf-8") as stream:
                answer = json.load(stream)
            is_same = all(content(path) == known for path, known in answer["files"].items())
        except (OSError, ValueError, KeyError):
            return None
        return self.find(answer["key"]) if is_same and not any(map(os.path.isfile, answer["missing"])) else None

    def remember(self, question, key, program):
        if not all(map(os.path.isfile, program.files)):  # a pipe has been read already
            return
        new = self.path(f"{question}.{os.getpid()}")
        with contextlib.suppress(OSError):  # it only takes longer, then
            answer = {"key": key, "files": {real: content(real) for real in program.files}, "missing": sorted(program.missing)}
            with open(new, "w", encoding="utf-8") as stream:
                json.dump(answer, stream)
            os.rename(new, self.path(f"{question}.json"))

    def store(self, key, folder):
        """Puts a finished folder in its place; somebody else may have been faster."""
        try:
            os.rename(folder, self.path(key))
        except OSError:
            if not self.find(key):  # nor was anybody else
                shutil.rmtree(self.path(key), ignore_errors=True)
                os.rename(folder, self.path(key))
        self._forget_old_ones()
        return os.path.join(self.path(key), "program")

    def _forget_old_ones(self):
        with open(os.path.join(self.folder, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = [(entry.stat().st_mtime, entry) for entry in os.scandir(self.folder) if entry.is_dir()]
            finished = sorted((e for e in entries if not e[1].name.startswith("new.")), key=lambda e: e[0], reverse=True)
            left_over = [e for e in entries if e[1].name.startswith("new.") and e[0] < time.time() - DAY]
            for _, entry in [*finished[KEPT_PROGRAMS:], *left_over]:
                shutil.rmtree(entry.path, ignore_errors=True)
            answers = sorted((e for e in os.scandir(self.folder) if e.is_file() and e.name != "lock"), key=lambda e: e.stat().st_mtime, reverse=True)
            for entry in answers[2 * KEPT_PROGRAMS :]:
                os.remove(entry.path)


def content(path):
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def make(program, build, options, cache, key, uses=()):
    """Compiles and links. Returns the program's path, or an exit code after saying what is wrong. `uses` are as of unresolved()."""
    with cache.new_folder() as folder:
        # The copies' folder is where they will be found later, for debuggers.
        objects, commands = [], []
        for name, view in program.views.items():
            copies = folder if len(program.views) == 1 else os.path.join(folder, name)
            os.makedirs(copies, exist_ok=True)
            objects.append(os.path.join(folder, f"{name}.o"))
            commands.append(compile_command(build, options, program.write(copies, view), objects[-1], name))
            if program.has_openmp:
                commands[-1].insert(1, "-fopenmp")
            if program.has_later:
                commands[-1] = expand(program, commands[-1], folder)
        results = run_tools(commands, folder)
        if any(result.returncode and only_reuses_names(result.stderr) for result in results):
            results = run_tools([[*command, "-fpermissive"] for command in commands], folder)
        for result in results:
            if "unrecognized command-line option" in result.stderr and f"-std={options.std}" in result.stderr:
                say(f"-std={options.std.replace('gnu', 'c')}: {build['compiler']} is too old for it. Without the option, the language is C++20.")
                return REFUSED
            if result.returncode:
                print(own_names.restore(first_error(result.stderr)), file=sys.stderr)
                return 1
        if len(objects) == 2:
            set_apart(objects[1], folder)
        command = link_command(build, objects, os.path.join(folder, "program"))
        result = run_tool([*command, "-fopenmp"] if program.has_openmp else command, folder)
        if result.returncode:
            code, lines = unresolved(result.stderr, options.file, program.linked_refusals, uses) or (1, [result.stderr.strip()])
            print(*lines, sep="\n", file=sys.stderr)
            return code
        for path in objects:
            os.remove(path)
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            files = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
            copies = {file: os.path.join(options.keep, os.path.relpath(file, folder).replace(os.sep, "_")) for file in files}
            try:
                for original, copy in copies.items():
                    shutil.copy2(original, copy)
            except OSError as error:
                for copy in copies.values():
                    with contextlib.suppress(OSError):
                        os.remove(copy)
                raise OSError(error.errno, error.strerror, options.keep) from None
        return cache.store(key, folder)


def compiled_program(build, options):
    """Its path, or an exit code after saying what is wrong."""
    asked = [fingerprint(build), options.include, options.define, options.std, options.file, os.getcwd()]
    question = hashlib.sha256("\0".join(map(str, asked)).encode(errors="surrogateescape")).hexdigest()[:32]
    cache = Cache(options.cache) if os.path.isdir(options.cache) else None
    if cache and not options.keep and (compiled := cache.recall(question)):
        return compiled
    program = Program(options.file, options.include, ROOT)
    if options.keep:
        if os.path.lexists(options.keep) and not os.path.isdir(options.keep):
            say(f"cannot write to {options.keep}: it is a file. Name a folder with --keep.")
            return REFUSED
        require_writable(options.keep)
    cache = Cache(options.cache)
    key = program.hash(*asked[:-2], os.path.realpath(options.file))
    compiled = cache.find(key) if not options.keep else None
    if not compiled:
        with cache.new_folder() as folder:
            refused = active_refusals(program, build, options, folder)
        if not all(refusal.is_linked for refusal in refused):
            print(*told(refused), sep="\n", file=sys.stderr)
            return refused[0].code
        compiled = make(program, build, options, cache, key, refused)
    if isinstance(compiled, str):
        cache.remember(question, key, program)
    return compiled


def main(arguments):
    options = parse(arguments)
    # CUDA's own headers are there already, and some of them have a counterpart of the interpreter's in front.
    options.include = [folder for folder in options.include if not os.path.isfile(os.path.join(folder, "cuda_runtime_api.h"))]
    with open(os.path.join(options.build, "interpret.json"), encoding="utf-8") as stream:
        build = json.load(stream)
    if "\n" in options.file:
        say("cannot compile a file with a line break in its name: rename it.")
        return REFUSED
    try:
        compiled = compiled_program(build, options)
    except NotText as error:
        say(f"cannot read {error}: it is no text in UTF-8; save it as that.")
        return REFUSED
    except NotRead as error:
        say(f"cannot read {error.filename}: {error.strerror}.")
        return REFUSED
    except OSError as error:
        is_kept = options.keep and error.filename and not os.path.abspath(error.filename).startswith(os.path.abspath(options.cache))
        say(f"cannot write to {options.keep if is_kept else options.cache}: {error.strerror}.")
        return REFUSED
    if isinstance(compiled, int):
        return compiled
    environment = dict(os.environ)
    for name in ("COURSE_INTERPRET_ORDER", "COURSE_INTERPRET_AS", "COURSE_INTERPRET_COUNT", "COURSE_INTERPRET_KEEP_GOING"):
        environment.pop(name, None)
    if options.order:
        environment["COURSE_INTERPRET_ORDER"] = options.order
    if options.gpu:
        environment["COURSE_INTERPRET_AS"] = options.gpu
    if options.count:
        environment["COURSE_INTERPRET_COUNT"] = "1"
    if options.keep_going:
        environment["COURSE_INTERPRET_KEEP_GOING"] = "1"
    # The program takes this process's place: its signals and its exit code are the user's.
    try:
        os.execve(compiled, [options.file, *options.arguments], environment)
    except OSError as error:
        say(f"cannot start {compiled}: {error.strerror}.")
    return REFUSED


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
