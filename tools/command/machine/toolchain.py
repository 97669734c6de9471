"""Finds the compiler, CMake and CUDA's headers, and installs what is missing.

Everything is looked for by command and file, not by package: what somebody installed by hand serves as well.
"""

import dataclasses
import glob
import json
import os
import re
import shutil

from .. import files
from ..messages import Failed, say
from ..places import BUILD, LOGS, MACHINE, PYTHON, ROOT
from . import packages, processes
from .progress import Progress, failed

MIN_VERSION = {"g++": 12, "clang++": 14}
MIN_CMAKE = (3, 25)
MIN_CUDA = 12080  # CUDART_VERSION of 12.8, the first that knows sm_120

# Each library: a header of its own, the Debian package that brings it, and what to link where it is not header-only.
LIBRARIES = [
    ("boost/context/fiber.hpp", "libboost-context-dev", "boost_context"),
    ("doctest/doctest.h", "doctest-dev", ""),
    ("CLI/CLI.hpp", "libcli11-dev", ""),
    ("nlohmann/json.hpp", "nlohmann-json3-dev", ""),
    ("elfutils/libdwfl.h", "libdw-dev", "dw"),
]
PACKAGE_OF = {"ninja": "ninja-build"}  # where a command's package has another name

# Variables by which CMake, called as usual, would take another compiler or other flags, and those that people take for such.
IGNORED = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")
IGNORED_ON_GPU = ("CUDACXX", "CUDAHOSTCXX", "CUDAARCHS", "CUDAFLAGS", "CMAKE_CUDA_ARCHITECTURES")

VENV = os.path.join(BUILD, "venv")
PINS = os.path.join(ROOT, "tools", "command", "wheels")


@dataclasses.dataclass
class Tools:
    """What a build needs. nvcc is empty where there is none."""

    cxx: str = ""
    cmake: str = ""
    cuda_include: str = ""
    nvcc: str = ""

    @property
    def ctest(self):
        return os.path.join(os.path.dirname(self.cmake), "ctest")


# --- what there is ---


def find_compiler(name):
    """The first one that is new enough, or ''."""
    for candidate in [name, *(f"{name}-{version}" for version in range(21, 11, -1))]:
        path = shutil.which(candidate)
        if path:
            major = processes.ask([path, "-dumpversion"])[1].split(".")[0].strip()
            if major.isdigit() and int(major) >= MIN_VERSION[name]:
                return path
    return ""


def cmake_is_new_enough(path):
    version = re.search(r"version (\d+)\.(\d+)", processes.ask([path, "--version"])[1])
    return bool(version) and (int(version[1]), int(version[2])) >= MIN_CMAKE


def find_cmake():
    path = shutil.which("cmake") or ""
    return path if path and cmake_is_new_enough(path) else ""


def find_nvcc():
    home = os.environ.get("CUDA_HOME")
    candidates = [home and os.path.join(home, "bin/nvcc"), shutil.which("nvcc"), f"{MACHINE}/usr/local/cuda/bin/nvcc"]
    return next((path for path in candidates if path and os.access(path, os.X_OK)), "")


def cuda_is_new_enough(include):
    if not os.path.isfile(os.path.join(include, "cuda_runtime.h")):
        return False
    version = re.search(r"define +CUDART_VERSION +(\d+)", files.text(os.path.join(include, "cuda_runtime_api.h")))
    return bool(version) and int(version[1]) >= MIN_CUDA


def find_toolkit_headers():
    """The headers of an installed toolkit, or ''."""
    folders = []
    if os.environ.get("CUDA_HOME"):
        folders.append(os.path.join(os.environ["CUDA_HOME"], "include"))
    nvcc = find_nvcc()
    if nvcc:
        # nvcc may be a symlink into the toolkit, whose headers lie beside the real one.
        toolkit = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        folders += [os.path.join(toolkit, "include"), *sorted(glob.glob(os.path.join(glob.escape(toolkit), "targets/*/include")))]
    folders.append(f"{MACHINE}/usr/local/cuda/include")
    return next(filter(cuda_is_new_enough, folders), "")


def has_library(cxx, header, link):
    """The compiler is asked, which knows every folder that it searches."""
    # Compiling some of these headers takes seconds; whether they exist does not.
    source = f"#if !__has_include(<{header}>)\n#error\n#endif\n"
    if not processes.succeeds([cxx, "-std=c++20", "-x", "c++", "-E", "-", "-o", "/dev/null"], source):
        return False
    return not link or processes.succeeds([cxx, "-x", "c++", "-", f"-l{link}", "-o", "/dev/null"], "int main() {}\n")


# --- the Python environment, for what Debian does not have ---


def pins(name):
    """The file that says which versions pip installs, and the hashes of their files; 'tools/course wheels' makes it."""
    return os.path.join(PINS, f"{name}.txt")


def find_wheels():
    """Those that this machine needs, by the names of their pins."""
    wheels = []
    # No CMake at all is Debian's to bring, and may then turn out too old.
    if shutil.which("cmake") and not find_cmake():
        wheels.append("cmake")
    return wheels if find_toolkit_headers() else wheels + ["headers"]


def can_make_venv():
    return processes.succeeds([PYTHON, "-Ic", "import ensurepip, venv"])


def make_venv(progress, folder, wheels):
    """Downloads WHEELS, names of pins, into a fresh environment. Returns the exit code."""
    shutil.rmtree(folder, ignore_errors=True)
    pip = [os.path.join(folder, "bin/python"), "-Im", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return progress.run([PYTHON, "-Im", "venv", folder]) or progress.run([*pip, "--only-binary", ":all:", "--require-hashes", *files_of(wheels)])


WHAT = {"cmake": "CMake", "headers": "CUDA's headers", "book": "Sphinx and its theme"}


def files_of(wheels):
    return [word for name in wheels for word in ("--requirement", pins(name))]


def ensure_venv(wheels, folder=VENV):
    log, stamp = os.path.join(LOGS, "venv.log"), os.path.join(folder, ".wheels")
    wanted = "".join(files.text(pins(name)) for name in wheels)
    if files.text(stamp) == wanted:
        return
    with Progress(f"downloading into build/{os.path.basename(folder)}", log) as progress:
        code = make_venv(progress, folder, wheels)
    if code:
        raise failed(f"could not download {' and '.join(WHAT[name] for name in wheels)}.", log, "Is there a network?")
    files.write(stamp, wanted)  # last: an environment without it is half-made, and made again


# --- installing ---


def compiler_package(name):
    if name == "clang++":
        return "clang"
    # Ubuntu 22.04's g++ is version 11; version 12 is a package of its own.
    return f"g++-{MIN_VERSION['g++']}" if shutil.which("g++") else "g++"


def missing_packages(preset, compiler, commands):
    """The Debian packages that are still needed."""
    cxx = find_compiler(compiler)
    if cxx:
        # What is linked belongs to the interpreter.
        needed = [library for library in LIBRARIES if not (preset == "gpu" and library[2])]
        missing = [package for header, package, link in needed if not has_library(cxx, header, link)]
    else:
        # Without a compiler nobody can tell what it would find: name them all, apt-get skips those that are there.
        missing = [compiler_package(compiler), *(package for _, package, _ in LIBRARIES)]
    missing += missing_commands(["cmake", "ninja", *commands])
    if find_wheels():
        if not can_make_venv():
            missing.append("python3-venv")
        if not os.path.exists(f"{MACHINE}/etc/ssl/certs/ca-certificates.crt"):
            missing.append("ca-certificates")
    return missing


def missing_commands(commands):
    return [PACKAGE_OF.get(command, command) for command in commands if not shutil.which(command)]


def install_missing(preset, compiler, commands):
    """Twice may be needed: only the installed compiler and CMake tell that they are too old."""
    before = None
    while True:
        missing = missing_packages(preset, compiler, commands)
        if not missing:
            return
        if missing == before:
            log = os.path.join(LOGS, "packages.log")
            raise Failed(f"still missing after their installation: {' '.join(before)}. Log: {log}")
        before = missing
        packages.install(missing)
        for stamp in glob.glob(os.path.join(glob.escape(BUILD), "*/.configured")):  # CMake remembers what it did not find
            os.remove(stamp)


def find_tools(compiler):
    tools = Tools(find_compiler(compiler), find_cmake(), find_toolkit_headers(), find_nvcc())
    wheels = find_wheels()
    if wheels:
        ensure_venv(wheels)
        for site in sorted(glob.glob(os.path.join(glob.escape(VENV), "lib/python3*/site-packages"))):
            # The wheel's program itself: the script in bin/ stops working when the checkout is moved.
            tools.cmake = tools.cmake or os.path.join(site, "cmake/data/bin/cmake")
            tools.cuda_include = tools.cuda_include or os.path.join(site, "nvidia/cu13/include")
    return tools


# --- the stamp: what was found, so that the next run need not look ---


def stamp_of(preset):
    return os.path.join(BUILD, "setup", preset)


def stamp_key():
    names = ("PATH", "CUDA_HOME", "CPATH", "CPLUS_INCLUDE_PATH", *IGNORED, *IGNORED_ON_GPU)
    return [ROOT, *(os.environ.get(name, "") for name in names)]


def read_stamp(path):
    """What an earlier command found, or None if that may not hold any more."""
    try:
        with open(path, encoding="utf-8") as file:
            stamp = json.load(file)
        newest = max(os.stat(each).st_mtime_ns for each in (__file__, *glob.glob(os.path.join(glob.escape(PINS), "*.txt"))))
        if os.stat(path).st_mtime_ns <= newest or stamp["key"] != stamp_key():
            return None
        tools = Tools(**stamp["tools"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    programs = [tools.cxx, tools.cmake, *filter(None, [tools.nvcc])]
    headers = os.path.isfile(os.path.join(tools.cuda_include, "cuda_runtime.h"))
    return tools if headers and all(os.access(program, os.X_OK) for program in programs) else None


def write_stamp(path, tools):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.write(path, json.dumps({"key": stamp_key(), "tools": dataclasses.asdict(tools)}))


def environment():
    """For CMake."""
    return {name: value for name, value in processes.plain().items() if name not in IGNORED + IGNORED_ON_GPU}


def say_what_is_ignored(preset):
    """Whoever sets such a variable expects something."""
    names = [name for name in IGNORED + (IGNORED_ON_GPU if preset == "gpu" else ()) if os.environ.get(name)]
    if names:
        more = "; COURSE_GPU_ARCHITECTURES, 90a-real for example, names GPUs to compile for" if preset == "gpu" else ""
        say(f"{' '.join(names)}: ignored, the course has a compiler and flags of its own{more}.")


def setup(preset, commands=()):
    """Makes PRESET buildable here and COMMANDS runnable."""
    compiler, stamp = ("clang++" if preset.endswith("-clang") else "g++"), stamp_of(preset)
    tools = None if missing_commands(["ninja", *commands]) else read_stamp(stamp)
    if not tools:
        install_missing(preset, compiler, commands)
        tools = find_tools(compiler)
        say_what_is_ignored(preset)
        write_stamp(stamp, tools)
    return tools
