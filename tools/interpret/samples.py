#!/usr/bin/env python3
"""Runs NVIDIA's samples on the interpreter: real programs that nobody here wrote, unmodified.

usage: tools/interpret/samples.py [--folder FOLDER] [--list] [NAME...]

Fetches https://github.com/NVIDIA/cuda-samples with git, at the tag that the samples below were tried with, into FOLDER
[build/cuda-samples], unless it is there. Runs those of them that consist of one .cu file and use nothing that the interpreter lacks, and
says of each whether it ended well. NAME: only these; of any other sample of one file too. A sample verifies its own results.
Exit code: 0 all as they should be, 1 some not, 2 they cannot be fetched.
"""

import signal
import sys

if __name__ == "__main__":  # before all else: Ctrl-C has nothing to say
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import argparse  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import time  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPOSITORY, TAG = "https://github.com/NVIDIA/cuda-samples", "v13.0"
LIMIT = 600  # seconds for each

# Sample, and arguments that make it small enough: on a CPU each access is checked.
SAMPLES = {
    "0_Introduction/vectorAdd": (),
    "0_Introduction/matrixMul": ("-wA=64", "-hA=64", "-wB=64", "-hB=64"),
    "0_Introduction/asyncAPI": (),
    "0_Introduction/clock": (),
    "0_Introduction/fp16ScalarProduct": (),
    "0_Introduction/simpleAssert": (),
    "0_Introduction/simpleCooperativeGroups": (),
    "0_Introduction/simpleHyperQ": (),
    "0_Introduction/simpleMultiCopy": (),
    "0_Introduction/simpleOccupancy": (),
    "0_Introduction/simplePrintf": (),
    "0_Introduction/simpleTemplates": (),
    "0_Introduction/simpleVoteIntrinsics": (),
    "0_Introduction/simpleZeroCopy": (),
    "0_Introduction/systemWideAtomics": (),
    "2_Concepts_and_Techniques/reductionMultiBlockCG": ("-n=100000",),
    "2_Concepts_and_Techniques/streamOrderedAllocation": (),
    "2_Concepts_and_Techniques/threadFenceReduction": (),
    "3_CUDA_Features/StreamPriorities": (),
    "3_CUDA_Features/binaryPartitionCG": (),
    "3_CUDA_Features/globalToShmemAsyncCopy": ("-wA=128", "-hA=128", "-wB=128", "-hB=128", "-kernel=1"),
    "5_Domain_Specific/dwtHaar1D": (),
    "6_Performance/LargeKernelParameter": (),
    "6_Performance/transpose": ("-dimX=64", "-dimY=64"),
}


def fetch(folder):
    """Makes sure that the samples are in `folder`. Returns whether they are."""
    if os.path.isdir(os.path.join(folder, "Samples")):
        return True
    print(f"fetching {REPOSITORY}, {TAG}, into {folder} ...", file=sys.stderr)
    command = ["git", "clone", "--quiet", "--depth=1", f"--branch={TAG}", "-c", "advice.detachedHead=false", REPOSITORY, folder]
    try:
        return subprocess.run(command, env=dict(os.environ, GIT_LFS_SKIP_SMUDGE="1")).returncode == 0
    except OSError as error:
        print(f"git: {error.strerror}", file=sys.stderr)
        return False


def run(folder, sample, arguments):
    """The sample's exit code, None if it took too long, and the last line of what it wrote."""
    path = os.path.join(folder, "Samples", sample)
    command = [os.path.join(ROOT, "tools/course"), "interpret", "-I", os.path.join(folder, "Common"), os.path.basename(path) + ".cu"]
    try:
        result = subprocess.run(command + list(arguments), cwd=path, capture_output=True, text=True, errors="replace", timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"no end after {LIMIT} s"
    lines = [line for line in (result.stdout + result.stderr).split("\n") if line.strip()]
    return result.returncode, lines[-1].strip() if lines else ""


def find(folder, name):
    """The sample called `name`, with its chapter."""
    for chapter in sorted(os.listdir(os.path.join(folder, "Samples"))):
        if os.path.isfile(os.path.join(folder, "Samples", chapter, name, name + ".cu")):
            return f"{chapter}/{name}"
    return None


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--folder", default=os.path.join(ROOT, "build/cuda-samples"))
    parser.add_argument("--list", action="store_true", help="say which samples are run, and run nothing")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(" ".join((sample, *more)) for sample, more in SAMPLES.items()))
        return 0
    folder = os.path.abspath(options.folder)
    if not fetch(folder):
        return 2
    wanted = dict(SAMPLES)
    if options.names:
        wanted = {}
        for name in options.names:
            sample = find(folder, name)
            if sample is None:
                print(f"no sample of one file is called {name}", file=sys.stderr)
                return 2
            wanted[sample] = SAMPLES.get(sample, ())
    failed = 0
    for sample, more in wanted.items():
        begin = time.monotonic()
        code, last = run(folder, sample, more)
        failed += code != 0
        verdict = "passed" if code == 0 else "refused" if code == 2 else "FAILED"
        print(f"{verdict:<8} {sample:<52} {time.monotonic() - begin:4.0f} s  {last[:100]}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
