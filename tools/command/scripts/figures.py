"""tools/figures: the lessons' figures. tools/report/figures.py draws them."""

from ..machine.processes import become, hold_ctrl_c
from ..places import script


def main(words):
    hold_ctrl_c()
    become([*script("report"), "figures", *words])
