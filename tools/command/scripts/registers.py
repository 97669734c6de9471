"""tools/registers: what it costs to keep the epilogue's indices through the main loop. tools/report/registers.py asks nvcc."""

import os

from ..machine.processes import become
from ..machine.toolchain import find_nvcc
from ..places import PYTHON, ROOT


def main(words):
    become([PYTHON, "-B", f"{ROOT}/tools/report/registers.py", *words], dict(os.environ, COURSE_NVCC=find_nvcc()))
