"""course tune: the best tile for a problem."""

import os

from ..building import folder
from ..cli import options, steps
from ..cli.arguments import Command
from ..cli.values import ELEMENT_BYTES, Shapes
from ..machine import memory
from ..machine.needs import choose_backend_for
from ..machine.processes import become
from ..messages import Refused
from ..places import BUILD, tuning_cache
from .run import SIZES, require_writable

ABOUT_A_PROBLEM = (options.SHAPE, options.DTYPE, options.LAYOUT, options.AS, options.VERBOSE)


def refuse_together(given):
    for option in ABOUT_A_PROBLEM:
        if getattr(given, option.key):
            raise Refused(f"{option.name} has no meaning with --show or --clear, which are about everything: leave it out.")
    if given.show and given.clear:
        raise Refused("--show and --clear: one at a time.")


def check_cache(given):
    """What cannot be read has nothing that could be shown or forgotten."""
    path = given.cache
    if path and os.path.exists(path):
        if not os.path.isdir(path):
            raise Refused(f"--cache {path} is a file: name the folder where times are kept.")
        wanted = os.R_OK | os.X_OK | (0 if given.show else os.W_OK)
        if not os.access(path, wanted):
            raise Refused(f"--cache {path}: may not be used. Make the folder yours, or name another one.")


def is_empty(cache):
    """Whether nothing was found so far, which needs no build to be said."""
    return not os.path.exists(cache) or (os.path.isdir(cache) and os.access(cache, os.R_OK | os.X_OK) and not os.listdir(cache))


def arguments_of_a_problem(given, step):
    dtype = given.dtype or "f16"
    if not steps.has_type(step, dtype) or dtype == "f32":
        raise Refused(f"--dtype {dtype}: {step} multiplies f16 and bf16.")
    backend = choose_backend_for(step, given.on)
    shapes = given.shape or Shapes(SIZES[backend])
    if backend == "gpu":
        if getattr(given, "as"):
            raise Refused("--as is about the interpreter: on a GPU one measures. Leave it out, or add --on interpreter.")
        memory.check(shapes, ELEMENT_BYTES[dtype], backend)
    words = ["--ceilings", os.path.join(BUILD, "ceilings.json")] if backend == "gpu" else given.to_pass(options.AS)
    words += [*given.to_pass(options.VERBOSE), "--tune", "--shape", shapes.text, "--dtype", dtype]
    return backend, [*words, "--layout", given.layout or "nn"]


def run(given):
    if given.everything:
        raise Refused(f"'{given.everything[0]}': tune takes options alone; see 'tools/course tune --help'.")
    step = steps.tuned_steps()[0]  # later steps tune too, but among fewer tiles
    if given.show or given.clear:
        refuse_together(given)
        check_cache(given)
        backend, words = choose_backend_for(step, given.on), given.to_pass(options.SHOW, options.CLEAR)
        cache = given.cache or tuning_cache()
        if is_empty(cache):  # as the program says it
            print(f"{cache}:\n  nothing so far" if given.show else f"what was found for 0 problems is removed from {cache}")
            return 0
    else:
        check_cache(given)
        backend, words = arguments_of_a_problem(given, step)
        if given.cache:
            require_writable(given.cache, "--cache")
    folder.prepare(backend, targets=[step])
    become([os.path.join(BUILD, backend, "bin", step), *given.to_pass(options.CACHE), *words])


COMMAND = Command(
    name="tune",
    usage="[OPTION...]",
    intro="""
    Finds the best of the tiles of the step that tunes (06_autotune), for each shape. On a GPU those that can run there are verified
    and timed, and the times are kept, so that nothing is timed twice; another GPU, driver or kernel has times of its own. Without a
    GPU, a model says what to expect. 'tools/course run 6' does the same before it measures.
    """,
    options=(
        options.SHAPE.but(help="MxNxK: A is MxK, B is KxN, C is MxN; 4096 is 4096x4096x4096; several with commas between"),
        options.DTYPE.but(help="f16 or bf16; also spelt fp16, float16, half, bfloat16", default="f16"),
        options.LAYOUT,
        options.ON,
        options.AS.but(
            help="on the interpreter: the GPU that is modelled, an h200, a100, h100 or 4090", default="h200"
        ),
        options.VERBOSE,
        options.SHOW,
        options.CLEAR,
        options.CACHE,
    ),
    outro="Exit code: 0 found, 1 a wrong result or a failed build, 2 refused input, 130 interrupted.",
    run=run,
)
