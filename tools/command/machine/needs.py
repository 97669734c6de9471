"""What steps and exercises need of a GPU, as their CMakeLists.txt says it, and whether this machine's GPUs have it."""

import dataclasses
import functools
import os
import re

from .. import files
from ..messages import Refused, say
from ..places import ROOT
from . import gpu

CALL = re.compile(r'^course_(?:step|exercise)\((\w+)(?: TUNED)? NEEDS (\d+)(a?)(?: "([^"]*)")?\)', re.MULTILINE)


def with_point(capability):
    return f"{capability // 10}.{capability % 10}"


@dataclasses.dataclass(frozen=True)
class Needs:
    least: int  # 80 is compute capability 8.0
    only: bool  # and no other
    what: str  # for what; may be empty

    def met_by(self, capability):
        return capability == self.least if self.only else capability >= self.least

    def built_for(self, architecture):
        """Whether a build for ARCHITECTURE, 80-real or 90a, has it; as course_architectures() in tools/cmake/course.cmake."""
        number, specific = re.match(r"(\d*)(\w*)", architecture).groups()
        if self.only:
            return (number, specific) == (str(self.least), "a")
        return number != "" and int(number) >= self.least

    def __str__(self):
        kind = ", no other" if self.only else " or higher"
        return f"needs compute capability {with_point(self.least)}{kind}" + (f": {self.what}" if self.what else "")


@functools.cache
def declared(folder):
    """{name: Needs} of steps/ or exercises/."""
    found = CALL.findall(files.text(os.path.join(ROOT, folder, "CMakeLists.txt")))
    return {name: Needs(int(least), bool(only), what) for name, least, only, what in found}


def this_gpu(gpus):
    """In words."""
    names = [f"{name}, has {with_point(capability)}" for name, capability in gpus]
    return f"This GPU, {names[0]}" if len(names) == 1 else f"No GPU here has it: {'; '.join(names)}"


def reason_against(folder, name):
    """Why no GPU of this machine can run it; '' if one can, or if nobody knows."""
    needs = declared(folder).get(name)
    if not needs:
        return ""
    gpus = gpu.capabilities()
    if gpus and not any(needs.met_by(capability) for _, capability in gpus):
        return f"{needs}. {this_gpu(gpus)}"
    wanted = os.environ.get("COURSE_GPU_ARCHITECTURES", "")
    if wanted not in ("", "native") and not any(map(needs.built_for, wanted.split(";"))):
        return f"{needs}. COURSE_GPU_ARCHITECTURES={wanted} has no such GPU"
    return ""


def choose_backend_for(step, wanted):
    """As gpu.choose_backend(), of one STEP that nobody named."""
    backend = gpu.choose_backend(wanted)
    reason = reason_against("steps", step) if backend == "gpu" else ""
    if not reason:
        return backend
    if wanted == "gpu":
        raise Refused(f"--on gpu: {step} {reason}. Or run with --on interpreter.")
    say(f"{step} {reason}; using the interpreter.")
    return "interpreter"


def available(folder, names, backend, are_named):
    """(names that can run on BACKEND, {name: reason} of the others). One of those that ARE_NAMED is refused."""
    reasons = {name: reason_against(folder, name) if backend == "gpu" else "" for name in names}
    reasons = {name: reason for name, reason in reasons.items() if reason}
    for name, reason in reasons.items():
        if are_named:
            raise Refused(f"{name} {reason}. Run it on the interpreter: --on interpreter")
        say(f"{name} is unavailable: {reason}.")
    kept = [name for name in names if name not in reasons]
    if reasons and not kept:
        raise Refused("none of these can run on the GPU here. Run them on the interpreter: --on interpreter")
    return kept, reasons
