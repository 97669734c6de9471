"""tools/figures: the lessons' figures. tools/report/figures.py draws them."""

from ..machine.processes import become
from ..places import PYTHON, ROOT


def main(words):
    become([PYTHON, "-B", f"{ROOT}/tools/report/figures.py", *words])
