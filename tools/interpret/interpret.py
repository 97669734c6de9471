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

import argparse  # noqa: E402
import contextlib  # noqa: E402
import errno  # noqa: E402
import fcntl  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import own_names  # noqa: E402
import tokens  # noqa: E402
from program import NotText, Program  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KEPT_PROGRAMS = 40  # compiled programs in the cache; the ones that were not used for longest go
DAY = 24 * 60 * 60  # in seconds
REFUSED = 2
STANDARD = "gnu++20"  # what program.h is written in


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tools/course interpret", add_help=False, allow_abbrev=False)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--order")
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
    for folder, _, names in sorted([*os.walk(os.path.join(ROOT, "common")), *os.walk(HERE)]):
        for name in sorted(names):
            if name.endswith((".h", ".cuh", ".py")) or "include" in folder:
                status = os.stat(os.path.join(folder, name))
                parts.append(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(parts)


def compile_command(build, options, source, result):
    """Of g++; the course's own headers stand in front of CUDA's."""
    command = [build["compiler"], "-x", "c++", *build["options"], "-w", f"-std={options.std}"]
    for define in options.define:
        command.append(f"-D{define}")
    command += ["-iquote", os.path.dirname(options.file) or "."]
    for folder in options.include:
        command.append(f"-I{folder}")
    command += [f"-I{ROOT}", "-isystem", os.path.join(ROOT, "common/interpreter/include")]
    for folder in build["cuda"]:
        command += ["-isystem", folder]
    command += ["-fdiagnostics-color=never"]
    for header in ("members.h", "program.h"):
        command += ["-include", os.path.join(ROOT, "common/interpreter/cuda_runtime", header)]
    return command + ["-c", source, "-o", result]


def link_command(build, objects, result):
    return [build["compiler"], objects, "-o", result, *build["link"], *build["libraries"]]


def first_error(output):
    """The compiler's first error with the lines that belong to it."""
    lines = output.split("\n")
    begin = next((i for i, line in enumerate(lines) if re.search(r"(^|[ :])(fatal )?error: ", line)), None)
    if begin is None:
        return output.strip()
    end = begin + 1
    while end < len(lines) and not re.match(r"\S.*?(:\d+: |: (error|In|At)\b)|In file included from ", lines[end]):
        end += 1
    return _about_launch(lines[begin], lines[begin + 1 : end]) or "\n".join(lines[begin:end]).rstrip()


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


def unresolved(output, path):
    """(exit code, line) for the linker's first unknown name; None if that is not what it says."""
    match = re.search(r"(?:^(.+?:\d+): |[^\n]*)undefined reference to [`'‘]([^'’\n]+)", output, re.MULTILINE)
    if not match:
        return None
    place, name = match[1] or path, match[2]
    if name == "main":
        return 1, f"{path}: error: there is no main() in it, where a program begins"
    # Functions of CUDA are C's, without parameters in their names.
    if re.match(r"(cuda|cu[A-Z]|cublas|cufft|curand|cusparse|cusolver|cudnn|nccl|nvrtc|nvml|nvtx)\w*$|__", name):
        return REFUSED, f"{place}: {name}: the interpreter does not have it."
    return 1, f"{place}: error: undefined reference to '{name}': if it stands in another file or library: a program is one file here"


def run_tool(command, folder):
    """`folder` is for what the tool needs meanwhile. Nothing of it outlives this."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", LANGUAGE="", TMPDIR=os.path.abspath(folder))
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "errors": "replace"}
    with subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as tool:
        try:
            output, errors = tool.communicate()
        except BaseException:
            os.killpg(tool.pid, signal.SIGKILL)
            raise
    if tool.returncode:
        require_room(folder, errors)
    return subprocess.CompletedProcess(command, tool.returncode, output, errors)


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
    """Those of the program's refusals whose lines the preprocessor keeps."""
    found = program.refusals()
    if not found:
        return []
    source = program.write(folder)
    command = [w for w in compile_command(build, options, source, "-") if w != "-c"]
    command[command.index("-o") :] = ["-E", "-dD", "-o", "-"]  # macros' definitions too
    # A header that is refused may not even be there; an empty one of its name is enough to look at the rest.
    result = run_tool(command, folder)
    if result.returncode:
        return found
    kept, name, line = set(), "", 0
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
    """Whether the compiler sees the line, or, of a line that only includes something, one beside it."""
    if refusal.macro and refusal.macro not in kept:
        return False
    if (refusal.path, refusal.line) in kept:
        return True
    file = next(file for file, shown in program.files.values() if shown == refusal.path)
    begin = file.lines.begins[refusal.line - 1]
    is_directive = file.text[begin:].lstrip(" \t").startswith("#")
    return is_directive and not _is_skipped(file, refusal.line, kept, refusal.path)


def _is_skipped(file, line, kept, path):
    """An include leaves no line of its own; it is skipped if it stands in an '#if' of whose branch no line is kept."""
    directives = [(file.lines.line(t.start), re.match(r"[ \t]*#[ \t]*(\w*)", t.text)[1]) for t in file.tokens if t.kind == "directive"]
    opened = []
    for at, kind in directives:
        if at >= line:
            break
        if kind in ("if", "ifdef", "ifndef"):
            opened.append(at)
        elif kind in ("else", "elif") and opened:
            opened[-1] = at
        elif kind == "endif" and opened:
            opened.pop()
    if not opened:
        return False
    begin = opened[-1]
    end = next((at for at, kind in directives if at > line and kind in ("else", "elif", "endif")), line)
    text = file.text.split("\n")
    code = [n for n in range(begin + 1, end) if text[n - 1].strip() and not text[n - 1].lstrip().startswith(("#", "//", "/*", "*"))]
    if code:
        return not any((path, n) in kept for n in code)
    return text[begin - 1].split("//")[0].split() in (["#if", "0"], ["#", "if", "0"])


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


def make(program, build, options, cache, key):
    """Compiles and links. Returns the program's path, or an exit code after saying what is wrong."""
    with cache.new_folder() as folder:
        # The copies' folder is where they will be found later, for debuggers.
        source = program.write(folder)
        result = run_tool(compile_command(build, options, source, os.path.join(folder, "program.o")), folder)
        if "unrecognized command-line option" in result.stderr and f"-std={options.std}" in result.stderr:
            say(f"-std={options.std.replace('gnu', 'c')}: {build['compiler']} is too old for it. Without the option, the language is C++20.")
            return REFUSED
        if result.returncode:
            print(own_names.restore(first_error(result.stderr)), file=sys.stderr)
            return 1
        result = run_tool(link_command(build, os.path.join(folder, "program.o"), os.path.join(folder, "program")), folder)
        if result.returncode:
            code, text = unresolved(result.stderr, options.file) or (1, result.stderr.strip())
            print(text, file=sys.stderr)
            return code
        os.remove(os.path.join(folder, "program.o"))
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            copies = {os.path.join(folder, name): os.path.join(options.keep, name) for name in os.listdir(folder)}
            try:
                for original, copy in copies.items():
                    shutil.copy2(original, copy)
            except OSError as error:
                for copy in copies.values():
                    with contextlib.suppress(OSError):
                        os.remove(copy)
                raise OSError(error.errno, error.strerror, options.keep) from None
        return cache.store(key, folder)


def compiled_program(program, build, options):
    """Its path, or an exit code after saying what is wrong."""
    if options.keep:
        require_writable(options.keep)
    cache = Cache(options.cache)
    key = program.hash(fingerprint(build), options.include, options.define, options.std, os.path.realpath(options.file))
    compiled = cache.find(key) if not options.keep else None
    if compiled:
        return compiled
    with cache.new_folder() as folder:
        refused = active_refusals(program, build, options, folder)
    if refused:
        print(refused[0], file=sys.stderr)
        return refused[0].code
    return make(Program(options.file, options.include, ROOT), build, options, cache, key)


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
        program = Program(options.file, options.include, ROOT)
    except OSError as error:
        say(f"cannot read {error.filename}: {error.strerror}.")
        return REFUSED
    except NotText as error:
        say(f"cannot read {error}: it is no text in UTF-8; save it as that.")
        return REFUSED
    if options.keep and os.path.lexists(options.keep) and not os.path.isdir(options.keep):
        say(f"cannot write to {options.keep}: it is a file. Name a folder with --keep.")
        return REFUSED
    try:
        compiled = compiled_program(program, build, options)
    except OSError as error:
        is_kept = options.keep and error.filename and not os.path.abspath(error.filename).startswith(os.path.abspath(options.cache))
        say(f"cannot write to {options.keep if is_kept else options.cache}: {error.strerror}.")
        return REFUSED
    if isinstance(compiled, int):
        return compiled
    environment = dict(os.environ)
    for name in ("COURSE_INTERPRET_ORDER", "COURSE_INTERPRET_AS", "COURSE_INTERPRET_COUNT"):
        environment.pop(name, None)
    if options.order:
        environment["COURSE_INTERPRET_ORDER"] = options.order
    if options.gpu:
        environment["COURSE_INTERPRET_AS"] = options.gpu
    if options.count:
        environment["COURSE_INTERPRET_COUNT"] = "1"
    # The program takes this process's place: its signals and its exit code are the user's.
    try:
        os.execve(compiled, [options.file, *options.arguments], environment)
    except OSError as error:
        say(f"cannot start {compiled}: {error.strerror}.")
    return REFUSED


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
