"""Usage: tools/registers [--check]

Compiles step 04's kernel three times and counts registers: as it stands; with the epilogue's indices computed before the main
loop and kept, so that nvcc cannot compute them again; and with all of them computed again after it (rematerialisation). Writes
docs/results/registers/04_pipelined_num_stages.json, from which the lesson's table is made ('tools/course run' does not know
registers without a GPU). Needs nvcc, but no GPU.

  --check   compare with that file instead of writing it; nothing to compare if it was made by another version of nvcc
  --help    show this

Exit code: 0 written, or the same, 1 with --check: other numbers, 2 refused input, no nvcc, or a kernel in which the places to
change are not found."""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from .ladder import ROOT
from .results import BadFile, write_all
from .terminal import Arguments

STEP = "04_pipelined_num_stages"
KERNEL, RESULT = f"steps/{STEP}/gemm.cuh", f"docs/results/registers/{STEP}.json"
TILE, ARCHITECTURE = (128, 128, 64, 64, 64, 3), "90a"
LAYOUTS = {"nn": ("kK", "kMN"), "nt": ("kK", "kK"), "tn": ("kMN", "kMN"), "tt": ("kMN", "kK")}

LOOP, EPILOGUE = "  // 2. Main loop\n", "  // 3. Epilogue"
INDICES, WARP = "C, m_0 + warp_m, n_0 + warp_n,", "+ warp * device::"
# asm volatile with an operand that it may have changed: nvcc forgets where the value came from.
KEPT = """  int64_t kept_m = m_0 + warp_m, kept_n = n_0 + warp_n;
  asm volatile("" : "+l"(kept_m), "+l"(kept_n));
"""
AGAIN = """  unsigned block = blockIdx.x, thread = threadIdx.x;
  asm volatile("" : "+r"(block), "+r"(thread));
  const int warp_2 = thread / 32;
  const int64_t m_2 = int64_t{block / tiles_n} * Tile::kBlockM + warp_2 / Tile::kWarpsN * Tile::kWarpM,
                n_2 = int64_t{block % tiles_n} * Tile::kBlockN + warp_2 % Tile::kWarpsN * Tile::kWarpN;
"""
# From the name of a version to what is replaced in the kernel.
VERSIONS = {
    "kept": {LOOP: KEPT + LOOP, INDICES: "C, kept_m, kept_n,"},
    "as it stands": {},
    "computed again": {EPILOGUE: AGAIN + EPILOGUE, INDICES: "C, m_2, n_2,", WARP: "+ warp_2 * device::"},
}


def versions(text):
    """From the name of a version to the kernel's text."""
    made = {}
    for version, changes in VERSIONS.items():
        changed = text
        for old, new in changes.items():
            if text.count(old) != 1:
                raise BadFile(f"{KERNEL} has {old.strip()!r} {text.count(old)} times, not once: adapt tools/report/registers.py.")
            changed = changed.replace(old, new)
        made[version] = changed
    return made


def compiler(nvcc):
    if not nvcc:
        raise BadFile("needs nvcc (no GPU): install the CUDA toolkit, or set CUDA_HOME.")
    text = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"release \S+ V(\S+)", text)[1]


def count(nvcc, text):
    """Registers of a thread by layout, and whether any of the kernels spills."""
    template = "template __global__ void gemm_kernel<Tile<{}>, Contiguous::{}, Contiguous::{}, __half, __half, gemm::Identity>"
    arguments = "(Matrix<const __half>, Matrix<const __half>, Matrix<__half>, bool, gemm::Identity);"
    tile = ", ".join(map(str, TILE))
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "kernel.cu")
        with open(source, "w", encoding="utf-8") as file:
            lines = [text, f"namespace step_{STEP} {{", *(template.format(tile, *both) + arguments for both in LAYOUTS.values()), "}"]
            file.write("\n".join(lines))
        code = f"arch=compute_{ARCHITECTURE},code=sm_{ARCHITECTURE}"
        command = [nvcc, "-std=c++20", "-O3", "--expt-relaxed-constexpr", "-DCOURSE_ON_GPU=1", f"-I{ROOT}", "-gencode", code, "-cubin", "-Xptxas=-v", source]
        done = subprocess.run([*command, "-o", source + "bin"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BadFile(f"nvcc does not compile {KERNEL} with its epilogue changed:\n{done.stderr}")
    found = {}
    for entry in done.stderr.split("Compiling entry function")[1:]:
        # Enumerators in the mangled name: kK is 0, kMN is 1. A type that comes again is abbreviated.
        numbers = re.search(r"ContiguousE(\d)ELS\w*_(\d)E", entry)
        both = tuple(("kK", "kMN")[int(number)] for number in numbers.groups())
        (name,) = [name for name in LAYOUTS if LAYOUTS[name] == both]
        found[name] = int(re.search(r"Used (\d+) registers", entry)[1])
        if re.search(r"[1-9]\d* bytes spill", entry):
            raise BadFile(f"{KERNEL} spills registers with its epilogue changed: the counts would mean nothing.")
    return {name: found[name] for name in LAYOUTS}


def main(words, nvcc):
    arguments = Arguments(prog="tools/registers", add_help=False, allow_abbrev=False)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("-h", "--help", action="store_true")
    given = arguments.parse_args(words)
    if given.help:
        print(__doc__)
        return 0
    version = compiler(nvcc)
    with open(os.path.join(ROOT, KERNEL), encoding="utf-8") as file:
        texts = versions(file.read())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        registers = dict(zip(texts, pool.map(lambda text: count(nvcc, text), texts.values())))
    made = {
        "schema": "gemm-course-registers",
        "version": 1,
        "step": STEP,
        "tile": list(TILE),
        "architecture": f"sm_{ARCHITECTURE}",
        "nvcc": version,
        "registers": registers,
    }
    path = os.path.join(ROOT, RESULT)
    if not given.check:
        write_all({path: (json.dumps(made, indent=1) + "\n").encode()})
        print(RESULT)
        return 0
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
    except (OSError, ValueError) as error:
        raise BadFile(f"{RESULT} cannot be read: {error}. Make it with 'tools/registers'.") from None
    if kept.get("nvcc") != version:
        print(f"course: {RESULT} was made by nvcc {kept.get('nvcc')}, this is {version}: not compared.")
        return 0
    if kept != made:
        print(f"course: {RESULT} is not what nvcc makes of {KERNEL} now: run 'tools/registers'.", file=sys.stderr)
        return 1
    return 0
