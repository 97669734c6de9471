"""From the command line to an exit code: 0, 1 it went wrong, 2 refused; 130, 131, 143 and 129 ended by Ctrl-C, Ctrl-\\, kill or a closed
terminal; 141 nobody reads the output any more."""

import contextlib
import fcntl
import importlib
import os
import shutil
import signal
import sys

from .machine import processes
from .messages import Refused, Stop, Terminated, escaped, say
from .places import PYCACHE, ROOT, tuning_cache

# Each is the module of its name (verify-all is verify_all.py) below subcommands/, loaded when it is asked for.
COMMANDS = {
    "run": "run steps: verify them, count or measure what they do",
    "tune": "find the best tile for a problem, show or forget what was found",
    "profile": "show what is predicted, counted and measured of one launch",
    "see": "show what a kernel did, as a page to step through",
    "bench": "measure all steps in many sizes, and their peers",
    "compare": "say what changed between two runs",
    "build": "build programs, tests or the library, and run nothing",
    "test": "run every test that this machine can run",
    "list": "show the exercises and what has passed",
    "start": "make your file of an exercise, and say what to do in it",
    "check": "check an exercise, the next one that has not passed",
    "watch": "check an exercise whenever its file is saved",
    "hint": "show a hint, one more each time",
    "solution": "show how the course solves an exercise",
    "reset": "begin an exercise anew; yours is kept",
    "grade": "check the exercises of a class, and give points",
    "verify-all": "test the exercises themselves",
    "interpret": "compile and run a CUDA program without a GPU, checks on",
    "docs": "build the lessons and the pages of the API as HTML",
}
# What tools/plot, tools/sass, tools/registers, tools/figures, tools/check-format, tools/gpu-checks, .ci/run and Ninja call: scripts/ has these.
SCRIPTS = ("plot", "sass", "registers", "figures", "record", "walk", "options", "wheels", "install", "lint", "where", "moveable")

HELP = """\
Usage: tools/course COMMAND [ARGUMENT...]

{commands}
  help       show this, or what 'tools/course COMMAND --help' shows
  --version  show the commit that this is

Each command installs what it needs by itself (Debian and Ubuntu). All that it
writes lies in build/, but for your answers: those are exercises/my/.
"""

HERE = """\
  tools/course check    check your answer; the first check makes the file
  tools/course watch    check it whenever you save it
  tools/course hint     a hint, one more each time
  tools/course list     all exercises
  tools/course run      the steps of the course; 'tools/course help' says what else there is
"""


def help_text():
    return HELP.format(commands="\n".join(f"  {name:<10} {summary}" for name, summary in COMMANDS.items()))


def where_one_is():
    """For who has typed no command: how far the exercises are, and how to go on."""
    from .exercises import checking, progress
    from .exercises.exercise import all_exercises

    if not all_exercises():
        return help_text()
    progress.take_over()
    return f"{checking.bar()}\n{checking.what_next()}\n\n{HERE}"


def module_of(name):
    return f".subcommands.{name.replace('-', '_')}"


def run_subcommand(name, words):
    from .cli.arguments import HelpWanted, help_of

    command = importlib.import_module(module_of(name), __package__).COMMAND
    processes.take_signals()
    try:
        arguments = command.parse(words)
    except HelpWanted:
        sys.stdout.write(help_of(command))
        return 0
    return command.run(arguments)


def dispatch(words):
    if not words:
        sys.stdout.write(where_one_is())
        return 0
    name, *rest = words
    if len(rest) > (name == "help") and name in ("help", "-h", "--help", "--version"):
        raise Refused(f"'{rest[-1]}': {name} takes no more arguments. For help with a command: 'tools/course help COMMAND'.")
    if name == "help" and rest and rest[0]:
        name, rest = rest[0], ["--help"]
    if name in ("help", "-h", "--help"):
        sys.stdout.write(help_text())
        return 0
    if name == "--version":
        from .subcommands.commit import export_commit

        export_commit()
        print(f"course, commit {os.environ['COURSE_COMMIT'] or 'unknown: this is no git checkout'}")
        return 0
    if name in SCRIPTS:
        script = importlib.import_module(f".scripts.{name}", __package__)
        processes.take_signals()
        return script.main(rest)
    if name not in COMMANDS:
        raise Refused(f"unknown command '{name}'; 'tools/course help' lists them.")
    return run_subcommand(name, rest)


def check_place():
    try:
        os.getcwd()
    except OSError:
        raise Refused("the folder in which this was typed is gone: cd to another one.") from None
    # CMake and Ninja have no way to write these.
    if any(character in ROOT for character in ';#"[]\\'):
        raise Refused(
            f'the course lies in {ROOT}, and CMake cannot build below a folder with ; # [ ] " or \\ in its name: rename it,'
            " or move the course."
        )


def check_streams():
    """A stream that is closed would be the next file that is opened; bash may have had its script there already."""
    for number in (0, 2):
        try:
            is_open = number == 0 or fcntl.fcntl(2, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            os.fstat(number)
        except OSError:
            is_open = False
        if not is_open:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if number == 2:
                sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
        raise Refused("stdout is closed, and results go there: leave it open, or send it to /dev/null.")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal without UTF-8


def end_by(number):
    """As a program that knows nothing of the signal: so a shell sees what has happened."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def say_what_failed(error):
    """What the system says of a file comes with its name; what is printed goes to stdout, which has none."""
    name, reason = error.filename2 or error.filename, error.strerror or error  # of a copy, where it goes
    if name:
        what = f"{name}: {reason}"
    else:
        what = f"cannot write to stdout: {reason}" if is_stuck(sys.stdout) else f"the system says: {reason}"
    with contextlib.suppress(OSError):  # not by say(): it would try to write the rest, too
        print(escaped(f"course: {what}."), file=sys.stderr, flush=True)


def is_stuck(stream):
    """Whether what was printed cannot be written."""
    try:
        stream.flush()
    except OSError:
        return True
    return False


def run(words):
    """The exit code."""
    try:
        check_streams()
        check_place()
        os.environ["COURSE_TUNING_CACHE"] = tuning_cache()
        code = dispatch(words)
        sys.stdout.flush()
        return code
    except Stop as stop:
        say(stop)
        return stop.code
    except SystemExit as end:  # somebody else has said why
        return end.code


def main(words):
    """The exit code. Nothing that was started goes on, and all is written."""
    try:
        try:
            code = run(words)
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
        except BrokenPipeError:
            code = 128 + signal.SIGPIPE
        except EOFError:  # of an import: half a module, of a disk that was full
            shutil.rmtree(PYCACHE, ignore_errors=True)
            code = 2
            say(f"{PYCACHE} was damaged, and is removed: try again.")
        except OSError as error:
            code = 2
            if not processes.arrived:
                say_what_failed(error)
        processes.hold_signals()
    except Terminated as end:
        code = 128 + end.number
    processes.end_rest()
    for stream in (sys.stdout, sys.stderr):
        is_stuck(stream)  # and is written as far as it can
    number = processes.arrived or next(iter(signal.sigpending()), 0)
    if number:  # whatever went wrong on the way out
        code = 128 + number
    if code == 128 + signal.SIGPIPE:
        end_by(signal.SIGPIPE)
    return code
