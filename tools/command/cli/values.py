"""What a value may be. Each function takes the option and what was typed, and refuses with what to type instead."""

import functools
import os
import re

from ..messages import Refused
from ..places import ROOT

DTYPES = ("f32", "f16", "bf16")
OTHER_SPELLINGS = {"fp32": "f32", "float32": "f32", "fp16": "f16", "float16": "f16", "half": "f16", "bfloat16": "bf16"}
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
LAYOUTS = ("nn", "nt", "tn", "tt")
MODES = ("hot", "cold", "single")
BACKENDS = ("gpu", "interpreter")
GPUS = ("h200", "a100", "h100", "4090")
SUITES = ("squares", "rows", "transformer")
MOST_DIGITS = 10  # of an extent, as in common/harness/program/arguments.cpp
COMPILERS = ("gcc", "clang")


def one_of(*choices):
    def check(option, value):
        if value not in choices:
            raise Refused(f"{option} '{value}' is none of: {' '.join(choices)}.")
        return value

    check.choices = choices
    return check


class Activation:
    """One of their names, as common/gemm lists them; the files are read when somebody wants to know."""

    @functools.cached_property
    def choices(self):
        text = ""
        for header in ("gemm.h", "activation.h"):
            with open(os.path.join(ROOT, "common/gemm", header), encoding="utf-8") as stream:
                text += stream.read()
        names = dict(re.findall(r'struct (\w+) \{\n  static constexpr char kName\[\] = "(\w+)";', text))
        return tuple(names[functor] for functor in re.search(r"AllActivations = TypeList<(.*)>;", text)[1].split(", "))

    def __call__(self, option, value):
        return one_of(*self.choices)(option, value)


activation = Activation()


def page(option, value):
    """'' where it was left out."""
    if value and not value.endswith(".html"):
        raise Refused(f"{option} '{value}' is no page: let its name end with .html.")
    return value


def several(check):
    """With commas between."""

    def check_each(option, value):
        return [check(option, each) for each in value.split(",")]

    check_each.choices = check.choices
    return check_each


def dtype(option, value):
    if value not in DTYPES and value not in OTHER_SPELLINGS:
        raise Refused(f"{option} '{value}' is none of: {' '.join(DTYPES)}, nor spelt as {' '.join(OTHER_SPELLINGS)}.")
    return OTHER_SPELLINGS.get(value, value)


dtype.choices = (*DTYPES, *OTHER_SPELLINGS)


class Shapes:
    """As MxNxK, for the steps, and as numbers."""

    def __init__(self, text, option="--shape"):
        if not all(re.fullmatch(r"[0-9]+(x[0-9]+x[0-9]+)?", shape) for shape in text.split(",")):
            raise Refused(
                f"{option} '{text}' is not MxNxK: three whole numbers, for example {option} 256x128x512, or one for"
                " all three, 256; several with commas between."
            )
        self.shapes = []
        for shape in text.split(","):
            extents = shape.split("x")
            if max(map(len, extents)) > MOST_DIGITS:
                raise Refused(f"{option} '{shape}' is too large: an extent has {MOST_DIGITS} digits at most. Try 256x256x256.")
            self.shapes.append(tuple(map(int, extents * 3 if len(extents) == 1 else extents)))
        self.text = ",".join("x".join(map(str, shape)) for shape in self.shapes)

    def __iter__(self):
        return iter(self.shapes)


def shapes(option, value):
    return Shapes(value, option)


def order(option, value):
    if not re.fullmatch(r"forward|reverse|random|random:[0-9]{1,18}", value):
        raise Refused(
            f"{option} '{value}' is none of: forward reverse random random:SEED, with SEED a whole number of up to 18 digits."
        )
    return value


def folder(option, value):
    """As an absolute path."""
    if not value:
        raise Refused(f"{option} needs the name of a folder.")
    path = os.path.join(os.getcwd(), value)
    if len(os.fsencode(path)) > 4000:
        raise Refused(f"{option}: no folder can have so long a name.")
    return path


def energy_seconds(option, value):
    try:
        if 0.5 <= float(value) <= 60:
            return value
    except ValueError:
        pass
    raise Refused(f"{option} '{value}' is no number of seconds from 0.5 to 60")


def percent(option, value):
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        raise Refused(f"{option} '{value}' is not a number of percent, for example {option} 3.")
    return value


def number(least, most):
    def check(option, value):
        if not re.fullmatch(r"[0-9]{1,10}", value) or not least <= int(value) <= most:
            raise Refused(f"{option} '{value}' is no number from {least} to {most}.")
        return int(value)

    return check


def weights(option, value):
    """{"06": 2.0}"""
    if not re.fullmatch(r"\d\d=\d{1,4}(\.\d{1,4})?(,\d\d=\d{1,4}(\.\d{1,4})?)*", value):
        raise Refused(f"{option} '{value}' is no list of weights, for example {option} 06=2,15=0.5.")
    return {number: float(weight) for number, weight in (each.split("=") for each in value.split(","))}


def macro(option, value):
    if not re.match(r"[^\W\d]\w*(\([^()]*\))?(=|$)", value):
        raise Refused(f"{option} '{value}' begins with no name of a macro: NAME or NAME=VALUE.")
    return value


def commands(option, value):
    """Names of Debian's packages are made of these, too; whatever else reached apt would be an option or nothing."""
    if not re.fullmatch(r"[\w+.][\w+.-]*(,[\w+.][\w+.-]*)*", text(option, value)):
        raise Refused(f"{option} '{value}' is no list of commands, for example {option} gdb,clangd.")
    return value.split(",")


def text(option, value):
    if not value.strip():
        raise Refused(f"{option} needs a value.")
    return value
