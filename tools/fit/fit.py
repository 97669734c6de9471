"""Fits the constants of the model by which one call chooses (tuning_model.cpp, choose.cpp) to what GPUs took.

Usage: python3 -B tools/fit/fit.py [--fit ITERATIONS] [--worst COUNT] [--hold-out NAME]... [--all-but CONSTANT]... [CONSTANT=VALUE]...

Without --fit it says how good the model is as it stands, or with other values of constants. Data: docs/results/h200/choices, where each way
of the call is timed, and the files of tiles that library_test.cpp holds the model to. --hold-out: a file of choices that is reported and
not fitted to; some always are. --worst: so many problems whose choice is
the worst, with what the model expects. --all-but: a constant that stays. Nothing is written: the values are printed, for you to round, to copy
and to try on library_test.

Needs the interpreter's build (tools/course build interpreter), and its g++. Exit code: 0 done, 1 it does not compile or run, 2 refused input.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/interpreter"
# They are facts of the hardware, or of kernels without wgmma, to which these files say little.
FACTS = ("kSharedBytesPerClock", "kL2BytesPerClock", "kHeadroom", "kFmaSharedBytes", "kPrologueAndEpilogue", "kL2Latency", "kLateSeconds", "kRowOfZeros", "kCachedSharply", "kOverlap")
# To show the model on what it has not seen.
HELD_OUT = ("hundreds-43", "wide-22")
CONSTANTS = re.compile(r"^constexpr double ((?:k\w+ = [^;,]+(?:,\s*)?)+);", re.M)


def variables(match):
    lines = []
    for each in match[1].split(","):
        name, value = (part.strip() for part in each.split("="))
        lines.append(f'double {name} = {value}; [[maybe_unused]] const fit::Constant entry_{name}("{name}", {name});')
    return "\n".join(lines)


def tiles():
    """Code with the library's tiles of 16 bits, from its CMakeLists.txt."""
    text = re.sub(r"#.*", "", (ROOT / "common/library/CMakeLists.txt").read_text(encoding="utf-8"))
    steps = (ROOT / "steps/CMakeLists.txt").read_text(encoding="utf-8")
    includes, adds = [], []
    for step, operands, types, named in re.findall(r"course_gemm_step\((\w+) OPERANDS (\w+) TYPES ([\w ]+?) TILES (.*?)\)\n", text, re.S):
        if "f16" not in types.split():
            continue
        found = ", ".join(quoted or bare for quoted, bare in re.findall(r'"([^"]+)"|(\w+)', named))
        needs = re.search(rf"course_step\({step} (?:TUNED )?NEEDS (\w+)", steps)[1]
        includes.append(f'#include "steps/{step}/gemm.cuh"\nnamespace step_{step} {{ using FitTiles = gemm::TypeList<{found}>; }}')
        adds.append(f'  add(all, "{step}", "{needs}", Operands::{operands}, step_{step}::FitTiles{{}});')
    body = "\n".join(adds)
    return "\n".join(includes) + f"\nnamespace {{\nvoid add_all(std::vector<Kernel>& all) {{\n{body}\n}}\n}}\n"


def program(folder):
    flags = ["-DCOURSE_ON_INTERPRETER=1", f"-I{ROOT}", "-isystem", "/usr/local/cuda/include", "-std=c++20", "-O2", "-w"]
    objects = [folder / "fit.cpp"]
    objects[0].write_text((ROOT / "tools/fit/fit.cpp.in").read_text(encoding="utf-8").replace("@TILES@", tiles()), encoding="utf-8")
    for path in ("common/harness/tuning/tuning_model.cpp", "common/library/choose.cpp"):
        text = CONSTANTS.sub(variables, (ROOT / path).read_text(encoding="utf-8"))
        source = folder / pathlib.Path(path).name
        source.write_text(f'#include "tools/fit/registry.h"\n{text}', encoding="utf-8")
        objects.append(source)
    # Static libraries, twice, for they need each other; what is fitted comes first, and so hides theirs.
    libraries = [str(path) for path in sorted(BUILD.glob("common/**/lib*.a")) if not re.search("coach|speed|conformance|step_", path.name)]
    wrapped = [f"-Wl,--wrap={name}" for name in ("memcpy", "memmove", "memset")]
    command = ["g++", *flags, *map(str, objects), "-o", str(folder / "fit"), "-Wl,--allow-multiple-definition", *wrapped]
    subprocess.run([*command, *libraries, *libraries, "-lboost_context", "-ldw", "-lelf", "-ldl", "-lpthread"], check=True)
    return folder / "fit"


def main():
    parser = argparse.ArgumentParser(description="Fits the model of one call.")
    parser.add_argument("--fit", type=int, default=0, metavar="ITERATIONS")
    parser.add_argument("--worst", type=int, default=0, metavar="COUNT")
    parser.add_argument("--hold-out", action="append", default=list(HELD_OUT), metavar="NAME")
    parser.add_argument("--all-but", action="append", default=list(FACTS), metavar="CONSTANT")
    parser.add_argument("values", nargs="*", metavar="CONSTANT=VALUE")
    typed = parser.parse_args()
    choices = ROOT / "docs/results/h200/choices"
    unknown = [name for name in typed.hold_out if not (choices / f"{name}.csv").is_file()]
    if unknown:
        sys.stderr.write(f"fit: {choices} has no {unknown[0]}.csv\n")
        return 2
    if not (BUILD / "common").is_dir():
        sys.stderr.write("fit: no build of the interpreter: tools/course build interpreter\n")
        return 2
    files = [str(path) for path in sorted(choices.glob("*.csv")) if path.stem not in typed.hold_out]
    held_out = [str(choices / f"{name}.csv") for name in typed.hold_out]
    with tempfile.TemporaryDirectory() as scratch:
        try:
            made = program(pathlib.Path(scratch))
            arguments = [str(typed.fit), str(typed.worst), ",".join(typed.all_but), ",".join(files), ",".join(held_out), *typed.values]
            return subprocess.run([made, *arguments], cwd=ROOT, check=False).returncode
        except subprocess.CalledProcessError:
            return 1


if __name__ == "__main__":
    sys.exit(main())
