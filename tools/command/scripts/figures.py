"""tools/figures: the lessons' figures. tools/report/figures.py draws them."""

from ..machine.processes import become, hold_ctrl_c
from ..places import PYTHON, ROOT


def main(words):
    hold_ctrl_c()
    become([PYTHON, "-B", f"{ROOT}/tools/report/figures.py", *words])
