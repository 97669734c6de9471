#!/usr/bin/env python3
"""Runs NVIDIA's samples, CuTe's tutorials and other people's kernels on the interpreter: real programs that nobody here wrote.

usage: tools/interpret/samples.py [--folder FOLDER] [--table] [cute | REPOSITORY] [NAME...]

REPOSITORY [cuda-samples] is one of strangers.py: it is fetched with git, at one commit, into build/strangers, unless it is there. A copy beside
it is made small, and each of its programs, or each NAME, ends as it is said there. With the word cute it is CuTe's tutorials, of
https://github.com/NVIDIA/cutlass. They compare with nothing: each runs as it is, and once more with a comparison in its main.
--folder names a folder with those that are there already, by the same names; --table prints docs/results/interpreter/strangers.md's tables.
Exit code: 0 all as they should be, 1 some not, 2 they cannot be fetched.
"""

import signal
import sys

if __name__ == "__main__":  # before all else: Ctrl-C has nothing to say
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import argparse
import os
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from strangers import CODES, SOMETIMES, STRANGERS, table

CUTLASS, CUTLASS_COMMIT = "https://github.com/NVIDIA/cutlass", "7107b05535f8977f5ecb9d01ee203205b1fd9bc4"
LIMIT = 600  # seconds for each

# Tutorial, arguments, and what it is to end with: a code, and a piece of what it says. The last two have true faults.
TUTORIALS = {
    "sgemm_1": (("128", "128", "64"), 0, "CUTE_GEMM"),
    "sgemm_2": (("128", "128", "64"), 0, "CUTE_GEMM"),
    "sgemm_sm80": (("128", "128", "64", "T", "N"), 0, "CUTE_GEMM"),
    "hopper/wgmma_sm90": (("128", "128", "256"), 1, "race on dynamic shared memory"),  # no barrier behind cp_async_wait
    "hopper/wgmma_tma_sm90": (("128", "128", "64"), 1, "with no fence.mbarrier_init between"),
}
RESULT = "thrust::host_vector<TC> cute_result = d_C;"  # in each main, after the first product
COMPARED = """
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0, all = 0;
      for (int x = 0; x < k; ++x) {
        const double a = double(h_A[transA == 'N' ? i + x * ldA : x + i * ldA]), b = double(h_B[transB == 'T' ? j + x * ldB : x + j * ldB]);
        sum += a * b, all += a * b < 0 ? -a * b : a * b;
      }
      const double difference = double(cute_result[i + j * ldC]) - sum;
      wrong += !((difference < 0 ? -difference : difference) <= 0.01 * all);
    }
  printf("%d wrong\\n", wrong);
  return wrong != 0;
"""


def fetch(repository, revision, folder):
    """Makes sure that the programs are in `folder`. Returns whether they are."""
    if os.path.isdir(folder):
        return True
    print(f"fetching {repository}, {revision}, into {folder} ...", file=sys.stderr)
    git = ["git", "-C", folder + ".new"]
    try:
        os.makedirs(folder + ".new", exist_ok=True)
        for command in (["init", "--quiet"], ["fetch", "--quiet", "--depth=1", repository, revision], ["checkout", "--quiet", "FETCH_HEAD"]):
            if subprocess.run(git + command, env=dict(os.environ, GIT_LFS_SKIP_SMUDGE="1")).returncode:
                return False
        os.rename(folder + ".new", folder)
        return True
    except OSError as error:
        print(f"git: {error.strerror}", file=sys.stderr)
        return False


def run(path, include, file, arguments, options=()):
    """The program's exit code, None if it took too long, and all that it wrote."""
    command = [os.path.join(ROOT, "tools/course"), "interpret", *(word for folder in include for word in ("-I", folder)), *options, file]
    try:
        result = subprocess.run(command + list(arguments), cwd=path, capture_output=True, text=True, errors="replace", timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"no end after {LIMIT} s"
    return result.returncode, result.stdout + result.stderr


def run_tutorials(folder, names):
    """CuTe's, each to its end. Returns main()'s exit code."""
    failed = 0
    wanted = [name for name in TUTORIALS if not names or name in names]
    for name in wanted:
        arguments, code, text = TUTORIALS[name]
        path, include = os.path.join(folder, "examples/cute/tutorial"), [os.path.join(folder, "include"), os.path.join(folder, "tools/util/include")]
        runs = [("as it is", os.path.join(path, name + ".cu"), code, text)]
        if code == 0:
            with open(runs[0][1], encoding="utf-8") as stream:
                main, compared = stream.read(), os.path.join(path, name + ".compared.cu")
            with open(compared, "w", encoding="utf-8") as stream:
                stream.write(main.replace(RESULT, RESULT + COMPARED, 1))
            runs.append(("compared", compared, 0, "0 wrong"))
        for how, file, code, text in runs:
            begin = time.monotonic()
            ended, said = run(path, include, file, arguments)
            is_right = ended == code and text in said
            failed += not is_right
            verdict = "as told" if is_right else "FAILED"
            print(f"{verdict:<8} {name + ', ' + how:<40} {time.monotonic() - begin:4.0f} s  {text if is_right else said[-300:]}", flush=True)
    return 1 if failed else 0


def run_strangers(name, folder, names):
    """The programs of a repository, each to its end. Returns main()'s exit code."""
    repository = STRANGERS[name]
    if not fetch(repository.url, repository.commit, os.path.join(folder, name)):
        return 2
    cutlass = os.path.join(folder, "cutlass")
    if any("{cutlass}" in option for program in repository.programs for option in program.options) and not fetch(CUTLASS, CUTLASS_COMMIT, cutlass):
        return 2
    copy = os.path.join(ROOT, "build/strangers/small", name)
    folders = {"cutlass": cutlass, "stranger": copy, "stand_ins": os.path.join(ROOT, "tools/interpret/stand_ins")}
    try:
        repository.prepare(os.path.join(folder, name), copy)
    except (OSError, ValueError) as error:
        print(f"{name} is not what it was at {repository.commit}: {error}", file=sys.stderr)
        return 2
    failed, wanted = 0, [program for program in repository.programs if not names or program.name in names]
    for program in wanted:
        begin = time.monotonic()
        path, file = os.path.split(os.path.join(copy, program.file))
        code, said = run(path, [], file, program.arguments, [option.format(**folders) for option in program.options])
        is_as_told = code in CODES[program.result] and (program.says in said or (code == 0 and program.result == SOMETIMES))
        failed += not is_as_told
        last = said.strip().split("\n")[-1][:100]
        print(f"{'as told' if is_as_told else 'FAILED':<8} {name} {program.name:<44} {time.monotonic() - begin:4.0f} s  {program.result if is_as_told else last}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} as told")
    return 1 if failed or not wanted else 0


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--folder", default=os.path.join(ROOT, "build/strangers"))
    parser.add_argument("--table", action="store_true", help="print how the programs end, and run nothing")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    if options.table:
        print(table(), end="")
        return 0
    folder, (name, *programs) = os.path.abspath(options.folder), options.names or ["cuda-samples"]
    if name == "cute":
        cutlass = os.path.join(folder, "cutlass")
        return run_tutorials(cutlass, programs) if fetch(CUTLASS, CUTLASS_COMMIT, cutlass) else 2
    if name not in STRANGERS:
        print(f"no repository {name}; there are: cute {' '.join(STRANGERS)}", file=sys.stderr)
        return 2
    return run_strangers(name, folder, programs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
