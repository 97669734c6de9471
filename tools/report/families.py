"""What several processes measured of the same problems, as one table of CSV.

Usage: tools/report families FILE FILE...

FILE: what 'choices ... picked' wrote, one of each process, with the same problems. Written to stdout: medians in µs over the processes, the
median of cublasGemmEx's time over the call's in the same process, and the least and the most of that. Exit code: 0 done, 2 refused input.
"""

import csv
import statistics
import sys

SHAPE, TIMES = ["m", "n", "k", "layout"], ["call", "cublasGemmEx", "cublasLt"]


def read(path):
    """Rows by shape, in their order."""
    with open(path, encoding="utf-8") as file:
        return {tuple(row[name] for name in SHAPE): {name: float(row[name]) for name in TIMES} for row in csv.DictReader(file)}


def joined(processes):
    for shape in processes[0]:
        runs = [process[shape] for process in processes]
        shares = [run["cublasGemmEx"] / run["call"] for run in runs]
        times = [statistics.median(run[name] for run in runs) for name in TIMES]
        yield [*shape, *(f"{x:.4g}" for x in [*times, statistics.median(shares), min(shares), max(shares)])]


def main(paths):
    if len(paths) < 2:
        sys.stderr.write(__doc__)
        return 2
    try:
        processes = [read(path) for path in paths]
    except (OSError, KeyError, ValueError) as error:
        sys.stderr.write(f"course: {paths}: {error}: these are no files of 'choices ... picked'.\n")
        return 2
    if any(list(process) != list(processes[0]) for process in processes):
        sys.stderr.write(f"course: {paths} have different problems: give files of one family, count and seed.\n")
        return 2
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow([*SHAPE, *TIMES, "share", "least", "most"])
    out.writerows(joined(processes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
