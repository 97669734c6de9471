"""course docs: API pages and lessons as a site of HTML pages."""

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
from ..places import BUILD, LOGS, PYTHON, ROOT

MATHJAX = "/usr/share/javascript/mathjax"
# Of its 54 MB, what an SVG from TeX needs.
OUTPUT = "jax/output/SVG/"
MATHJAX_PARTS = ["MathJax.js", "extensions", "jax/input/TeX", "jax/element"]
MATHJAX_PARTS += [OUTPUT + part for part in ("jax.js", "config.js", "autoload", "fonts/TeX")]

SITE = os.path.join(BUILD, "docs")

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
    if missing:
        packages.install(missing)


def state():
    """What the site depends on: the course's files, where they lie, and Doxygen."""
    lines = []
    for place, folders, names in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".") or name == "__pycache__" or os.path.join(place, name) == BUILD}
        folders[:] = [name for name in folders if name not in hidden]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):
                status = os.stat(path)
                lines.append(f"{os.path.relpath(path, ROOT)} {status.st_size} {status.st_mtime_ns}")
    return "\n".join([ROOT, processes.ask(["doxygen", "--version"])[1].strip(), *sorted(lines)]) + "\n"


def copy_mathjax(html):
    for part in MATHJAX_PARTS:
        source, target = os.path.join(MATHJAX, part), os.path.join(html, "mathjax", part)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def run_doxygen(site):
    """Into the empty folder SITE. Returns what is wrong: a text, empty if all went well."""
    output = os.path.join(site, "doxygen.log")
    with Progress("building the site", output) as progress:
        code = progress.run(["doxygen", "docs/Doxyfile"], cwd=ROOT, env=processes.plain(DOCS_OUTPUT=site))
    due = sorted({line for line in files.lines(output) if line and not NEEDS_NO_WORDS.fullmatch(line)})
    if code and not due:
        due = [f"doxygen ended with exit code {code}."]
    return "".join(line.replace(ROOT + os.sep, "") + "\n" for line in due)


def finish(progress, site):
    """What Doxygen does not do itself. The exit code."""
    html = os.path.join(site, "html")
    copy_mathjax(html)
    return progress.run([PYTHON, "-B", "docs/doxygen/site.py", "finish", html, os.path.join(site, "site.tag")], cwd=ROOT)


def build():
    log, stamp, now = os.path.join(LOGS, "docs.log"), os.path.join(SITE, ".state"), state()
    if files.text(stamp) == now:
        return
    new = SITE + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    wrong = run_doxygen(new)
    with Progress("finishing the site", log, may_be_idle=True) as progress:
        progress.write(wrong.encode())
        good = not wrong and finish(progress, new) == 0
    if not good:
        show_end(log)
        raise Failed("the site has warnings or dead links, which count as errors.")
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
    Builds the lessons, the manual and the pages of the API into build/docs/html, with Doxygen, and says where they begin. Every
    warning is an error, and so is a dead link. The pages need no network, formulas included.
    """,
    options=(options.FORCE.but(help="build again although nothing has changed"),),
    outro="Exit code: 0 the site is there, 1 a warning, a dead link or a failed installation, 2 refused input, 130 interrupted.",
    run=run,
)
