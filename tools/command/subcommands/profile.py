"""course profile: what is predicted of one launch, what the interpreter counts, what ncu measures."""

import json
import os
import sys

from .. import files
from ..building import folder
from ..cli import options
from ..cli.arguments import Command
from ..machine import gpu, needs
from ..messages import Refused, Stop, say
from ..places import BUILD, ROOT
from ..profiling import ncu, recorded, subjects
from .run import lock_results, require_writable

from report.profile_table import Profile, as_json, page
from report.terminal import Style, wants_colours

NO_NCU = (
    "there is a GPU but no ncu: it comes with the CUDA toolkit (Debian and Ubuntu: nsight-compute); put it into PATH, or set"
    " CUDA_HOME"
)


def reason_against_measuring(wanted, subject):
    """Why ncu will not be started; '' if it will."""
    if wanted == "interpreter":
        return "--on interpreter"
    reason = gpu.reason_against()
    if reason == gpu.NONE:
        reason += ": measuring needs one, with the CUDA toolkit, 12.8 or newer, and its ncu"
    missing = reason or needs.reason_against(*subject.declared)
    if missing:
        return reason or f"{subject.declared[1]} {missing}"
    return "" if ncu.find() else NO_NCU


def measured(subject, out):
    """The document's column: ncu's, of now; and what was said."""
    with subject.on_gpu() as (kernel, program):
        path, said = ncu.profile(ncu.find(), subject.name, out, kernel, program)
    (name, counters), *_ = ncu.rows(path)
    found = {"gpu": gpu.name(), "is_recorded": False, "files": [os.path.relpath(path, ROOT)]}
    return {**found, "kernel": name, "counters": counters}, said


def lacks_interpreter():
    """Whether it cannot be built here, for want of a network perhaps; that is said."""
    try:
        folder.set_up("interpreter", ["python3"])
    except Stop as stop:
        say(stop)
        say("so the interpreter cannot be built: what is measured is shown alone.")
        return True
    return False


def measured_alone(subject, out):
    try:
        column, said = measured(subject, out)
    except ncu.NotAllowed:
        raise Refused(f"{ncu.HOW_TO_ALLOW}.") from None
    return {**subject.alone(said), "measured": column}


def measured_or_recorded(subject, tile, out, wanted, reason):
    if not reason:
        try:
            return measured(subject, out)[0]
        except ncu.NotAllowed:
            reason = ncu.HOW_TO_ALLOW
            if wanted == "gpu":
                raise Refused(f"--on gpu: {reason}.") from None
    found = recorded.find(subject, tile)
    if found:
        say(f"{reason}; measured is what was recorded on {found['gpu']}.")
        return found
    others = " ".join(recorded.shapes(subject))
    say(f"{reason}; and nothing was recorded of {subject.name}, so there is no measured column.")
    if others:
        say(f"recorded were: --shape {others.replace(' ', ', ')}.")
    return None


def run(given):
    subject = subjects.chosen(given)
    reason = reason_against_measuring(given.on, subject)
    if reason and given.on == "gpu":
        raise Refused(f"--on gpu: {reason}. Or run with --on interpreter.")
    out = given.out or os.path.join(BUILD, "profiles")
    require_writable(out)
    lock_results(out)
    if not reason and lacks_interpreter():
        document = measured_alone(subject, out)
    else:
        document = subject.interpret()
        document["measured"] = measured_or_recorded(subject, document["tile"], out, given.on, reason)
    path = os.path.join(out, f"{subject.name}.json")
    files.write(path, json.dumps(document, indent=1))
    profile = Profile(document)
    sys.stdout.write(as_json(profile) if given.json else page(profile, Style(wants_colours(sys.stdout))))
    return 0


COMMAND = Command(
    name="profile",
    usage="STEP|exercises/NAME|solutions/NAME [OPTION...]",
    intro="""
    Shows what is predicted of one launch, what the interpreter counts and what NVIDIA's profiler ncu measures on a GPU, in three
    columns, with a sentence where they differ. Without a GPU, or where ncu may not read its counters, measured is what was recorded
    in docs/results/. STEP is a number or a word of a folder's name below steps/; exercises/5 is your own file, solutions/5 the
    course's.

    Of an exercise, the largest problem of its test is shown. Where the interpreter would take minutes, its column is left out. ncu's
    own report stays in the folder, as NAME.ncu-rep, beside NAME.csv.
    """,
    options=(
        options.SHAPE.but(
            help="MxNxK: A is MxK, B is KxN, C is MxN; of an exercise, one of its test's",
            metavar="MxNxK",
            default="256x256x256 for 01 and 02, 1024x1024x1024 for the other steps",
        ),
        options.DTYPE.but(default="f32 if the step has it, else f16"),
        options.TILE,
        options.ON.but(help="gpu: measure, or refuse; interpreter: measure nothing", default="gpu if there is one, nvcc and ncu"),
        options.OUT.but(help="for what ncu writes, and the table's figures", default="build/profiles"),
        options.JSON.but(help="print the table as JSON"),
    ),
    outro="Exit code: 0 shown, 1 a wrong result or a failed build, 2 refused input, 130 interrupted.",
    run=run,
)
