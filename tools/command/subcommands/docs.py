"""course docs: the lessons, the manual and the API as a book of HTML pages."""

import os
import re
import shutil

from .. import files
from ..building import folder
from ..cli import options
from ..cli.arguments import Command
from ..machine import packages, processes, toolchain
from ..machine.progress import Progress, show_end
from ..messages import Failed, Refused
from ..places import BUILD, LOGS, ROOT

MATHJAX = "/usr/share/javascript/mathjax"
# Of its 54 MB, what an SVG from TeX needs.
OUTPUT = "jax/output/SVG/"
MATHJAX_PARTS = ["MathJax.js", "extensions", "jax/input/TeX", "jax/element"]
MATHJAX_PARTS += [OUTPUT + part for part in ("jax.js", "config.js", "autoload", "fonts/TeX")]

SITE = os.path.join(BUILD, "docs")
VENV = os.path.join(BUILD, "book-venv")
SPHINX = [os.path.join(VENV, "bin/python"), "-I", "-B", "-m", "sphinx"]

# Doxygen's warnings about what needs no words: fields of a documented struct, specialisations of a documented template, moves,
# parameters beside one that has something to say, and what common/gemm/gemm.h says of all steps.
NEEDS_NO_WORDS = re.compile(
    r".*warning: Member .* \(variable\) of (struct|class) .* is not documented\."
    r"|.*warning: Member [^ (]*< .* is not documented\."
    r"|.*warning: Member .*&&other\) noexcept .* is not documented\."
    r"|.*warning: Member (Inputs|Tiles|MoreTiles|gemm)[ (].* of namespace step_[a-z0-9_]+ is not documented\."
    r"|.*warning: The following parameters? of .* (is|are) not documented:"
    r"|  parameter '.*'"
)


def install_tools():
    missing = toolchain.missing_commands(["doxygen"])
    if not os.path.isfile(f"{MATHJAX}/MathJax.js"):
        missing.append("libjs-mathjax")
    if not toolchain.can_make_venv():
        missing.append("python3-venv")
    if missing:
        packages.install(missing)
    toolchain.ensure_venv(["book"], VENV)


def state():
    """What the book depends on: the course's files, which pin Sphinx, where they lie, and Doxygen."""
    lines = []
    for place, folders, names in os.walk(ROOT):
        others = (BUILD, os.path.join(ROOT, "exercises", "my"))
        hidden = {name for name in folders if name.startswith(".") or name == "__pycache__" or os.path.join(place, name) in others}
        folders[:] = [name for name in folders if name not in hidden]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):
                status = os.stat(path)
                lines.append(f"{os.path.relpath(path, ROOT)} {status.st_size} {status.st_mtime_ns}")
    return "\n".join([ROOT, processes.ask(["doxygen", "--version"])[1].strip(), *sorted(lines)]) + "\n"


def copy_mathjax(static):
    for part in MATHJAX_PARTS:
        source, target = os.path.join(MATHJAX, part), os.path.join(static, "mathjax", part)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def run_doxygen(html):
    """Into the folder HTML. Returns what is wrong: a text, empty if all went well."""
    output = os.path.join(LOGS, "doxygen.log")
    with Progress("reading the API", output) as progress:
        code = progress.run(["doxygen", "docs/book/Doxyfile"], cwd=ROOT, env=processes.plain(DOCS_OUTPUT=html))
    due = sorted({line for line in files.lines(output) if line and not NEEDS_NO_WORDS.fullmatch(line)})
    if code and not due:
        due = [f"doxygen ended with exit code {code}."]
    return "".join(line.replace(ROOT + os.sep, "") + "\n" for line in due)


def build():
    log, stamp, now = os.path.join(LOGS, "docs.log"), os.path.join(SITE, ".state"), state()
    if files.text(stamp) == now:
        return
    new = SITE + ".new"
    html = os.path.join(new, "html")
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(html)
    wrong = run_doxygen(html)
    with Progress("writing the book", log) as progress:
        progress.write(wrong.encode())
        words = ["-q", "-W", "--keep-going", "-j", "auto", "-c", "docs/book", "-d", os.path.join(new, "doctrees"), ".", html]
        good = progress.run([*SPHINX, *words], cwd=ROOT) == 0 and not wrong
    if not good:
        show_end(log)
        raise Failed("the book has warnings or dead links, which count as errors.")
    copy_mathjax(os.path.join(html, "_static"))
    shutil.rmtree(os.path.join(new, "doctrees"))
    files.write(os.path.join(new, ".state"), now)
    shutil.rmtree(SITE, ignore_errors=True)
    os.rename(new, SITE)


def run(given):
    if given.everything:
        raise Refused(f"'{given.everything[0]}': docs takes no arguments but --force and --help.")
    with folder.locked():
        install_tools()
        if given.force:
            files.forget(os.path.join(SITE, ".state"))
        build()
    print(os.path.join(SITE, "html", "index.html"))
    return 0


COMMAND = Command(
    name="docs",
    usage="[OPTION...]",
    intro="""
    Builds the book into build/docs/html, and says where it begins: the lessons, each with its kernel and what that changes, the exercises,
    the manual, a full-text search (Sphinx), and the API (Doxygen). Every warning is an error, and so is a dead link. The pages need no
    network, formulas included.
    """,
    options=(options.FORCE.but(help="build again although nothing has changed"),),
    outro="Exit code: 0 the book is there, 1 a warning, a dead link or a failed installation, 2 refused input, 130 interrupted.",
    run=run,
)
