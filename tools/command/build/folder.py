"""The folder build/ and its lock; one CMake preset after the other."""

import contextlib
import fcntl
import glob
import os
import re
import shlex

from .. import files
from ..machine import processes, toolchain
from ..machine.causes import cause_of, ran_out_of_memory
from ..machine.gpu import has_gpu
from ..machine.packages import install
from ..machine.progress import Progress, failed
from ..messages import Failed, Refused, Stop, say, show
from ..places import BUILD, LOGS, ROOT
from . import errors

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


def cannot_write(path):
    line = owned_by_others() if os.path.isdir(BUILD) else ""
    if line:
        return Refused(f"cannot write to {path}, which belongs to somebody else. Make it yours with this line:\n  {line}")
    return Refused(f"cannot write to {path}: make the folder yours, or copy the course to a folder of your own.")


def require_ours():
    """Of what an earlier command, as root perhaps, has left behind, a build would fail in the middle."""
    for path in (LOGS, *(os.path.join(BUILD, name) for name in ("setup", "interpreter", "gpu", "venv"))):
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise cannot_write(path)


@contextlib.contextmanager
def locked():
    """Everything that the course writes lies in build/; one command at a time may change it."""
    try:
        os.makedirs(LOGS, exist_ok=True)
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        raise cannot_write(BUILD) from None
    require_ours()
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("waiting for another course command that is building ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
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


def is_configured(stamp, wanted):
    if files.text(stamp).rstrip("\n") != wanted:
        return False
    return os.stat(stamp).st_mtime_ns > os.stat(os.path.join(ROOT, "CMakePresets.json")).st_mtime_ns


def configure(preset, tools):
    """Ninja configures again by itself when a CMakeLists.txt changed; it does not see the presets, or that the folder moved."""
    stamp, log = os.path.join(BUILD, preset, ".configured"), os.path.join(LOGS, f"configure-{preset}.log")
    arguments = configure_arguments(preset, tools)
    wanted = " ".join([ROOT, *arguments])
    if is_configured(stamp, wanted):
        return
    files.forget(stamp)
    with Progress(f"configuring {preset}", log) as progress:
        code = progress.run([tools.cmake, "--fresh", "--preset", preset, *arguments], cwd=ROOT)
    if code:
        forget_setup(preset)
        raise failed(f"could not configure the preset '{preset}'.", log)
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted + "\n")


def build(preset, tools, targets=()):
    """Without a target, everything."""
    log = os.path.join(LOGS, f"build-{preset}.log")
    command = [tools.cmake, "--build", "--preset", preset, *(["--target", *targets] if targets else [])]
    with Progress(f"building {preset}", log) as progress:
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
    show(first or lines[-25:])
    if others:
        say(f"{others} more errors, which may follow from it.")
    say(f"the whole log: {log}")
    reason = cause_of(lines[-200:])
    if ran_out_of_memory(lines[-200:]):
        reason = "A compiler was killed: memory ran out. Close other programs, or set CMAKE_BUILD_PARALLEL_LEVEL=1, then try again."
    raise Failed(" ".join([f"could not build the preset '{preset}'.", reason]).rstrip())


def prepare(preset, commands=(), targets=()):
    """From whatever machine this is to built targets, and COMMANDS that can be run."""
    with locked():
        tools = toolchain.setup(preset, commands)
        configure(preset, tools)
        build(preset, tools, targets)
    return tools


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
