"""course run and see tensor_parallel: the step of several GPUs, a program of its own."""

import json
import os
import subprocess
import sys

from . import files
from .building import folder
from .cli import options, steps
from .machine import processes
from .machine.gpu import choose_backend
from .messages import Failed, Refused, say
from .places import BUILD, ROOT
from .subcommands import run
from .subcommands.commit import export_commit

MOST = 1 << 20  # of tokens, model and hidden, as in steps/tensor_parallel/main.cpp
TAKES = (options.RANKS, options.SHAPE, options.DTYPE, options.ON, options.FORCE, options.OUT)
LIKE, PLANS = "12_persistent", 3  # on the interpreter, a product takes about as long as this step's; so many plans are verified
PATIENCE = 600  # seconds, with --force, until a rank that says nothing counts as hanging


def check(given, named, command=run.COMMAND, takes=TAKES):
    """Refuses before a build what the program has no use for, or would refuse after it."""
    step = named[0] if len(named) == 1 else ""
    if not step:
        own = " ".join(name for name in named if name in steps.of_several_gpus())
        raise Refused(f"{own} runs alone: other steps multiply other shapes. Name it in a command of its own.")
    names = [each.name for each in takes]
    for option in command.options:
        if option.name not in names and getattr(given, option.key) not in (None, False, []):
            raise Refused(f"{option.name} is not for {step}, which takes {' '.join(names)}.")
    if given.dtype == "f32":
        raise Refused(f"{step} has no kernels for f32: choose another --dtype, f16 or bf16.")
    for shape in given.shape or ():
        if not all(1 <= extent <= MOST for extent in shape):
            text = "x".join(map(str, shape))
            raise Refused(f"--shape {text}: {step} has TOKENSxMODELxHIDDEN, each from 1 to {MOST}, for example --shape 37x72x200.")
    return step


def check_patience(step, given):
    """Refuses what takes minutes on the interpreter."""
    for tokens, model, hidden in given.shape or ():
        seconds = steps.expected_seconds(LIKE, "f16", [(tokens, hidden, model), (tokens, model, hidden)], first=True)
        if seconds and PLANS * seconds > steps.PATIENCE:
            raise Refused(
                f"{step} would take about {max(2, round(PLANS * seconds / 60))} minutes on the interpreter; choose a smaller --shape,"
                " or add --force."
            )


def execute(given, named):
    """The exit code of 'course run', as of a step."""
    step = check(given, named)
    backend = choose_backend(given.on)
    if backend == "interpreter" and not given.force:
        check_patience(step, given)
    out = given.out or os.path.join(BUILD, "results")
    words = list(map(str, given.to_pass(options.RANKS, options.SHAPE, options.DTYPE)))
    if given.force:
        words += ["--patience", str(PATIENCE)]
    if backend == "gpu":  # the interpreter measures nothing
        run.require_writable(out)
        words += ["--json", os.path.join(out, f"{step}.json")]
    folder.prepare(backend, [], [step])
    if backend == "gpu":
        run.lock_results(out)
    export_commit()
    code = processes.run([os.path.join(BUILD, backend, "bin", step), *words])
    run.end_if_over(code)
    if code == 0 and backend == "gpu":
        say(f"results: {run.shown(words[-1])}")
    if code not in (0, 1, 2):
        say(f"{step} ended with exit code {code}, which it never should.")
        code = 1
    return code


# --- see ---

SEEN = (options.RANKS, options.SHAPE, options.OUT)
SEE_RANKS, SEE_SHAPE = 2, (4096, 4096, 11008)
MOST_ELEMENTS = 1 << 31  # of a matrix: addresses, for none is computed


def see(given, named, command):
    """The exit code of 'course see': 1 where nothing orders what uses the same memory."""
    from see import ranks_page

    step = check(given, named, command, SEEN)
    ranks, shapes = given.ranks or SEE_RANKS, list(given.shape or [SEE_SHAPE])
    if ranks == 1:
        raise Refused("--ranks 1: one GPU copies nothing, so there is nothing to see. Choose 2 to 64.")
    if len(shapes) > 1:
        raise Refused("see shows one block: name one --shape.")
    tokens, model, hidden = shape = tuple(shapes[0])
    text = "x".join(map(str, shape))
    if max(tokens * model, model * hidden, tokens * hidden) > MOST_ELEMENTS:
        raise Refused(f"--shape {text}: a matrix has more than {MOST_ELEMENTS:,} elements. Choose a smaller one.")
    out = given.out or os.path.join(BUILD, "see")
    run.require_writable(out)
    run.lock_results(out)
    folder.prepare("interpreter", ["python3"], ["timeline"])
    program = [os.path.join(BUILD, "interpreter", "bin", "timeline"), os.path.join(ROOT, ranks_page.RESULTS), *map(str, (ranks, *shape))]
    done = subprocess.run(program, capture_output=True, encoding="utf-8", check=False)
    run.end_if_over(done.returncode)
    if done.returncode:
        raise Failed(f"{step}: no plan was recorded. {done.stderr.strip()}")
    said = json.loads(done.stdout)
    path = os.path.join(out, f"{step}-{text}-{ranks}-ranks.html")
    files.write(path, ranks_page.page_of(said, shape, ranks))
    sys.stdout.write("\n".join(ranks_page.facts(said, shape, ranks)[1:]) + f"\npage: {run.shown(path)}\n")
    return 1 if ranks_page.is_racing(said) else 0
