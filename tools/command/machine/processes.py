"""Starting other programs, so that none of them outlives a Ctrl-C half-way."""

import os
import select
import signal
import subprocess
import sys

from ..messages import Failed, Terminated

# File descriptors of locks. Children keep them open: a lock holds until the last of them has ended, whatever ended this command.
held = []


def start(command, **options):
    sys.stdout.flush()
    try:
        return subprocess.Popen(command, pass_fds=tuple(held), **options)
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}.") from None


def wait(child, between=None):
    """The exit code of CHILD, as a shell gives it. Meanwhile calls BETWEEN() every second.

    Ctrl-C reaches the child too, and the child may have something to clean up: what interrupts this waits for its end.
    """
    interruption = None
    while True:
        try:
            code = child.wait(timeout=1.0 if between else None)
            break
        except subprocess.TimeoutExpired:
            between()
        except KeyboardInterrupt as error:
            interruption = error
        except Terminated as error:
            interruption = error
            child.terminate()
    if interruption:
        raise interruption
    return shell_code(code)


def listen(command, hear, pause, **options):
    """The exit code of COMMAND. Calls HEAR(PIECE) with what it says as it comes, and PAUSE() when that is nothing for a second.

    What interrupts this waits for its end, as in wait().
    """
    child, interruption = start(command, stdout=subprocess.PIPE, **options), None
    while True:
        try:
            if not select.select([child.stdout], [], [], 1.0)[0]:
                pause()
                continue
            piece = os.read(child.stdout.fileno(), 65536)
            if not piece:
                break
            hear(piece)
        except KeyboardInterrupt as error:
            interruption = error
        except (Terminated, BrokenPipeError) as error:
            interruption = error
            child.terminate()
            if isinstance(error, BrokenPipeError):
                break
    child.stdout.close()
    code = wait(child)
    if interruption:
        raise interruption
    return code


def shell_code(code):
    return 128 - code if code < 0 else code


def was_interrupted(code):
    return code == 128 + signal.SIGINT


def run(command, **options):
    """The exit code of COMMAND, which has this command's input and output."""
    return wait(start(command, **options))


def ask(command, text=None):
    """(exit code, stdout) of a quick COMMAND that is given TEXT; (127, '') if it cannot be started."""
    try:
        found = subprocess.run(
            command,
            input=text or "",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError:
        return 127, ""
    return found.returncode, found.stdout


def succeeds(command, text=None):
    return ask(command, text)[0] == 0


def become(command):
    """COMMAND takes this process's place: its signals and its exit code are the user's."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}.") from None
