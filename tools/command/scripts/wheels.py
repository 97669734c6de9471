"""tools/course wheels: writes tools/command/wheels/*.txt anew, which pin what pip installs: the newest versions that are wanted, for each
Python and machine that the course runs on, with the hashes of their files. Whoever renews them runs the tests, and looks at docs/licences.md."""

import json
import os
import sys
import tempfile

from ..machine import processes, toolchain
from ..messages import Failed, Refused, say
from ..places import PYTHON

WANTED = {
    # CUDA's headers without its toolkit. cuda_runtime.h needs crt/, cuda_fp16.h needs cccl's nv/target.
    "headers": ["nvidia-cuda-runtime==13.0.*", "nvidia-cuda-crt==13.0.*", "nvidia-cuda-cccl==13.0.*"],
    "cmake": ["cmake==3.31.*"],
    "linter": ["ruff==0.17.*"],
    "plots": ["matplotlib>=3.6,<4"],
    # Debian 12's furo lacks its normalize.css, its script and the choice of dark.
    "book": ["furo>=2024", "myst-parser>=3", "sphinx>=7"],
    # The first version of which PyPI has them; it reads what older compilers made.
    "disassembler": ["nvidia-cuda-cuobjdump==13.2.*", "nvidia-cuda-nvdisasm==13.2.*"],
}
MACHINES = ("x86_64", "aarch64")
PYTHONS = [f"3.{minor}" for minor in range(9, 15)]
# What matplotlib and Sphinx need there: pip looks at such a condition with its own Python's version.
ALSO_WANTED = {
    ("plots", "3.9"): ["importlib-resources", "zipp"],
    ("book", "3.9"): ["importlib-metadata", "zipp", "tomli"],
    ("book", "3.10"): ["tomli"],
}
HEAD = "# Made by 'tools/course wheels': what is installed, of which file. Not to be edited.\n"


def resolved_for(machine, pip, wheels, python):
    """{name: (version, hash)} of all that is to be installed there."""
    with tempfile.TemporaryDirectory() as nowhere:
        report = os.path.join(nowhere, "report.json")
        where = ["--python-version", python, "--implementation", "cp", "--only-binary", ":all:", "--target", nowhere]
        for platform in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
            where += ["--platform", f"{platform}_{machine}"]
        words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", report, *where, *wheels]
        if processes.run([*pip, *words], stdout=sys.stderr):
            raise Failed(f"pip finds no {' '.join(wheels)} for Python {python} on {machine}.")
        with open(report, encoding="utf-8") as file:
            found = json.load(file)["install"]
    return {
        each["metadata"]["name"].lower().replace("_", "-"): (
            each["metadata"]["version"],
            each["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for each in found
    }


def resolved(pip, wheels, python):
    """{name: (version, hashes)}: one version, of which each machine has its file."""
    first = resolved_for(MACHINES[0], pip, wheels, python)
    exactly = [f"{name}=={version}" for name, (version, _) in first.items()]
    each = [first, *(resolved_for(machine, pip, exactly, python) for machine in MACHINES[1:])]
    return {name: (version, [found[name][1] for found in each]) for name, (version, _) in first.items()}


def condition(pythons):
    """For neighbours among PYTHONS; what is newer than all is like the newest."""
    bounds = []
    if pythons[0] != PYTHONS[0]:
        bounds.append(f'python_version >= "{pythons[0]}"')
    if pythons[-1] != PYTHONS[-1]:
        bounds.append(f'python_version <= "{pythons[-1]}"')
    return " ; " + " and ".join(bounds) if bounds else ""


def pinned(found):
    """The file's text, of FOUND[python][name]."""
    lines = [HEAD]
    for name in sorted({name for of_python in found.values() for name in of_python}):
        versions = {}
        for python, of_python in found.items():
            if name in of_python:
                version, digests = of_python[name]
                versions.setdefault(version, {})[python] = digests
        for version, digests in versions.items():
            hashes = [f" \\\n    --hash=sha256:{digest}" for digest in dict.fromkeys(sum(digests.values(), []))]
            lines.append(f"{name}=={version}{condition(list(digests))}{''.join(hashes)}\n")
    return "".join(lines)


def main(words):
    if words:
        raise Refused("wheels takes no arguments.")
    with tempfile.TemporaryDirectory() as scratch:
        pip = [os.path.join(scratch, "bin", "python"), "-Im", "pip"]
        if processes.run([PYTHON, "-Im", "venv", scratch]) or processes.run([*pip, "install", "--quiet", "--upgrade", "pip"]):
            raise Failed("could not make a Python environment with a new pip.")
        for name, wheels in WANTED.items():
            say(f"{name}: {' '.join(wheels)}")
            found = {python: resolved(pip, wheels + ALSO_WANTED.get((name, python), []), python) for python in PYTHONS}
            with open(toolchain.pins(name), "w", encoding="utf-8") as file:
                file.write(pinned(found))
    return 0
