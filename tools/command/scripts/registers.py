"""tools/registers: what it costs to keep the epilogue's indices through the main loop. tools/report/registers.py asks nvcc."""

from ..machine.toolchain import find_nvcc

from report import registers
from report.terminal import run_command


def main(words):
    return run_command(lambda: registers.main(words, find_nvcc()))
