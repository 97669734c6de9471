"""course build: targets of one of CMake's presets."""

from ..building import folder
from ..cli import options
from ..cli.arguments import Command
from ..messages import Refused


def run(given):
    if not given.everything:
        raise Refused("build needs the name of a preset: tools/course build interpreter [TARGET...]")
    preset, *targets = given.everything
    if preset not in folder.PRESETS:
        raise Refused(f"no preset '{preset}'. There are: {' '.join(folder.PRESETS)}.")
    if "" in targets:
        raise Refused("'' is no target.")
    folder.prepare(preset, getattr(given, "with") or [], targets)
    return 0


COMMAND = Command(
    name="build",
    usage="PRESET [TARGET...] [OPTION...]",
    intro="""
    Installs what is missing, and builds TARGETs of CMake's PRESET interpreter, interpreter-clang, interpreter-debug, dev or gpu; without
    TARGET, all of it. A target is a step's program, such as 01_naive, or its first tile alone, 01_naive_first_f32; a test, such as
    test_01_naive; or course_gemm, the library. The other commands build what they need by themselves.

    dev is for who changes the course, see docs/CONTRIBUTING.md.

    COURSE_GPU_ARCHITECTURES says for which GPUs the preset gpu is, 90a-real or '80-real;90a-real' for example: without it for this
    machine's, or all that the course knows where there is none.
    """,
    options=(options.WITH,),
    outro="Exit code: 0 built, 1 a failed build or installation, 2 refused input, 130 interrupted.",
    run=run,
)
