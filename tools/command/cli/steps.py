"""The steps, and what their files say of themselves."""

import functools
import glob
import json
import os
import re

from .. import files
from ..messages import Refused, say
from ..places import ROOT

INPUTS = {"f32": "float", "f16": "__half", "bf16": "__nv_bfloat16"}


@functools.cache
def all_steps():
    folder = os.path.join(ROOT, "steps")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    course = re.findall(r"^ *course_step\((\w+)", files.text(os.path.join(folder, "CMakeLists.txt")), re.MULTILINE)
    found = sorted(name for name in names if name[0].isdigit() and os.path.isdir(os.path.join(folder, name)))
    for name in sorted(set(found).difference(course) if course else []):
        say(f"steps/{name} is left out: steps/CMakeLists.txt names no such step.")
    found = [name for name in found if name in course]
    if not found:
        raise Refused("there are no steps here: is the folder steps/ complete?")
    return found


@functools.cache
def of_several_gpus():
    """Those without a number: each is a program of its own, whose ranks are GPUs, or threads of the interpreter. No ladder has them."""
    return re.findall(r"^add_subdirectory\((\w+)\)", files.text(os.path.join(ROOT, "steps", "CMakeLists.txt")), re.MULTILINE)


def select(words):
    """The steps that WORDS name, each once."""
    return list(dict.fromkeys(map(named, words)))


def named(word):
    """The one whose number is WORD, or in whose folder's name a word begins with it; none of several GPUs."""
    step = any_named(word)
    if step in of_several_gpus():
        raise Refused(f"{step} is a program of several GPUs: 'tools/course run {step}' takes it, and so does 'see'; this command doesn't.")
    return step


def any_named(word):
    """As named(), but where no other step fits, one of several GPUs."""
    text = re.sub(r"^(?:.*/)?steps/|/gemm\.cuh$|/$", "", word)  # tab completion gives steps/01_naive/
    return the_one("step", word, text, all_steps() if matching(text, all_steps()) else [*all_steps(), *of_several_gpus()])


def matching(text, names):
    """Of NAMES those whose number is TEXT, or in which a word begins with it: 01_n, naive, ping-pong."""
    number = re.fullmatch(r"0*([0-9]+)", text)
    if number:
        return [name for name in names if re.match(rf"0*{number[1]}_", name)]
    start = re.sub("[ -]", "_", text.lower())
    return [name for name in names if start and f"_{start}" in f"_{name}"]


def the_one(kind, word, text, names):
    """Of NAMES the one that matches TEXT. WORD is what was typed."""
    matches = matching(text, names)
    if not matches:
        raise Refused(f"no {kind} '{word}'. Give a number or a word of a name: {' '.join(names)}.")
    if len(matches) > 1:
        raise Refused(f"{kind} '{word}' could be any of: {' '.join(matches)}.")
    return matches[0]


def declaration(step, name):
    """The line 'using NAME ...' of the step's gemm.cuh, or None."""
    found = re.search(rf"^using {name}\b.*", files.text(os.path.join(ROOT, "steps", step, "gemm.cuh")), re.MULTILINE)
    return found and found[0]


def has_type(step, dtype):
    inputs = declaration(step, "Inputs")
    return inputs is None or bool(re.search(rf"[< ]{INPUTS[dtype]}[,>]", inputs))


def fuses(step):
    return declaration(step, "Activations") is not None


# What tiles without a name of their own are called: common/harness/program/tile.h.
TILE_WORD = re.compile(r"[sg]?\d+(x\d+)*|warp|per|thread|ping-pong|cooperative|narrow|split|fallback")


def check_tile(step, tile):
    """Refuses before a build what none of the step's tiles can be called; which of the others there are, its program knows."""
    paths = glob.glob(os.path.join(glob.escape(os.path.join(ROOT, "steps", step)), "*.*h"))
    text = "".join(map(files.text, paths))  # where tiles have names
    for word in (tile or "").replace(",", " ").split():
        if not TILE_WORD.fullmatch(word) and not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            raise Refused(f"--tile '{tile}': no tile of {step} has '{word}' in its name. Names are such as 128x128x64 warp 64x64 s3 g8.")


def tuned_steps():
    """Those whose tiles are candidates."""
    with open(os.path.join(ROOT, "steps", "CMakeLists.txt"), encoding="utf-8") as file:
        return re.findall(r"^course_step\((\w+) TUNED\b", file.read(), re.MULTILINE)


def choose_dtype(steps, wanted, are_named):
    """(type, steps): what was asked for, else f32 where all have it, else f16, which all have. Of all steps, those without the type
    are left out; one that was named is refused."""
    if wanted is None:
        return ("f32" if all(has_type(step, "f32") for step in steps) else "f16"), steps
    able = [step for step in steps if has_type(step, wanted)]
    for step in steps:
        if step not in able:
            others = " or ".join(dtype for dtype in INPUTS if has_type(step, dtype))
            leave_out(f"{step} has no kernels for {wanted}", are_named, f"choose another --dtype, {others}")
    return wanted, able


def choose_fused(steps, are_named):
    """Those that can follow --activation and --bias."""
    able = [step for step in steps if fuses(step)]
    for step in steps:
        if step not in able:
            others = "".join(f", or run {other}" for other in all_steps() if fuses(other))
            leave_out(f"{step} fuses nothing", are_named, f"leave out --activation and --bias{others}")
    return able


def leave_out(reason, is_named, instead):
    """One of all steps; one that was named is refused, with what to do INSTEAD."""
    if is_named:
        raise Refused(f"{reason}: {instead}.")
    say(f"{reason}: left out.")


# --- patience ---

PATIENCE = 120  # seconds; longer runs are asked about first, as by the steps themselves
MARGIN = 3  # other machines are faster than that which the committed results are from


def expected_seconds(step, dtype, shapes, first=False):
    """What the step's tiles, or its FIRST one, take on the interpreter, by what a committed run took; None where none is of this
    type."""
    path = os.path.join(ROOT, "docs", "results", "interpreter", f"ladder-{'f32' if dtype == 'f32' else 'f16'}.json")
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        found = [each for each in document["results"] if each["step"] == step and (each["first"] or not first)]
        seconds, flops = sum(each["seconds"] for each in found), found[0]["flops"]
        cores = max(1, len(os.sched_getaffinity(0))) / document["host"]["cores"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
    # Small problems do not fill the machine, and take no time.
    return sum(seconds / flops * 2 * m * n * k for m, n, k in shapes) / max(1.0, cores)


def check_patience(steps, dtype, shapes):
    """Refuses before a build what the steps would refuse after it; what is close to the limit is theirs to say."""
    for step in steps:
        seconds = expected_seconds(step, dtype, shapes)
        if seconds and seconds > MARGIN * PATIENCE:
            raise Refused(
                f"{step} would take about {round(seconds / 60)} minutes on the interpreter; choose a smaller --shape, or add"
                " --force."
            )
