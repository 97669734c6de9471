"""ncu: one launch of a program, and what it counts there."""

import contextlib
import csv
import io
import math
import os
import shutil
import subprocess

from .. import files
from ..machine import processes
from ..machine.progress import show_end
from ..machine.toolchain import find_nvcc
from ..messages import Failed, say
from ..places import LOGS, ROOT

from report import ncu_csv

# What a learner looks at first; tools/report/profile_table.py makes rows of it. ldgsts is cp.async, hmma mma.
METRICS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "launch__registers_per_thread",
    "launch__grid_size",
    "launch__block_size",
    "launch__waves_per_multiprocessor",
    "sm__maximum_warps_per_active_cycle_pct",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "gpu__time_duration.sum",
    "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio",
)

LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
FORBIDDEN = "ERR_NVGPUCTRPERM"
HOW_TO_ALLOW = (
    f"ncu may not read this GPU's counters ({FORBIDDEN}): run this command as root, or let root allow it to all,"
    f" https://developer.nvidia.com/{FORBIDDEN} says how"
)


class NotAllowed(Exception):
    """This user may not read the GPU's counters."""


def find():
    """ncu's path, or None. It comes with the CUDA toolkit, whose folder is not always in PATH."""
    nvcc = find_nvcc()
    beside = nvcc and os.path.join(os.path.dirname(nvcc), "ncu")
    return shutil.which("ncu") or (beside if beside and os.access(beside, os.X_OK) else None)


def command(ncu, report, kernel, program):
    """Profiles the first launch of a kernel whose name KERNEL matches, while PROGRAM lets the profiler see; without KERNEL, all."""
    only = ["--kernel-name", f"regex:{kernel}", "--launch-count", "1"] if kernel else []
    words = [ncu, "--export", report, "--force-overwrite", "--metrics", ",".join(METRICS), "--profile-from-start", "off"]
    return [*words, *only, "--clock-control", "none", *program]


def profile(ncu, name, out, kernel, program):
    """Keeps OUT/NAME.ncu-rep and OUT/NAME.csv. Returns that one's path, and what was said. @throws NotAllowed"""
    report, log = os.path.join(out, f"{name}.ncu-rep"), os.path.join(LOGS, f"ncu-{name}.log")
    say(f"{name}: profiling with ncu ...")
    with open(log, "wb") as output:
        code = processes.run(command(ncu, report, kernel, program), stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
    said = files.text(log)
    if FORBIDDEN in said:
        raise NotAllowed
    if code or "No kernels were profiled" in said:
        show_end(log)
        raise Failed("ncu profiled nothing: what it says above is why.")
    return to_csv(ncu, report, os.path.join(out, f"{name}.csv")), said


def to_csv(ncu, report, path):
    code, raw = processes.ask([ncu, "--import", report, "--csv", "--page", "raw", "--print-units", "base"])
    table = ""
    if not code:
        with contextlib.suppress(ValueError):
            table = one_launch(ncu_csv.table(raw, METRICS))
    if table.count("\n") != 2:
        raise Failed(f"ncu does not say of {report} what it was asked for: look at it with 'ncu --import {report}'.")
    files.write(path, table)
    return path


def one_launch(table):
    """The table with one row: of several launches the first of those that load most."""
    head, *rows_ = table.splitlines(keepends=True)
    loaded = [counted.get(LOADS, 0) for _, counted in launches_in(table)]
    return head + (rows_[loaded.index(max(loaded))] if rows_ else "")


def rows(path):
    """[(kernel, {metric: number})] of a table of launches."""
    with open(path, encoding="utf-8", newline="") as file:
        return launches_in(file.read())


def launches_in(text):
    """The same of a table's text. What is no number, such as ncu's n/a, was not counted."""
    table = csv.DictReader(io.StringIO(text, newline=""))
    return [(row["Kernel Name"], {name: float(value) for name, value in row.items() if "__" in name and is_number(value)}) for row in table]


def is_number(text):
    try:
        return math.isfinite(float(text))
    except (TypeError, ValueError):
        return False
