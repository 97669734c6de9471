"""course interpret: a CUDA program without a GPU. How it is compiled: tools/interpret/interpret.py."""

import os

from ..build import folder
from ..cli import options
from ..cli.arguments import Command, require_file
from ..machine.processes import become
from ..messages import Refused
from ..places import BUILD, script


def run(given):
    if not given.everything:
        raise Refused("interpret needs a file, for example: tools/course interpret docs/examples/block_sum.cpp")
    file, *rest = given.everything
    require_file(file, "name a CUDA program, such as docs/examples/block_sum.cpp.")
    folder.prepare("interpreter", ["python3"], ["interpreter"])
    words = given.to_pass(options.COUNT, options.ORDER, options.INCLUDE, options.DEFINE, options.AS, options.KEEP)
    folders = ["--build", os.path.join(BUILD, "interpreter"), "--cache", os.path.join(BUILD, "interpret")]
    become([*script("interpret", "interpret.py"), *folders, *words, "--", file, *rest])


COMMAND = Command(
    name="interpret",
    usage="[OPTION...] FILE.cu [ARGUMENT...]",
    intro="""
    Compiles a CUDA program that is one file and runs it on this machine's CPU, without a GPU: every access to memory is checked. The
    program may include headers of its own and the course's. What stands behind FILE.cu is the program's.
    """,
    options=(
        options.COUNT,
        options.ORDER.but(
            help="the order in which threads and blocks run: forward, reverse, random or random:SEED"
        ),
        options.AS.but(help="the GPU that is modelled: h200, a100, h100 or 4090", default="h200"),
        options.INCLUDE,
        options.DEFINE,
        options.KEEP,
    ),
    outro="""
    Exit code: the program's own; 1 if it does not compile or a check fails, which ends the program with a report; 2 if it uses what
    the interpreter does not have, which one line names; 130 interrupted. docs/interpret.md says what it has.
    """,
    run=run,
    stops_at_first=True,
    hint="The program's own stand behind its file.",
)
