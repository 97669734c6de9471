"""Runs a program and all that it starts within limits, as a process of its own: python3 supervise.py SPECIFICATION, in JSON.

Whatever the program starts and leaves, in sessions of its own too, becomes this process's child, is counted, and dead when this one
ends. It says on stderr, in JSON, how the program ended. If the process that started it ends, this one ends too, and removes a folder.
"""

import ctypes
import glob
import json
import os
import resource
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PAUSE = 0.05  # seconds between two looks
GRACE = 1  # seconds in which what a program leaves may end by itself, as behind a wall, which ends with its first process
prctl = ctypes.CDLL(None).prctl


class Ended(Exception):
    """By a signal."""


def end(*_):
    raise Ended


def content(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def children(pid):
    paths = glob.glob(f"/proc/{pid}/task/*/children")
    if paths:
        return [int(word) for path in paths for word in content(path).split()]
    stats = (content(path).rpartition(")") for path in glob.glob("/proc/[0-9]*/stat"))  # a kernel that has no such files
    return [int(head.split(" ")[0]) for head, _, rest in stats if rest and int(rest.split()[1]) == pid]


def below(pid):
    """All processes that have come from PID and live."""
    found = children(pid)
    for each in found:
        found += children(each)
    return [each for each in found if content(f"/proc/{each}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])]


def memory(pids):
    """Bytes of processes that are in memory."""
    fields = (content(f"/proc/{pid}/statm").split() for pid in pids)
    return sum(int(each[1]) for each in fields if len(each) > 1) * resource.getpagesize()


def start(command, folder, file_bytes):
    child = os.fork()
    if child:
        return child
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        os.dup2(1, 2)
        for number in (signal.SIGXFSZ, signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))  # object files are below that, too
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.execvp(command[0], command)
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", flush=True)
    os._exit(127)


def kill_all():
    """Those that are stopped first can start no others."""
    while found := below(os.getpid()):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        time.sleep(0.002)
        reap(0)


def reap(child):
    """The exit code of CHILD as a shell gives it, if it has ended; None before."""
    code = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        pass
    return 128 - code if code is not None and code < 0 else code


def watch(child, limits):
    """(exit code or None, why it was stopped or '', how many processes it has left)"""
    begin, pause = time.monotonic(), 0.005
    while True:
        code = reap(child)
        if code is not None:
            end = time.monotonic() + GRACE
            while (left := below(os.getpid())) and time.monotonic() < end:
                time.sleep(0.005)
                reap(0)
            return code, "", len(left)
        found = below(os.getpid())
        if time.monotonic() - begin > limits["seconds"]:
            return None, "seconds", 0
        if memory(found) > limits["bytes"]:
            return None, "bytes", 0
        if len(found) > limits["processes"]:
            return None, "processes", 0
        time.sleep(pause)
        pause = min(PAUSE, pause * 1.5)


def main():
    limits = json.loads(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != limits["parent"]:
            raise Ended
        child = start(limits["command"], limits["folder"], limits["file_bytes"])
        code, reason, left = watch(child, limits)
        kill_all()
        sys.stderr.write(json.dumps({"code": code, "reason": reason, "left": left}))
    except Ended:
        kill_all()
        if os.getppid() != limits["parent"] and limits["remove"]:
            import shutil  # slow to load

            shutil.rmtree(limits["remove"], ignore_errors=True)


if __name__ == "__main__":
    main()
