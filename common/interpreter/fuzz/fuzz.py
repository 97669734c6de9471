#!/usr/bin/env python3
"""Usage: fuzz.py [--count N] [--seed FIRST] [--build FOLDER] [--keep FOLDER]

Compiles N random kernels from seed FIRST on, and the same N with one mistake each, with the flags of the build in FOLDER
[build/interpreter], and runs them under all checks. Says which right kernel is accused or has another result, and which mistake is
missed. generate.py says what the kernels are made of. 'fuzz.py generate FILE FIRST N right|wrong' writes a file of them, for the build.

Exit code: 0 no right kernel is accused and 95 % of the mistakes are caught, 1 otherwise, 2 the arguments are wrong.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import generate

ROOT = pathlib.Path(__file__).resolve().parents[3]
BATCH = 25  # kernels in a file: what a compiler takes some seconds for


def command_of(build):
    """The compiler and its flags for kernels, from the build's own test of them."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    words = shlex.split(next(each["command"] for each in commands if each["file"].endswith("/fuzz_right.cpp")))
    del words[words.index("-o") : words.index("-o") + 2], words[words.index("-c") : words.index("-c") + 2]
    return words


def run_batch(build, folder, words, first, count, mistakes):
    name = folder / f"{'wrong' if mistakes else 'right'}_{first}"
    file = name.with_suffix(".cpp")
    file.write_text(generate.source(range(first, first + count), mistakes), encoding="utf-8")
    library = build / "common/interpreter"
    link = [library / "fuzz/libfuzz_driver.a", library / "libinterpreter.a", build / "common/gemm/libgemm.a"]
    wrap = ["-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset", "-lboost_context", "-ldw", "-lpthread"]
    subprocess.run([*words, "-w", "-c", file, "-o", name.with_suffix(".o")], check=True)
    subprocess.run([words[0], name.with_suffix(".o"), *link, *wrap, "-o", name], check=True)
    return subprocess.run([name, "0"], capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/interpreter")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the files")
    given = parser.parse_args()
    numbers = [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        words = command_of(given.build)
        end = given.seed + given.count
        batches = [(at, min(BATCH, end - at), wrong) for at in range(given.seed, end, BATCH) for wrong in (False, True)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for text in pool.map(lambda batch: run_batch(given.build, folder, words, *batch), batches):
                *lines, last = text.rstrip("\n").split("\n")
                found = [int(number) for number in re.findall(r"\d+", last)]
                numbers = [a + b for a, b in zip(numbers, found)]
                print("\n".join(lines) + ("\n" if lines else ""), end="", flush=True)
    right, accused, wrong, caught = numbers
    print(f"{right} right kernels, {accused} accused or with another result; {wrong} with a mistake, {caught} caught")
    return 0 if accused == 0 and caught >= 0.95 * wrong else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["generate"]:
        path, first, count, kind = sys.argv[2:]
        seeds = range(int(first), int(first) + int(count))
        pathlib.Path(path).write_text(generate.source(seeds, kind == "wrong"), encoding="utf-8")
    else:
        sys.exit(main())
