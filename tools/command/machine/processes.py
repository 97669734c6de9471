"""Starting other programs, so that none of them outlives a signal that ends this one; and the signals."""

import contextlib
import glob
import os
import select
import signal
import subprocess
import sys
import threading
import time

from .. import files
from ..messages import Failed, Terminated

# File descriptors of locks. Children keep them open: a lock holds until the last of them has ended, whatever ended this command.
held = []

GRACE = 3  # seconds that a program has to clean up


def plain(**more):
    """The environment of a program whose words are read here, in English, and MORE."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "", **more}


# --- signals: each raises what ends the command, once; so nothing disturbs what cleans up ---

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
arrived = 0  # the number of that which ends the command
held_back = None  # a list where one may not be raised: they wait there
running = set()  # children that may be ended at any time


def take_signals():
    """From here on they raise KeyboardInterrupt or Terminated. What nohup has ignored stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, take)
    sys.unraisablehook = end_anyway
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def hold_signals():
    """The command ends anyway."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def take(number, _):
    global arrived
    arrived = number
    for each in SIGNALS if number != signal.SIGINT else [number]:
        signal.signal(each, signal.SIG_IGN)
    for child in list(running):  # another thread may wait for one
        if child.is_alone:
            kill(child)
    if held_back is not None:
        held_back.append(number)
    else:
        throw(number)


def throw(number):
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


def end_anyway(unraisable):
    """Where Python swallows exceptions, in a callback, it would go on as if there had been no signal."""
    if not arrived:
        sys.__unraisablehook__(unraisable)
        return
    end_rest()
    os._exit(128 + arrived)


@contextlib.contextmanager
def uninterrupted():
    """Signals wait for the end of this; they are taken by the main thread alone."""
    global held_back
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held_back = []
    try:
        yield
    finally:
        waited, held_back = held_back, None
        for number in waited:
            throw(number)


def all_processes():
    """{pid: (its parent, when it was started)} of all there are."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        fields = files.text(path).rpartition(")")[2].split()  # a name may have blanks in it
        if len(fields) > 19:
            found[int(path.split("/")[2])] = int(fields[1]), fields[19]
    return found


class Ending:
    """What interrupts this command is passed on to CHILD and all that it has started."""

    def __init__(self, child, error, after=0):
        self.child, self.begin, self.known = child, time.monotonic() + after, {}
        # On a terminal Ctrl-C reaches them too, and a second one would disturb what they clean up. kill, docker and CI reach this
        # command alone.
        self.due = [(GRACE, signal.SIGINT)] if isinstance(error, KeyboardInterrupt) else [(0, signal.SIGTERM), (GRACE, signal.SIGKILL)]
        if child.is_protected:
            self.due = []
        self.go_on()

    def go_on(self):
        """Sends what is due."""
        while self.due and time.monotonic() - self.begin >= self.due[0][0]:
            _, number = self.due.pop(0)
            for pid in self.stopped():
                for each in (number, signal.SIGCONT):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, each)

    def stopped(self):
        """All that remain. They stand still, for one that is started between a look and the signal would be nobody's, and go on."""
        still = set()
        while more := set(self.remaining()) - still:
            for pid in more:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
            still |= more
        return still

    def remaining(self):
        """A process whose parent has ended is remembered from before."""
        there, below = all_processes(), [self.child.pid]
        for parent in below:
            below += [pid for pid, (of, _) in there.items() if of == parent]
        self.known.update({pid: there[pid] for pid in below if pid in there})
        return [pid for pid, (_, begin) in self.known.items() if pid in there and there[pid][1] == begin]


def end_rest():
    """Those that nobody waits for: a signal came between their start and that. A Ctrl-C has reached them too: they may clean up first."""
    rest, after = [child for child in list(running) if child.poll() is None], GRACE if arrived == signal.SIGINT else 0
    for ending in [Ending(child, Terminated(signal.SIGTERM), after) for child in rest]:
        while ending.due and ending.child.poll() is None:
            time.sleep(0.05)
            ending.go_on()


# --- starting, and waiting ---


def start(command, is_protected=False, is_alone=False, **options):
    """IS_ALONE: in a session of its own. IS_PROTECTED: that too, and it has to come to its end, whatever happens."""
    sys.stdout.flush()
    if arrived:
        throw(arrived)
    try:
        with uninterrupted():
            child = subprocess.Popen(command, pass_fds=tuple(held), start_new_session=is_alone or is_protected, **options)
            child.is_alone, child.is_protected = is_alone, is_protected
            if not is_protected:
                running.add(child)
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}.") from None
    return child


def kill(child):
    """One that is alone: it ends what it has started, and itself."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            child.terminate()


def wait(child, between=None):
    """The exit code of CHILD, as a shell gives it. Meanwhile calls BETWEEN() every second.

    The child may have something to clean up: what interrupts this is passed on, and then the child's end is waited for.
    """
    interruption = ending = None
    while True:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = child.wait(timeout=1.0 if between or ending else None)
                break
            if ending:
                ending.go_on()
            else:
                between()
        except BaseException as error:
            interruption, ending = interruption or error, Ending(child, error)
    running.discard(child)
    if interruption:
        raise interruption
    return shell_code(code)


def listen(command, hear, pause, **options):
    """The exit code of COMMAND. Calls HEAR(PIECE) with what it says as it comes, and PAUSE() when that is nothing for a second.

    What interrupts this waits for its end, as in wait().
    """
    child, interruption, ending = start(command, stdout=subprocess.PIPE, **{"env": plain(), **options}), None, None
    while True:
        try:
            if ending:
                ending.go_on()
            if not select.select([child.stdout], [], [], 1.0)[0]:
                if not ending:
                    pause()
                continue
            piece = os.read(child.stdout.fileno(), 65536)
            if not piece:
                break
            hear(piece)
        except BaseException as error:
            if not isinstance(error, (KeyboardInterrupt, Terminated)):
                hear = len  # cannot be told any more
            interruption, ending = interruption or error, Ending(child, error)
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
            env=plain(),
            check=False,
        )
    except OSError:
        return 127, ""
    return found.returncode, found.stdout


def succeeds(command, text=None):
    return ask(command, text)[0] == 0


def hold_ctrl_c():
    """For a script of tools/report, which takes Ctrl-C as soon as it can say what that means: terminal.py."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def become(command):
    """COMMAND takes this process's place: its signals and its exit code are the user's."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}.") from None
