"""tools/course where nvcc|ctest: the path of a program that the course uses; exit code 1 if there is none. For .ci/run."""

from ..machine import toolchain
from ..messages import Refused


def ctest():
    """Of the build that was set up last: CMake may lie in build/venv."""
    for preset in ("interpreter", "interpreter-clang", "gpu"):
        tools = toolchain.read_stamp(toolchain.stamp_of(preset))
        if tools:
            return tools.ctest
    return ""


FINDERS = {"nvcc": toolchain.find_nvcc, "ctest": ctest}


def main(words):
    if len(words) != 1 or words[0] not in FINDERS:
        raise Refused(f"where needs one of: {' '.join(FINDERS)}.")
    found = FINDERS[words[0]]()
    if found:
        print(found)
    return 0 if found else 1
