"""tools/course options [--check]: writes docs/options.md, every option of every command, from what the commands' help is made of."""

import importlib
import os

from .. import files
from ..messages import Refused, say
from ..places import ROOT

PAGE = os.path.join(ROOT, "docs", "options.md")
HEAD = """\
# Every option of the command

`tools/course COMMAND --help` says the same, and how the command is used. Every command has `--help`. What stands in brackets is taken where an option
is left out. `tools/course options` writes this page from the commands themselves.

| command | what it does |
| --- | --- |
"""


def row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def section(command, summary):
    lines = [f"## {command.name}", "", f"`{f'tools/course {command.name} {command.usage}'.rstrip()}`: {summary}."]
    if command.options:
        lines += ["", "| option | what it is |", "| --- | --- |"]
    for option in command.options:
        name = option.name + (f" {option.metavar}" if option.metavar else "")
        lines.append(row(f"`{name}`", option.description()))
    return "\n".join(["", *lines, ""])


def text():
    from ..main import COMMANDS, module_of

    modules = {name: importlib.import_module(module_of(name), __package__.rpartition(".")[0]).COMMAND for name in COMMANDS}
    index = [row(f"[{name}](#{name})", summary) for name, summary in COMMANDS.items()]
    return HEAD + "\n".join(index) + "\n" + "".join(section(command, COMMANDS[name]) for name, command in modules.items())


def main(words):
    if words not in ([], ["--check"]):
        raise Refused("options takes no argument but --check.")
    if not words:
        files.write(PAGE, text())
        print(os.path.relpath(PAGE, ROOT))
        return 0
    if files.text(PAGE) == text():
        return 0
    say("docs/options.md is not what the commands have now: run 'tools/course options'.")
    return 1
