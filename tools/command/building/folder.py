"""The folder build/ and its lock; one CMake preset after the other."""

import contextlib
import datetime
import errno
import fcntl
import glob
import os
import re
import shlex
import shutil
import sys
import textwrap
import time

from .. import files
from ..machine import processes, toolchain
from ..machine.causes import FULL, cause_of, disk_is_full, ran_out_of_memory
from ..machine.gpu import has_gpu
from ..machine.packages import install
from ..machine.progress import Progress, failed, no_room
from ..messages import Failed, Refused, Stop, say, show
from ..places import BUILD, LOGS, ROOT
from . import errors

PRESETS = ("interpreter", "interpreter-clang", "interpreter-debug", "dev", "gpu")  # as in CMakePresets.json
LOCK = os.path.join(BUILD, "lock")


def owned_by_others():
    """The line to type if something in build/ belongs to somebody else, root as a rule; or ''."""
    for path in [BUILD, *glob.glob(os.path.join(glob.escape(BUILD), "*"))]:
        try:
            if os.stat(path).st_uid != os.geteuid():
                return f"sudo chown -R {os.geteuid()} {shlex.quote(BUILD)}"
        except OSError:
            pass
    return ""


def cannot_write(path, error=None):
    if error and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return no_room(path, error)
    line = owned_by_others() if os.path.isdir(BUILD) else ""
    if line:
        return Refused(f"cannot write to {path}, which belongs to somebody else. Make it yours with this line:\n  {line}")
    return Refused(f"cannot write to {path}: make the folder yours, or copy the course to a folder of your own.")


def require_ours():
    """Of what an earlier command, as root perhaps, has left behind, a build would fail in the middle."""
    for path in (LOGS, *(os.path.join(BUILD, name) for name in ("setup", "interpreter", "gpu", "venv"))):
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise cannot_write(path)


def this_command():
    """As it was typed; of a long one, the beginning."""
    return textwrap.shorten(shlex.join(["tools/course", *sys.argv[1:]]), 80, placeholder=" ...")


def holder(lock):
    """Who holds it, as far as the file says so; tools/course writes there, too."""
    found = re.match(r"(\d+) (\d+) (.+)", os.pread(lock, 1000, 0).decode(errors="replace"))
    if not found:
        return "another course command that is building"
    begin = datetime.datetime.fromtimestamp(int(found[2]))
    since = f"{begin:%H:%M:%S}" if begin.date() == datetime.date.today() else f"{begin:%Y-%m-%d %H:%M}"
    ended = "" if os.path.exists(f"/proc/{found[1]}") else ", which was ended: what it has started goes on"
    return f"another course command that is building since {since}: '{found[3]}', process {found[1]}{ended}"


@contextlib.contextmanager
def locked():
    """Everything that the course writes lies in build/; one command at a time may change it."""
    try:
        os.makedirs(LOGS, exist_ok=True)
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(BUILD, error) from None
    require_ours()
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"waiting for {holder(lock)} ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):  # a full disk
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} {time.time():.0f} {this_command()}\n".encode(errors="replace"), 0)
        processes.held.append(lock)
        yield
    finally:
        if lock in processes.held:
            processes.held.remove(lock)
        os.close(lock)


def forget_setup(preset):
    """A build that misses a file may be one whose package was removed: look for everything again next time."""
    files.forget(toolchain.stamp_of(preset))
    files.forget(os.path.join(BUILD, preset, ".configured"))


def check_architectures():
    """As tools/cmake/course.cmake does, whose sentence is one of many lines."""
    for name, others in (("COURSE_GPU_ARCHITECTURES", ["native"]), ("COURSE_TUNED_ARCHITECTURES", [])):
        value = os.environ.get(name, "")
        for each in value.split(";") if value not in ("", *others) else []:
            if not re.fullmatch(r"[0-9]+[af]?(-real|-virtual)?", each):
                raise Refused(f"{name}={value}: '{each}' is no architecture. Name some, for example 80-real;90a-real.")


def configure_arguments(preset, tools):
    arguments = [f"-DCMAKE_CXX_COMPILER={tools.cxx}", f"-DCOURSE_CUDA_INCLUDE_DIR={tools.cuda_include}"]
    if preset == "gpu":
        arguments += [f"-DCMAKE_CUDA_COMPILER={tools.nvcc}", f"-DCMAKE_CUDA_HOST_COMPILER={tools.cxx}"]
        # A learner's GPU alone builds in a fifth of the time; without one, the compile-only gate wants them all.
        wanted = os.environ.get("COURSE_GPU_ARCHITECTURES")
        if wanted:
            arguments.append(f"-DCOURSE_GPU_ARCHITECTURES={wanted}")
            arguments.append(f"-DCOURSE_TUNED_ARCHITECTURES={os.environ.get('COURSE_TUNED_ARCHITECTURES', '')}")
        elif has_gpu():
            arguments.append("-DCOURSE_GPU_ARCHITECTURES=native")
    return arguments


# --- the clock ---

AHEAD = 10  # seconds: servers of network drives are that much ahead, and nobody minds


def from_the_future(paths):
    """[(when it was changed, path)] of PATHS, the latest first."""
    found, now = [], time.time()
    for path in paths:
        with contextlib.suppress(OSError):
            changed = os.stat(path, follow_symlinks=False).st_mtime
            if changed > now + AHEAD:
                found.append((changed, path))
    return sorted(found, reverse=True)


def sources():
    """Files that a build depends on."""
    yield from (os.path.join(ROOT, name) for name in ("CMakePresets.json", "CMakeLists.txt"))
    for top in ("common", "steps", "exercises", "solutions", "tools", "docs/examples"):
        for place, _, names in os.walk(os.path.join(ROOT, top)):
            yield from (os.path.join(place, name) for name in names)


def when(changed):
    return f"{datetime.datetime.fromtimestamp(changed):%Y-%m-%d %H:%M}"


def mend_times(preset):
    """What is newer than now would be built again and again; what was built in the future would hide what is edited now."""
    found = from_the_future(sources())
    if found:
        changed, path = found[0]
        others = f", and {len(found) - 1} more," if len(found) > 1 else ""
        told = "It counts" if len(found) == 1 else "They count"
        try:
            for _, each in found:
                os.utime(each, follow_symlinks=False)
            told += " as changed now."
        except OSError:
            told = "Until then it is built each time."
        say(f"{os.path.relpath(path, ROOT)}{others} is of {when(changed)}, which is to come: is this machine's clock right? {told}")
    log = os.path.join(BUILD, preset, ".ninja_log")  # without which Ninja builds everything
    stamps = [log, os.path.join(BUILD, preset, ".configured"), toolchain.stamp_of(preset)]
    found = from_the_future(stamps)
    if found:
        say(f"build/{preset} was built at {when(found[0][0])}, which is to come: is this machine's clock right? It is built anew.")
        for each in stamps:
            files.forget(each)


def is_configured(stamp, wanted):
    if files.text(stamp).rstrip("\n") != wanted:
        return False
    if not all(os.path.exists(os.path.join(os.path.dirname(stamp), name)) for name in ("CMakeCache.txt", "build.ninja")):
        return False  # somebody has cleaned up
    return os.stat(stamp).st_mtime_ns > os.stat(os.path.join(ROOT, "CMakePresets.json")).st_mtime_ns


def configure(preset, tools):
    """Ninja configures again by itself when a CMakeLists.txt changed; it does not see the presets, or that the folder moved. Then what has
    debug information is compiled again: kernels."""
    stamp, log = os.path.join(BUILD, preset, ".configured"), os.path.join(LOGS, f"configure-{preset}.log")
    arguments = configure_arguments(preset, tools)
    wanted = " ".join([ROOT, *arguments])
    if is_configured(stamp, wanted):
        return
    files.forget(stamp)
    with Progress(f"configuring {preset}", log) as progress:
        code = progress.run([tools.cmake, "--fresh", "--preset", preset, *arguments], cwd=ROOT, env=toolchain.environment())
    if code or disk_is_full(BUILD):
        forget_setup(preset)
        raise failed(f"could not configure the preset '{preset}'.", log)
    if preset == "interpreter":
        make_moveable(os.path.join(BUILD, preset))
    files.write(stamp, wanted + "\n")


COMPILING = re.compile(r"^build [^:]*: CXX_COMPILER__.*\n(?:  .*\n)+", re.MULTILINE)
AGAIN = re.compile(r"^(rule RERUN_CMAKE\n(?:  .*\n)*?  command = .*)", re.MULTILINE)


def make_moveable(build):
    """Ninja runs no command again that is the same, and CMake writes the course's folder into each: after a move all would be compiled
    again. So those of the folder BUILD name it as it is seen from there. What has debug information stays: that says where sources lie.
    """
    again = shlex.join([os.path.join(ROOT, "tools", "course"), "moveable", build]).replace("$", "$$")
    for name, change in (
        ("build.ninja", lambda text: COMPILING.sub(lambda found: without_place(found[0], build), text)),
        ("CMakeFiles/rules.ninja", lambda text: AGAIN.sub(lambda found: f"{found[1]} && {again}", text)),  # Ninja calls CMake, too
    ):
        path = os.path.join(build, name)
        text = files.text(path)
        if change(text) != text:
            files.write(path, change(text))


def without_place(statement, build):
    if re.search(r"^  FLAGS = (?:.* )?-g", statement, re.MULTILINE):
        return statement
    place = re.escape(ROOT).replace("\\ ", r"[$\\]? ")
    inputs = re.compile(rf'"{place}"|{place}(?=[/\s"]|$)')
    seen = os.path.relpath(ROOT, build)
    lines = statement.split("\n")
    return "\n".join([inputs.sub(lambda _: seen, line) if line.startswith(("build ", "  INCLUDES = ")) else line for line in lines])


def build(preset, tools, targets=()):
    """Without a target, everything."""
    log = os.path.join(LOGS, f"build-{preset}.log")
    command = [tools.cmake, "--build", "--preset", preset, *(["--target", *targets] if targets else [])]
    with Progress(f"building {preset}", log, may_be_idle=True) as progress:
        code = progress.run(command, cwd=ROOT)
    if code:
        fail(preset, log)
    for warning in errors.warnings(log):
        say(warning)


def fail(preset, log):
    """Says what is wrong, the learner's own line first."""
    lines = files.lines(log)
    if re.search(r"No such file|cannot find", "\n".join(lines)):
        forget_setup(preset)
    first, others = errors.first_error(lines)
    unknown = re.search(r"^ninja: error: (unknown target '.*')", "\n".join(lines), re.MULTILINE)
    if unknown:
        raise Refused(f"the preset '{preset}' has no such target: {unknown[1]}.")
    show(first or lines[-25:])
    if others:
        say(f"{others} more errors, which may follow from it.")
    say(f"the whole log: {log}")
    reason = cause_of(lines[-200:])
    if ran_out_of_memory(lines[-200:]):
        reason = "A compiler was killed: memory ran out. Close other programs, or set CMAKE_BUILD_PARALLEL_LEVEL=1, then try again."
    if not first and disk_is_full(BUILD):
        reason = FULL
    raise (Refused if reason == FULL else Failed)(" ".join([f"could not build the preset '{preset}'.", reason]).rstrip())


def set_up(preset, commands=()):
    """What a build needs, without it."""
    with locked():
        toolchain.setup(preset, commands)


def prepare(preset, commands=(), targets=()):
    """From whatever machine this is to built targets, and COMMANDS that can be run. TARGETS may be a function of the tools, for who has to
    see what CMake has made of the course."""
    if preset == "gpu":
        check_architectures()
    with locked():
        mend_times(preset)
        tools = toolchain.setup(preset, commands)
        configure(preset, tools)
        if callable(targets):
            build(preset, tools, ["build.ninja"])  # a CMakeLists.txt has changed, perhaps
            targets = targets(tools)
            if not targets:
                return tools
        build(preset, tools, targets)
    return tools


def install_wheels(venv, pins, what, instead):
    """Downloads WHAT, that is what the file of PINS says, into the folder VENV. INSTEAD: what to do without a network."""
    log = os.path.join(LOGS, f"{pins}.log")
    with Progress(f"downloading {what} into build/", log) as progress:
        code = toolchain.make_venv(progress, venv, [pins])
    if code:
        shutil.rmtree(venv, ignore_errors=True)
        raise failed(f"could not download {what}.", log, f"Without a network, {instead}.")


def need_commands(commands):
    """Installs what is missing; for what needs no build."""
    missing = toolchain.missing_commands(commands)
    if missing:
        with locked():
            install(missing)


def want_commands(commands):
    """Installs what is missing; says so where it cannot. For what the course can do without."""
    try:
        need_commands(commands)
    except Stop as stop:
        say(stop)
        say(f"going on without {' '.join(toolchain.missing_commands(commands))}.")
